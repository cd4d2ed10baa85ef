"""Into how many slices a collective's chunks are cut, so that its parts overlap."""

from __future__ import annotations

from math import ceil
from typing import Final, NamedTuple

from .collectives import Ints
from .cost import cost
from .rounds import Round
from .schedule import Schedule

SLICE: Final = 128 << 10
"""Bytes of a slice: 64 to 256 KiB are equally good in shared memory, less costs hand-overs."""
MOST_SLICES: Final = 1 << 16
STREAM_LIMIT: Final = 48
"""Messages of a pair that may wait in a stream, somewhat fewer than its 64 lines."""
ATTACH_FROM: Final = 128 << 10
"""Bytes of a message from which a reader takes it out of the sender's memory through the kernel,
where it has one reader who copies it: one copy instead of two. See benchmarks/engine.md."""
NEVER: Final = 2**62


class Slicing(NamedTuple):
    """How a task is cut; equal on all ranks.

    Attributes:
        slices: parts of every chunk, which go through the schedule one after another.
        lag: slices that a reception runs behind its send.
        attach_from: bytes of a message from which readers attach to the sender's memory.
    """

    slices: int
    lag: int
    attach_from: int


def slicing(schedule: Schedule, chunk: int, nodes: int, arena: int, attach: bool) -> Slicing:
    """Cut a collective.

    Args:
        schedule: over all ranks.
        chunk: bytes of its largest chunk.
        nodes: how many nodes its ranks stand on.
        arena: bytes that a participant may show at once.
        attach: whether processes may read one another's memory.
    """
    rounds = list(schedule)
    largest = chunk * max((_most(r.count) * r.unit for r in rounds), default=0)
    alone = nodes == 1 or schedule.steps == 1  # in a single step slices have nothing to overlap
    if attach and alone and largest >= ATTACH_FROM and _attaches(schedule, rounds):
        # What is smaller, where pieces are uneven, must fit into the arena all at once.
        return Slicing(1, 0, min(ATTACH_FROM, arena // (2 * schedule.ranks)))
    counted = cost(schedule, chunk * schedule.chunks, with_depth=False)
    sent = max(int(counted.bytes_sent_max), int(counted.helper_bytes_max or 0))
    lag = 1 if nodes == 1 else 3
    lag = lag if schedule.steps * lag <= STREAM_LIMIT else 0
    # What all stages show in a slice must fit for the slices that are not yet taken, for this one,
    # and for what is left free where a message does not fit before the arena's end.
    slices = max(1, ceil(largest / SLICE), ceil((lag + 3) * sent / arena))
    slices = min(slices, MOST_SLICES)
    return Slicing(slices, lag if slices > 1 else 0, NEVER)


def _attaches(schedule: Schedule, rounds: list[Round]) -> bool:
    """Whether every message is one chunk, copied by one reader, its sender being busy as well.

    One chunk is one stretch of memory; others would have to go through the arena in one piece.
    """
    busy = ("all_to_all", "scatter") if schedule.ranks > 2 else ("all_to_all", "all_gather")
    single = all(_most(r.count) == 1 and r.unit == 1 for r in rounds)
    return schedule.collective in busy and single and not schedule.helpers


def _most(count: int | Ints) -> int:
    return count if isinstance(count, int) else int(count.max())
