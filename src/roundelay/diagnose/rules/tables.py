"""What the rows of a table show by themselves."""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from typing import Final

from ...formats.nccl_tests import Row
from ..case import Case, found
from ..finding import Figures, Finding
from .network import SLOW

SMALL: Final = 1 << 16
"""Bytes up to which the time of a call is latency."""
LARGE: Final = 1 << 25
"""Bytes from which links alone should make the time."""
APART: Final = 1.3
"""Times one form's rate that the other has, to be called off."""
ERRATIC: Final = 1000.0
"""Microseconds: among times above it, one that falls while sizes grow is no noise."""


def wrong_results(case: Case) -> Finding | None:
    """Elements were wrong."""
    if case.facts.wrong:
        return found(
            case, "wrong_results", {"wrong": case.facts.wrong},
            ["{wrong:element is|elements are} wrong: memory, a link or the library corrupts data, "
             "and rates say nothing until that is mended."],
            "Run again on one half of the cards, then on the other, to find the one; see its "
            "counters of ECC and NVLink errors (nvidia-smi -q, nvidia-smi nvlink -e).",
            case.cited("wrong"), fault=True, confidence=0.95,
        )  # fmt: skip
    rows = [row for row in _by_size(case) if any(timing.wrong for _, timing in row.timings())]
    if case.table is not None and case.table.failed and not rows:
        rows = list(case.table.rows)
        return found(
            case, "wrong_results", {"wrong": case.table.failed},
            ["The test counts {wrong:value|values} as out of bounds and says FAILED: results are "
             "wrong, so its rates say nothing. Memory, a link or the library corrupts data."],
            "Try the newest version of the library first (older ones had such faults at certain "
            "sizes); then one half of the cards, and the other, and their counters of ECC and link "
            "errors.",
            case.lines(*rows[:3]), fault=True, confidence=0.95,
        )  # fmt: skip
    if not rows:
        return None
    wrong = sum(timing.wrong or 0 for row in rows for _, timing in row.timings())
    return found(
        case, "wrong_results", {"wrong": wrong, "rows": len(rows)},
        ["{wrong:element is|elements are} wrong, in {rows:row|rows}: memory, a link or the library "
         "corrupts "
         "data."],
        "Run again on one half of the cards, then on the other, to find the one; see its counters "
        "of ECC and NVLink errors (nvidia-smi -q, nvidia-smi nvlink -e).",
        case.lines(*rows[:5]), fault=True, confidence=0.95,
    )  # fmt: skip


def one_rank(case: Case) -> Finding | None:
    """With one rank nothing is exchanged."""
    facts = case.facts
    several = facts.says("mpirun", "mpiexec", "srun", "several", "hosts")
    silent = facts.average == 0 or any(t.rstrip(" 0.").endswith(":") for t in facts.texts.values())
    if facts.table_ranks != 1 and case.ranks != 1 and not (silent and several):
        return None
    rows = case.table.rows if case.table else ()
    figures: Figures = {"ranks": 1, "busbw_factor": 0}
    if rows:
        figures["algbw_GBps"] = max(timing.algbw for row in rows for _, timing in row.timings())
    reason = ["One rank, nothing measured: nothing is exchanged, busbw has the factor (n - 1) / n "
              "= 0, and algbw is no rate of a link."]  # fmt: skip
    if several:
        reason = ["Each process ran alone, as a job of one rank: with n = 1 busbw has the factor "
                  "(n - 1) / n = 0, so the average is 0.",
                  "The likely cause is a test built without MPI."]  # fmt: skip
    return found(
        case, "ran_alone" if several else "one_rank", figures, reason,
        "Build with `make MPI=1 MPI_HOME=...` and start one process a card with mpirun, or use "
        "-g 8 on one host. The lines `# Rank` must list all ranks.",
        case.cited("texts", "table_ranks", "average") or case.lines(*rows[:2]), fault=True,
        confidence=0.9,
    )  # fmt: skip


