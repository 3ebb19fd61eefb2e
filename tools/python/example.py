#!/usr/bin/env python3
"""A picture of a run: free blocks, the queue and preemptions over time.

usage: example.py SCENARIO.yaml PICTURE.png [KEY=VALUE...]

PICTURE may end in .svg or .pdf as well. Needs python3-numpy and python3-matplotlib, and pagedkv.py in
PYTHONPATH or beside this file.
"""
import sys

try:
    import pagedkv
    import matplotlib
    matplotlib.use("Agg")       # draws without a screen; a notebook leaves this line out
    import matplotlib.pyplot as plt
    import numpy as np
except ModuleNotFoundError as error:
    sys.exit(f"example.py: {error}, needed by this Python ({sys.executable}); apt install "
             "python3-matplotlib gives it to the system's, /usr/bin/python3")
except ImportError as error:    # of pagedkv, in a whole sentence
    sys.exit(f"example.py: {error}")


def draw(run):
    seconds = run.steps["time_ns"] / 1e9
    figure, (blocks, queue, preempted) = plt.subplots(3, sharex=True, figsize=(9, 6), layout="constrained")
    blocks.step(seconds, run.steps["free_blocks"], where="post", linewidth=0.8)
    blocks.set_ylabel("free blocks")
    queue.step(seconds, run.steps["waiting"], where="post", linewidth=0.8, label="waiting")
    queue.step(seconds, run.steps["running"], where="post", linewidth=0.8, label="running", linestyle="--")
    queue.set_ylabel("requests")
    queue.legend(loc="upper right")
    counts, edges = np.histogram(seconds, bins=80, weights=run.steps["preempted"])
    preempted.bar(edges[:-1], counts, width=np.diff(edges), align="edge")
    preempted.set_ylabel("preemptions")
    preempted.set_xlabel("virtual time, s")
    return figure


def main(scenario, picture, *words):
    run = pagedkv.run(scenario, dict(word.split("=", 1) for word in words))
    draw(run).savefig(picture)
    print(f"{picture}: {run.summary['steps']:,} steps, {run.summary['preemptions']:,} preemptions, "
          f"{run.steps['free_blocks'].min():,} free blocks at least")


if __name__ == "__main__":
    if len(sys.argv) < 3 or not all("=" in word for word in sys.argv[3:]):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except (pagedkv.Error, OSError, ValueError) as error:
        sys.exit(f"example.py: {error}")
