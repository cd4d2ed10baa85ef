"""What happened, or would happen: every send, copy and reduction of every rank, on one clock.

A timeline is columns, one entry an event. One that was measured has the times of the clock
CLOCK_MONOTONIC; one that was computed begins at 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from enum import IntEnum
from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from .errors import RoundelayError

Column = npt.NDArray[np.int64]

OWN: Final = -1
"""Among the peers of an act: the participant's own value."""
UNKNOWN: Final = -1
"""A step, peer or act of which nothing is known."""


class What(IntEnum):
    """Kind of an event: a send, a reception that copies or one that adds up, or a whole call."""

    SEND, COPY, REDUCE, CALL = range(4)


class Act(NamedTuple):
    """What an event does, as far as its schedule says it.

    Attributes:
        step: of the schedule.
        peers: those that are sent to; or the sources, in the order in which they are added up,
            `OWN` among them.
        chunks: runs of chunks, as (first, how many).
    """

    step: int
    peers: tuple[int, ...]
    chunks: tuple[tuple[int, int], ...]


class Load(NamedTuple):
    """What one participant did.

    Attributes:
        sent, copied, reduced: bytes of its sends, each counted once for each reader, and of its
            receptions, for each source.
        busy, waiting: ns in which its sends and receptions worked, and in which they waited.
        calls: ns in which it was inside a call.
    """

    sent: int
    copied: int
    reduced: int
    busy: int
    waiting: int
    calls: int


