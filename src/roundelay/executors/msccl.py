"""A schedule as an MSCCL algorithm.

Each thread block sends to one peer, receives from one, or works within its rank; so messages go
their way at their own pace, and only what shares a place waits. Nothing is fused.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from ..formats.msccl_xml import COUNT, Algo, Block, Gpu, Step
from ..schedule import Schedule
from .tasks import Cell, Place, Rank, Task, follows, same, tasks_of

PEERS_PER_CHANNEL: Final = 15
"""Peers of a channel: with a thread block for each way, and one within the rank, 31 of 32."""
NOWHERE: Final = Place("i", 0)

_End = tuple[str, int]
"""A thread block, while it is being made: ("send" or "receive", peer), or ("within", -1)."""
_Cells = tuple[Cell, ...]


@dataclass
class _Made:
    steps: list[Step] = field(default_factory=list)
    waited_for: set[int] = field(default_factory=set)
    seen: dict[_End, int] = field(default_factory=dict)


@dataclass
class _Writer:
    """Puts one rank's tasks into thread blocks, with what each step waits for."""

    blocks: dict[_End, _Made] = field(default_factory=dict)
    written: dict[object, tuple[_End, int]] = field(default_factory=dict)
    read: dict[object, list[tuple[_End, int]]] = field(default_factory=dict)
    clocks: dict[tuple[_End, int], dict[_End, int]] = field(default_factory=dict)

    def add(self, task: Task, cells: _Cells) -> None:
        """One step, and before it those that do nothing but wait."""
        end = ("within", -1) if task.peer < 0 else (task.kind, task.peer)
        block = self.blocks.setdefault(end, _Made())
        source, target = cells[0].source, cells[0].target
        kind = {"send": "s", "copy": "cpy", "add": "re"}.get(task.kind, "rrc" if source else "r")
        waits = self._waits(end, block, list(self._before(task, cells)))
        for other, step in waits[:-1]:
            block.steps.append(Step("nop", NOWHERE, NOWHERE, 0))
            self._wait(block, other, step)
        block.steps.append(Step(kind, source or target or NOWHERE, target or source or NOWHERE,
                                len(cells)))  # fmt: skip
        if waits:
            self._wait(block, *waits[-1])
        self._note(task, cells, (end, len(block.steps) - 1), block)

    def _wait(self, block: _Made, other: _End, step: int) -> None:
        number = list(self.blocks).index(other)
        block.steps[-1] = replace(block.steps[-1], after=(number, step))
        self.blocks[other].waited_for.add(step)

    def _before(self, task: Task, cells: _Cells) -> Iterator[tuple[_End, int]]:
        """The steps that must be done: writers of what is read, all users of what is written."""
        for cell in cells:
            for place, writes in _touched(task, cell):
                if place in self.written:
                    yield self.written[place]
                if writes:
                    yield from self.read.get(place, ())

    def _waits(self, end: _End, block: _Made, before: list[tuple[_End, int]]) -> list[
            tuple[_End, int]]:  # fmt: skip
        """Those that are not known to be done by what is waited for anyway."""
        last: dict[_End, int] = {}
        for other, step in before:
            last[other] = max(last.get(other, -1), step)
        last = {o: s for o, s in last.items() if o != end and s > block.seen.get(o, -1)}
        kept = [
            (o, s) for o, s in last.items()
            if not any(p != o and self.clocks[p, t].get(o, -1) >= s for p, t in last.items())
        ]  # fmt: skip
        for other, step in kept:
            for o, s in self.clocks[other, step].items():
                block.seen[o] = max(block.seen.get(o, -1), s)
        return kept

    def _note(self, task: Task, cells: _Cells, here: tuple[_End, int], block: _Made) -> None:
        block.seen[here[0]] = here[1]
        self.clocks[here] = dict(block.seen)
        for cell in cells:
            for place, writes in _touched(task, cell):
                if writes:
                    self.written[place] = here
                    self.read[place] = []
                else:
                    self.read.setdefault(place, []).append(here)

    def gpu(self, rank: Rank, number: int, ranks: int, most: tuple[int, int], wide: bool) -> Gpu:
        """The rank, made."""
        blocks = []
        for (kind, peer), made in self.blocks.items():
            steps = tuple(replace(s, waited_for=i in made.waited_for)
                          for i, s in enumerate(made.steps))  # fmt: skip
            away = (peer - number if kind == "send" else number - peer) % ranks
            channel = (away - 1) // PEERS_PER_CHANNEL if wide and peer >= 0 else 0
            send, recv = (peer if kind == way else -1 for way in ("send", "receive"))
            blocks.append(Block(send, recv, channel, steps))
        return Gpu(*most, len(rank.scratch), tuple(blocks))


