"""The shipped sample trace is byte for byte what its script writes: test_sample_trace.py SCRIPT TRACE."""
import subprocess
import sys

script, trace = sys.argv[1:]
made = subprocess.run([sys.executable, script], stdout=subprocess.PIPE, check=True).stdout
with open(trace, "rb") as file:
    shipped = file.read()
if made != shipped:
    sys.exit(f"{trace} is not what {script} writes: run `{script} {trace}`")
lines = shipped.count(b"\n")
if lines != 1000 or len(shipped) >= 200_000:
    sys.exit(f"{trace} has {lines} lines and {len(shipped)} bytes, not 1,000 below 200 kB")
