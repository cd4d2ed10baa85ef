"""What each rank does for a schedule with its input, output and scratch, chunk by chunk.

All of it is right in place as well, where a chunk's place in the input is the one in the output.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from ..collectives import Ints
from ..errors import RoundelayError
from ..formats.msccl_xml import COLLECTIVES
from ..plan import plan
from ..program import OWN, Bounce, Entry, Space
from ..schedule import Schedule

CELLS: Final = 2 * 10**6
"""Chunk moves, and chunks of all ranks, of a schedule that is spelt out."""


class Place(NamedTuple):
    """A chunk's place in a rank's memory: buffer "i", "o" or "s", and number."""

    buffer: str
    number: int


class Cell(NamedTuple):
    """One chunk of a task: what is read here, if anything, and what is written, if anything."""

    chunk: int
    source: Place | None
    target: Place | None


class Task(NamedTuple):
    """One thing that a rank does.

    Attributes:
        kind: "send"; "receive", and with sources to be added to, a reduction; "copy"; "add" (the
            source to the target).
        peer: of a message, the other rank.
        order: step, whether it writes, first chunk: messages between two ranks go in this order.
    """

    kind: str
    peer: int
    order: tuple[int, bool, int]
    cells: tuple[Cell, ...]


def same(cell: Cell, place: Place) -> object:
    """A name of the place that is the same for input and output, as they are in place."""
    return place if place.buffer == "s" else cell.chunk


def follows(a: Cell, b: Cell) -> bool:
    """Whether the places of one cell lie right behind those of the other."""
    return all(
        (p is None and q is None)
        or (p is not None and q is not None and p.buffer == q.buffer and q.number == p.number + 1)
        for p, q in ((a.source, b.source), (a.target, b.target))
    )


@dataclass(frozen=True)
class Memory:
    """Where a rank's chunks lie: number in the input and in the output, by chunk."""

    inputs: dict[int, int]
    outputs: dict[int, int]

    @classmethod
    def of(cls, schedule: Schedule, rank: int) -> Memory:
        """The chunks that the rank gives and gets, in the order of the ranks they belong to."""
        place = _places(schedule)
        found = (np.flatnonzero(grid[rank]) for grid in (schedule.before(), schedule.after()))
        ordered = (own[np.argsort(place[own])].tolist() for own in found)
        return cls(*({chunk: i for i, chunk in enumerate(own)} for own in ordered))


def _places(schedule: Schedule) -> Ints:
    """Where each chunk would lie in a buffer of all of them."""
    chunk, kind = np.arange(schedule.chunks), schedule.kind
    if not kind.pieces or schedule.owner is None:
        return chunk
    each = schedule.chunks // schedule.pieces
    piece, n, owner = chunk // each, schedule.ranks, schedule.owner
    where = owner[piece] if kind.pieces == 1 else owner[piece // n] * n + owner[piece % n]
    places: Ints = where * each + chunk % each
    return places


def refuse(schedule: Schedule, executor: str) -> None:
    """Refuse what has no form there.

    Raises:
        RoundelayError: the message says why.
    """
    kind, why = schedule.whole().kind, ""
    if kind.name not in COLLECTIVES:
        why = f"it has no {kind.name}; it has {', '.join(COLLECTIVES)}"
    elif schedule.helpers:
        why = "a switch adds in this schedule, and there every step is a rank's"
    elif schedule.root:
        why = f"its files name no root, so that rank 0 must be it; found root {schedule.root}"
    elif max(schedule.expanded(), schedule.chunks * schedule.ranks) > CELLS:
        why = (f"{schedule.expanded():,} moves of {schedule.chunks:,} chunks are too many to spell "
               "out; try fewer ranks")  # fmt: skip
    if why:
        raise RoundelayError(f"{kind.name}/{schedule.name or '?'} cannot go to {executor}: {why}")


@dataclass
class Rank:
    """One rank's tasks, in an order that it may do them in, and its scratch."""

    memory: Memory
    tasks: list[Task] = field(default_factory=list)
    scratch: dict[tuple[str, int], int] = field(default_factory=dict)

    def place(self, space: Space, chunk: int) -> Place:
        """Where a chunk lies in a space of the plan's."""
        if space == Space.INPUT:
            return Place("i", self.memory.inputs[chunk])
        if space == Space.OUTPUT:
            return Place("o", self.memory.outputs[chunk])
        return self.aside("home", chunk)

    def aside(self, use: str, chunk: int) -> Place:
        """A place of scratch, the same one for each use and chunk."""
        return Place("s", self.scratch.setdefault((use, chunk), len(self.scratch)))

    def take(self, entry: Entry) -> None:
        """Add the tasks of an entry of the plan."""
        own = [
            Cell(chunk, self.place(part.space, chunk) if part.space else None,
                 None if entry.send else self.place(part.home, chunk))
            for part in entry.segments
            for chunk in range(part.first, part.first + part.chunks)
        ]  # fmt: skip
        order = entry.step, not entry.send, own[0].chunk
        if entry.send:
            self._send(entry, order, own)
        else:
            self._write(entry, order, own)

    def _add(self, kind: str, peer: int, order: tuple[int, bool, int], cells: list[Cell]) -> None:
        self.tasks.append(Task(kind, peer, order, tuple(cells)))

    def _send(self, entry: Entry, order: tuple[int, bool, int], own: list[Cell]) -> None:
        if entry.bounce != Bounce.NO:
            kept = [c._replace(target=self.aside("sent", c.chunk)) for c in own]
            self._add("copy", OWN, order, kept)
            own = [Cell(c.chunk, c.target, None) for c in kept]
        for peer in entry.peers:
            self._add("send", peer, order, own)

    def _write(self, entry: Entry, order: tuple[int, bool, int], own: list[Cell]) -> None:
        sources = list(entry.peers)
        if sources == [OWN]:
            self._add("copy", OWN, order, own)
            return
        at = sources.index(OWN) if OWN in sources else None
        if at == 1:  # a sum of two is the same either way
            sources[:2], at = sources[1::-1], 0
        late = at is not None and at > 0
        if late:  # what comes before it is written where it lies
            kept = [c._replace(target=self.aside("own", c.chunk)) for c in own]
            self._add("copy", OWN, order, kept)
        here = [Cell(c.chunk, c.target, c.target) for c in own]
        first = own if at == 0 else [c._replace(source=None) for c in own]
        for peer in sources[1:] if at == 0 else sources:
            if peer == OWN:
                mine = [Cell(c.chunk, k.target, c.target) for c, k in zip(own, kept, strict=True)]
                self._add("add", OWN, order, mine)
            else:
                self._add("receive", peer, order, first)
            first = here


def tasks_of(schedule: Schedule, executor: str) -> list[Rank]:
    """What each rank does.

    Raises:
        RoundelayError: it has no form for the executor.
    """
    refuse(schedule, executor)
    ranks = []
    for number in range(schedule.ranks):
        rank = Rank(Memory.of(schedule, number))
        for entry in plan(schedule, number).entries:
            if list(entry.peers).count(OWN) > 1:
                raise RoundelayError(
                    f"{schedule.whole().kind.name}/{schedule.name or '?'} cannot go to {executor}: "
                    f"rank {number} sends itself what it adds, in step {entry.step}; expected "
                    "messages between ranks"
                )
            rank.take(entry)
        rank.tasks.sort(key=lambda task: task.order)  # stable: an entry's tasks stay together
        ranks.append(rank)
    return ranks
