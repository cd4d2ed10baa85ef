"""Measure the native reductions, against NumPy and against what memory can move.

    python benchmarks/reduce.py [--write]

What stands in one row of a table is run in turn, over and over, and each figure is the median of
its runs, so that a slow moment of the machine meets all alike. All buffers are written before they
are read. GB/s counts every source read once and the destination written once; 1 GB is 1e9 bytes.
With --write the tables go to benchmarks/reduce.md.
"""

import statistics
import time
from collections.abc import Callable

import numpy as np
from report import report

from roundelay import _native

SIZES = {"float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "float8_e4m3fn": 1,
         "float8_e5m2": 1, "int64": 8, "int32": 4, "int8": 1, "complex64": 8}  # fmt: skip
LARGE = 1 << 25  # elements: 128 MiB of float32, far more than caches hold
SMALL = 1 << 14  # elements: 64 KiB of float32, inside a core's own cache


def medians(works: list[Callable[[], object]], elements: int) -> list[float]:
    """Seconds of one call of each, run in turn."""
    calls = max(1, (1 << 21) // elements)
    rounds = 15 if elements >= LARGE else 31
    times: list[list[float]] = [[] for _ in works]
    for turn in range(rounds + 1):
        for work, found in zip(works, times, strict=True):
            begun = time.perf_counter()
            for _ in range(calls):
                work()
            if turn > 0:  # the first only warms up
                found.append((time.perf_counter() - begun) / calls)
    return [statistics.median(found) for found in times]


def buffers(dtype: str, elements: int, n: int) -> list[np.ndarray]:
    """Small numbers of the type, each buffer in memory of its own."""
    rng = np.random.default_rng(n)
    if dtype in ("float16", "bfloat16"):
        code = 0x3C00 if dtype == "float16" else 0x3F80
        return [(code + rng.integers(0, 64, elements, "u2")) for _ in range(n)]
    if dtype.startswith("float8"):
        return [rng.integers(0x30, 0x48, elements, "u1") for _ in range(n)]
    return [rng.integers(1, 4, elements).astype(dtype) for _ in range(n)]


def call(op: str, dtype: str, to: np.ndarray, sources: list[np.ndarray], **more: object):
    scale = {"avg": 4, "premul_sum": 2}.get(op)
    return lambda: _native.reduce(op, dtype, to, sources, scale, **more)


def table(heads: list[str], rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def us(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f}" if seconds < 1e-4 else f"{seconds * 1e6:,.0f}"


def against_numpy() -> list[str]:
    rows = []
    for kib in (4, 64, 1024, 16 * 1024, 128 * 1024):
        elements = kib * 256
        a, b, to = buffers("float32", elements, 3)
        apart, numpy_apart, within, numpy_within = medians(
            [
                call("sum", "float32", to, [a, b]),
                lambda a=a, b=b, to=to: np.add(a, b, out=to),
                call("sum", "float32", a, [a, b]),
                lambda a=a, b=b: np.add(a, b, out=a),
            ],
            elements,
        )
        for what, ours, theirs in (("out of place", apart, numpy_apart),
                                   ("in place", within, numpy_within)):  # fmt: skip
            rows.append([f"{kib:,} KiB", what, us(ours), us(theirs), f"{ours / theirs:.2f}",
                         f"{12 * elements / ours / 1e9:.1f}"])  # fmt: skip
    heads = ["each buffer", "destination", "ours, us", "NumPy, us", "ratio", "ours, GB/s"]
    return ["## float32 sum of two sources against `np.add(a, b, out=to)`", "", *table(heads, rows)]


def by_type(elements: int, where: str) -> list[str]:
    reference = buffers("float32", elements, 3)
    rows = []
    for dtype, size in SIZES.items():
        given = buffers(dtype, elements, 3)
        within, basis, apart, apart_basis = medians(
            [
                call("sum", dtype, given[0], given[:2]),
                call("sum", "float32", reference[0], reference[:2]),
                call("sum", dtype, given[2], given[:2]),
                call("sum", "float32", reference[2], reference[:2]),
            ],
            elements,
        )
        speed = 3 * size * elements / apart / 1e9
        rows.append([dtype, us(within), f"{within / basis:.2f}", us(apart),
                     f"{apart / apart_basis:.2f}", f"{speed:.1f}"])  # fmt: skip
    return [
        f"## Sum of two sources by type, {elements:,} elements ({where})",
        "",
        "The ratio is to float32 with as many elements, run in turn with it.",
        "",
        *table(["type", "in place, us", "ratio", "out of place, us", "ratio", "GB/s"], rows),
    ]


def by_op() -> list[str]:
    rows = []
    for dtype in ("float32", "bfloat16", "int32"):
        to, *sources = buffers(dtype, SMALL, 3)
        integer = dtype == "int32"
        ops = ["sum", "product", "min", "max", "avg", "premul_sum", *(["band"] if integer else [])]
        found = medians([call(op, dtype, to, sources) for op in ops], SMALL)
        rows += [[dtype, op, us(t), f"{t / SMALL * 1e9:.3f}"]
                 for op, t in zip(ops, found, strict=True)]  # fmt: skip
    return [
        f"## Operations, two sources, {SMALL:,} elements (in the core's own cache)",
        "",
        *table(["type", "operation", "us", "ns an element"], rows),
    ]


def by_sources() -> list[str]:
    rows = []
    for n in (1, 2, 4, 8):
        elements = LARGE // 4
        to, *sources = buffers("float32", elements, n + 1)

        def pairwise(to: np.ndarray = to, sources: list[np.ndarray] = sources) -> None:
            np.copyto(to, sources[0])
            for source in sources[1:]:
                np.add(to, source, out=to)

        ours, theirs = medians([call("sum", "float32", to, sources), pairwise], elements)
        rows.append([str(n), us(ours), us(theirs), f"{ours / theirs:.2f}",
                     f"{4 * (n + 1) * elements / ours / 1e9:.1f}"])  # fmt: skip
    return [
        "## Sum of several sources in one pass, float32, 32 MiB each",
        "",
        "NumPy copies the first source and adds the others one by one.",
        "",
        *table(["sources", "ours, us", "NumPy, us", "ratio", "ours, GB/s"], rows),
    ]


def by_isa() -> list[str]:
    names = _native.isas()
    rows = []
    for dtype in SIZES:
        to, *sources = buffers(dtype, SMALL, 3)
        found = medians([call("sum", dtype, to, sources, isa=isa) for isa in names], SMALL)
        rows.append([dtype, *(us(t) for t in found)])
    return [
        f"## Sum of two sources by instruction set, us, {SMALL:,} elements",
        "",
        *table(["type", *names], rows),
    ]


def figures() -> list[str]:
    return [
        "",
        "Medians of runs in turn. GB/s counts each source read once and the destination written",
        "once. Targets: a large float32 sum at the speed of memory, and a large bfloat16 sum in at",
        "most 0.6 of the time of float32 with as many elements.",
        "",
        *against_numpy(),
        *by_type(LARGE, "far beyond the caches"),
        *by_type(SMALL, "in the core's own cache"),
        *by_op(),
        *by_sources(),
        *by_isa(),
    ]


if __name__ == "__main__":
    kernels = f"; kernels for {_native.isa()}, one thread"
    report(__file__, "Reductions: figures", kernels, figures)
