"""Who comes late to calls, by how much, whom it delays, why, and what that costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from ..finding import Evidence, Figures, Finding, names, tell
from .breakdown import Breakdown
from .matched import Clocks, Matched, align, match
from .replay import replay
from .spans import Spans

if TYPE_CHECKING:
    from ...stragglers import Lateness

MS: Final = 1e6
FEWEST: Final = 4
"""Calls from which it can be told whether somebody stands out."""
MORE: Final = 1.05
"""Times the others' computation, from which that is why a rank is late."""
DELAYED: Final = 8


def late_findings(by_rank: Mapping[int, Breakdown]) -> list[Finding]:
    """Of ranks that stand out, or that nobody does."""
    traces = {rank: part.trace for rank, part in by_rank.items()}
    groups = match(traces)
    clocks = align(groups, traces)
    groups = [m for m in groups if m.together.any()]
    if not groups:
        return []
    exposed = {rank: clocks.of(rank, part.exposed) for rank, part in by_rank.items()}
    late = [(m, lateness) for m in groups for lateness in _stand_out(m, clocks)]
    late.sort(key=lambda pair: -pair[1].waited_seconds)
    found, told = [], set()
    for m, lateness in late:
        rank = m.ranks[lateness.rank]
        if rank not in told:
            told.add(rank)
            found.append(_late(m, lateness, by_rank, clocks, _saved(groups, exposed, rank)))
    return found or [_nobody(groups, clocks, by_rank)]


def _saved(groups: Sequence[Matched], exposed: Mapping[int, Spans], rank: int) -> Figures:
    """What the calls would take if the rank were as quick as the others."""
    found = replay(groups, exposed, {rank})
    if found is None or not found.measured:
        return {}
    return {"measured_ms": found.measured / MS, "without_ms": found.replayed / MS,
            "saved_share": max(0.0, 1 - found.replayed / found.measured)}  # fmt: skip


def _stand_out(m: Matched, clocks: Clocks) -> list[Lateness]:
    from ...stragglers import report  # which needs the native core; most files do not

    used, n = m.together, len(m.ranks)
    error = [clocks.error[rank] for rank in m.ranks]
    nothing = np.zeros((n, n, 2), np.int64)
    told = report(m.group, m.begin[:, used], m.end[:, used], nothing, error, FEWEST)
    return [lateness for lateness in told.ranks if lateness.stands_out]


def _late(
    m: Matched, late: Lateness, by_rank: Mapping[int, Breakdown], clocks: Clocks, saved: Figures
) -> Finding:
    rank = m.ranks[late.rank]
    delayed, waits = _delayed(m, late.rank, by_rank)
    figures: Figures = {
        "rank": rank, "last": late.last, "calls": int(m.together.sum()), "group": m.group or "?",
        "late_ms": late.median_seconds * 1e3, "most_ms": late.max_seconds * 1e3,
        "delayed": names(delayed, DELAYED), "waited_ms": late.waited_seconds * 1e3, **saved,
    }  # fmt: skip
    reason = ["Rank {rank} comes last to {last} of {calls:call|calls} of group {group}, by "
              "{late_ms} ms "
              "(median; {most_ms} ms at most).",
              "It delays rank {delayed}: they wait {waited_ms} ms for it in all."]  # fmt: skip
    if saved:
        reason.append("With its work as long as the others' mean, these calls and the work between "
                      "them would take {without_ms} ms instead of {measured_ms} ms, {saved_share} "
                      "less.")  # fmt: skip
    why, advice = _why(rank, m, by_rank, late.median_seconds * 1e3 * late.last, figures)
    return tell(
        "late_rank", f"rank {rank}, group {m.group or '?'}", figures,
        [*reason, why, *_of_clocks(clocks, figures)], advice,
        (Evidence(by_rank[rank].trace.file, 0, _told(m, late.rank)), *waits),
        fault=True, confidence=0.85 if late.last >= 20 else 0.7, area="time",
    )  # fmt: skip


