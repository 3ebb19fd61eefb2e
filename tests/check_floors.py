#!/usr/bin/env python3
"""Check the shape of the sources: floors, private headers, lengths.

usage: check_floors.py SOURCE_ROOT

The floors are read from src/README.md. Fails on a room that is not in its table or not on the disk,
on an include of a room on a higher floor or of another room on the same floor, on a *_private.h
included outside its room (tests excepted), on a file over 600 lines and a function over 60.
"""
import pathlib
import re
import sys

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
FLOOR = re.compile(r"^\|\s*(\d+)\s*\|\s*`(\w+)`\s*\|")
TOP = "tools"    # above every floor; the tests are above it


def read_floors(readme):
    text = readme.read_text()
    floors = {m[2]: int(m[1]) for m in map(FLOOR.match, text.splitlines()) if m}
    listed = re.finditer(r"((?:`\w+\.h`[,\s]*(?:and\s)?\s*)+)belongs? to (\w+)", text)
    homes = {name: m[2] for m in listed for name in re.findall(r"`(\w+\.h)`", m[1])}
    return floors, homes


def room_of_include(name, homes):
    """The room that a "..." include names; None when it is no room of ours."""
    folder, _, file = name.rpartition("/")
    if folder == "pagedkv":
        return homes.get(file, file[: -len(".h")])
    return folder.split("/")[0] if folder else None


def may_include(room, other, floors):
    return room == other or room == TOP or floors[other] < floors[room]


def check_includes(path, where, room, floors, homes):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        name = found[1]
        other = room_of_include(name, homes)
        if room == TOP and other is None:
            continue
        if other not in floors:
            yield f"{where}:{number}: '{name}' is in no room of src/README.md"
        elif name.endswith("_private.h") and other != room:
            yield f"{where}:{number}: '{name}' is private to {other}"
        elif not may_include(room, other, floors):
            yield (f"{where}:{number}: {room} (floor {floors[room]}) may not include '{name}' of "
                   f"{other} (floor {floors[other]})")


def check_lengths(path, where):
    lines = path.read_text().splitlines()
    if len(lines) > MAX_FILE_LINES:
        yield f"{where}: {len(lines)} lines, more than {MAX_FILE_LINES}"
    begin = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            begin = number
        elif line.startswith("}") and begin is not None:
            if number - begin + 1 > MAX_FUNCTION_LINES:
                yield (f"{where}:{begin}: a function of {number - begin + 1} lines, more than "
                       f"{MAX_FUNCTION_LINES}")
            begin = None


def sources(folder):
    return sorted(p for p in folder.rglob("*") if p.suffix in (".c", ".h"))


def check(root):
    floors, homes = read_floors(root / "src/README.md")
    if not floors:
        yield "src/README.md: no table of floors found"
        return
    rooms = {p.name for p in (root / "src").iterdir() if p.is_dir()}
    for room in sorted(rooms ^ set(floors)):
        fault = "not in the table" if room in rooms else "not in src"
        yield f"src/README.md: room '{room}' is {fault}"
    in_rooms = [(p, p.relative_to(root / "src").parts[0]) for p in sources(root / "src")]
    public = [(p, room_of_include(f"pagedkv/{p.name}", homes))
              for p in sources(root / "include/pagedkv")]
    above = [(p, TOP) for p in sources(root / TOP)]
    for path, room in in_rooms + public + above:
        where = path.relative_to(root)
        if room in floors or room == TOP:
            yield from check_includes(path, where, room, floors, homes)
        else:
            yield f"{where}: belongs to no room of src/README.md"
        yield from check_lengths(path, where)
    for path in sources(root / "tests"):
        yield from check_lengths(path, path.relative_to(root))


def main(argv):
    if len(argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    faults = list(check(pathlib.Path(argv[1])))
    for fault in faults:
        print(fault)
    if not faults:
        print("floors, private headers and lengths are in order")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
