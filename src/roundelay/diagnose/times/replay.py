"""What matched calls, and the work between them, would take if some ranks were not slow.

The model is that of Lin et al., Understanding Stragglers in Large Model Training Using What-if
Analysis, OSDI 2025: a call ends a fixed time after the last rank has come, and a rank's own work
between two calls takes as long as it took. A rank goes on when its own work is done and the calls
have ended that had ended when it went on. With nothing changed, the times are those of the traces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .matched import Matched
from .spans import Spans

MOST: Final = 4 * 10**6
"""Begins and ends of calls that are gone through."""
Own = list[npt.NDArray[np.float64]]


class Replay(NamedTuple):
    """ns from the first call's begin to the last one's end: as it was, and as it would be."""

    measured: int
    replayed: int


def replay(
    groups: Sequence[Matched], exposed: Mapping[int, Spans], slow: set[int]
) -> Replay | None:
    """Give slow ranks the mean work of the others before each call.

    Args:
        groups: on one clock.
        exposed: by rank, of the same clock: when it did nothing but communicate.
        slow: ranks.

    Returns:
        None where there is nothing to replay, or too much.
    """
    if not groups or 2 * sum(m.begin.size for m in groups) > MOST:
        return None
    own = _own(groups, exposed)
    ends = _run(groups, own, [_levelled(m, o, slow) for m, o in zip(groups, own, strict=True)])
    first = min(int(m.begin.min()) for m in groups)
    last = max(int(m.end.max()) for m in groups)
    return Replay(last - first, round(ends) - first)


def _own(groups: Sequence[Matched], exposed: Mapping[int, Spans]) -> Own:
    """[group][row, call], ns of a rank's own work since it came to the call before."""
    found: Own = [np.zeros(m.begin.shape) for m in groups]
    for rank, spans in exposed.items():
        mine = [(g, m.ranks.index(rank)) for g, m in enumerate(groups) if rank in m.ranks]
        if not mine:
            continue
        begin = np.concatenate([groups[g].begin[row] for g, row in mine])
        order = np.argsort(begin, kind="stable")
        work = np.zeros(len(begin))
        work[order[1:]] = np.diff(begin[order] - spans.before(begin[order]))
        at = 0
        for g, row in mine:
            found[g][row] = work[at : at + found[g].shape[1]]
            at += found[g].shape[1]
    return found


def _levelled(m: Matched, own: npt.NDArray[np.float64], slow: set[int]) -> npt.NDArray[np.float64]:
    """Own work where slow ranks have the mean of the others."""
    late = np.array([rank in slow for rank in m.ranks])
    if late.any() and not late.all():
        own = own.copy()
        own[late] = own[~late].mean(axis=0)
    return own


def _run(groups: Sequence[Matched], own: Own, wanted: Own) -> float:
    """When the last call ends, all begins and ends gone through in the order of time."""
    came = [m.begin.max(axis=0).tolist() for m in groups]
    together = [m.together.tolist() for m in groups]
    begin, end = [m.begin.tolist() for m in groups], [m.end.tolist() for m in groups]
    was, will = [o.tolist() for o in own], [w.tolist() for w in wanted]
    came_again = [[0.0] * len(m.calls) for m in groups]
    arrived: dict[tuple[int, int, int], float] = {}
    last_begun: dict[int, float] = {}
    last_ended: dict[int, tuple[int, float]] = {}
    latest = 0.0
    for ends, g, row, call in _in_order(groups):
        rank, at = groups[g].ranks[row], begin[g][row][call]
        if not ends:
            before, work = was[g][row][call], will[g][row][call]
            time = last_begun[rank] + work if rank in last_begun else float(at)
            if rank in last_ended:
                measured, again = last_ended[rank]
                time = max(time, again + (at - measured) * (work / before if before else 1.0))
            last_begun[rank] = arrived[g, row, call] = time
            came_again[g][call] = max(came_again[g][call], time)
        else:
            ended = end[g][row][call]
            time = arrived.pop((g, row, call)) + ended - at
            if together[g][call] and ended > came[g][call]:
                time = came_again[g][call] + ended - came[g][call]
            last_ended[rank] = ended, time
            latest = max(latest, time)
    return latest


def _in_order(groups: Sequence[Matched]) -> list[list[int]]:
    """[event, 4]: whether a call ends, group, row and call; by time, at one time ends first."""
    rows = []
    for g, m in enumerate(groups):
        row, call = np.indices(m.begin.shape).reshape(2, -1)
        for ends, times in ((0, m.begin), (1, m.end)):
            same = np.full(row.size, g), row, call
            rows.append(np.stack([times.ravel(), np.full(row.size, ends), *same], axis=1))
    every = np.concatenate(rows)
    # A call of no length ends after it begins, so it is never first at its time.
    first = np.where((every[:, 1] == 1) & _long(groups, every), 0, 1 + every[:, 1])
    order = np.lexsort((first, every[:, 0]))
    ordered: list[list[int]] = every[order][:, 1:].tolist()
    return ordered


def _long(groups: Sequence[Matched], every: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """[event], whether its call takes any time on its rank."""
    found = np.zeros(len(every), bool)
    for g, m in enumerate(groups):
        mine = every[:, 2] == g
        row, call = every[mine, 3], every[mine, 4]
        found[mine] = m.end[row, call] > m.begin[row, call]
    return found
