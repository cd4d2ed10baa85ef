"""Measure what counting costs: small calls with this source tree and with another one, in turn.

    python benchmarks/watch.py OTHER [--write]

OTHER is a folder from which `import roundelay` gives another version with its native core, such as
the `src` of a checkout before a change. Each turn starts a job with either. With --write the table
goes to benchmarks/watch.md. The machine should have nothing else to do.
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from report import report

HERE = Path(__file__).resolve().parents[1] / "src"
TURNS = 30
BLOCKS, CALLS = 200, 2000
TARGET = 1.0  # per cent, of two ranks


def measure() -> None:
    """One of the ranks; rank 0 prints the ns of a call in its quickest block."""
    from roundelay.communicator import init

    with init() as comm:
        x = np.zeros(2, np.float32)
        call = comm.all_reduce
        least = np.inf
        for _ in range(BLOCKS):
            comm.barrier()
            begun = time.perf_counter_ns()
            for _ in range(CALLS):
                call(x)
            least = min(least, (time.perf_counter_ns() - begun) / CALLS)
        if comm.rank == 0:
            print(least)


def quickest(source: str | Path, ranks: int) -> float:
    """The ns of a call, of a job with this source tree."""
    from roundelay.run.launch import rank_environments

    path = {"PYTHONPATH": str(source)}
    processes = [
        subprocess.Popen([sys.executable, __file__, "--rank"], env={**environment, **path},
                         stdout=subprocess.PIPE, text=True)
        for environment in rank_environments(os.environ, ranks)
    ]  # fmt: skip
    said = [p.communicate()[0] for p in processes]
    if any(p.returncode for p in processes):
        raise SystemExit("a rank failed")
    return float(said[0])


def figures(other: str) -> list[str]:
    lines = [
        "",
        f"All-reduce of 8 bytes, in place, from Python. {TURNS} turns; in each a job with the",
        "version before and one with this, which of them first taking turns. A job makes",
        f"{BLOCKS} blocks of {CALLS:,} calls and counts by its quickest block. The cost is the",
        f"median of the turns' differences. The target is less than {TARGET:.0f} % with 2 ranks.",
        "One rank exchanges with nobody, so that what is added to a call stands alone.",
        "",
        "| ranks | before, ns | with counting, ns | cost, ns | quartiles | cost |",
        "|---|---|---|---|---|---|",
    ]
    for ranks in (1, 2):
        pairs = []
        for turn in range(TURNS):
            first = quickest(HERE, ranks) if turn % 2 else 0.0
            before = quickest(other, ranks)
            pairs.append((before, first or quickest(HERE, ranks)))
        old, new = (statistics.median(c) for c in zip(*pairs, strict=True))
        low, middle, high = statistics.quantiles([b - a for a, b in pairs], n=4)
        lines.append(
            f"| {ranks} | {old:,.1f} | {new:,.1f} | {middle:+.1f} | {low:+.1f} to {high:+.1f} | "
            f"{100 * middle / old:+.2f} % |"
        )
    return lines


if __name__ == "__main__":
    if sys.argv[1:] == ["--rank"]:
        measure()
    else:
        before = sys.argv.pop(1)
        report(__file__, "Counting: what it costs", "", lambda: figures(before))