def _touched(task: Task, cell: Cell) -> Iterator[tuple[object, bool]]:
    """Places, and whether they are written; in and out of place alike."""
    if cell.source is not None:
        yield same(cell, cell.source), False
    if cell.target is not None:
        yield same(cell, cell.target), True


def to_msccl(
    schedule: Schedule, *, protocol: str = "Simple", low: int = 0, high: int = 2**63 - 1
) -> Algo:
    """The schedule as an MSCCL algorithm, for calls in and out of place.

    Args:
        schedule: of a collective that MSCCL has, with rank 0 as its root and no switch that adds.
        protocol: "Simple", "LL" or "LL128".
        low: bytes of the smallest call that it is for.
        high: of the largest.

    Raises:
        RoundelayError: it has no form there; the message says why. Limits are checked when it is
            written.
    """
    ranks = tasks_of(schedule, "MSCCL")
    pieces = _pieces(ranks)
    writers = [_Writer() for _ in ranks]
    for rank, writer in zip(ranks, writers, strict=True):
        for task in rank.tasks:
            for cells in pieces[id(task)]:
                writer.add(task, cells)
    wide = max(len(writer.blocks) for writer in writers) > 2 * PEERS_PER_CHANNEL + 2
    most = (max(len(r.memory.inputs) for r in ranks), max(len(r.memory.outputs) for r in ranks))
    gpus = tuple(writer.gpu(rank, i, len(ranks), most, wide)
                 for i, (rank, writer) in enumerate(zip(ranks, writers, strict=True)))  # fmt: skip
    channels = 1 + max((b.channel for gpu in gpus for b in gpu.blocks), default=0)
    name = f"{schedule.collective}_{schedule.name or 'own'}"
    return Algo(name, schedule.collective, protocol, channels, gpus,
                schedule.collective != "all_to_all", True, low, high)  # fmt: skip


def _pieces(ranks: list[Rank]) -> dict[int, list[_Cells]]:
    """Each task, by its id, cut where its chunks do not follow one another at both ends."""
    sent: dict[tuple[int, int], deque[Task]] = defaultdict(deque)
    found: dict[int, list[_Cells]] = {}
    for number, rank in enumerate(ranks):
        for task in rank.tasks:
            if task.kind == "send":
                sent[number, task.peer].append(task)
            elif task.kind != "receive":
                found[id(task)] = [task.cells[a:b] for a, b in _cuts(task.cells, task.cells)]
    for number, rank in enumerate(ranks):
        for task in rank.tasks:
            if task.kind == "receive":
                other = sent[task.peer, number].popleft()
                for end in (other, task):
                    cuts = _cuts(other.cells, task.cells)
                    found[id(end)] = [end.cells[a:b] for a, b in cuts]
    return found


def _cuts(one: _Cells, other: _Cells) -> list[tuple[int, int]]:
    """Ranges of cells in which the places of both follow one another."""
    starts = [0]
    for i in range(1, len(one)):
        joined = all(follows(cells[i - 1], cells[i]) for cells in (one, other))
        if not joined or i - starts[-1] == COUNT:
            starts.append(i)
    return list(pairwise([*starts, len(one)]))
