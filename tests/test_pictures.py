"""The pictures of the README are what their script draws from runs of this program, small, whole in
themselves, and true: test_pictures.py SCRIPT PROGRAM SCENARIOS.
"""
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

MAX_BYTES = 40_000
SVG = "{http://www.w3.org/2000/svg}"

# What the findings of the scenarios say; tests of these hold them against the runs.
SAYS = {
    "paging.svg": ["19 %", "11 %", "61 %", "9 %", "27 %", "17 %", "47 %", "37 %", "23 %", "30 %", "94 %",
                   "7.0", "10.3", "14.0", "35.9", "0.80", "1.15", "1.55", "3.31", "100 %"],
    "gate.svg": ["27,778", "769", "virtual time, min"],
    "spike.svg": ["700", "60", "21", "virtual time, s"],
}
PLOT_HEIGHT = 74


def check(condition, *what):
    if not condition:
        sys.exit(" ".join(map(str, what)))


def lowest(path):
    """The largest ordinate of a line of steps is its lowest point, the smallest its peak."""
    ys = [float(y) for y in re.findall(r"[V ]([\d.]+)(?=[HV]|$)", path)]
    return min(ys), max(ys)


def check_peaks(root):
    """At most 55 wait in the one run and 60 in the other, and never fewer than nobody."""
    lines = [path for path in root.iter(SVG + "path") if path.get("class") in ("a", "b")][2:]
    panels = [lines[i:i + 2] for i in range(0, len(lines), 2)]
    (base_top, base_low), (other_top, other_low) = (lowest(path.get("d")) for path in panels[1])
    check(base_low == other_low, "the waiting lines end at", base_low, other_low)
    for top, peak in (base_top, 55), (other_top, 60):
        check(abs((base_low - top) - peak * PLOT_HEIGHT / 60) < 0.11, "a peak of", peak, "is drawn at", top)


def check_picture(name, text):
    root = ElementTree.fromstring(text)
    texts = [element.text for element in root.iter(SVG + "text")]
    check(len(text) <= MAX_BYTES, name, "has", len(text), "bytes")
    check(root.find(SVG + "title") is not None and root.find(SVG + "desc") is not None, name, "says nothing")
    loaded = re.findall(r"https?://(?!www\.w3\.org/2000/svg)|href|url\(|@import|<script", text.decode())
    check(not loaded, name, "loads", loaded)
    for said in SAYS[name]:
        check(said in texts, name, "does not say", said, texts)
    if name == "spike.svg":
        check_peaks(root)


def main():
    script, program, scenarios = sys.argv[1:]
    shipped = os.path.join(scenarios, "pictures")
    with tempfile.TemporaryDirectory(prefix="pagedkv-test-") as made:
        subprocess.run([sys.executable, script, program, scenarios, made], check=True)
        check(sorted(os.listdir(made)) == sorted(os.listdir(shipped)) == sorted(SAYS), "other pictures")
        for name in SAYS:
            with open(os.path.join(made, name), "rb") as wanted, \
                 open(os.path.join(shipped, name), "rb") as there:
                text = there.read()
                check(wanted.read() == text, name, "is not what", script, "draws")
            check_picture(name, text)


if __name__ == "__main__":
    main()
