#!/usr/bin/env python3
"""Count what can be counted of the house style: no function over 60 lines and most under 25, no file
over 600 lines, no line far over 100 columns, no tab, no blank at a line's end, and a head comment. In
the pages for readers no prose is wider than 105 columns; tables, code and what has no blank to break at are.

usage: check_style.py SOURCE_ROOT
"""
import glob
import os
import sys

MAX_FUNCTION, MOST_FUNCTIONS, MAX_FILE = 60, 25, 600
MAX_COLUMNS = 110       # 100 is the aim, and a table may look better a little wider
PAGES, MAX_PROSE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"), 105


def function_lengths(lines):
    """A function's body stands between a { and a } in the first column."""
    begin = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            begin = number
        elif line == "}" and begin is not None:
            yield begin, number - begin + 1
            begin = None


def check_file(name, text, lengths):
    lines = text.split("\n")[:-1]
    if not text.endswith("\n"):
        yield 0, "no newline at the end"
    if not text.startswith("/*"):
        yield 1, "no head comment"
    if len(lines) > MAX_FILE:
        yield 0, f"{len(lines)} lines, at most {MAX_FILE}"
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            yield number, f"{len(line)} columns, at most {MAX_COLUMNS}"
        if "\t" in line or line.endswith(" "):
            yield number, "a tab, or a blank at the end"
    for number, length in function_lengths(lines):
        lengths.append(length)
        if length > MAX_FUNCTION:
            yield number, f"a function of {length} lines, at most {MAX_FUNCTION}"


def check_page(text):
    is_code = False
    for number, line in enumerate(text.split("\n"), 1):
        is_code ^= line.startswith("```")
        if not is_code and len(line) > MAX_PROSE and not line.startswith("|") and " " in line.strip():
            yield number, f"{len(line)} columns, at most {MAX_PROSE}"


def main(root):
    lengths, bad = [], 0
    for name in PAGES:
        with open(os.path.join(root, name), encoding="utf-8") as file:
            for number, what in check_page(file.read()):
                print(f"{name}:{number}: {what}")
                bad += 1
    names = [name for folder in ("include", "src", "tools", "tests") for ending in ("c", "h")
             for name in glob.glob(os.path.join(root, folder, "**", "*." + ending), recursive=True)]
    for name in sorted(names):
        with open(name, encoding="utf-8") as file:
            for number, what in check_file(name, file.read(), lengths):
                print(f"{os.path.relpath(name, root)}:{number}: {what}")
                bad += 1
    short = sum(length <= MOST_FUNCTIONS for length in lengths)
    print(f"{len(names)} files, {len(lengths)} functions, {short} of at most {MOST_FUNCTIONS} lines")
    return 1 if bad or not lengths or short * 4 < len(lengths) * 3 else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
