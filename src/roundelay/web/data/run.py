"""A real run: what every rank did and waited for, whom it waited for, and its longest path.

Columns are sent as little-endian bytes (base64 in JSON): [event], ordered by rank and, within a
rank, by begin. Times are ns after the run's first event.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from threading import Lock
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from ...collectives import UnknownName
from ...longest_path import Chain, last_messages, longest_path
from ...timeline import Column, Timeline, What

EVENTS: Final = 2_000_000
"""Events up to which a run is drawn: the last ones of a longer run."""
PARTICIPANTS: Final = 256
_ONE: Final = Lock()
"""So that two who ask for the same at one time don't both work it out."""


class Wait(NamedTuple):
    """How long a rank waited for another.

    Attributes:
        rank: that waited.
        peer: for whom: the one whose message came last, or for room a reader.
        ns: in all.
        times: waits.
        most: the longest, ns.
        bytes: that came from this peer, or are read by it.
    """

    rank: int
    peer: int
    ns: int
    times: int
    most: int
    bytes: int


class Run(msgspec.Struct):
    """What is drawn of a run; columns as the module says.

    Attributes:
        name: of the run.
        span: ns from the first event to the end of the last.
        names, nodes: of participants.
        first: [participant + 1], where each one's events begin.
        begin: float64. wait, work: float32, ns of an event's two parts.
        kind: uint8, a `What`. peer: int16. bytes: float32. call, act: int32.
        cause: int32, the send that a reception waited for: a place in these columns, or -1.
        acts: step, peers and runs of chunks of each act.
        calls: what each kind of call is; call_number (int32), call_kind (int32), call_begin,
            call_end (float64), call_last (int16, who came last) and call_behind (float32, by how
            many ns behind the median of the others), [call] in order of begin.
        path: [stretch] of the longest path: path_event, path_begin, path_end, path_part,
            path_rank, path_source; see `Chain`.
        loads: see `Timeline.loads`.
        waits: of pairs of ranks, the longest in all first.
        lost: earlier events that are not there.
    """

    name: str
    span: int
    names: list[str]
    nodes: list[int]
    first: list[int]
    columns: dict[str, bytes]
    acts: list[Any]
    calls: list[str]
    path: dict[str, bytes]
    loads: list[Any]
    waits: list[Wait]
    lost: int


def runs(runs: Mapping[str, Timeline]) -> list[dict[str, Any]]:
    """Which runs there are."""
    return [
        {"name": name, "events": len(t), "ranks": len(t.names), "ns": t.span[1] - t.span[0]}
        for name, t in runs.items()
    ]


def run(runs: Mapping[str, Timeline], name: str = "even") -> Run:
    """What is drawn of one of them.

    Raises:
        UnknownName: there is none of this name.
    """
    if name not in runs:
        raise UnknownName("run", name, runs)
    with _ONE:
        return drawn(name, runs[name])


@lru_cache(4)
def drawn(name: str, timeline: Timeline) -> Run:
    """What is drawn of a run of this name."""
    lost = timeline.lost + max(0, len(timeline) - EVENTS)
    t = timeline.take(np.arange(max(0, len(timeline) - EVENTS), len(timeline)))
    t = t.take(np.lexsort((t.what != What.CALL, t.begin, t.rank)))
    start, end = t.span
    cause = last_messages(t)
    path = longest_path(t, cause)
    first = np.searchsorted(t.rank, np.arange(len(t.names) + 1))
    columns = {
        "begin": (t.begin - start).astype("<f8"), "wait": (t.ready - t.begin).astype("<f4"),
        "work": (t.end - t.ready).astype("<f4"), "kind": t.what.astype("<u1"),
        "peer": t.peer.astype("<i2"), "bytes": t.bytes.astype("<f4"),
        "call": t.call.astype("<i4"), "act": t.act.astype("<i4"), "cause": cause.astype("<i4"),
    }  # fmt: skip
    texts, calls = _calls(t, start)
    return Run(
        name, end - start, list(t.names), list(t.nodes), first.tolist(),
        {key: column.tobytes() for key, column in (columns | calls).items()},
        [[a.step, a.peers, a.chunks] for a in t.acts], texts, _path(path, start),
        t.loads(), _waits(t, cause), lost,
    )  # fmt: skip


def _calls(t: Timeline, start: int) -> tuple[list[str], dict[str, Any]]:
    """Kinds of calls, and a row for each call: when, and who came last."""
    whole = t.take(t.what == What.CALL)
    order = np.lexsort((whole.begin, whole.call))
    whole = whole.take(order)
    numbers, at = np.unique(whole.call, return_index=True)
    after = np.append(at[1:], len(whole))[: len(at)]
    last = after - 1  # of each call, who began last
    middle = at + np.maximum(0, after - at - 2) // 2
    end = np.maximum.reduceat(whole.end, at) if len(at) else whole.end
    texts: dict[str, int] = {}
    kinds = [texts.setdefault(t.calls.get(n, "?"), len(texts)) for n in numbers.tolist()]
    rows = {
        "call_number": numbers.astype("<i4"), "call_kind": np.array(kinds, "<i4"),
        "call_begin": (whole.begin[at] - start).astype("<f8"),
        "call_end": (end - start).astype("<f8"), "call_last": whole.rank[last].astype("<i2"),
        "call_behind": (whole.begin[last] - whole.begin[middle]).astype("<f4"),
    }  # fmt: skip
    by_begin = np.argsort(rows["call_begin"], kind="stable")
    return list(texts), {key: column[by_begin] for key, column in rows.items()}


def _path(path: Chain, start: int) -> dict[str, bytes]:
    kinds = {"event": "<i4", "rank": "<i2", "source": "<i2", "part": "<u1"}
    found = {key: getattr(path, key).astype(kind).tobytes() for key, kind in kinds.items()}
    for key in ("begin", "end"):
        found[key] = (getattr(path, key) - start).astype("<f8").tobytes()
    return found


def _waits(t: Timeline, cause: Column) -> list[Wait]:
    """Whom each rank waited for: the sender of the last message, or whoever is the peer."""
    moves = np.flatnonzero((t.what != What.CALL) & (t.peer >= 0))
    whom = np.where(cause[moves] >= 0, t.rank[cause[moves]], t.peer[moves])
    n = len(t.names)
    pair = t.rank[moves] * n + whom
    waited = (t.ready - t.begin)[moves]
    ns, times, total = (np.zeros(n * n, np.int64) for _ in range(3))
    most = np.zeros(n * n, np.int64)
    np.add.at(ns, pair, waited)
    np.add.at(times, pair, waited > 0)
    np.maximum.at(most, pair, waited)
    np.add.at(total, pair, t.bytes[moves])
    found = [Wait(p // n, p % n, int(ns[p]), int(times[p]), int(most[p]), int(total[p]))
             for p in np.flatnonzero(total + ns).tolist()]  # fmt: skip
    return sorted(found, key=lambda w: (-w.ns, w.rank, w.peer))
