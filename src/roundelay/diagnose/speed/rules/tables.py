"""What the rows of a table show by themselves."""

from __future__ import annotations

from statistics import median
from typing import Final

from ....formats.nccl_tests import Row
from ...finding import Figures, Finding
from ..case import Case, found
from .network import SLOW

SMALL: Final = 1 << 16
"""Bytes up to which the time of a call is latency."""
LARGE: Final = 1 << 25
"""Bytes from which links alone should make the time."""
APART: Final = 1.3
"""Times one form's rate that the other has, to be called off."""
LAST: Final = 3
"""Largest sizes at which both forms are compared."""


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
    rows = [row for row in by_size(case) if any(timing.wrong for _, timing in row.timings())]
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
    rows = by_size(case)
    if len(rows) < 3 or (case.cluster is not None and case.cluster.generation == "cpu"):
        return None
    top = max(range(len(rows)), key=lambda i: rows[i].best.busbw)
    peak, after = rows[top].best.busbw, [row for row in rows if row.size > rows[top].size]
    if peak < 0.1 or not after or max(row.best.busbw for row in after) > SLOW * peak:
        return None
    figures: Figures = {
        "peak_GBps": peak, "peak_bytes": rows[top].size, "after_bytes": after[0].size,
        "after_GBps": median(row.best.busbw for row in after),
    }  # fmt: skip
    fall = ("busbw falls from {peak_GBps} GB/s at {peak_bytes} to {after_GBps} GB/s from "
            "{after_bytes} on.")  # fmt: skip
    why, advice = _INSIDE if case.nodes == 1 else _BETWEEN if case.nodes else _EITHER
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
    "can do this, and so can another algorithm that is chosen from that size on.",
    "See why clocks fall (nvidia-smi -q -d PERFORMANCE), the links' errors (nvidia-smi nvlink -e), "
    "and what else runs.",
)
_BETWEEN: Final = (
    "Between nodes loss can do this, where what is under way outgrows what something holds (RoCE "
    "without flow control, PFC and ECN, on every hop), flows that meet on one link, or another "
    "algorithm that is chosen from that size on. The table does not tell which.",
    "Look for drops and pause frames on network cards and switches (ethtool -S, rdma statistic), "
    "check PFC, ECN and the traffic class (NCCL_IB_TC, NCCL_IB_GID_INDEX), and try a smaller "
    "NCCL_BUFFSIZE: if that helps it is loss as a rule.",
)
_EITHER: Final = (
    "Between nodes loss can do this (RoCE without flow control, PFC and ECN, on every hop), or "
    "flows that meet on one link; inside a node cards that slow down under load; in both another "
    "algorithm that is chosen from that size on. The table does not tell which.",
    "Tell how many nodes it ran on. Read the network's counters (ethtool -S, rdma statistic) and "
    "the cards' clocks (nvidia-smi -q -d PERFORMANCE) before and after, and compare with NCCL_ALGO "
    "fixed.",
)


def same_size_again(case: Case) -> Finding | None:
    """The same size several times, with other rates: rows of several runs."""
    by: dict[int, list[Row]] = {}
    for row in by_size(case):
        by.setdefault(row.size, []).append(row)
    size, rows = max(by.items(), key=lambda item: (len(item[1]), item[0]), default=(0, []))
    rates = [row.best.busbw for row in rows]
    types = {(row.dtype, row.redop, row.root) for row in rows}
    if len(rows) < 2 or len(types) > 1 or not min(rates) or max(rates) < APART * min(rates):
        return None
    figures: Figures = {"times": len(rows), "size_bytes": size, "first_GBps": rates[0],
                        "last_GBps": rates[-1], "most_GBps": max(rates),
                        "least_GBps": min(rates)}  # fmt: skip
    return found(
        case, "same_size_again", figures,
        ["{size_bytes} stands {times} times with other rates, from {most_GBps} to {least_GBps} "
         "GB/s (first {first_GBps}, last {last_GBps}): rows of several runs. If they are of more "
         "and more nodes: on one the links between cards carry it, on two a tree may show nearly "
         "twice the network cards' rate, and from three on busbw should stay at the rate of all "
         "network cards of a node."],
        "Give each run its own header, with what it was run on.",
        case.lines(*rows[:4]), confidence=0.7,
    )  # fmt: skip


def forms_differ(case: Case) -> Finding | None:
    """In place and out of place take other times, at all large sizes."""
    pairs = [(row, row.out_of_place, row.in_place) for row in by_size(case)]
    every = [(row, a.busbw, b.busbw) for row, a, b in pairs if a and b and a.busbw and b.busbw]
    both = [pair for pair in every if pair[0].size >= LARGE][-LAST:]
    if len(both) < 2:
        return None
    ratios = [out / inside for _, out, inside in both]
    if not (min(ratios) > APART or max(ratios) < 1 / APART):
        return None
    figures: Figures = {"rows": len(both), "out_GBps": both[-1][1], "in_GBps": both[-1][2],
                        "size_bytes": both[-1][0].size}  # fmt: skip
    reason = ["In place and out of place differ at the {rows:largest size|largest sizes}: "
              "{in_GBps} GB/s in place and {out_GBps} out of place at {size_bytes}."]  # fmt: skip
    out_ahead = ratios[-1] > 1
    turned = [row for row, out, inside in every
              if (inside > APART * out if out_ahead else out > APART * inside)]  # fmt: skip
    if len(turned) > 1:
        figures["turned_bytes"] = turned[-1].size
        reason.append("Up to {turned_bytes} it is the other way round.")
    reason.append("The same bytes cross the links in both, so links alone do not explain it: "
                  "another algorithm or kernel for one of them, buffers (which are registered or "
                  "cached, where their memory lies), or which runs first, while clocks rise."
                  )  # fmt: skip
    return found(
        case, "forms_differ", figures, reason,
        "Run each form by itself and in the other order, with more warm-up (-w 20); see whether "
        "buffers are registered (-R 1, NCCL_LOCAL_REGISTER).",
        case.lines(both[-1][0]), fault=True, confidence=0.75,
    )  # fmt: skip


def by_size(case: Case) -> list[Row]:
    """Rows that send something, by size."""
    rows = case.table.rows if case.table else ()
    return sorted((row for row in rows if row.size), key=lambda row: row.size)