def falls_with_size(case: Case) -> Finding | None:
    """Bandwidth is lost at large sizes; on CPUs, whose caches end somewhere, that is usual."""
    rows = _by_size(case)
    if len(rows) < 3 or (case.cluster is not None and case.cluster.generation == "cpu"):
        return None
    top = max(range(len(rows)), key=lambda i: rows[i].best.busbw)
    peak, after = rows[top].best.busbw, rows[top + 1 :]
    if peak < 0.1 or not after or max(row.best.busbw for row in after) > SLOW * peak:
        return None
    figures: Figures = {
        "peak_GBps": peak, "peak_bytes": rows[top].size, "after_bytes": after[0].size,
        "after_GBps": median(row.best.busbw for row in after),
    }  # fmt: skip
    fall = ("busbw falls from {peak_GBps} GB/s at {peak_bytes} to {after_GBps} GB/s from "
            "{after_bytes} on.")  # fmt: skip
    why, advice = _INSIDE if case.nodes == 1 else _BETWEEN
    least = min(after, key=lambda row: row.best.busbw)
    reason = [fall, why]
    if least.best.busbw < 0.5 * figures["after_GBps"]:  # type: ignore[operator]
        figures |= {"least_GBps": least.best.busbw, "least_bytes": least.size,
                    "least_ms": least.best.time_us / 1e3}  # fmt: skip
        reason = [fall, "At {least_bytes} it is {least_GBps} GB/s: a call takes {least_ms} ms.",
                  why]  # fmt: skip
    return found(
        case, "falls_with_size", figures, reason, advice,
        case.lines(rows[top], *after[:3]), fault=True,
    )  # fmt: skip


_INSIDE: Final = (
    "Inside a node cards that slow down under load (heat, power), links with errors, or other jobs "
    "do this.",
    "See why clocks fall (nvidia-smi -q -d PERFORMANCE), the links' errors (nvidia-smi nvlink -e), "
    "and what else runs.",
)
_BETWEEN: Final = (
    "What is under way outgrows what something holds: on RoCE that is loss, where flow control "
    "(PFC, ECN) is not set on every hop.",
    "Look for drops and pause frames on network cards and switches (ethtool -S, rdma statistic), "
    "check PFC, ECN and the traffic class (NCCL_IB_TC, NCCL_IB_GID_INDEX), and try a smaller "
    "NCCL_BUFFSIZE: if that helps it is loss.",
)


def erratic(case: Case) -> Finding | None:
    """A larger size takes less time."""
    for small, large in pairwise(_by_size(case)):
        less, more = large.best.time_us, small.best.time_us
        if large.size > small.size >= SMALL and less < 0.85 * more and more > ERRATIC:
            break
    else:
        return None
    figures: Figures = {
        "smaller_bytes": small.size, "smaller_ms": more / 1e3, "larger_bytes": large.size,
        "larger_ms": less / 1e3,
    }  # fmt: skip
    return found(
        case, "erratic", figures,
        ["{larger_bytes} take {larger_ms} ms, and {smaller_bytes} took {smaller_ms} ms: something "
         "stalls that has nothing to do with the size.",
         "Data that pass through the host's memory (no GPUDirect RDMA), the IOMMU of a virtual "
         "machine, or other traffic do this."],
        "Run with NCCL_DEBUG=INFO and look for GDRDMA behind NET/IB; in a virtual machine check "
        "ACS and ATS on the host, and NCCL's topology file. Then run more iterations (-n 100).",
        case.lines(small, large), fault=True, confidence=0.75,
    )  # fmt: skip


def forms_differ(case: Case) -> Finding | None:
    """In place and out of place take other times, at all large sizes."""
    pairs = [(row, row.out_of_place, row.in_place) for row in _by_size(case) if row.size >= LARGE]
    both = [(row, a.busbw, b.busbw) for row, a, b in pairs if a and b and a.busbw and b.busbw]
    if len(both) < 2:
        return None
    ratios = [out / inside for _, out, inside in both]
    if not (min(ratios) > APART or max(ratios) < 1 / APART):
        return None
    figures: Figures = {"rows": len(both), "out_GBps": both[-1][1], "in_GBps": both[-1][2],
                        "size_bytes": both[-1][0].size}  # fmt: skip
    return found(
        case, "forms_differ", figures,
        ["In place and out of place differ at all {rows:large size|large sizes}: {in_GBps} GB/s in "
         "place and {out_GBps} out of place at {size_bytes}. The same bytes cross the links in "
         "both, so it is buffers: which are registered or cached, where their memory lies, or "
         "which of the two runs first, while clocks rise."],
        "Run each form by itself and in the other order, with more warm-up (-w 20); see whether "
        "buffers are registered (-R 1, NCCL_LOCAL_REGISTER).",
        case.lines(both[-1][0]), fault=True, confidence=0.75,
    )  # fmt: skip


def _by_size(case: Case) -> list[Row]:
    rows = case.table.rows if case.table else ()
    return sorted((row for row in rows if row.size), key=lambda row: row.size)
