"""From a schedule to what one rank's engine does, in order, with a place in memory for every chunk.

The engine goes through the entries of a plan one after another. That keeps the meaning of the
schedule, since they stand in its order: by step, reads before writes. Three things are settled
here, once for all sizes:

- **Where a chunk lies.** A contribution starts in the input; what must be there at the end is
  written to the output, and what is only passed on to scratch.
- **What belongs together.** Sends of the same chunks in one step are one entry with several
  readers. Receptions of the same chunks in one step are one entry with several sources, so a
  rank adds them all up in one pass.
- **What must be read before it is overwritten.** A write names the earlier sends of its place:
  where a peer reads that very memory, the write waits for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .collectives import Ints
from .program import OWN, Bounce, Entry, Plan, Segment, Space
from .rounds import COPY
from .schedule import HalfMoves, Schedule, ScheduleError

Runs = tuple[tuple[int, int], ...]
"""Runs of chunk ids, as (first, how many), in the order in which a message carries them."""


class _Half(NamedTuple):
    """One repetition of a half-move."""

    step: int
    write: bool
    peer: int
    copy: bool
    runs: Runs


def plan(schedule: Schedule, rank: int) -> Plan:
    """What a rank, or helper, does for a schedule.

    Raises:
        ScheduleError: there is no such rank, the schedule is a part for rows of ranks, or two
            writes of one step share some of their chunks but not all.
    """
    halves = [h for half in schedule.whole().part(rank) for h in _repetitions(half, schedule)]
    halves.sort(key=lambda h: (h.step, h.write))  # stable: the listing stays
    state = _State(schedule, rank)
    first = 0
    while first < len(halves):
        last = first
        while last < len(halves) and halves[last][:2] == halves[first][:2]:
            last += 1
        (state.receive if halves[first].write else state.send)(halves[first:last])
        first = last
    state.keep_own()
    return Plan(rank, schedule.chunks, schedule.steps, tuple(state.entries))


def _repetitions(h: HalfMoves, schedule: Schedule) -> Iterator[_Half]:
    block = h.wrap or schedule.chunks // h.unit
    base = h.chunk // block * block
    along = h.chunk - base + h.stride * np.arange(h.count)
    for k in range(h.times):
        ids = base + (along + k * h.shift) % block
        yield _Half(h.begin + h.start + k, h.write, h.peer, h.op == COPY, _runs(ids, h.unit))


def _runs(ids: Ints, unit: int) -> Runs:
    if len(ids) == 1:
        return ((int(ids[0]) * unit, unit),)
    cuts = np.flatnonzero(np.diff(ids) != 1) + 1
    starts = np.concatenate(([0], cuts))
    lengths = np.diff(np.concatenate((starts, [len(ids)])))
    return tuple(zip((ids[starts] * unit).tolist(), (lengths * unit).tolist(), strict=True))


class _State:
    """Where each chunk of the rank lies, and who reads it there, as the entries go by."""

    def __init__(self, schedule: Schedule, rank: int) -> None:
        self.rank, self.ranks, self.chunks = rank, schedule.ranks, schedule.chunks
        chunk = np.arange(schedule.chunks)
        kind = schedule.kind
        piece = chunk // (schedule.chunks // schedule.pieces)
        row = np.array([[rank]])
        before = kind.before(schedule.setting, row, piece[None, :])[0]
        self.after = np.array(kind.after(schedule.setting, row, piece[None, :])[0])
        self.space = np.where(before, Space.INPUT, Space.NONE).astype(np.int8)
        self.home = np.where(self.after, Space.OUTPUT, Space.SCRATCH).astype(np.int8)
        self.readers: dict[int, list[int]] = {}
        self.entries: list[Entry] = []
        self.writing_step = np.full(schedule.chunks, -1)

    def send(self, halves: list[_Half]) -> None:
        """All reads of a step."""
        groups: dict[Runs, list[int]] = {}
        for h in halves:
            if h.peer != self.rank:
                groups.setdefault(h.runs, []).append(h.peer)
        for runs, peers in sorted(groups.items(), key=self._turn):
            for first, count in runs:
                if (self.space[first : first + count] == Space.NONE).any():
                    raise ScheduleError(
                        f"rank {self.rank} sends chunk {first} in step {halves[0].step}, "
                        "but holds nothing of it; `verify` says where it goes wrong"
                    )
                for chunk in range(first, first + count):
                    self.readers.setdefault(chunk, []).append(len(self.entries))
            segments = [s for run in runs for s in self._segments(*run)]
            self.entries.append(Entry(True, halves[0].step, tuple(peers), tuple(segments)))

    def _turn(self, group: tuple[Runs, list[int]]) -> tuple[int, int]:
        """Where everybody sends to everybody, each begins with its neighbour.

        Between two ranks the messages of a step go by chunk, whatever their order here.
        """
        runs, peers = group
        lone = len(peers) == 1 and 0 <= peers[0] < self.ranks
        return (peers[0] - self.rank) % self.ranks if lone else -1, runs[0][0]

    def receive(self, halves: list[_Half]) -> None:
        """All writes of a step."""
        step = halves[0].step
        groups: dict[Runs, list[int]] = {}
        for h in halves:
            peer = OWN if h.peer == self.rank else h.peer
            group = groups.setdefault(h.runs, [])
            if not group and not h.copy:
                group.append(OWN)
            group.append(peer)
        for runs, sources in sorted(groups.items(), key=self._turn):
            self._write(step, runs, tuple(sources))

    def _write(self, step: int, runs: Runs, sources: tuple[int, ...]) -> None:
        after: dict[int, bool] = {}
        segments: list[Segment] = []
        for first, count in runs:
            here = slice(first, first + count)
            if (self.writing_step[here] == step).any():
                raise ScheduleError(
                    f"rank {self.rank} writes chunk {first} twice in step {step}, in runs of "
                    "different chunks; write it in one run, or in two steps"
                )
            self.writing_step[here] = step
            segments += self._segments(first, count)
            for chunk in range(first, first + count):
                for entry in self.readers.pop(chunk, ()):
                    self._overwrites(entry, chunk, step, after)
            self.space[here] = self.home[here]
        if sources != (OWN,):
            self.entries.append(
                Entry(False, step, sources, tuple(segments), tuple(sorted(after.items())))
            )

    def _overwrites(self, entry: int, chunk: int, step: int, after: dict[int, bool]) -> None:
        """Note that `chunk` is written while the readers of an earlier send may still read it."""
        read, written = self.space[chunk], self.home[chunk]
        only_in_place = read == Space.INPUT and written == Space.OUTPUT
        if read == written or only_in_place:
            after[entry] = after.get(entry, True) and bool(only_in_place)
            sent = self.entries[entry]
            if sent.step == step:
                bounce = Bounce.IN_PLACE if only_in_place else Bounce.ALWAYS
                self.entries[entry] = sent._replace(bounce=max(sent.bounce, bounce))

    def _segments(self, first: int, count: int) -> Iterator[Segment]:
        """The run, cut where a space changes."""
        space, home = (of[first : first + count].tolist() for of in (self.space, self.home))
        low = 0
        for high in range(1, count + 1):
            if high == count or (space[high], home[high]) != (space[low], home[low]):
                yield Segment(first + low, high - low, Space(space[low]), Space(home[low]))
                low = high

    def keep_own(self) -> None:
        """What was never written but must be there: from input to output.

        Right after it has been sent, so that nobody waits for this copy.
        """
        own = np.flatnonzero(self.after & (self.space == Space.INPUT))
        if own.size == 0:
            return
        segments = tuple(
            Segment(first, count, Space.INPUT, Space.OUTPUT) for first, count in _runs(own, 1)
        )
        sent = [i for c in own.tolist() for i in self.readers.get(c, ())]
        last = max((i for i, e in enumerate(self.entries) if e.send and i in set(sent)), default=-1)
        step = self.entries[last].step if last >= 0 else 0
        at = next((i for i, e in enumerate(self.entries) if (e.step, not e.send) > (step, False)),
                  len(self.entries))  # fmt: skip
        self.entries.insert(at, Entry(False, step, (OWN,), segments))
        self.entries[:] = [
            e._replace(after=tuple((i + (i >= at), p) for i, p in e.after)) for e in self.entries
        ]
