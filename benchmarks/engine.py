"""Measure the engine's collectives beside other libraries, and beside what memory can move.

    python benchmarks/engine.py [--write]

The rivals are those that `roundelay bench` finds; see its page for the environment variables that
name other Pythons. A whole run takes about twenty minutes, and the machine should have nothing
else to do. With --write the tables go to benchmarks/engine.md.
"""

import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from report import report

from roundelay.units import format_size

RANKS = "2,4,8"
RIVALS = ("gloo", "openmpi", "mpich", "impi")
ADDED = 64 << 20  # bytes of each array of the memory comparison
ADDITIONS = 12
WORST = 10

Result = dict[str, Any]


def bench(*words: str) -> Result:
    """What `roundelay bench` with these words gives as JSON; its talk goes to stderr."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        command = [sys.executable, "-m", "roundelay", "--lang", "en", "bench", *words]
        subprocess.run([*command, f"--json={file}"], check=True, stdout=sys.stderr)
        return json.loads(file.read_text())


def usual(result: Result) -> list[Result]:
    """The rows in the form in which rivals are measured."""
    whole = ("all_reduce", "reduce", "broadcast")
    return [r for r in result["rows"] if r["in_place"] == (r["collective"] in whole)]


def us(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def table(heads: list[str], rows: Iterable[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def grid(result: Result) -> list[str]:
    """A table for each collective and number of ranks."""
    lines: list[str] = []
    rows = usual(result)
    for key in dict.fromkeys((r["collective"], r["ranks"]) for r in rows):
        some = [r for r in rows if (r["collective"], r["ranks"]) == key]
        where = "in place" if some[0]["in_place"] else "out of place"
        lines += [f"### {key[0]}, {key[1]} ranks, {where}", ""]
        lines += table(
            ["size", "ours, us", "busbw, GB/s", *(f"{name}, us" for name in RIVALS), "ratio",
             "wrong", "ping, ns"],
            ([format_size(r["bytes"]), us(r["time_us"]), f"{r['busbw_GBps']:.3g}",
              *(us(r["rivals"].get(name)) for name in RIVALS), ratio(r["ratio"]),
              str(r["wrong"]), us(r["ping_ns"])] for r in some),
        )  # fmt: skip
    return lines


def summary(result: Result) -> list[str]:
    """The mean, also by number of ranks, and the worst cells."""
    compared = [r for r in usual(result) if r["ratio"] is not None]
    if not compared:
        return ["No rival was found.", ""]
    means = [["all", ratio(result["geometric_mean"])]]
    for n in sorted({r["ranks"] for r in compared}):
        some = [r["ratio"] for r in compared if r["ranks"] == n]
        means.append([str(n), ratio(statistics.geometric_mean(some))])
    ahead = sum(r["ratio"] <= 1 for r in compared)
    worst = sorted(compared, key=lambda r: -r["ratio"])[:WORST]
    cells = ([r["collective"], str(r["ranks"]), format_size(r["bytes"]), us(r["time_us"]),
              ratio(r["ratio"])] for r in worst)  # fmt: skip
    return [
        f"Cells in which ours is at least as fast as the best rival: {ahead} of {len(compared)}.",
        "",
        *table(["ranks", "geometric mean of ours / best rival"], means),
        "The worst cells:",
        "",
        *table(["collective", "ranks", "size", "ours, us", "ratio"], cells),
    ]


def _add(core: int, meet: Any, spans: Any) -> None:
    """One of two processes that add arrays at the same time."""
    os.sched_setaffinity(0, {core})
    a, d = np.ones(ADDED // 4, np.float32), np.ones(ADDED // 4, np.float32)
    d += a
    found = []
    for _ in range(ADDITIONS):
        meet.wait()
        begun = time.monotonic_ns()
        d += a
        found.append((begun, time.monotonic_ns()))
    spans.put(found)


def memory_speed() -> float:
    """GB/s that two processes move, each by `d += a`: two arrays read and one written."""
    context = multiprocessing.get_context("fork")
    meet, spans = context.Barrier(2), context.SimpleQueue()
    cores = sorted(os.sched_getaffinity(0))
    processes = [
        context.Process(target=_add, args=(cores[i % len(cores)], meet, spans)) for i in range(2)
    ]
    for process in processes:
        process.start()
    found = [spans.get() for _ in processes]
    for process in processes:
        process.join()
    times = [max(e for _, e in pair) - min(b for b, _ in pair) for pair in zip(*found, strict=True)]
    return 2 * 3 * ADDED / statistics.median(times)


def against_memory(rivals: list[str]) -> list[str]:
    """128 MiB in shared arrays over two ranks, with the speed of memory before and after."""
    before = memory_speed()
    result = bench(
        "all_reduce", "-n", "2", "--sizes", "128M", "--shared", "--seconds", "3", *rivals
    )
    after = memory_speed()
    row = usual(result)[0]
    memory = (before + after) / 2
    moved = 2 * 2 * row["bytes"] / row["time_us"] / 1e3
    return [
        "## All-reduce of 128 MiB in shared arrays, 2 ranks, beside the speed of memory",
        "",
        "Memory: two processes, a core each, do `d += a` on float32 arrays of 64 MiB at the same",
        "time; 3 x 64 MiB count for each. All-reduce: at the least two inputs are read and two",
        "outputs written, 4 x 128 MiB.",
        "",
        *table(
            ["memory before, GB/s", "after", "all-reduce, us", "GB/s", "of memory's",
             "best rival / ours"],
            [[f"{before:.1f}", f"{after:.1f}", us(row["time_us"]), f"{moved:.1f}",
              f"{moved / memory:.2f}", ratio(1 / row["ratio"] if row["ratio"] else None)]],
        ),
    ]  # fmt: skip


def types() -> list[str]:
    """bfloat16 beside float32 with as many elements, in turn."""
    times: dict[tuple[int, str], list[float]] = {}
    for _ in range(3):
        for dtype, size in (("float32", "16M"), ("bfloat16", "8M")):
            for row in usual(bench("all_reduce", "-n", RANKS, "--sizes", size, "-d", dtype)):
                times.setdefault((row["ranks"], dtype), []).append(row["time_us"])
    rows = []
    for n in map(int, RANKS.split(",")):
        wide, narrow = (statistics.median(times[n, d]) for d in ("float32", "bfloat16"))
        rows.append([str(n), us(wide), us(narrow), ratio(narrow / wide)])
    return [
        "## All-reduce of 4 Mi elements: bfloat16 beside float32",
        "",
        "Medians of three runs each, in turn.",
        "",
        *table(["ranks", "float32 (16 MiB), us", "bfloat16 (8 MiB), us", "ratio"], rows),
    ]


def figures() -> list[str]:
    rivals = ["--against", ",".join(RIVALS)]
    result = bench("all", "-n", RANKS, *rivals)
    if all(version is None for name, version in result["versions"].items() if name in RIVALS):
        rivals = []
    versions = [f"{name}: {version or 'not found'}" for name, version in result["versions"].items()]
    return [
        f"- command of the grid: `roundelay bench all -n {RANKS} --against {','.join(RIVALS)}`",
        f"- libraries: {'; '.join(versions)}",
        "",
        "float32, sum. The time of a call goes from the first rank's start to the last rank's end,",
        "after a barrier that belongs to none of the libraries; buffers are written before each",
        "call; medians; the libraries take turns in one run. The ratio is ours / best rival, below",
        "1 where ours is faster. Sizes as in nccl-tests; 4 and 8 ranks share the cores.",
        "",
        "## Ours beside the best rival",
        "",
        *summary(result),
        *against_memory(rivals),
        *types(),
        "## The grid",
        "",
        *grid(result),
    ]


if __name__ == "__main__":
    report(__file__, "The engine: figures", "", figures)
