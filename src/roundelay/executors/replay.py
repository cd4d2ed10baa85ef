"""From what an executor's thread blocks do to the schedule that it comes to.

Acts are put in an order that keeps what waits for what, and two acts that use a place must be
ordered by that alone, so that the outcome is the same in every run. Then values are followed from
place to place. A rank of a schedule holds one value of each chunk; where a rank of the executor
holds several at once, helpers hold the others.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from ..errors import RoundelayError
from ..rounds import COPY, REDUCE, Round
from ..schedule import Schedule
from .ordering import Act, Key, NotProved, Unit, in_order, refuse_races, told

ACTS: Final = 20_000
UNITS: Final = 500_000
CHUNKS: Final = 2**20


def replay(
    collective: str, name: str, ranks: int, per_loop: int, acts: Sequence[Act], *, in_place: bool
) -> Schedule:
    """The schedule of acts.

    Args:
        collective: ours.
        name: of the algorithm.
        ranks: number of them.
        per_loop: chunks of the larger of a rank's input and output.
        acts: of all ranks.
        in_place: whether input and output are the same memory.

    Raises:
        RoundelayError: acts wait for one another, use a place unordered or read it empty, add
            chunks that do not belong together, or the outcome is not in the output.
        NotProved: there are too many.
    """
    chunks = per_loop * (ranks if collective == "all_to_all" else 1)
    if len(acts) > ACTS or sum(len(a.units) for a in acts) > UNITS or chunks > CHUNKS:
        raise NotProved(f"{len(acts):,} steps over {chunks:,} chunks are too many to prove; "
                        f"expected at most {ACTS:,} and {CHUNKS:,}")  # fmt: skip
    if not chunks:
        raise RoundelayError("no chunks in input and output; expected at least one")
    empty = Schedule(collective, ranks, chunks, ())
    order = in_order(acts)
    run = _Run(empty, in_place)
    refuse_races(acts, order, run.same)
    for number in order:
        for unit in acts[number].units:
            run.coming.append((acts[number].where, run.same(unit)))
    return run.schedule(name)


@dataclass
class _Run:
    """Follows values. A value is a number; `empty` gives who contributes to what and wants it."""

    empty: Schedule
    in_place: bool
    coming: list[tuple[str, Unit]] = field(default_factory=list)

    def __post_init__(self) -> None:
        before, after = self.empty.before(), self.empty.after()
        self.inputs, self.outputs = ([np.flatnonzero(row).tolist() for row in grid]
                                     for grid in (before, after))  # fmt: skip
        self.value: dict[Key, int] = {}
        self.chunk: dict[int, int] = {}
        self.holders: dict[tuple[int, int], set[Key]] = defaultdict(set)
        self.slots: dict[tuple[int, int], list[int | None]] = defaultdict(list)
        self.helpers: dict[tuple[int, int], int] = {}
        self.moves: list[tuple[int, int, int, int, int]] = []
        self.written: dict[tuple[int, int], int] = {}
        self.read: dict[tuple[int, int], int] = {}
        self.ways: dict[tuple[int, int, str], tuple[str, int]] = {}
        self.act, self.now = "", 0

    def same(self, unit: Unit) -> Unit:
        """The places, in place with one name for what is input and output."""
        if not self.in_place:
            return unit
        return Unit(*(tuple(map(self._one, keys)) for keys in unit))

    def _one(self, key: Key) -> Key:
        lists = {"i": self.inputs, "o": self.outputs}.get(key[1])
        if lists is None or not key[2] < len(lists[key[0]]):
            return key
        return key[0], "memory", lists[key[0]][key[2]]

    def schedule(self, name: str) -> Schedule:
        """Go through it all."""
        self._start()
        self.uses: dict[Key, list[tuple[int, bool]]] = defaultdict(list)
        for at, (_, unit) in enumerate(self.coming):
            for place in unit.reads:
                self.uses[place].append((2 * at, True))
            for place in unit.writes:
                self.uses[place].append((2 * at + 1, False))
        self.wanted = {self._one((r, "o", i)) if self.in_place else (r, "o", i)
                       for r, own in enumerate(self.outputs) for i in range(len(own))}  # fmt: skip
        for where, unit in self.coming:
            self._do(where, unit)
            self.now += 1
        self._finish()
        return Schedule(
            self.empty.collective, self.empty.ranks, self.empty.chunks, list(self._rounds()),
            helpers=len(self.helpers), name=name,
        )  # fmt: skip

    def _start(self) -> None:
        for r, own in enumerate(self.inputs):
            for i, chunk in enumerate(own):
                value = len(self.chunk)
                self.chunk[value] = chunk
                key = self._one((r, "i", i)) if self.in_place else (r, "i", i)
                self._set(key, value)
                self.slots[r, chunk].append(value)

    def _set(self, place: Key, value: int) -> None:
        if (old := self.value.get(place)) is not None:
            self.holders[place[0], old].discard(place)
        self.value[place] = value
        self.holders[place[0], value].add(place)

    def _do(self, where: str, unit: Unit) -> None:
        for place in unit.reads:
            if place not in self.value:
                raise RoundelayError(f"{where} reads {told(place)}, where nothing was written")
        chunks = {self.chunk[self.value[place]] for place in unit.reads}
        if len(chunks) > 1:
            raise RoundelayError(f"{where} adds chunks {sorted(chunks)}, which differ")
        if not unit.writes:
            return
        self.overwritten, self.act = set(unit.writes), where
        values = [self.value[place] for place in unit.reads]
        chunk = chunks.pop()
        owner = unit.writes[0][0]
        self.needed = {v for v, p in zip(values, unit.reads, strict=True) if p[0] == owner}
        slot, value = self._slot(owner, chunk, values[0], unit.reads[0][0], len(values) > 1)
        for place in unit.reads[1:]:
            value = self._reduce(owner, chunk, slot, place)
        for place in unit.writes:
            self._set(place, value)
        self.needed = set()
        for other in {place[0] for place in unit.writes} - {owner}:
            self._slot(other, chunk, value, owner, False)

    def _live(self, owner: int, value: int | None) -> bool:
        """Whether a place of the owner that keeps the value is read again, or is the outcome."""
        if value is None:
            return False
        for place in self.holders[owner, value] - self.overwritten:
            uses = self.uses[place]
            after = bisect_right(uses, (2 * self.now + 1, True))
            if uses[after][1] if after < len(uses) else place in self.wanted:
                return True
        return False

    def _slot(
        self, owner: int, chunk: int, value: int, source: int, changes: bool
    ) -> tuple[int, int]:
        """Where the owner has the value, brought there if need be; `changes`: to be added to."""
        slots = self.slots[owner, chunk]
        if value in slots and not (changes and self._live(owner, value)):
            return slots.index(value), value
        free = (k for k, held in enumerate(slots)
                if held not in self.needed and not self._live(owner, held))  # fmt: skip
        slot = next(free, len(slots))
        if slot == len(slots):
            slots.append(None)
        there = self.slots[source, chunk].index(value)
        self._move(source, there, owner, slot, chunk, COPY)
        slots[slot] = value
        return slot, value

    def _reduce(self, owner: int, chunk: int, slot: int, place: Key) -> int:
        there = self.slots[place[0], chunk].index(self.value[place])
        self._move(place[0], there, owner, slot, chunk, REDUCE)
        value = len(self.chunk)
        self.chunk[value] = chunk
        self.slots[owner, chunk][slot] = value
        return value

    def _who(self, owner: int, slot: int) -> int:
        if owner >= 0 and slot == 0:
            return owner
        return self.empty.ranks + self.helpers.setdefault((owner, slot), len(self.helpers))

    def _move(self, source: int, there: int, owner: int, slot: int, chunk: int, op: int) -> None:
        """A move, as early as what it reads and writes allows, and behind those of its block."""
        src, dst = (self._who(source, there), chunk), (self._who(owner, slot), chunk)
        way = src[0], dst[0], self.act.rpartition(",")[0]
        act, last = self.ways.get(way, ("", -1))
        step = max(
            self.written.get(src, -1) + 1, self.written.get(dst, -1) + (op == COPY),
            self.read.get(dst, -1), last + (act != self.act), 0,
        )  # fmt: skip
        self.ways[way] = self.act, step
        self.read[src] = max(self.read.get(src, -1), step)
        self.written[dst] = step
        self.moves.append((step, src[0], dst[0], chunk, op))

    def _finish(self) -> None:
        """Bring each outcome from a helper to its rank."""
        for r, own in enumerate(self.outputs):
            for i, chunk in enumerate(own):
                key = self._one((r, "o", i)) if self.in_place else (r, "o", i)
                value = self.value.get(key)
                if value is None:
                    raise RoundelayError(
                        f"nothing is ever written to chunk {i} of rank {r}'s output"
                    )
                if self.chunk[value] != chunk:
                    raise RoundelayError(f"rank {r}'s output {i} ends with chunk "
                                         f"{self.chunk[value]}; expected {chunk}")  # fmt: skip
                slot = self.slots[r, chunk].index(value)
                if slot:
                    self._move(r, slot, r, 0, chunk, COPY)

    def _rounds(self) -> Iterator[Round]:
        by_step: dict[int, list[tuple[int, int, int, int, int]]] = defaultdict(list)
        for move in self.moves:
            by_step[move[0]].append(move)
        for step in sorted(by_step):
            _, src, dst, chunk, op = map(np.array, zip(*by_step[step], strict=True))
            yield Round(src, dst, chunk, op, begin=step)
