"""Measure the clock: what it takes to time schedules on large clusters.

    python benchmarks/clock.py [--write]

Whole commands are processes of their own, from the start of Python to its end; the model alone is
the time of a second size, when the schedule's ways are known. With --write the tables go to
benchmarks/clock.md.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from report import report

from roundelay.algorithms import algorithms, find
from roundelay.clusters import cluster
from roundelay.simulate.clock import Clock
from roundelay.simulate.disturb import Jitter, spread
from roundelay.topology import Cluster, Fabric

SIZE = 256 << 20
CARDS = 16384
REPEATS = 3
MIXED = "step=normal:0.05,card=lognormal:0.03,link=pareto:5"


def whole(*words: str) -> tuple[float, int]:
    """Seconds and most bytes of memory of a `roundelay` command, the best of a few times."""
    best, memory = float("inf"), 0
    for _ in range(REPEATS):
        begin = time.perf_counter()
        command = [sys.executable, "-m", "roundelay", *words]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{' '.join(words)} failed")
        best = min(best, time.perf_counter() - begin)
        memory = max(memory, usage.ru_maxrss << 10)
    return best, memory


def processor(do: Callable[[], Any]) -> float:
    """Seconds of the processor, the least of a few times."""
    least = float("inf")
    for _ in range(REPEATS):
        begin = time.process_time()
        do()
        least = min(least, time.process_time() - begin)
    return least


def commands() -> Iterator[tuple[str, ...]]:
    """Whole commands: every all-reduce but the direct ones, a straggler, two levels at 100,000."""
    yield "whole command, 256 MiB", "s", "MB", "target"
    there = ("--cluster", "dgx-h100:2048", "--sizes", "256M")
    for a in algorithms("all_reduce"):
        direct = a.dense or a.name == "star"
        if direct or "groups" in a.parameters or a.name.endswith("switch"):
            continue
        words = ("simulate", f"all_reduce/{a.name}", *there)
        yield row(f"{a.name}, {CARDS:,} cards", whole(*words), "1 s, 300 MB")
    late = ("simulate", "all_reduce/ring", *there, "--straggler", "rank=37:1.10")
    yield row(f"ring, {CARDS:,} cards, one late", whole(*late), "3 s")
    for outer in ("ring", "halving_doubling", "double_tree"):
        words = ("simulate", "all_reduce/rails", "--cluster", "dgx-h100:12500", "--sizes", "256M",
                 "-p", f"outer={outer}")  # fmt: skip
        yield row(f"rails, outer={outer}, 100,000 cards", whole(*words), "2 s, 1 GB")
    explain = ("explain", "all_reduce", "256M", "--cluster", "dgx-h100:2048")
    yield row(f"explain all_reduce, {CARDS:,} cards", whole(*explain), "")


def row(what: str, found: tuple[float, int], target: str) -> tuple[str, ...]:
    return what, f"{found[0]:.2f}", f"{found[1] / 1e6:.0f}", target


def models() -> Iterator[tuple[str, ...]]:
    """The model alone, seconds of the processor."""
    yield "the model alone", "s of processor", "target"
    ring = find("all_reduce/ring")(4096)
    for name, where in (("one card a node, one switch", flat(4096)),
                        ("dgx-h100:512", cluster("dgx-h100:512"))):  # fmt: skip
        clock = Clock(ring, where)
        clock.time(SIZE)
        sizes = iter(range(SIZE + 1, SIZE + 1 + REPEATS))
        seconds = processor(lambda clock=clock, sizes=sizes: clock.time(next(sizes)))
        yield f"ring, 4,096 cards, {name}, all alike", f"{seconds:.3f}", "0.05"
        own = Jitter.parse("card=normal:0.05")
        seconds = processor(partial(spread, clock, SIZE, own, 1))
        yield f"ring, 4,096 cards, {name}, every card with its own jitter", f"{seconds:.2f}", "2"


def flat(nodes: int) -> Cluster:
    """As many cards, all alike: a node each, on one switch."""
    one = cluster("dgx-h100")
    return replace(one, nodes=nodes, cards=1, nics=replace(one.nics, count=1),
                   fabric=Fabric("switch"))  # fmt: skip


def samples() -> Iterator[tuple[str, ...]]:
    """A thousand samples over two levels, wall time."""
    yield "1,000 samples, rails with a double tree between nodes, 16,384 cards", "s", "target"
    schedule = find("all_reduce/rails")(CARDS, group=8, outer="double_tree")
    clock = Clock(schedule, cluster("dgx-h100:2048"))
    clock.time(SIZE)
    for text in ("step=normal:0.05", "card=lognormal:0.03", MIXED):
        begin = time.perf_counter()
        spread(clock, SIZE, Jitter.parse(text), 1000, threads=len(os.sched_getaffinity(0)))
        yield text, f"{time.perf_counter() - begin:.1f}", "10"


def table(rows: Iterator[tuple[str, ...]]) -> list[str]:
    """Markdown, as rows come."""
    lines = [""]
    for number, cells in enumerate(rows):
        lines.append("| " + " | ".join(cells) + " |")
        print(lines[-1], file=sys.stderr, flush=True)
        if not number:
            lines.append("|" + "---|" * len(cells))
    return lines


def figures() -> list[str]:
    """All tables."""
    return [line for rows in (commands, models, samples) for line in table(rows())]


if __name__ == "__main__":
    report(__file__, "The clock: what it takes", "", figures)
