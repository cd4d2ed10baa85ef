"""Measure what check sums cost between two nodes over loopback.

    python benchmarks/checksums.py [--write]

Two jobs of two ranks each, one with ROUNDELAY_CHECKSUM=1, take turns block by block. A run takes
about a minute, and the machine should have nothing else to do. With --write the table goes to
benchmarks/checksums.md.
"""

import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from report import report

from roundelay import _native
from roundelay.bench import ours
from roundelay.bench.cells import Point, Request, count_of
from roundelay.bench.contest import Contestant
from roundelay.bench.job import Job
from roundelay.units import format_size

SIZES = (8, 32 << 10, 1 << 20, 16 << 20)
BLOCKS = 12
SECONDS = 4.0  # of timed calls of each side and size
CALLS = (20, 2000)  # at least and at most
SIDES = {"without": "0", "with": "1"}


@contextlib.contextmanager
def jobs():
    """The two jobs, each rank of a node of its own."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        made = {}
        for side, value in SIDES.items():
            address = Path(name) / f"{side}.sock"
            command = ours.command(2, address)
            env = [{**env, "ROUNDELAY_NODE": f"node{r}", "ROUNDELAY_CHECKSUM": value}
                   for r, env in enumerate(command.env)]  # fmt: skip
            made[side] = Job(side, 2, command._replace(env=env), Path(name), address)
            stack.callback(made[side].close)
        for job in made.values():
            job.wait()
        yield made


def measure(made, size):
    """Medians in us, without and with sums."""
    point = Point("all_reduce", "auto", 2, count_of("all_reduce", size, 2, "float32"), "float32",
                  "sum", 0)  # fmt: skip
    sides = [Contestant(made[name], point.usually_in_place, True) for name in SIDES]
    for side in sides:
        side.prepare(point, Request((), (2,), ()), check=True)
        assert side.wrong == 0
    slower = max(side.call_seconds for side in sides)
    calls = min(max(int(SECONDS / slower), CALLS[0]), CALLS[1]) // BLOCKS + 1
    for turn in range(BLOCKS):
        for side in sides if turn % 2 else sides[::-1]:
            side.run(calls, 1)
    found = [side.figure() for side in sides]
    print(format_size(size), found, file=sys.stderr, flush=True)
    return [figure.time_us for figure in found]


def rate(portable):
    """GB/s of one sum over a buffer that fits into the cache."""
    data = np.ones(1 << 18, np.uint8)
    best = float("inf")
    for _ in range(200):
        begun = time.perf_counter()
        _native.checksum(data, portable=portable)
        best = min(best, time.perf_counter() - begun)
    return data.size / best / 1e9


def figures():
    load = os.getloadavg()[0]
    with jobs() as made:
        rows = [(size, *measure(made, size)) for size in SIZES]
    return [
        f"- load of the machine before the run: {load:.1f}",
        "",
        "all_reduce of float32 in place over 2 ranks, each a node of its own, over loopback;",
        "medians, both jobs in turn; the results of both are checked. On loopback both ends",
        "share the machine, and its TCP is faster than most networks: the cost is at its highest.",
        "",
        "| size | without, us | with sums, us | with / without |",
        "|---|---|---|---|",
        *(f"| {format_size(size)} | {a:,.0f} | {b:,.0f} | {b / a:.2f} |" for size, a, b in rows),
        "",
        f"CRC-32C alone, one thread: {rate(False):.1f} GB/s with the processor's instruction, "
        f"{rate(True):.1f} GB/s by tables.",
    ]


if __name__ == "__main__":
    report(__file__, "Check sums: figures", "", figures)
