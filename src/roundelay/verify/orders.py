"""Execute a schedule in another order: any that keeps the dependences must give the same bits."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ..collectives import Ints
from ..schedule import REDUCE, Schedule, Step, apply
from .numbers import MIXER, PRIME, AddAndMix, start

Place = tuple[int, int]
Word = tuple[int, int]
State = dict[Place, Word]


class HalfMove:
    """A read into a buffer, or the write that empties it."""

    __slots__ = ("followers", "move", "op", "place", "waits_for", "write")

    def __init__(self, move: int, write: bool, place: Place, op: int) -> None:
        self.move, self.write, self.place, self.op = move, write, place, op
        self.followers: list[HalfMove] = []
        self.waits_for = 0

    def after(self, other: HalfMove) -> None:
        """Wait for another half-move."""
        other.followers.append(self)
        self.waits_for += 1


def half_moves(schedule: Schedule) -> list[HalfMove]:
    """All half-moves in order, each with what depends on it (flow, anti and output)."""
    last_write: dict[Place, HalfMove] = {}
    reads: dict[Place, list[HalfMove]] = defaultdict(list)
    halves: list[HalfMove] = []
    for step in schedule.moves():
        first = len(halves) // 2
        moves = list(_places(step))
        taken = []
        for i, (source, _, op) in enumerate(moves):
            read = HalfMove(first + i, False, source, op)
            if source in last_write:
                read.after(last_write[source])
            reads[source].append(read)
            taken.append(read)
        halves += taken
        for i, (_, target, op) in enumerate(moves):
            write = HalfMove(first + i, True, target, op)
            write.after(taken[i])
            if target in last_write:
                write.after(last_write[target])
            for read in reads.pop(target, ()):
                if read is not taken[i]:
                    write.after(read)
            last_write[target] = write
            halves.append(write)
    return halves


def _places(step: Step) -> list[tuple[Place, Place, int]]:
    op = np.broadcast_to(step.op, len(step.src)).tolist()
    src, dst, col = step.src.tolist(), step.dst.tolist(), step.col.tolist()
    return [((s, c), (d, c), o) for s, d, c, o in zip(src, dst, col, op, strict=True)]


def execute(halves: list[HalfMove], state: State, rng: np.random.Generator) -> None:
    """Do the half-moves on `state`, each time one at random of those that need not wait."""
    waiting = {half: half.waits_for for half in halves}
    ready = [half for half in halves if not half.waits_for]
    buffers: dict[int, Word] = {}
    for pick in rng.random(len(halves)).tolist():
        i = int(pick * len(ready))
        ready[i], ready[-1] = ready[-1], ready[i]
        half = ready.pop()
        if not half.write:
            buffers[half.move] = state[half.place]
        elif half.op == REDUCE:
            state[half.place] = _add(state[half.place], buffers.pop(half.move))
        else:
            state[half.place] = buffers.pop(half.move)
        for follower in half.followers:
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)


def any_order(schedule: Schedule, rng: np.random.Generator) -> bool:
    """Whether a random order of execution gives the bits of the listed order."""
    columns: Ints = np.arange(schedule.chunks)
    values, held = start(schedule, columns, rng)
    state: State = {
        (int(r), int(c)): (int(values[r, c, 0]), int(values[r, c, 1])) for r, c in np.argwhere(held)
    }
    execute(half_moves(schedule), state, rng)
    add = AddAndMix()
    for step in schedule.moves():
        apply(step, values, add)
    must = np.argwhere(schedule.after())
    return all(state[int(r), int(c)] == tuple(values[r, c].tolist()) for r, c in must)


def _add(a: Word, b: Word) -> Word:
    """`AddAndMix` on Python's own numbers, faster one at a time."""
    mix = (a[1] + b[1]) % 2**64
    return (a[0] + b[0]) % PRIME, (mix ^ mix >> 29) * MIXER % 2**64
