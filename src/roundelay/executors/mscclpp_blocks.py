"""Operations of a rank as thread blocks of an MSCCL++ plan, each within the executor's limits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from ..formats.mscclpp_plan import (
    CHANNELS,
    OPERATIONS,
    Block,
    Buffer,
    Channels,
    Gpu,
    Operation,
    Remote,
    RemoteRefs,
    Semaphore,
)
from .tasks import Place, Rank

ROOM: Final = OPERATIONS - 4
"""Operations of a thread block beside those that hand on to the next one."""

Way = tuple[int, int]
"""Sender and receiver."""


class Op(NamedTuple):
    """An operation before ids are known: channels by their way, remote places by their rank."""

    name: str
    ways: tuple[Way, ...] = ()
    sources: tuple[tuple[int, Place], ...] = ()
    target: Place | None = None
    size: int = 0


class Program(Protocol):
    """A rank's operations.

    Attributes:
        me: the rank.
        rank: its memory.
        each: chunks of a piece of input and output.
        scratch: of every rank, the chunks of its scratch.
        ops: in order.
    """

    me: int
    rank: Rank
    each: int
    scratch: list[dict[tuple[str, int], int]]
    ops: list[Op]


def gpu_of(program: Program, most: tuple[int, int], instances: int) -> Gpu:
    """The program as thread blocks: of each instance one after another, each within limits."""
    channels = sorted(
        ({way for op in program.ops for way in op.ways}),
        key=lambda way: (sum(way) - program.me, way),
    )
    numbers = {(way, t): i * instances + t for i, way in enumerate(channels)
               for t in range(instances)}  # fmt: skip
    remotes = sorted({(rank, place.buffer) for op in program.ops for rank, place in op.sources
                      if rank != program.me})  # fmt: skip
    parts = list(_parts(program))
    blocks: list[Block] = []
    for t in range(instances):
        for i, ops in enumerate(parts):
            first = t * (len(parts) - 1)
            maker = _Maker(program, t, instances, numbers, remotes)
            last = i == len(parts) - 1
            blocks.append(maker.block(len(blocks), ops, first + i - 1 if i else None,
                                      None if last else first + i))  # fmt: skip
    peers = [sum(way) - program.me for way in channels for _ in range(instances)]
    return Gpu(
        program.me, most[0] * instances, most[1] * instances,
        len(program.rank.scratch) * instances, blocks,
        [Channels("memory", connected_to=peers)] if peers else [],
        [Remote(rank, buffer, ["memory"]) for rank, buffer in remotes],
        [Semaphore() for _ in range((len(parts) - 1) * instances)],
    )  # fmt: skip


def _parts(program: Program) -> Iterator[list[Op]]:
    """The operations in as few runs as a thread block's limits allow."""
    part: list[Op] = []
    ways: set[Way] = set()
    far: set[tuple[int, str]] = set()
    for op in program.ops:
        more = ways | set(op.ways)
        further = far | {(r, p.buffer) for r, p in op.sources if r != program.me}
        if len(part) == ROOM or len(more) > CHANNELS or len(further) > CHANNELS:
            yield part
            part, more = [], set(op.ways)
            further = {(r, p.buffer) for r, p in op.sources if r != program.me}
        part.append(op)
        ways, far = more, further
    yield part


@dataclass
class _Maker:
    """Makes one thread block; ids count in its own lists."""

    program: Program
    share: int
    shares: int
    numbers: dict[tuple[Way, int], int]
    remotes: list[tuple[int, str]]
    channels: list[int] = field(default_factory=list)
    buffers: list[int] = field(default_factory=list)

    def block(self, number: int, ops: list[Op], before: int | None, after: int | None) -> Block:
        """The block; `before` and `after` are semaphores."""
        made = [self._operation(op) for op in ops]
        if before is not None:
            made = [Operation("sem_acquire", semaphore_ids=[before]), Operation("nop"), *made]
        if after is not None:
            made += [Operation("nop"), Operation("sem_release", semaphore_ids=[after])]
        return Block(
            number, made,
            [Channels("memory", channel_ids=self.channels)] if self.channels else [],
            [RemoteRefs("memory", self.buffers)] if self.buffers else [],
        )  # fmt: skip

    def _operation(self, op: Op) -> Operation:
        ids = [_index(self.channels, self.numbers[way, self.share]) for way in op.ways]
        far = bool(ids) or any(rank != self.program.me for rank, _ in op.sources)
        target = [self._buffer(self.program.me, op.target, op.size)] if op.target else []
        return Operation(
            op.name, ids, "memory" if far else "",
            [self._buffer(rank, place, op.size) for rank, place in op.sources], target,
            "sum" if op.name in ("re", "rre") else "",
        )  # fmt: skip

    def _buffer(self, rank: int, place: Place, size: int) -> Buffer:
        """Of every piece each instance has a run; of scratch, a part of its own."""
        each = len(self.program.scratch[rank]) if place.buffer == "s" else self.program.each
        piece, inside = divmod(place.number, each)
        first = (piece * self.shares + self.share) * each + inside
        if rank == self.program.me:
            return Buffer(type=place.buffer, index=first, size=size)
        number = _index(self.buffers, self.remotes.index((rank, place.buffer)))
        return Buffer(buffer_id=number, index=first, size=size)


def _index(known: list[int], value: int) -> int:
    """Where the value stands in the list; it is put there if need be."""
    if value not in known:
        known.append(value)
    return known.index(value)
