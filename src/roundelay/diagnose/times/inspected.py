"""What NCCL Inspector's calls show: what they reach, and who comes last to them.

A kernel of a collective runs until the last rank has come. So the rank that comes last has the
shortest one, and the others' are longer by as much as they wait for it. No clock is needed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from ...formats.inspector import Inspected, Inspection
from ...i18n import counted
from ...units import format_size
from ..finding import Evidence, Figures, Finding, names, tell
from ..speed.possible import APART, SMALL, Bounds, Odd, odd_findings
from .matched import TOGETHER

if TYPE_CHECKING:
    from ...stragglers import Lateness

FEWEST: Final = 20
LISTED: Final = 8
HOPPER: Final = 450.0
"""GB/s one way of NVLink of an H100."""
Rows = Mapping[int, Mapping[tuple[str, int], tuple[str, Inspected]]]


def inspected_findings(files: Sequence[tuple[str, Inspection]]) -> list[Finding]:
    """Of all files of a job."""
    every = [(file, call) for file, inspection in files for call in inspection.calls]
    odd = {i: why for i, (file, call) in enumerate(every) if (why := _odd(file, call))}
    calls = [pair for i, pair in enumerate(every) if i not in odd]
    told = odd_findings(names([file for file, _ in files], 3), list(odd.values()))
    if not calls:
        return told
    by_comm: dict[str, dict[int, dict[tuple[str, int], tuple[str, Inspected]]]] = {}
    for file, call in calls:
        if call.operation in TOGETHER and call.rank >= 0 and not call.timed.startswith("coll"):
            own = by_comm.setdefault(call.comm, {}).setdefault(call.rank, {})
            own[call.operation, call.number] = file, call
    late = [f for comm, rows in by_comm.items() for f in _late(comm, rows)]
    return [*told, *late, _reached(calls, sum(i.dropped for _, i in files))]


def _odd(file: str, call: Inspected) -> Odd | None:
    """Why a call's figures cannot be. Times are whole; pieces may count once, or n times."""
    at = Evidence(file, call.line, _told(call))
    if call.time_us <= 0:
        return Odd("time", "time", call.time_us, 0.0, at)
    if call.ranks > 1 and call.busbw > Bounds.busbw:
        return Odd("high", "busbw", call.busbw, Bounds.busbw, at)
    if min(call.busbw, call.algbw) < 0:
        return Odd("negative", "busbw", min(call.busbw, call.algbw), 0.0, at)
    slow, fast = (call.bytes / max(call.time_us + d, 0.1) / 1e3 for d in (1.0, -1.0))
    most = (1 + APART) * fast * max(call.ranks, 1) + SMALL
    if call.bytes and call.algbw and not (1 - APART) * slow - SMALL <= call.algbw <= most:
        return Odd("apart", "algbw", call.algbw, call.bytes / call.time_us / 1e3, at)
    return None


def _told(call: Inspected) -> str:
    return (f"rank {call.rank}: {call.operation} {call.bytes} B, {call.time_us:g} us, "
            f"algbw {call.algbw:g} GB/s, busbw {call.busbw:g} GB/s")  # fmt: skip


def _reached(calls: Sequence[tuple[str, Inspected]], dropped: int) -> Finding:
    """The best of each operation."""
    best: dict[str, tuple[str, Inspected]] = {}
    for file, call in calls:
        if call.operation not in best or call.busbw > best[call.operation][1].busbw:
            best[call.operation] = file, call
    counts = Counter(call.operation for _, call in calls)
    parts = [f"{name} {c.busbw:.4g} GB/s ({format_size(c.bytes)}, "
             f"{counted(counts[name], 'call', 'calls')})"
             for name, (_, c) in best.items()]  # fmt: skip
    figures: Figures = {"calls": len(calls), "comms": len({c.comm for _, c in calls}),
                        "best": names(parts, LISTED), "dropped": dropped}  # fmt: skip
    reason = ["NCCL Inspector has {calls:call|calls} of {comms:communicator|communicators}; the "
              "highest bus "
              "bandwidths: {best}.", "A call's time has its waiting for late ranks in it, so low "
              "ones say little of the network."]  # fmt: skip
    over = [c for _, c in best.values() if c.operation == "all_reduce" and c.nodes == 1
            and c.ranks > 1 and HOPPER < c.busbw <= HOPPER * 2]  # fmt: skip
    if over:
        figures |= {"over_GBps": over[0].busbw, "link_GBps": HOPPER}
        reason.append("{over_GBps} GB/s of an all-reduce within a host is no error: if the cards "
                      "are H100 or H200, whose NVLink carries {link_GBps} GB/s one way, the "
                      "switches add (NVLS).")  # fmt: skip
    if dropped:
        reason.append("{dropped} more were overwritten before they were written.")
    cited = [Evidence(file, c.line, _told(c)) for file, c in best.values()]
    return tell(
        "inspected", f"n = {max(c.ranks for _, c in calls)}", figures, reason,
        "Compare the highest with what the machine should do: roundelay cost, or nccl-tests and "
        "roundelay check.", tuple(cited[:LISTED]), confidence=0.9, area="time",
    )  # fmt: skip


def _late(comm: str, rows: Rows) -> list[Finding]:
    ranks = sorted(rows)
    shared = set.intersection(*(set(own) for own in rows.values()))
    if len(ranks) < 2 or len(shared) < FEWEST:
        return []
    from ...stragglers import report  # which needs the native core

    keys = sorted(shared, key=lambda key: key[1])
    takes = np.array([[rows[r][k][1].time_us for k in keys] for r in ranks])
    begin = -np.round(takes * 1000).astype(np.int64)  # all end at one time, which is 0 here
    nothing = np.zeros((len(ranks), len(ranks), 2), np.int64)
    told = report(comm, begin, np.zeros_like(begin), nothing, 0, FEWEST)
    return [_named(comm, rows, ranks, keys, begin, late) for late in told.ranks if late.stands_out]


def _named(
    comm: str, rows: Rows, ranks: Sequence[int], keys: Sequence[tuple[str, int]],
    begin: np.ndarray[tuple[int, ...], np.dtype[np.int64]], late: Lateness,
) -> Finding:  # fmt: skip
    rank = ranks[late.rank]
    behind = begin[late.rank] - np.median(np.delete(begin, late.rank, axis=0), axis=0)
    file, call = rows[rank][keys[int(behind.argmax())]]
    figures: Figures = {
        "rank": rank, "last": late.last, "calls": len(keys), "group": comm or "?",
        "late_ms": late.median_seconds * 1e3, "most_ms": late.max_seconds * 1e3,
        "waited_ms": late.waited_seconds * 1e3, "host": call.host or "?",
    }  # fmt: skip
    return tell(
        "late_rank", f"rank {rank}, group {comm or '?'}", figures,
        ["Rank {rank} comes last to {last} of {calls:call|calls} of group {group}, by {late_ms} ms "
         "(median; {most_ms} ms at most).",
         "All the others together wait {waited_ms} ms for it.",
         "That is told from how long calls take on each rank: who comes last waits for nobody."],
        "Trace some steps of this rank (host {host}) and of another with torch's profiler, and "
        "give both files here: that tells whether it computes longer or its host is late.",
        (Evidence(file, call.line, f"rank {rank}: {call.operation} {call.number} takes "
                  f"{call.time_us:g} us"),), fault=True, confidence=0.8, area="time",
    )  # fmt: skip
