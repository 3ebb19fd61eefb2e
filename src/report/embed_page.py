#!/usr/bin/env python3
"""Make one C file of the page that report.html is: its frame, its style, its scripts and dygraphs.

usage: embed_page.py OUT.c OUT.h NOTICE DYGRAPHS_FOLDER FILE...

FILE is page.html, page.css, page.js and the panels, in the order in which they are run. NOTICE is the
copyright file of dygraphs; it goes into the page whole.
"""
import os
import re
import sys


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def script(name, text):
    text = re.sub(r"(?m)^//# sourceMappingURL=.*\n?", "", text)
    if "</script" in text.lower() or "<!--" in text:
        sys.exit(f"{name}: would end the script element it stands in")
    return f"<script>\n{text.rstrip()}\n</script>\n"


def style(name, text):
    text = re.sub(r"/\*# sourceMappingURL=.*?\*/\n?", "", text)
    if "</style" in text.lower():
        sys.exit(f"{name}: would end the style element it stands in")
    return f"<style>\n{text.rstrip()}\n</style>\n"


def array(name, text):
    data = text.encode()
    rows = [", ".join(str(byte) for byte in data[at:at + 24]) for at in range(0, len(data), 24)]
    return (f"const size_t {name}_size = {len(data)};\n"
            f"const unsigned char {name}[] = {{\n    " + ",\n    ".join(rows) + "\n};\n")


def main(out_c, out_h, notice, dygraphs, *files):
    by_name = {os.path.basename(path): read(path) for path in files}
    page = by_name["page.html"]
    styles = style("dygraph.min.css", read(os.path.join(dygraphs, "dygraph.min.css")))
    scripts = script("dygraph.min.js", read(os.path.join(dygraphs, "dygraph.min.js")))
    for name, text in by_name.items():
        if name.endswith(".css"):
            styles += style(name, text)
        elif name.endswith(".js"):
            scripts += script(name, text)
    legal = read(notice).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    for mark, text in (("STYLE", styles), ("NOTICE", legal.rstrip()), ("SCRIPTS", scripts)):
        if page.count(f"<!--{mark}-->") != 1:
            sys.exit(f"page.html: <!--{mark}--> should be there once")
        page = page.replace(f"<!--{mark}-->", text, 1)
    before, rest = page.split("<!--TITLE-->")
    middle, after = rest.split("<!--ISLANDS-->")
    parts = {"web_before_title": before, "web_before_islands": middle, "web_after_islands": after}
    with open(out_c, "w", encoding="ascii") as file:
        file.write('#include "report/web_page.h"\n')
        file.writelines(array(name, text) for name, text in parts.items())
    with open(out_h, "w", encoding="ascii") as file:
        file.write("#include <stddef.h>\n")
        file.writelines(f"extern const size_t {name}_size;\nextern const unsigned char {name}[];\n"
                        for name in parts)


if __name__ == "__main__":
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    main(*sys.argv[1:])
