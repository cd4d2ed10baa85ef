"""A schedule as an MSCCL++ execution plan.

Ranks read from one another: a sender signals that chunks are there, the receiver waits, reads or
adds them over a memory channel, and signals back where the sender must know, at the latest at the
end. So nothing is written into memory of another rank, and all ranks must reach one another's
memory. Each instance does the same with its share of every chunk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..errors import RoundelayError
from ..formats.msccl_xml import COLLECTIVES
from ..formats.mscclpp_plan import CHANNELS_AT_ONCE, ExecutionPlan
from ..schedule import Schedule
from .mscclpp_blocks import Op, Way, gpu_of
from .tasks import Cell, Rank, Task, follows, same, tasks_of


def to_mscclpp(
    schedule: Schedule, *, in_place: bool = False, instances: int = 1, low: int = 0,
    high: int = 2**64 - 1,
) -> ExecutionPlan:  # fmt: skip
    """The schedule as an MSCCL++ plan. It is right in place and out of place.

    Args:
        schedule: of a collective that MSCCL++ has, with rank 0 as its root and no switch that adds.
        in_place: which calls the plan says that it is for.
        instances: thread blocks that share the work of each step.
        low: bytes of the smallest call that it is for.
        high: of the largest.

    Raises:
        RoundelayError: it has no form there; the message says why. Limits are checked when it is
            written.
    """
    if not 1 <= instances <= 128:
        raise RoundelayError(f"instances = {instances}; expected 1 to 128")
    ranks = tasks_of(schedule, "MSCCL++")
    waits, told = _answers(ranks)
    sent: dict[Way, list[tuple[Cell, ...]]] = defaultdict(list)
    for number, rank in enumerate(ranks):
        for task in rank.tasks:
            if task.kind == "send":
                sent[number, task.peer].append(task.cells)
    each = schedule.chunks // schedule.pieces
    scratch = [rank.scratch for rank in ranks]
    programs = [Program(number, rank, waits[number], told, sent, each, scratch)
                for number, rank in enumerate(ranks)]  # fmt: skip
    for program in programs:
        program.make()
    most = (max(len(r.memory.inputs) for r in ranks), max(len(r.memory.outputs) for r in ranks))
    gpus = [gpu_of(program, most, instances) for program in programs]
    return ExecutionPlan(
        f"{schedule.collective}_{schedule.name or 'own'}", COLLECTIVES[schedule.collective],
        "Simple", in_place, gpus, min_message_size=low, max_message_size=high,
    )  # fmt: skip


def _answers(ranks: list[Rank]) -> tuple[list[dict[int, list[Way]]], set[tuple[Way, int]]]:
    """Before which task each rank waits until it is told that chunks were read; which reads tell.

    A message is numbered among those of its way. The last of each way is always answered.
    """
    waits: list[dict[int, list[Way]]] = []
    told: set[tuple[Way, int]] = set()
    for me, rank in enumerate(ranks):
        mine: dict[int, list[Way]] = defaultdict(list)
        readers: dict[object, dict[Way, int]] = defaultdict(dict)
        sent: dict[Way, int] = defaultdict(int)
        known: dict[Way, int] = defaultdict(lambda: -1)
        for number, task in enumerate(rank.tasks):
            way = (me, task.peer)
            for cell in task.cells:
                if task.kind == "send" and cell.source is not None:
                    readers[same(cell, cell.source)][way] = sent[way]
                elif cell.target is not None:
                    for other, k in readers.pop(same(cell, cell.target), {}).items():
                        if k > known[other]:
                            known[other] = k
                            told.add((other, k))
                            mine[number].append(other)
            sent[way] += task.kind == "send"
        for way, count in sent.items():
            if count and known[way] < count - 1:
                told.add((way, count - 1))
                mine[len(rank.tasks)].append(way)
        waits.append(mine)
    return waits, told


@dataclass
class Program:
    """One rank's operations, in order."""

    me: int
    rank: Rank
    waits: dict[int, list[Way]]
    told: set[tuple[Way, int]]
    sent: dict[Way, list[tuple[Cell, ...]]]
    each: int
    scratch: list[dict[tuple[str, int], int]]
    ops: list[Op] = field(default_factory=list)
    taken: dict[Way, int] = field(default_factory=lambda: defaultdict(int))

    def make(self) -> None:
        """Go through the tasks; receptions of the same chunks one after another are one."""
        tasks = self.rank.tasks
        at = 0
        while at < len(tasks):
            self._sync("wait", self.waits.get(at, []))
            task = tasks[at]
            end = at + 1
            if task.kind == "receive":
                while end < len(tasks) and self._joins(task, tasks[end], end - at) and not (
                        self.waits.get(end)):  # fmt: skip
                    end += 1
                self._receive(tasks[at:end])
            elif task.kind == "send":
                self._sync("signal", [(self.me, task.peer)])
            else:
                for run in self._runs(task.cells):
                    cells = task.cells[run]
                    first = cells[0]
                    added = (first.target,) if task.kind == "add" else ()
                    own = tuple((self.me, place) for place in (*added, first.source) if place)
                    name = "re" if added else "copy"
                    self._data(Op(name, (), own, first.target, len(cells)))
            at = end
        self._sync("wait", self.waits.get(len(tasks), []))

    def _joins(self, first: Task, other: Task, count: int) -> bool:
        same = other.kind == "receive" and count < CHANNELS_AT_ONCE
        return (
            same
            and [c.target for c in other.cells] == [c.target for c in first.cells]
            and all(c.source == c.target for c in other.cells)
        )

    def _receive(self, tasks: list[Task]) -> None:
        ways = [(task.peer, self.me) for task in tasks]
        self._sync("wait", ways)
        remote = [self.sent[way][self.taken[way]] for way in ways]
        for run in self._runs(tasks[0].cells, *remote):
            first = tasks[0].cells[run][0]
            size = len(tasks[0].cells[run])
            far = [(way[0], cells[run][0].source) for way, cells in zip(ways, remote, strict=True)]
            sources = tuple((rank, place) for rank, place in far if place is not None)
            own = first.source
            if own is None:
                self._data(Op("get", (), sources[:1], first.target, size))
                sources, own = sources[1:], first.target
            if sources and own is not None:
                self._data(Op("rre", (), ((self.me, own), *sources), first.target, size))
        answered = [way for way in ways if (way, self.taken[way]) in self.told]
        for way in ways:
            self.taken[way] += 1
        self._sync("signal", answered)

    def _sync(self, name: str, ways: list[Way]) -> None:
        """Signals or waits; next to one another they are one operation."""
        for way in ways:
            last = self.ops[-1] if self.ops else None
            if last and last.name == name and len(last.ways) < CHANNELS_AT_ONCE and (
                    way not in last.ways):  # fmt: skip
                self.ops[-1] = last._replace(ways=(*last.ways, way))
                continue
            if name == "signal":
                self._pause()
            self.ops.append(Op(name, (way,)))

    def _data(self, op: Op) -> None:
        self._pause()
        self.ops.append(op)

    def _pause(self) -> None:
        """All threads of the block meet before what follows."""
        if self.ops and self.ops[-1].name not in ("nop", "signal"):
            self.ops.append(Op("nop"))

    def _runs(self, *ends: tuple[Cell, ...]) -> Iterator[slice]:
        """Ranges of cells in which the places at all ends follow one another, within a piece."""
        first = 0
        for i in range(1, len(ends[0]) + 1):
            if i == len(ends[0]) or not all(
                follows(cells[i - 1], cells[i]) and not self._parted(cells[i]) for cells in ends
            ):
                yield slice(first, i)
                first = i

    def _parted(self, cell: Cell) -> bool:
        """Whether a piece begins with the cell."""
        return any(place is not None and place.buffer != "s" and place.number % self.each == 0
                   for place in (cell.source, cell.target))  # fmt: skip
