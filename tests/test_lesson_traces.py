"""The traces of the scenarios for teaching are byte for byte what their script writes, and small:
test_lesson_traces.py SCRIPT FOLDER.
"""
import os
import subprocess
import sys
import tempfile

MAX_BYTES = 60_000

script, folder = sys.argv[1:]
with tempfile.TemporaryDirectory(prefix="pagedkv-test-") as made:
    subprocess.run([sys.executable, script, made], check=True)
    for name in sorted(os.listdir(made)):
        with open(os.path.join(made, name), "rb") as wanted, \
             open(os.path.join(folder, name), "rb") as shipped:
            text = shipped.read()
            if wanted.read() != text:
                sys.exit(f"{name} is not what {script} writes: run `{script} {folder}`")
        if len(text) >= MAX_BYTES:
            sys.exit(f"{name} has {len(text)} bytes, at most {MAX_BYTES} are wished")
