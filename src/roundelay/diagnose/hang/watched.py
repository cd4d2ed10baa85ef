"""Rules about what watchdogs, fingerprints, RAS and Gloo say of a hang."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd
from typing import Final

from ...formats.watchdog import Timeout, Watched
from ..finding import Figures, Finding, cited, numbers, tell
from .behind import behind, desync
from .gloo import gloo_finding
from .prints import prints_differ
from .stuck import COMPARE, SAME_NUMBERS, different_calls, over_limit, stuck_at, stuck_together

QUEUED: Final = 8
"""Calls that a rank may well have queued ahead of the one it waits in."""


def counts_differ(file: str, said: Watched) -> Finding | None:
    """Ranks time out at different sequences of one group."""
    if len({said.group_of(timeout) for timeout in said.timeouts} - {""}) > 1:
        return None
    first: dict[int, Timeout] = {}
    for timeout in said.timeouts:
        rank = -1 if timeout.rank is None else timeout.rank
        if rank not in first or timeout.sequence < first[rank].sequence:
            first[rank] = timeout
    places = {timeout.sequence for timeout in first.values()}
    if len(places) < 2 or 0 in places:
        return None
    low, high = min(places), max(places)
    behind = sorted(rank for rank, t in first.items() if t.sequence == low)
    ahead = sorted(rank for rank, t in first.items() if t.sequence == high)
    if (crossed := _crossed(file, said, first)) is not None:
        return crossed
    figures: Figures = {
        "low": low, "high": high, "behind": numbers(behind), "apart": high - low,
        "ahead": numbers(ahead), "ratio": low / high, "near": _ratio(low, high),
    }  # fmt: skip
    reason = ["Rank {behind} waits in sequence {low}, rank {ahead} in {high}: they have made "
              "different numbers of calls, {apart} apart."]  # fmt: skip
    if high - low < QUEUED and not any(p.rank in behind for p in said.progress):
        reason = ["Rank {behind} waits in sequence {low}, rank {ahead} in {high}, {apart} apart: "
                  "one has made calls that the other has not, or they have queued the same calls "
                  "and one of these has ended on one side only."]  # fmt: skip
    if high - low > 100 and figures["near"]:
        reason.append("That is about {near}: it has gone on for long, call after call.")
    reason += over_limit(said, figures)
    return tell(
        "counts_differ", file, figures, reason,
        "Look for uneven numbers of batches (drop_last, join()), a loop whose length depends on "
        "data, or a call under a condition on the rank.",
        cited(file, *[t.line for t in first.values()][:4]), fault=True, confidence=0.9, area="hang",
    )  # fmt: skip


def _crossed(file: str, said: Watched, first: Mapping[int, Timeout]) -> Finding | None:
    """A rank behind that has queued the call of the other, too: it is not calls that it lacks."""
    low, high = (end(first.values(), key=lambda t: t.sequence) for end in (min, max))
    queued = max((p.enqueued for p in said.progress if p.rank == low.rank), default=0)
    if queued < high.sequence:
        return None
    figures: Figures = {
        "low": low.sequence, "high": high.sequence, "queued": queued, "one": low.operation,
        "two": high.operation, "behind": "?" if low.rank is None else low.rank,
        "ahead": "?" if high.rank is None else high.rank,
    }  # fmt: skip
    return tell(
        "out_of_step", file, figures,
        ["Rank {behind} waits in sequence {low} ({one}) and has queued up to {queued}; rank "
         "{ahead} has ended that number and waits in {high} ({two}).",
         SAME_NUMBERS],
        COMPARE, cited(file, low.line, high.line), fault=True, confidence=0.8, area="hang",
    )  # fmt: skip


def groups_stuck(file: str, said: Watched) -> Finding | None:
    """Calls of several groups wait at once; their sequences cannot be compared."""
    first: dict[str, Timeout] = {}
    for timeout in said.timeouts:
        first.setdefault(said.group_of(timeout), timeout)
    first.pop("", None)
    if len(first) < 2:
        return None
    parts = [f"group {group}: rank {t.rank if t.rank is not None else '?'}, {t.operation}, "
             f"sequence {t.sequence}" for group, t in first.items()]  # fmt: skip
    return tell(
        "groups_stuck", file, {"groups": len(first), "parts": "; ".join(parts[:8])},
        ["Calls of {groups} process groups wait at once ({parts}). Each group counts for itself, "
         "so these numbers say nothing of who is behind.",
         "Either one is stuck and the others wait behind it, or ranks use their groups in "
         "different orders, such as from two threads or streams: then each waits for the other."],
        "Make all ranks call their groups in one order, from one thread; where that cannot be, let "
        "the calls of one group end before those of the other begin. Dumps of all ranks "
        "(TORCH_FR_BUFFER_SIZE=2000, TORCH_NCCL_DUMP_ON_TIMEOUT=1) given here show the circle.",
        cited(file, *[t.line for t in first.values()][:4]), fault=True, confidence=0.75,
        area="hang",
    )  # fmt: skip


def _ratio(low: int, high: int) -> str:
    """A ratio of small numbers that is near, such as 2:3."""
    for b in range(2, 9):
        a = round(b * low / high)
        if 0 < a < b and gcd(a, b) == 1 and abs(low / high - a / b) < 0.002:
            return f"{a}:{b}"
    return ""


def watchdog_stuck(file: str, said: Watched) -> Finding | None:
    """Watchdogs that have not moved themselves."""
    if not said.stuck or said.timeouts:
        return None
    ranks = sorted({s.rank for s in said.stuck if s.rank is not None})
    figures: Figures = {"ranks": numbers(ranks) or "?",
                        "seconds": max(s.seconds for s in said.stuck)}  # fmt: skip
    return tell(
        "watchdog_stuck", file, figures,
        ["The watchdog of rank {ranks} has itself not moved for {seconds} s: a call of CUDA or "
         "NCCL in that process does not come back, or another thread holds Python's lock (GIL) in "
         "one. It does not tell which collective waits, nor that one does."],
        "See what the process does: py-spy dump --native. Where a step may take that long "
        "(loading, compiling, a checkpoint), raise TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC; look for Xid "
        "errors in dmesg.",
        cited(file, *[s.line for s in said.stuck][:4]), fault=True, confidence=0.85, area="hang",
    )  # fmt: skip


def never_joined(file: str, said: Watched) -> Finding | None:
    """What torch's analyser of dumps has printed."""
    first = next((a for a in said.absent if a.ranks), None)
    if first is None:
        return None
    figures: Figures = {"late": numbers(first.ranks), "sequence": first.sequence,
                        "operation": first.operation}  # fmt: skip
    return tell(
        "never_called", file, figures,
        ["Rank {late} never joined {operation}, sequence {sequence}, by what torch's analyser of "
         "dumps says: the others wait there."],
        "See what rank {late} does in its place (py-spy dump): data loading, a checkpoint, "
        "an exception, a branch of its own.",
        cited(file, first.line), fault=True, confidence=0.9, area="hang",
    )  # fmt: skip


