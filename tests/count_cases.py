#!/usr/bin/env python3
"""Count every case of the tests that Meson ran.

usage: count_cases.py TESTLOG.json...

A test that speaks TAP counts once a case, any other once. Names what failed, then ends with one
line, 'N passed, N failed' (', N skipped' when some were). Exit status 0 if nothing failed and
something passed.
"""
import json
import re
import sys

CASE = re.compile(r"^(not )?ok\b(?:\s+\d+)?\s*-?\s*([^#]*)(?:#\s*(skip|todo)\b)?", re.I)
ALL_SKIPPED = re.compile(r"^1\.\.0\s*#\s*skip\s*(.*)", re.I)
EXIT_SKIPPED = 77


class Counts:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def fail(self, what):
        self.failed += 1
        print(f"failed: {what}")


def count_test(test, counts):
    name, result = test["name"], test["result"]
    lines = (test.get("stdout") or "").splitlines()
    cases = [m for m in map(CASE.match, lines) if m]
    if test.get("returncode") == EXIT_SKIPPED or result == "SKIP" and not cases:
        reason = next((m[1] for m in map(ALL_SKIPPED.match, lines) if m), lines[-1] if lines else "")
        counts.skipped += 1
        print(f"skipped: {name}: {reason}")
        return
    bad = 0
    for case in cases:
        if (case[3] or "").lower() == "skip":
            counts.skipped += 1
        elif case[1]:
            bad += 1
            counts.fail(f"{name}: {case[2].strip()}")
        else:
            counts.passed += 1
    if result in ("OK", "EXPECTEDFAIL"):
        counts.passed += not cases
    elif not bad:
        counts.fail(f"{name}: {result.lower()}, exit status {test.get('returncode')}")


def main(paths):
    counts = Counts()
    for path in paths:
        try:
            with open(path, encoding="utf-8") as log:
                for line in log:
                    count_test(json.loads(line), counts)
        except (OSError, ValueError) as error:
            counts.fail(f"{path}: {error}")
    skipped = f", {counts.skipped} skipped" if counts.skipped else ""
    print(f"{counts.passed} passed, {counts.failed} failed{skipped}")
    return 1 if counts.failed or not counts.passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
