"""The same calls on several ranks, and one clock for all of them.

Clocks of hosts differ by more than calls take. No rank leaves a call in which all exchange data
with all before the last one has come, and all leave it at nearly one time. So the clock of a host
is shifted by the median difference of such calls' ends; ranks of one host share its clock. What the
ends still differ by is the error of whatever is said of lateness.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...formats.kineto import Call, Trace
from .breakdown import calls_ran
from .spans import Spans

TOGETHER: Final = frozenset(
    ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier", "dispatch", "combine")
)
"""What no rank can leave before the last one has come."""
Times = npt.NDArray[np.int64]


class Key(NamedTuple):
    """By which a call is known on all ranks of its group."""

    name: str
    seq: int
    bytes: int
    turn: int


@dataclass(eq=False)
class Matched:
    """Calls of one group that all of its ranks with a trace have made.

    Attributes:
        group: its name.
        ranks: [row], of the job.
        calls: [call], by the first rank's begin.
        begin, end: [row, call], ns.
        missing: ranks of the group that have no trace.
    """

    group: str
    ranks: tuple[int, ...]
    calls: list[Key]
    begin: Times
    end: Times
    missing: int

    @property
    def together(self) -> npt.NDArray[np.bool_]:
        """[call], whether nobody can leave it before the last one has come."""
        return np.array([call.name in TOGETHER for call in self.calls], bool)


@dataclass(frozen=True)
class Clocks:
    """How clocks were brought together.

    Attributes:
        shift: [rank], ns that have been taken from its times.
        error: [rank], ns by which ends of calls still differ from the others' (median).
        calls: that were used.
        apart: hosts that share no such call with the others, whose clocks are as they were.
        zero: ns that stand for 0 on the common clock.
    """

    shift: Mapping[int, int]
    error: Mapping[int, int]
    calls: int
    apart: tuple[str, ...]
    zero: int

    def of(self, rank: int, spans: Spans) -> Spans:
        """A rank's spans on the common clock."""
        by = self.shift[rank] + self.zero
        return Spans(spans.begin - by, spans.end - by)


def match(traces: Mapping[int, Trace]) -> list[Matched]:
    """The calls that can be matched, by group: those of two ranks or more.

    A call is known by its number in the group. Where there is none, by its name and bytes and its
    turn among the like, provided that all ranks have made equally many.
    """
    by_group: dict[tuple[str, tuple[int, ...]], dict[int, dict[Key, Call]]] = {}
    for rank, trace in traces.items():
        if not calls_ran(trace):
            continue
        turns: Counter[tuple[object, ...]] = Counter()
        for call in trace.calls:
            if call.peer >= 0 or call.name in ("send", "recv", "send_recv"):
                continue
            group = call.group, call.ranks or trace.groups.get(call.group, ())
            key = _key(call, turns, group)
            by_group.setdefault(group, {}).setdefault(rank, {})[key] = call
    found = [_matched(*group, own, set(traces)) for group, own in by_group.items()]
    return [m for m in found if m is not None]


def _key(call: Call, turns: Counter[tuple[object, ...]], group: object) -> Key:
    size = -1 if call.seq >= 0 or call.name == "all_to_all" else call.bytes
    like = group, call.name, call.seq, size
    turns[like] += 1
    return Key(call.name, call.seq, size, turns[like])


def _matched(
    name: str, members: tuple[int, ...], own: Mapping[int, Mapping[Key, Call]], traced: set[int]
) -> Matched | None:
    ranks = tuple(sorted(own))
    if len(ranks) < 2:
        return None
    numbered = all(key.seq >= 0 for calls in own.values() for key in calls)
    if not numbered and len({frozenset(calls) for calls in own.values()}) > 1:
        return None
    shared = set.intersection(*(set(calls) for calls in own.values()))
    first = own[ranks[0]]
    keys = sorted(shared, key=lambda key: first[key].begin)
    if not keys:
        return None
    begin, end = (
        np.array([[getattr(own[rank][key], what) for key in keys] for rank in ranks], np.int64)
        for what in ("begin", "end")
    )
    return Matched(name, ranks, keys, begin, end, len(set(members) - traced))


def align(groups: list[Matched], traces: Mapping[int, Trace]) -> Clocks:
    """Bring all times of `groups` to the clock of the first host, by the ends of calls."""
    zero = min((int(m.begin.min()) for m in groups), default=0)
    for m in groups:  # medians are floats, which cannot hold ns since the epoch
        m.begin -= zero
        m.end -= zero
    host = {rank: trace.host or f"rank {rank}" for rank, trace in traces.items()}
    known: dict[str, int] = {}
    used = [(m.ranks, m.end[:, m.together]) for m in groups if m.together.any()]
    if used:
        known[host[used[0][0][0]]] = 0
        while _reach(used, host, known):
            pass
    shift = {rank: known.get(host[rank], 0) for rank in traces}
    behind: dict[int, list[Times]] = {rank: [] for rank in traces}
    for m in groups:
        by = np.array([[shift[rank]] for rank in m.ranks], np.int64)
        m.begin -= by
        m.end -= by
        ends = m.end[:, m.together]
        if ends.size:
            for rank, off in zip(m.ranks, np.abs(ends - np.median(ends, axis=0)), strict=True):
                behind[rank].append(off.astype(np.int64))
    error = {r: int(np.median(np.concatenate(off))) if off else 0 for r, off in behind.items()}
    seen = {host[rank] for m in groups for rank in m.ranks}
    calls = sum(ends.shape[1] for _, ends in used)
    return Clocks(shift, error, calls, tuple(sorted(seen - set(known))), zero)


def _reach(used: list[tuple[tuple[int, ...], Times]], host: Mapping[int, str],
           known: dict[str, int]) -> bool:  # fmt: skip
    """Shifts of hosts that share calls with those that are known; whether there were any."""
    differ: dict[str, list[Times]] = {}
    for ranks, ends in used:
        near = [row for row, rank in enumerate(ranks) if host[rank] in known]
        if not near or len(near) == len(ranks):
            continue
        by = np.array([[known[host[ranks[row]]]] for row in near], np.int64)
        clock = np.median(ends[near] - by, axis=0)
        for row, rank in enumerate(ranks):
            if host[rank] not in known:
                differ.setdefault(host[rank], []).append((ends[row] - clock).astype(np.int64))
    for name, values in differ.items():
        known[name] = int(np.median(np.concatenate(values)))
    return bool(differ)