def ras(file: str, said: Watched) -> Finding | None:
    """NCCL's RAS says who is behind."""
    if not said.ras:
        return None
    ahead = max(said.ras, key=lambda r: r.sequence)
    behind = min(said.ras, key=lambda r: r.sequence)
    late = numbers(said.missing) or str(behind.rank)
    figures: Figures = {
        "late": late, "sequence": ahead.sequence, "completed": behind.sequence,
        "operation": said.next_operation or "?", "ahead": ahead.rank,
    }  # fmt: skip
    return tell(
        "never_called", file, figures,
        ["Rank {late} never enqueued call {sequence} ({operation}), in which rank {ahead} waits: "
         "its last one that ended is {completed}.", "So rank {late} is late or stalled before it."],
        "See what rank {late} does (py-spy dump, its log); the others are not at fault.",
        cited(file, ahead.line), fault=True, confidence=0.9, area="hang",
    )  # fmt: skip


def gloo(file: str, said: Watched) -> Finding | None:
    """What Gloo's connections say."""
    return gloo_finding(file, said.gloo)


Rule = Callable[[str, Watched], Finding | None]
RULES: Final[tuple[Rule, ...]] = (
    prints_differ, desync, groups_stuck, counts_differ, different_calls, behind, stuck_together,
    stuck_at, never_joined, ras, watchdog_stuck, gloo,
)  # fmt: skip


def watched_findings(file: str, said: Watched) -> list[Finding]:
    """All that the rules find in messages."""
    return [finding for rule in RULES if (finding := rule(file, said)) is not None]
