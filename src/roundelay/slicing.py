"""Into how many slices a collective's chunks are cut, so that its parts overlap."""

from __future__ import annotations

from math import ceil
from typing import Final, NamedTuple

from .cost import cost
from .schedule import Schedule

SLICE: Final = 128 << 10
"""Bytes of a slice: 64 to 256 KiB are equally good in shared memory, less costs hand-overs."""
MOST_SLICES: Final = 1 << 16
STREAM_LIMIT: Final = 48
"""Messages of a pair that may wait in a stream, somewhat fewer than its 64 lines."""
ATTACH_FROM: Final = 1 << 20
"""Bytes from which reading another process's memory through the kernel beats a copy through the
arena, where every message has one reader: only there is one of the two copies saved."""


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


def slicing(
    schedule: Schedule, chunk: int, nodes: int, arena: int, slice_bytes: int = SLICE
) -> Slicing:
    """Cut a collective.

    Args:
        schedule: over all ranks.
        chunk: bytes of its largest chunk.
        nodes: how many nodes its ranks stand on.
        arena: bytes that a participant may show at once.
        slice_bytes: bytes of a slice to aim at.
    """
    rounds = list(schedule)
    largest = chunk * max((_most(r.count) * r.unit for r in rounds), default=0)
    counted = cost(schedule, chunk * schedule.chunks, with_depth=False)
    sent = max(int(counted.bytes_sent_max), int(counted.helper_bytes_max or 0))
    # Whatever all stages of a slice show must fit twice: readers lag behind by one.
    slices = max(1, ceil(largest / slice_bytes), ceil(2 * sent / arena))
    slices = min(slices, MOST_SLICES)
    if slices == 1:
        return Slicing(1, 0, 2**62)
    lag = 1 if nodes == 1 else 3
    if schedule.steps * lag > STREAM_LIMIT:
        lag = 0
    return Slicing(slices, lag, 2**62)


def _most(count: object) -> int:
    return int(getattr(count, "max", lambda: count)())
