"""From a schedule to one rank's program, without going through the other ranks' moves.

What an instruction must wait for follows from the places it shares with earlier instructions of
its rank: it reads what was written (flow), writes what was read (anti) or written (output).
Repetition ka of a and kj of j share a place when
``c_j + kj * s_j + i * t_j = c_a + ka * s_a + i' * t_a`` for some i, i' below their counts, modulo
the block their ids cycle in. With one shift s on both sides that depends on kj - ka alone, and the
greatest such difference that still stands earlier in the order, plus one, is the lag. Where the
shapes differ the wait is for all of j: later than need be, never too early.
"""

from __future__ import annotations

from itertools import pairwise
from math import gcd

import numpy as np

from .collectives import Bools, Ints
from .program import COPY_IN, REDUCE_IN, SEND, Instruction, Program, Wait
from .rounds import COPY
from .schedule import HalfMoves, Schedule

NONE = np.iinfo(np.int64).min
"""No wait."""


def lower(schedule: Schedule, rank: int) -> Program:
    """One rank's program.

    Args:
        schedule: over all its ranks.
        rank: a rank or helper.

    Raises:
        ScheduleError: there is no such rank, or the schedule is a part for rows of ranks.
    """
    halves = schedule.whole().part(rank)
    return Program(rank, schedule.chunks, instructions(halves, schedule.chunks))


def instructions(halves: list[HalfMoves], chunks: int) -> tuple[Instruction, ...]:
    """Half-moves of one rank, all or some, with what each waits for among them.

    Takes time and memory by the square of their number where all share chunks.
    """
    waits, bounces = _waits(halves, chunks)
    made = []
    for i, h in enumerate(halves):
        op = SEND if not h.write else COPY_IN if h.op == COPY else REDUCE_IN
        made.append(
            Instruction(
                op, h.peer, h.chunk, h.count, h.stride, h.times, h.shift, h.unit, h.wrap,
                h.round, h.start, bounces[i], tuple(waits[i]),
            )
        )  # fmt: skip
    return tuple(made)


class _Columns:
    """The half-moves as columns, one entry each."""

    def __init__(self, halves: list[HalfMoves], chunks: int) -> None:
        def column(name: str) -> Ints:
            return np.array([getattr(h, name) for h in halves], np.int64)

        self.round, self.start, self.times = column("round"), column("start"), column("times")
        self.count, self.stride, self.shift = column("count"), column("stride"), column("shift")
        self.unit, self.write = column("unit"), column("write").astype(bool)
        self.block = np.where(column("wrap") > 0, column("wrap"), chunks // self.unit)
        self.base = column("chunk") // self.block * self.block
        self.first = column("chunk") - self.base
        # Finest chunks it may touch: the run itself where it stays put, else the whole block.
        still = (self.times == 1) & (self.stride == 1) & (self.first + self.count <= self.block)
        low = np.where(still, self.base + self.first, self.base)
        self.low = low * self.unit
        self.high = (low + np.where(still, self.count, self.block)) * self.unit

    def groups(self) -> list[Ints]:
        """The half-moves in sets that share no chunk with one another; only sets with a write."""
        order = np.argsort(self.low, kind="stable")
        reach = np.maximum.accumulate(self.high[order])
        starts = np.flatnonzero(self.low[order][1:] >= reach[:-1]) + 1
        sets = [np.sort(order[i:j]) for i, j in pairwise([0, *starts.tolist(), len(order)])]
        return [s for s in sets if len(s) > 1 and self.write[s].any()]


def _waits(halves: list[HalfMoves], chunks: int) -> tuple[list[list[Wait]], list[bool]]:
    waits: list[list[Wait]] = [[] for _ in halves]
    bounces = [False] * len(halves)
    if not halves:
        return waits, bounces
    columns = _Columns(halves, chunks)
    for members in columns.groups():
        for part in np.array_split(members, max(1, len(members) ** 2 >> 22)):
            lags, kept = _lags(columns, members[:, None], part[None, :])
            for j, a in np.argwhere(lags > NONE).tolist():
                waits[part[a]].append(Wait(int(members[j]), int(lags[j, a])))
            for j in np.flatnonzero(kept.any(axis=1)).tolist():
                bounces[members[j]] = True
    return waits, bounces


def _lags(c: _Columns, j: Ints, a: Ints) -> tuple[Ints, Bools]:
    """For each pair, the lag of a behind j, or NONE; and whether j sends what a overwrites then.

    Args:
        c: the half-moves.
        j: those waited for, as a column.
        a: those that wait, as a row.
    """
    same_round = c.round[j] == c.round[a]
    apart = c.start[a] - c.start[j]
    first = (c.write[j] < c.write[a]) | ((c.write[j] == c.write[a]) & (j < a))
    # Repetition ka + d of j stands before ka of a when d <= most.
    most = np.where(same_round, apart - ~first, c.times[j] - 1)
    most = np.minimum(most, c.times[j] - 1)
    least = 1 - c.times[a]
    meets = (c.low[j] < c.high[a]) & (c.low[a] < c.high[j])
    candidates = (c.write[j] | c.write[a]) & meets & (c.round[j] <= c.round[a]) & (j != a)
    alike = (c.shift[j] == c.shift[a]) & (c.unit[j] == c.unit[a]) & (c.block[j] == c.block[a])
    single = (c.count[j] == 1) & (c.count[a] == 1)
    runs = (c.stride[j] == 1) & (c.stride[a] == 1) & (c.times[j] == 1) & (c.times[a] == 1)

    latest = most.copy()  # the greatest d at which they may share a place
    by_shift = alike & single
    latest = np.where(by_shift, _latest(c, j, a, most), latest)
    by_runs = alike & runs & ~single
    latest = np.where(by_runs & ~_runs_meet(c, j, a), NONE, latest)
    lags = np.where(candidates & (latest >= least), latest + 1, NONE)
    lags = np.where((lags > NONE) & ~by_shift & ~same_round, c.times[j], lags)

    together = same_round & ~c.write[j] & c.write[a] & candidates
    together &= (apart <= c.times[j] - 1) & (apart >= least)
    meet_then = np.where(by_shift, (c.first[j] - c.first[a] + apart * c.shift[a]) % c.block[a] == 0,
                         ~by_runs | _runs_meet(c, j, a))  # fmt: skip
    return lags, together & meet_then


def _latest(c: _Columns, j: Ints, a: Ints, most: Ints) -> Ints:
    """The greatest d <= most with ``first_j + d * shift = first_a`` (mod block), or NONE."""
    block, shift = np.broadcast_arrays(c.block[a], c.shift[a] + 0 * j)
    found = np.full(most.shape, NONE)
    gap = c.first[a] - c.first[j] + 0 * most
    for b, s in {(int(b), int(s)) for b, s in zip(block.ravel(), shift.ravel(), strict=True)}:
        here = np.broadcast_to((c.block[a] == b) & (c.shift[a] == s), most.shape)
        common = gcd(s, b)
        period = b // common
        solvable = here & (gap % common == 0)
        d = (gap % b) // common * pow(s // common, -1, period) % period
        found = np.where(solvable, d + (most - d) // period * period, found)
    return found


def _runs_meet(c: _Columns, j: Ints, a: Ints) -> Bools:
    """Whether two runs of ids share one, in a block of equal place and length."""
    ahead = (c.first[a] - c.first[j]) % c.block[a]
    behind = (c.first[j] - c.first[a]) % c.block[a]
    meet: Bools = (c.base[j] == c.base[a]) & ((ahead < c.count[j]) | (behind < c.count[a]))
    return meet