def _told(m: Matched, row: int) -> str:
    """The call to which a rank came latest, for evidence."""
    others = np.median(np.delete(m.begin, row, axis=0), axis=0)
    worst = int(np.argmax(np.where(m.together, m.begin[row] - others, -np.inf)))
    key = m.calls[worst]
    number = f"seq {key.seq}" if key.seq >= 0 else f"turn {key.turn}"
    by = (m.begin[row, worst] - others[worst]) / MS
    return f"rank {m.ranks[row]}: latest to {key.name} ({number}), {by:.4g} ms after the others"


def _delayed(
    m: Matched, row: int, by_rank: Mapping[int, Breakdown]
) -> tuple[list[str], list[Evidence]]:
    """The ranks that wait for one, the longest waits first."""
    used = m.together & (m.begin.argmax(axis=0) == row)
    came = m.begin[row]
    waits = (np.minimum(came, m.end) - m.begin)[:, used].clip(0).sum(axis=1)
    order = [i for i in np.argsort(-waits, kind="stable").tolist() if i != row and waits[i]]
    shown = [
        Evidence(by_rank[m.ranks[i]].trace.file, 0,
                 f"rank {m.ranks[i]}: waits {waits[i] / MS:.4g} ms for rank {m.ranks[row]}")
        for i in order[:DELAYED]
    ]  # fmt: skip
    return [str(m.ranks[i]) for i in order], shown


def _why(
    rank: int, m: Matched, by_rank: Mapping[int, Breakdown], late_ms: float, figures: Figures
) -> tuple[str, str]:
    """What differs between the rank and the others of its group."""
    own, others = by_rank[rank], [by_rank[r] for r in m.ranks if r != rank]
    compute = float(np.median([p.computation.length for p in others]))
    times = own.computation.length / compute if compute else 1.0
    idle = (own.idle - float(np.median([p.idle for p in others]))) / MS
    figures |= {"compute_times": times, "more_idle_ms": idle}
    if times >= MORE:
        return ("Its computation takes {compute_times} times as long as the others' (median).",
                "See whether it has more to do (longer sequences, an uneven share of layers or "
                "experts) or a slower card: nvidia-smi -q -d CLOCK,PERFORMANCE shows one that "
                "throttles.")  # fmt: skip
    if idle > late_ms / 2:
        return ("It computes no longer than they do, but is idle {more_idle_ms} ms longer: that "
                "points to its host.",
                "Look at that rank's host: loading of data, checkpoints, garbage "
                "collection, another process on its cores.")  # fmt: skip
    return ("It neither computes nor idles longer than they do.",
            "Look at what it communicates before, in groups that other ranks are not in, and at "
            "its copies.")  # fmt: skip


def _of_clocks(clocks: Clocks, figures: Figures) -> list[str]:
    """How clocks were brought together."""
    figures["clock_calls"] = clocks.calls
    figures["shift_ms"] = max(map(abs, clocks.shift.values()), default=0) / MS
    figures["error_us"] = max(clocks.error.values(), default=0) / 1e3
    reason = ["Clocks of hosts were brought together by the ends of {clock_calls:call|calls} (by "
              "{shift_ms} ms at most); ends still differ by {error_us} us."]  # fmt: skip
    if clocks.apart:
        figures["apart"] = names(clocks.apart, 4)
        reason.append("Those of {apart} share no call with the others, and are as they were.")
    return reason


def _nobody(groups: Sequence[Matched], clocks: Clocks, by_rank: Mapping[int, Breakdown]) -> Finding:
    figures: Figures = {"calls": sum(len(m.calls) for m in groups), "groups": len(groups),
                        "ranks": len(by_rank)}  # fmt: skip
    few = all(m.together.sum() < FEWEST for m in groups)
    reason = ("{calls:matched call|matched calls} of {ranks:rank|ranks} are too few to tell who is "
              "late." if few else
              "No rank stands out among {ranks}: in {calls:matched call|matched calls} of "
              "{groups:group|groups} none "
              "comes last more often than by chance, or nobody waits long for it.")  # fmt: skip
    return tell(
        "nobody_late", f"n = {len(by_rank)}", figures, [reason, *_of_clocks(clocks, figures)],
        "Trace more steps, or all ranks, if you still think that somebody is late.",
        confidence=0.5 if few else 0.8, area="time",
    )  # fmt: skip
