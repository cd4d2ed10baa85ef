"""What the course of times and rates over sizes shows: falls, steps and times that stay."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from ....formats.nccl_tests import Row
from ...finding import Figures, Finding
from ..case import Case, found
from .network import SLOW
from .tables import SMALL, by_size, falls_with_size

BANDWIDTH: Final = 1 << 16
"""Bytes from which a step of the rate is looked for."""
COLLAPSE: Final = 1 / 3
"""Of the rate before: a choice of algorithm seldom costs as much."""
STEP: Final = 4
"""Times the size before: rows further apart leave out what lies between."""
LONG: Final = 200.0
"""Microseconds: of shorter calls one late rank makes a step."""
ALIKE: Final = 1.25
"""Times one form's time that the other's may be, to be called alike."""
STAYS: Final = 2.0
"""Times the least time that the longest may be, to be called one time."""
SPAN: Final = 16
"""Times the smallest size that the largest must be for times that stay to tell something."""
MANY: Final = 128
"""Ranks from which the steps alone make long calls."""
CHANGED: Final = 0.85
"""Of the time of a smaller size: a larger one that takes no more is odd."""
NOISE: Final = 0.95
"""Of a time: times closer than that are alike."""
ERRATIC: Final = 1000.0
"""Microseconds: among times above it, one that falls while sizes grow is no noise."""


def dips(case: Case) -> Finding | None:
    """The rate falls from one size to the next, and rises again behind it."""
    if falls_with_size(case) is not None or _on_processors(case):
        return None
    rows = by_size(case)
    less = {a.size for a, b in pairwise(rows) if b.best.time_us < CHANGED * a.best.time_us}
    steps = [
        (b.best.busbw / a.best.busbw, a, b) for a, b in pairwise(rows) if b.size not in less
        and BANDWIDTH <= a.size < b.size <= STEP * a.size and a.best.busbw >= 0.1
        and b.best.time_us > LONG and any(row.best.busbw > b.best.busbw for row in rows
                                          if row.size > b.size)
    ]  # fmt: skip
    share, before, after = min(steps, key=lambda step: step[0], default=(1.0, None, None))
    if before is None or after is None or share >= SLOW:
        return None
    figures: Figures = {
        "before_GBps": before.best.busbw, "before_bytes": before.size,
        "after_GBps": after.best.busbw, "after_bytes": after.size,
        "times": after.best.time_us / before.best.time_us, "sizes": after.size / before.size,
    }  # fmt: skip
    fall = ("busbw falls from {before_GBps} GB/s at {before_bytes} to {after_GBps} GB/s at "
            "{after_bytes} ({times} times the time for {sizes} times the bytes), and rises again "
            "behind it.")  # fmt: skip
    if share < COLLAPSE:
        why = ("So much is more than another algorithm costs as a rule. Between nodes loss with "
               "sending again after timeouts does this (RoCE without PFC and ECN on every hop, "
               "flows that meet on one link, packets out of order); inside a node, what else runs "
               "there. The table does not tell which.")  # fmt: skip
        return found(case, "collapses", figures, [fall, why], _COUNTERS,
                     case.lines(before, after), fault=True, confidence=0.8)  # fmt: skip
    return found(
        case, "dips", figures,
        [fall, "NCCL chooses algorithm and protocol by size, so a step at one size is as a rule "
               "that choice; where it moves from run to run it is the network or other jobs."],
        "Run again with NCCL_ALGO and NCCL_PROTO fixed (Ring or Tree, Simple or LL128): if the "
        "step is gone it was the choice. Else look at counters of the network.",
        case.lines(before, after), confidence=0.75,
    )  # fmt: skip


_COUNTERS: Final = (
    "Read counters of drops, pause frames and retransmission before and after a run (ethtool -S, "
    "rdma statistic, out_of_sequence, packet_seq_err), check PFC, ECN and adaptive routing on "
    "every hop, and compare with NCCL_ALGO and NCCL_PROTO fixed."
)


def times_stay(case: Case) -> Finding | None:
    """Over many sizes a call takes one long time."""
    span = staying(case)
    if not span or _on_processors(case):
        return None
    times = [row.best.time_us for row in span]
    figures: Figures = {
        "from_bytes": span[0].size, "to_bytes": span[-1].size, "least_ms": min(times) / 1e3,
        "most_ms": max(times) / 1e3, "sizes": span[-1].size / span[0].size,
    }  # fmt: skip
    return found(
        case, "times_stay", figures,
        ["From {from_bytes} to {to_bytes} a call takes {least_ms} to {most_ms} ms, though the "
         "bytes grow {sizes} times: something fixed in each call makes the time, and not what "
         "links carry.",
         "Waiting does this (timeouts after loss, a rank that comes late), a slow start of each "
         "call (plugin, proxy, interrupts), or latency of very many steps; the table does not tell "
         "which."],
        "Compare with one rank a node, and with two nodes; read the network's counters before and "
        "after (drops, retransmission), and NCCL's log for the plugin and the ways that are taken "
        "(NCCL_DEBUG=INFO).",
        case.lines(span[0], span[-1]), fault=(case.ranks or 0) <= MANY, confidence=0.75,
    )  # fmt: skip


def staying(case: Case) -> list[Row]:
    """The longest span of sizes with one long time; empty where there is none."""
    rows = [row for row in by_size(case) if row.size >= 1 << 20]
    best: list[Row] = []
    for first in range(len(rows)):
        times: list[float] = []
        for last in range(first, len(rows)):
            times.append(rows[last].best.time_us)
            if max(times) > STAYS * min(times):
                break
            if rows[last].size >= SPAN * rows[first].size and last - first >= len(best):
                best = rows[first : last + 1]
    return best if best and min(row.best.time_us for row in best) > ERRATIC else []


def choice_by_size(case: Case) -> Finding | None:
    """A larger size takes less time, in both forms alike, behind times that grew."""
    rows = by_size(case)
    for first, small, large in zip(rows, rows[1:], rows[2:], strict=False):
        if small.size >= BANDWIDTH and small.best.time_us > LONG and chosen(first, small, large):
            break
    else:
        return None
    figures: Figures = {
        "smaller_bytes": small.size, "smaller_ms": small.best.time_us / 1e3,
        "larger_bytes": large.size, "larger_ms": large.best.time_us / 1e3,
    }  # fmt: skip
    return found(
        case, "choice_by_size", figures,
        ["{larger_bytes} take {larger_ms} ms, and {smaller_bytes} {smaller_ms} ms, in place and "
         "out of place alike, behind times that grew with size: from there on another algorithm "
         "or protocol is chosen as a rule, and the one before is slow at its last sizes."],
        "Compare with NCCL_ALGO and NCCL_PROTO fixed; a tuner plugin or configuration can move the "
        "choice.",
        case.lines(small, large), confidence=0.7,
    )  # fmt: skip


def erratic(case: Case) -> Finding | None:
    """A larger size takes less time."""
    rows = by_size(case)
    for before, small, large in zip([None, *rows], rows, rows[1:], strict=False):
        less, more = large.best.time_us, small.best.time_us
        odd = large.size > small.size >= SMALL and less < CHANGED * more and more > ERRATIC
        if odd and _both_less(small, large) and not (before and chosen(before, small, large)):
            break
    else:
        return None
    span = staying(case)
    if small in span and large in span:
        return None  # told of all of them
    figures: Figures = {
        "smaller_bytes": small.size, "smaller_ms": more / 1e3, "larger_bytes": large.size,
        "larger_ms": less / 1e3,
    }  # fmt: skip
    return found(
        case, "erratic", figures,
        ["{larger_bytes} take {larger_ms} ms, and {smaller_bytes} took {smaller_ms} ms: something "
         "stalls that has nothing to do with the size.",
         "Data that pass through the host's memory (no GPUDirect RDMA), the IOMMU of a virtual "
         "machine, loss, or other traffic can do this."],
        "Run with NCCL_DEBUG=INFO and look for GDRDMA behind NET/IB; in a virtual machine check "
        "ACS and ATS on the host, and NCCL's topology file. Then run more iterations (-n 100).",
        case.lines(small, large), fault=True, confidence=0.75,
    )  # fmt: skip


def _both_less(small: Row, large: Row) -> bool:
    """Whether the larger size takes less time in both forms."""
    pairs = zip(small.timings(), large.timings(), strict=False)
    return all(b.time_us < NOISE * a.time_us for (_, a), (_, b) in pairs)


def chosen(first: Row, small: Row, large: Row) -> bool:
    """Whether both forms grew up to one size and take less at the next."""
    forms = list(zip(*([t.time_us for _, t in r.timings()] for r in (first, small, large)),
                     strict=False))  # fmt: skip
    most = 1.2 * small.size / first.size
    steps = all(a < b < most * a and c < CHANGED * b for a, b, c in forms)
    alike = all(max(pair) < ALIKE * min(pair) for pair in list(zip(*forms, strict=True))[1:])
    return len(forms) == 2 and steps and alike


def _on_processors(case: Case) -> bool:
    return case.cluster is not None and case.cluster.generation == "cpu"