@dataclass(frozen=True, eq=False)
class Timeline:
    """Events, in the order in which they begin.

    Columns, [event], all of int64:

    Attributes:
        rank: participant: a rank, or from `ranks` up a helper, such as a switch that adds.
        call: number of the call; see `calls`.
        what: a `What`.
        peer: the other participant, the first of them; -1 where there is none.
        peers: how many readers or sources, the participant's own value included.
        stage: place in the participant's plan; -1 for a call.
        slice: which part of the chunks, 0 up.
        bytes: of the slice; 0 for a call.
        begin, ready, end: ns. From `begin` to `ready` it waited, from then on it worked. Where it
            waited several times, `ready` is the end of the last wait.
        act: index into `acts`, or -1.
        calls: what each call is, such as "all_reduce of 1024 float32, sum (two_shot)".
        names: of participants.
        nodes: [participant], number of its node.
        acts: what events do.
        lost: earlier events that there was no room for.
    """

    rank: Column
    call: Column
    what: Column
    peer: Column
    peers: Column
    stage: Column
    slice: Column
    bytes: Column
    begin: Column
    ready: Column
    end: Column
    act: Column
    calls: Mapping[int, str] = field(default_factory=dict)
    names: Sequence[str] = ()
    nodes: Sequence[int] = ()
    acts: Sequence[Act] = ()
    lost: int = 0

    def __post_init__(self) -> None:
        for name in COLUMNS:
            object.__setattr__(self, name, np.asarray(getattr(self, name), np.int64))
        lengths = {name: getattr(self, name).shape for name in COLUMNS}
        if any(shape != (len(self),) for shape in lengths.values()):
            raise RoundelayError(f"columns are of {lengths}; expected one entry an event in each")
        if len(self.names) != len(self.nodes) or (self.rank >= len(self.names)).any():
            raise RoundelayError(
                f"{len(self.names)} names and {len(self.nodes)} nodes, and events of participants "
                f"up to {self.rank.max(initial=-1)}; expected a name and a node for each"
            )

    @classmethod
    def empty(cls, names: Sequence[str] = (), nodes: Sequence[int] = ()) -> Self:
        """A timeline without events."""
        columns: dict[str, Any] = dict.fromkeys(COLUMNS, np.empty(0, np.int64))
        return cls(**columns, names=names, nodes=nodes)

    @classmethod
    def joined(cls, parts: Iterable[Timeline]) -> Timeline:
        """Timelines of the same participants as one.

        Raises:
            RoundelayError: their participants differ.
        """
        given = list(parts)
        if not given:
            return cls.empty()
        first = given[0]
        if any((list(p.names), list(p.nodes)) != (list(first.names), list(first.nodes))
               for p in given):  # fmt: skip
            raise RoundelayError("timelines of different participants cannot be joined")
        columns = {n: np.concatenate([getattr(p, n) for p in given]) for n in COLUMNS}
        shifts = np.cumsum([0, *(len(p.acts) for p in given)])
        columns["act"] = np.concatenate(
            [np.where(p.act >= 0, p.act + s, p.act)
             for p, s in zip(given, shifts, strict=False)]
        )  # fmt: skip
        calls = {number: text for p in given for number, text in p.calls.items()}
        whole = cls(
            **columns, calls=calls, names=first.names, nodes=first.nodes,
            acts=[a for p in given for a in p.acts], lost=sum(p.lost for p in given),
        )  # fmt: skip
        return whole.take(np.lexsort((whole.what != What.CALL, whole.begin)))

    def __len__(self) -> int:
        return len(self.rank)

    def __repr__(self) -> str:
        calls = len(np.unique(self.call[self.what == What.CALL]))
        return (
            f"<Timeline: {len(self):,} events, {len(self.names)} participants, {calls} calls, "
            f"{_us(self.span[1] - self.span[0])} us>"
        )

    def take(self, events: npt.NDArray[Any]) -> Timeline:
        """Some events, by indices or a mask."""
        return replace(self, **{name: getattr(self, name)[events] for name in COLUMNS})

    def of(self, rank: int) -> Timeline:
        """The events of one participant."""
        return self.take(self.rank == rank)

    def shifted(self, ns: npt.ArrayLike) -> Timeline:
        """All of it, later by some ns: one number, or one an event."""
        by = np.asarray(ns, np.int64)
        return replace(self, begin=self.begin + by, ready=self.ready + by, end=self.end + by)

    @property
    def span(self) -> tuple[int, int]:
        """When the first event begins and the last one ends, in ns."""
        return (int(self.begin.min()), int(self.end.max())) if len(self) else (0, 0)

    @property
    def waits(self) -> Column:
        """[participant], ns that its sends and receptions have waited."""
        return self._total(self.ready - self.begin, self.what != What.CALL)

    def loads(self) -> list[Load]:
        """What each participant did."""
        moves = self.what != What.CALL
        others = np.where(moves, self.peers, 0)
        if self.acts:
            known = np.array([sum(p != OWN for p in a.peers) for a in self.acts])
            others = np.where(self.act >= 0, known[self.act], others)
        moved = self.bytes * others
        columns = [
            *(self._total(moved, self.what == w) for w in (What.SEND, What.COPY, What.REDUCE)),
            self._total(self.end - self.ready, moves),
            self.waits,
            self._total(self.end - self.begin, ~moves),
        ]
        return [Load(*(int(c[p]) for c in columns)) for p in range(len(self.names))]

    def _total(self, values: Column, where: npt.NDArray[np.bool_]) -> Column:
        total = np.zeros(len(self.names), np.int64)
        np.add.at(total, self.rank[where], values[where])
        return total

    def text(self, event: int) -> str:
        """What an event is: "reduce chunk 3 from 0, 2"."""
        what = What(int(self.what[event]))
        if what == What.CALL:
            return self.calls.get(int(self.call[event]), "a call")
        direction = "to" if what == What.SEND else "from"
        if self.act[event] == UNKNOWN:
            return f"{what.name.lower()} {direction} {self._name(int(self.peer[event]))}"
        act = self.acts[int(self.act[event])]
        others = [self._name(p) for p in act.peers if p != OWN]
        whom = f"{direction} {', '.join(others)}" if others else "from the input"
        return f"{what.name.lower()} {_chunks(act.chunks)} {whom}"

    def _name(self, participant: int) -> str:
        name = self.names[participant]
        return name.removeprefix("rank ").partition(" (")[0]

    def messages(self) -> Messages:
        """Which reception takes what which send has sent.

        Between two participants messages go in one order, so those of a call, step and slice are
        matched one by one. What is not in the timeline is left out.
        """
        ends = [self._ends(What.SEND), self._ends(What.COPY, What.REDUCE)]
        event, keys = (np.concatenate(column) for column in zip(*ends, strict=True))
        order = np.lexsort(keys.T)  # stable: of two equal keys the send stands first
        event, keys = event[order], keys[order]
        both = np.flatnonzero((keys[1:] == keys[:-1]).all(axis=1))
        send, reception = event[both], event[both + 1]
        order = np.lexsort((reception, send))
        return Messages(send[order], reception[order])

    def _ends(self, *kinds: What) -> tuple[Column, Column]:
        """The ends of messages, a row for each peer of each event: which event, and a key."""
        events = np.flatnonzero(np.isin(self.what, kinds) & (self.act >= 0))
        peers = np.array([p for a in self.acts for p in a.peers], np.int64)
        counts = np.array([len(a.peers) for a in self.acts], np.int64)
        steps = np.array([a.step for a in self.acts], np.int64)
        act = self.act[events]
        count = counts[act]
        event = np.repeat(events, count)
        along = np.arange(len(event)) - np.repeat(np.cumsum(count) - count, count)
        peer = peers[np.repeat((np.cumsum(counts) - counts)[act], count) + along]
        event, peer, step = (x[peer != OWN] for x in (event, peer, np.repeat(steps[act], count)))
        pair = (self.rank[event], peer) if What.SEND in kinds else (peer, self.rank[event])
        keys = np.stack([self.call[event], *pair, step, self.slice[event]], axis=1)
        # Events of a participant stand in the order in which it did them.
        order = np.lexsort((event, *keys.T[::-1]))
        event, keys = event[order], keys[order]
        fresh = np.ones(len(keys), bool)
        fresh[1:] = (keys[1:] != keys[:-1]).any(axis=1)
        first = np.maximum.accumulate(np.where(fresh, np.arange(len(keys)), 0))
        turn = np.arange(len(keys)) - first
        return event, np.column_stack([keys, turn])

    def summary(self) -> str:
        """What each participant moved, and how long it worked and waited, as a table."""
        heads = ["", "sent, bytes", "copied", "reduced", "in calls, us", "busy", "waiting"]
        rows = [heads]
        for name, load in zip(self.names, self.loads(), strict=True):
            moved = [f"{n:,}" for n in (load.sent, load.copied, load.reduced)]
            rows.append([name, *moved, *map(_us, (load.calls, load.busy, load.waiting))])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for name, *figures in rows:
            cells = [f.rjust(w) for f, w in zip(figures, widths[1:], strict=True)]
            lines.append("  ".join([name.ljust(widths[0]), *cells]).rstrip())
        return "\n".join(lines)


class Messages(NamedTuple):
    """Matched events of a timeline: [message], its send and its reception."""

    send: Column
    reception: Column


COLUMNS: Final = tuple(f.name for f in fields(Timeline))[:12]


def _chunks(runs: Sequence[tuple[int, int]]) -> str:
    if len(runs) != 1:
        return f"{sum(count for _, count in runs):,} chunks"
    first, count = runs[0]
    return f"chunk {first}" if count == 1 else f"chunks {first}-{first + count - 1}"


def _us(ns: int) -> str:
    return f"{ns / 1000:,.1f}"
