"""The obvious interpreter: one moment's moves, chunk by chunk, and what they do to places.

A place is a (participant, column); a column is a chunk, or a chunk's index among those looked at.
Arrays over places have shape [participant, column, ...].
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .collectives import Bools, Ints
from .rounds import REDUCE, Round, ScheduleError, all_differ


class Step(NamedTuple):
    """The moves of one moment, chunk by chunk: arrays of one length, in listed order.

    Attributes:
        round: the round's number.
        at: step of the schedule.
        src, dst, col: participants, and the column.
        op: one for all moves, or one each.
        source, target: places read and written, numbered participant by participant.
        distinct: whether no place is certain to be written twice.
    """

    round: int
    at: int
    src: Ints
    dst: Ints
    col: Ints
    op: int | Ints
    source: Ints
    target: Ints
    distinct: bool

    def waves(self) -> Iterator[Any]:
        """Selections that write no place twice; in turn, they keep the listed order."""
        if self.distinct:
            yield slice(None)
            return
        order = np.argsort(self.target, kind="stable")
        first = np.flatnonzero(np.diff(self.target[order], prepend=-1))
        sizes = np.diff(first, append=len(order))
        turn = np.empty_like(order)
        turn[order] = np.arange(len(order)) - np.repeat(first, sizes)
        by_turn = np.argsort(turn, kind="stable")
        ends = np.cumsum(np.bincount(turn)).tolist()
        for begin, end in zip([0, *ends], ends, strict=False):
            yield by_turn[begin:end]


def steps_of(r: Round, number: int, chunks: int, columns: Ints | None) -> Iterator[Step]:
    """The steps of a round: all its moves, or only those of the chunks `columns`, which rise."""
    begin = r.at
    distinct = all_differ(r.dst)
    width = chunks if columns is None else len(columns)

    def step(t: int, move: Ints, src: Ints, dst: Ints, col: Ints, places: list[Ints]) -> Step:
        op = r.op[move] if isinstance(r.op, np.ndarray) else r.op
        return Step(number, begin + t, src, dst, col, op, places[0], places[1], distinct)

    few = columns is not None and len(r.src) * len(columns) < r.expanded()
    if columns is not None and few:
        t, move, col = r.touching(chunks, columns)
        src, dst = r.src[move], r.dst[move]
        places = [a.astype(np.int64) * width + col for a in (src, dst)]
        ends = [*(np.flatnonzero(np.diff(t)) + 1).tolist(), len(t)]
        for i, j in zip([0, *ends], ends, strict=False):
            if i < j:
                some = slice(i, j)
                yield step(int(t[i]), move[some], src[some], dst[some], col[some],
                           [p[some] for p in places])  # fmt: skip
        return
    for at in r.busy():
        move, col = r.active(at, chunks)
        if columns is not None:
            found = np.minimum(np.searchsorted(columns, col), width - 1)
            kept = columns[found] == col
            move, col = move[kept], found[kept]
        if len(move):
            src, dst = r.src[move], r.dst[move]
            yield step(
                at, move, src, dst, col, [a.astype(np.int64) * width + col for a in (src, dst)]
            )


def flat(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A view of `values` [participant, column, ...] by the number of the place."""
    if not values.flags.c_contiguous:
        raise ValueError("expected a contiguous array, so that it can be changed in place")
    return values.reshape((-1, *values.shape[2:]))


def apply(step: Step, values: npt.NDArray[Any], add: Callable[[Any, Any], Any]) -> None:
    """Do one step on `values` [participant, column, ...], in place: all reads, then the writes."""
    places = flat(values)
    read = places[step.source]
    for wave in step.waves():
        to, new = step.target[wave], read[wave]
        if isinstance(step.op, np.ndarray):
            adds = step.op[wave] == REDUCE
            adds = adds.reshape(adds.shape + (1,) * (places.ndim - 1))
            places[to] = np.where(adds, add(places[to], new), new)
        else:
            places[to] = add(places[to], new) if step.op == REDUCE else new


def occupy(step: Step, held: Bools, columns: Ints | None = None) -> None:
    """Note in `held` [participant, column] what the step fills, and refuse what is illegal.

    Raises:
        ScheduleError: a read of nothing, a REDUCE into nothing, or a COPY into a place that
            was already written in this step.
    """
    places = flat(held)

    def refuse(bad: Bools, wave: Any, who: Ints, why: str) -> None:
        if bad.any():
            i = int(np.argmax(bad))
            col = step.col[wave][i]
            chunk = col if columns is None else columns[col]
            text = why.format(rank=who[wave][i], chunk=chunk)
            raise ScheduleError(f"round {step.round}, step {step.at}: {text}")

    nothing = "rank {rank} sends chunk {chunk}, of which it holds nothing"
    into_nothing = "a REDUCE into chunk {chunk} of rank {rank}, which holds nothing"
    second = "a COPY into chunk {chunk} of rank {rank} is not its first write in this step"
    refuse(~places[step.source], slice(None), step.src, nothing)
    adds = np.broadcast_to(np.equal(step.op, REDUCE), step.target.shape)
    for turn, wave in enumerate(step.waves()):
        to = step.target[wave]
        if turn:
            refuse(~adds[wave], wave, step.dst, second)
        elif not isinstance(step.op, int) or step.op == REDUCE:
            refuse(adds[wave] & ~places[to], wave, step.dst, into_nothing)
        places[to] = True
