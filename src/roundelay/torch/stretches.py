"""What a rank does for a schedule, in stretches of the memory of one call."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby
from typing import Final, NamedTuple

import numpy as np

from ..layout import Layout, layout
from ..plan import plan
from ..program import Bounce, Segment, Space
from ..schedule import Schedule

KEPT: Final = 128
"""Programs that are kept: of so many schedules, or sizes of one."""
Spots = tuple[tuple[Space, int, int], ...]
"""Stretches of memory: the row, where it begins and where it ends."""


class Send(NamedTuple):
    """Chunks that go to all of some peers."""

    peers: tuple[int, ...]
    spots: Spots
    bounce: Bounce


class Write(NamedTuple):
    """Chunks that become the sum of what all sources bring; `own` is where they lie before."""

    sources: tuple[int, ...]
    own: Spots
    spots: Spots


class Step(NamedTuple):
    """What goes at once, and what is made of it."""

    sends: tuple[Send, ...]
    writes: tuple[Write, ...]


@lru_cache(KEPT)
def program(schedule: Schedule, rank: int, counts: tuple[int, ...]) -> tuple[tuple[Step, ...], int]:
    """The steps of a rank, and elements of scratch that they need."""
    made, n = plan(schedule, rank), schedule.ranks
    each = np.full((n, n), counts[0]) if schedule.kind.pieces == 2 else np.array(counts)
    places = _Places(made.chunks, layout(schedule, rank, np.arange(n), each.astype(np.int64)))
    steps = []
    for _, entries in groupby(made.entries, lambda entry: entry.step):
        # Between two ranks the messages of a step go by their first chunk.
        found = sorted(entries, key=lambda entry: entry.segments[0].first)
        steps.append(Step(
            tuple(Send(e.peers, places(e.segments, False), e.bounce) for e in found if e.send),
            tuple(Write(e.peers, places(e.segments, False), places(e.segments, True))
                  for e in found if not e.send),
        ))  # fmt: skip
    return tuple(steps), places.scratch


class _Places:
    """Where chunks lie.

    Attributes:
        scratch: elements of scratch that have been needed so far.
    """

    def __init__(self, chunks: int, pieces: Layout) -> None:
        self._per_piece, self._pieces, self.scratch = chunks // len(pieces.length), pieces, 0
        self._passed_on: dict[int, int] = {}

    def __call__(self, segments: Iterable[Segment], home: bool) -> Spots:
        """Of the chunks' values, or of where they are written."""
        spots: list[tuple[Space, int, int]] = []
        for segment in segments:
            space = segment.home if home else segment.space
            for chunk in range(segment.first, segment.first + segment.chunks):
                begin, size = self._place(chunk, space)
                if spots and spots[-1][0] == space and spots[-1][2] == begin:
                    spots[-1] = (space, spots[-1][1], begin + size)
                elif size:
                    spots.append((space, begin, begin + size))
        return tuple(spots)

    def _place(self, chunk: int, space: Space) -> tuple[int, int]:
        piece, k = divmod(chunk, self._per_piece)
        length = int(self._pieces.length[piece])
        ahead, end = length * k // self._per_piece, length * (k + 1) // self._per_piece
        if space in (Space.INPUT, Space.OUTPUT):
            of = self._pieces.input if space == Space.INPUT else self._pieces.output
            return int(of[piece]) + ahead, end - ahead
        if space == Space.SCRATCH and chunk not in self._passed_on:
            self._passed_on[chunk] = self.scratch
            self.scratch += end - ahead
        return self._passed_on.get(chunk, 0), end - ahead
