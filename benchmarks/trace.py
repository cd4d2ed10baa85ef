"""Measure what tracing costs: all-reduce with and without it, in turn, in one run.

    python benchmarks/trace.py [--write]

Two processes make blocks of calls, one block with a trace and one without, many times. With
--write the table goes to benchmarks/trace.md. The machine should have nothing else to do.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from report import report

from roundelay.run.launch import rank_environments
from roundelay.units import format_size

RANKS = 2
SIZES = (8, 64 << 10, 1 << 20, 16 << 20)
BLOCKS = 60
SECONDS = 0.05  # of a block
TARGET = 5.0  # per cent, at 1 MiB


def measure(file: str) -> None:
    """One of the ranks; rank 0 writes what it has found: ns of each block's median call."""
    from roundelay.communicator import init

    found = {}
    with init() as comm:
        for size in SIZES:
            x = np.ones(size // 4, np.float32)
            calls = _calls(comm, x)
            pairs = []
            for turn in range(BLOCKS):
                plain = _block(comm, x, calls) if turn % 2 else 0.0
                with comm.trace() as trace:
                    traced = _block(comm, x, calls)
                plain = plain or _block(comm, x, calls)
                pairs.append((plain, traced))
            found[size] = {"calls": calls, "pairs": pairs, "events": len(trace.timeline) // calls}
        if comm.rank == 0:
            Path(file).write_text(json.dumps(found))


def _calls(comm, x) -> int:
    """Calls of a block, the same on all ranks."""
    _block(comm, x, 20)
    each = np.array([_block(comm, x, 20)])
    comm.all_reduce(each, op="max")
    return int(min(max(SECONDS * 1e9 / each[0], 5), 20_000))


def _block(comm, x, calls: int) -> float:
    """The median call of a block, in ns."""
    x.fill(0)
    comm.barrier()
    times = np.empty(calls + 1, np.int64)
    times[0] = time.perf_counter_ns()
    for i in range(calls):
        comm.all_reduce(x)
        times[i + 1] = time.perf_counter_ns()
    return float(np.median(np.diff(times)))


def figures() -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "found.json")
        processes = [
            subprocess.Popen([sys.executable, __file__, "--rank", file], env=environment)
            for environment in rank_environments(os.environ, RANKS)
        ]
        if sum(p.wait() for p in processes):  # of all of them, not up to the first
            raise SystemExit("a rank failed")
        found = json.loads(Path(file).read_text())
    lines = [
        "",
        f"{RANKS} ranks, float32, sum, in place; {BLOCKS} pairs of blocks of calls, a block with",
        "a trace and one without, which of them first taking turns. A block counts by its median",
        "call. The cost is the median over pairs of traced / plain, with the quartiles.",
        f"The target is less than {TARGET:.0f} % at 1 MiB.",
        "",
        "| size | plain, us | traced, us | cost | quartiles | events a call, all ranks |",
        "|---|---|---|---|---|---|",
    ]
    for size, row in found.items():
        plain, traced = (statistics.median(c) / 1e3 for c in zip(*row["pairs"], strict=True))
        cost = [100 * (t / p - 1) for p, t in row["pairs"]]
        low, middle, high = statistics.quantiles(cost, n=4)
        lines.append(
            f"| {format_size(int(size))} | {plain:,.2f} | {traced:,.2f} | {middle:+.1f} % | "
            f"{low:+.1f} to {high:+.1f} % | {row['events']} |"
        )
    return lines


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        measure(sys.argv[2])
    else:
        report(__file__, "Tracing: what it costs", "", figures)
