"""The schedule: who sends which piece to whom, and whether it is copied or added.

A `Round` is arrays, one entry a move, so a ring over 16,384 ranks is two rounds. Its
meaning: a move is two half-moves, a read at its source and a write at its destination,
with a buffer between. The order of half-moves is round, step, reads before writes, listing;
any execution that keeps the dependences of that order is equally right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import gcd
from operator import index
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .collectives import Bools, Collective, Ints, Setting, collective
from .errors import RoundelayError

IntsLike = int | list[int] | Ints

COPY: Final = 0
REDUCE: Final = 1


class ScheduleError(RoundelayError):
    """A schedule that breaks a law: an id out of range, a read of nothing, two copies into one."""


@dataclass(frozen=True, eq=False)
class Round:
    """Moves that belong together: arrays with one entry a move, or one value for all of them.

    In repetition k = 0 .. `times` - 1, at step `start` + k of the round, move i takes the ids
    ``chunk[i] + k * shift + j * stride`` for j = 0 .. `count` - 1 from `src[i]` to `dst[i]`.

    Attributes:
        src, dst: ranks (helpers count on from the last rank).
        chunk: the first id, in range; only `shift` and `stride` cycle, never the id itself.
        op: COPY or REDUCE, at the destination.
        count, stride: how many ids a move takes, and how far apart they are.
        times, shift: how often the round is repeated, and how far the ids move each time.
        start: first step of a move inside the round (a pipelined tree is one round).
        unit: an id names this many of the schedule's chunks, next to one another.
        wrap: ids cycle inside an aligned block of this many ids; 0: inside all of them.
        begin: step of the schedule at which the round begins; None: after what stands before.
    """

    src: Ints
    dst: Ints
    chunk: Ints
    op: int | Ints = COPY
    count: int | Ints = 1
    stride: int = 1
    times: int = 1
    shift: int = 0
    start: int | Ints = 0
    unit: int = 1
    wrap: int = 0
    begin: int | None = None

    if TYPE_CHECKING:  # what one may pass is wider than what one gets

        def __init__(
            self,
            src: IntsLike,
            dst: IntsLike,
            chunk: IntsLike,
            op: IntsLike = COPY,
            count: IntsLike = 1,
            stride: int = 1,
            times: int = 1,
            shift: int = 0,
            start: IntsLike = 0,
            unit: int = 1,
            wrap: int = 0,
            begin: int | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        for name in ("stride", "times", "shift", "unit", "wrap"):
            object.__setattr__(self, name, _number(name, getattr(self, name)))
        fields = {name: _whole(name, getattr(self, name)) for name in _PER_MOVE}
        shapes = {a.shape for a in fields.values() if a.ndim}
        if not shapes:
            shapes = {(1,)}
        if len(shapes) > 1 or len(next(iter(shapes))) != 1:
            raise ScheduleError(
                "src, dst, chunk, op, count and start need one entry a move or a single value; "
                f"found lists of shapes {', '.join(map(str, sorted(shapes)))}"
            )
        shape = shapes.pop()
        keep = None
        if fields["count"].min(initial=1) < 1 and fields["count"].min() == 0:
            keep = np.broadcast_to(fields["count"], shape) != 0
        for name, a in fields.items():
            if keep is not None and a.ndim:
                a = a[keep]
            if name in ("src", "dst", "chunk"):
                size = shape if keep is None else (int(keep.sum()),)
                value: int | Ints = _narrow(a if a.ndim else np.full(size, a))
            else:
                value = _scalar_if_equal(a)
            object.__setattr__(self, name, value)

    def __len__(self) -> int:
        return 0 if self.times < 1 else len(self.src)

    @property
    def length(self) -> int:
        """Steps from the round's begin to its end."""
        return int(np.max(self.start)) + self.times

    @property
    def nbytes(self) -> int:
        """Bytes of memory its arrays take."""
        fields = (self.src, self.dst, self.chunk, self.op, self.count, self.start)
        return sum(a.nbytes for a in fields if isinstance(a, np.ndarray))

    def block(self, chunks: int) -> int:
        """Number of ids that ids cycle through, in a schedule of `chunks` chunks."""
        return self.wrap or chunks // self.unit

    def expanded(self) -> int:
        """Number of (move, chunk) pairs the round stands for, all repetitions together."""
        if isinstance(self.count, np.ndarray):
            counts = int(self.count.sum(dtype=np.int64))
        else:
            counts = self.count * len(self.src)
        return counts * self.times * self.unit

    def ids(self, chunks: int, move: Ints, k: Any, j: Any) -> Ints:
        """Id number `j` of repetition `k` of the given moves, elementwise."""
        block = self.block(chunks)
        shift, stride = self.shift % block, self.stride % block
        first = self.chunk[move].astype(np.int64)
        inside = first % block
        return first - inside + (inside + k * shift + j * stride) % block

    def active(self, t: int, chunks: int) -> tuple[Ints, Ints]:
        """The moves of step `t` of the round, and each chunk they touch, in listed order."""
        move = np.arange(len(self.src))
        k: Any = t - self.start
        if isinstance(k, np.ndarray):
            move = move[(k >= 0) & (k < self.times)]
            k = k[move]
        elif not 0 <= k < self.times:
            move = move[:0]
        j: Any = 0
        if not isinstance(self.count, int) or self.count > 1:
            counts = np.broadcast_to(self.count, len(self.src))[move]
            j = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            k = np.repeat(k, counts) if isinstance(k, np.ndarray) else k
            move = np.repeat(move, counts)
        chunk = self.ids(chunks, move, k, j)
        if self.unit > 1:
            chunk = (chunk[:, None] * self.unit + np.arange(self.unit)).ravel()
            move = np.repeat(move, self.unit)
        return move, chunk

    def touching(self, chunks: int, columns: Ints) -> tuple[Ints, Ints, Ints]:
        """Where the round touches the chunks `columns`: (step, move, index into columns).

        Solved, not searched, so that a sample of a huge schedule costs moves x samples.
        """
        block = self.block(chunks)
        shift, stride = self.shift % block, self.stride % block
        first = self.chunk.astype(np.int64)[:, None]
        wanted = columns[None, :] // self.unit
        move, col = np.nonzero(wanted // block == first // block)
        delta = (wanted[0, col] - first[move, 0]) % block
        counts = np.broadcast_to(self.count, len(self.src))[move]
        found = []
        if self.times <= counts.max(initial=0):
            for k in range(self.times):
                some, _ = _solve(stride, delta - k * shift, block, counts)
                found.append((np.full(len(some), k), some))
        else:
            for j in range(counts.max(initial=0)):
                limit = np.where(j < counts, self.times, 0)
                some, at = _solve(shift, delta - j * stride, block, limit)
                found.append((at, some))
        k = np.concatenate([f[0] for f in found]) if found else move[:0]
        some = np.concatenate([f[1] for f in found]) if found else move[:0]
        move, col = move[some], col[some]
        t = k + np.broadcast_to(self.start, len(self.src))[move]
        order = np.lexsort((move, t))
        return t[order], move[order], col[order]

    def check(self, participants: int, chunks: int) -> None:
        """Refuse ids out of range.

        Raises:
            ScheduleError: naming the field, the value and what was expected.
        """
        for name, low in (("times", 0), ("unit", 1), ("wrap", 0), ("begin", 0)):
            if (getattr(self, name) or 0) < low and getattr(self, name) is not None:
                raise ScheduleError(f"{name} = {getattr(self, name)}; expected at least {low}")
        if chunks % self.unit:
            raise ScheduleError(f"unit = {self.unit} does not divide the {chunks} chunks")
        ids = chunks // self.unit
        if self.wrap and ids % self.wrap:
            raise ScheduleError(f"wrap = {self.wrap} does not divide the {ids} ids")
        block = self.block(chunks)
        longest = block // gcd(self.stride, block)
        limits = (participants, participants, ids, 2, longest + 1, None)
        for name, limit in zip(_PER_MOVE, limits, strict=True):
            value = getattr(self, name)
            low, high = np.min(value), np.max(value)
            if low < 0 or (limit is not None and high >= limit):
                values = np.atleast_1d(value)
                i = int(np.argmax((values < 0) | (limit is not None and values >= limit)))
                most = "" if limit is None else f" to {limit - 1}"
                raise ScheduleError(f"move {i}: {name} = {values[i]}; expected 0{most}")


_PER_MOVE: Final = ("src", "dst", "chunk", "op", "count", "start")


def _number(name: str, value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        raise ScheduleError(f"{name} = {value!r:.60}; expected a whole number") from None


def _whole(name: str, value: Any) -> Ints:
    array = np.asarray(value)
    if array.dtype == np.int32:
        return array
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" or (array.size and abs(int(array.max())) >= 2**62):
        raise ScheduleError(
            f"{name} must hold whole numbers below 2**62, found {array.dtype} {value!r:.60}"
        )
    return array


def _narrow(array: Ints) -> Ints:
    """int32 where it fits: half the memory, and 2**31 ids are more than most ever need."""
    if array.dtype == np.int32 and not array.flags.writeable:
        return array
    small = array.size == 0 or (array.min() >= -(2**31) and array.max() < 2**31)
    narrow: Ints = np.array(array, np.int32 if small else np.int64)
    narrow.flags.writeable = False
    return narrow


def _scalar_if_equal(array: Ints) -> int | Ints:
    if array.ndim == 0 or (array.size and (array == array[0]).all()):
        return int(array.flat[0])
    return _narrow(array) if array.size else 1


def _solve(step: int, target: Ints, block: int, limit: Ints) -> tuple[Ints, Ints]:
    """All x with ``step * x = target (mod block)`` and 0 <= x < limit, as (index, x)."""
    common = gcd(step, block)
    period = block // common
    some = np.flatnonzero(target % common == 0)
    x = (target[some] % block) // common * pow(step // common, -1, period) % period
    repeats = np.maximum(0, -((x - limit[some]) // period))
    again = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    return np.repeat(some, repeats), np.repeat(x, repeats) + again * period


class Step(NamedTuple):
    """The moves of one moment, chunk by chunk: arrays of one length, in listed order.

    `round` is the round's number, `at` the step of the schedule, `col` the chunk (or its index
    among the columns asked for), `op` one for all or one each.
    """

    round: int
    at: int
    src: Ints
    dst: Ints
    col: Ints
    op: int | Ints
    distinct: bool

    def waves(self) -> Iterator[Any]:
        """Selections that write no place twice; in turn, they keep the listed order."""
        if self.distinct:
            yield slice(None)
            return
        place = self.dst.astype(np.int64) * (int(self.col.max(initial=0)) + 1) + self.col
        order = np.argsort(place, kind="stable")
        first = np.flatnonzero(np.diff(place[order], prepend=-1))
        turn = np.empty_like(order)
        sizes = np.diff(first, append=len(order))
        turn[order] = np.arange(len(order)) - np.repeat(first, sizes)
        for w in range(int(turn.max(initial=-1)) + 1):
            yield np.flatnonzero(turn == w)


def apply(step: Step, values: npt.NDArray[Any], add: Callable[[Any, Any], Any]) -> None:
    """Do one step on `values` [participant, column, ...], in place: all reads, then the writes."""
    read = values[step.src, step.col]
    for wave in step.waves():
        to = (step.dst[wave], step.col[wave])
        if isinstance(step.op, np.ndarray):
            reduces = step.op[wave] == REDUCE
            reduces = reduces.reshape(reduces.shape + (1,) * (values.ndim - 2))
            values[to] = np.where(reduces, add(values[to], read[wave]), read[wave])
        else:
            values[to] = add(values[to], read[wave]) if step.op == REDUCE else read[wave]


def occupy(step: Step, held: Bools, columns: Ints | None = None) -> None:
    """Note in `held` [participant, column] what the step fills, and refuse what is illegal.

    Raises:
        ScheduleError: a read of nothing, a REDUCE into nothing, or a COPY into a place that
            was already written in this step.
    """

    def refuse(bad: Bools, who: Ints, col: Ints, why: str) -> None:
        if bad.any():
            i = int(np.argmax(bad))
            chunk = col[i] if columns is None else columns[col[i]]
            raise ScheduleError(
                f"round {step.round}, step {step.at}: {why.format(rank=who[i], chunk=chunk)}"
            )

    empty = ~held[step.src, step.col]
    refuse(empty, step.src, step.col, "rank {rank} sends chunk {chunk}, of which it holds nothing")
    for turn, wave in enumerate(step.waves()):
        dst, col = step.dst[wave], step.col[wave]
        copies = np.broadcast_to(step.op, len(step.src))[wave] == COPY
        if turn:
            refuse(
                copies,
                dst,
                col,
                "a COPY into chunk {chunk} of rank {rank} is not its first write in this step",
            )
        else:
            refuse(
                ~copies & ~held[dst, col],
                dst,
                col,
                "a REDUCE into chunk {chunk} of rank {rank}, which holds nothing",
            )
        held[dst, col] = True


class HalfMoves(NamedTuple):
    """One rank's side of one move with its repetitions: what it reads, or what it writes."""

    round: int
    write: bool
    peer: int
    chunk: int
    op: int
    count: int
    stride: int
    times: int
    shift: int
    start: int
    unit: int
    wrap: int
    begin: int


@dataclass(frozen=True, eq=False)
class Schedule:
    """A collective over n ranks, as rounds that can be gone through again and again.

    Attributes:
        collective: the collective's name, such as "all_reduce".
        ranks: n.
        chunks: number of chunks of the whole collective; every piece is an equal run of them.
        rounds: the rounds, or a function that gives them afresh (where listing them all would
            take too much memory).
        helpers: participants that are no ranks (switches that add): ids n, n + 1, ...
        root: of a rooted collective.
        owner: rank that each piece belongs to, where it is not rank order.
        name, params: the algorithm and its parameters.
        groups: set by `on`: rows of ranks that each do the collective by themselves. `root`
            and `owner` then count inside a row.

    Raises:
        ScheduleError: an id is out of range, or `chunks` do not divide among the pieces.
    """

    collective: str
    ranks: int
    chunks: int
    rounds: Iterable[Round] | Callable[[], Iterable[Round]]
    helpers: int = 0
    root: int = 0
    owner: Ints | None = None
    name: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    groups: Ints | None = None

    def __post_init__(self) -> None:
        kind = self.kind
        for name, low in (("ranks", 1), ("chunks", 1), ("helpers", 0), ("root", 0)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < low:
                raise ScheduleError(f"{name} = {value!r}; expected a whole number from {low} up")
            object.__setattr__(self, name, int(value))
        if self.root >= self.size:
            raise ScheduleError(f"root = {self.root}; expected a rank, 0 to {self.size - 1}")
        pieces = kind.piece_count(self.size)
        if self.chunks % pieces:
            raise ScheduleError(f"{self.chunks} chunks do not divide among the {pieces} pieces")
        if self.owner is not None:
            owner = _whole("owner", self.owner)
            order = np.arange(self.size)
            if not np.array_equal(np.sort(owner), order):
                raise ScheduleError("owner must name every rank once")
            rank_order = np.array_equal(owner, order)
            object.__setattr__(self, "owner", None if rank_order else _narrow(owner))
        if not callable(self.rounds):
            object.__setattr__(self, "rounds", tuple(self._in_time(self.rounds)))

    def _in_time(self, rounds: Iterable[Round]) -> Iterator[Round]:
        end = 0
        for number, r in enumerate(rounds):
            if len(r):
                try:
                    r.check(self.ranks + self.helpers, self.chunks)
                except ScheduleError as error:
                    raise ScheduleError(f"round {number}, {error}") from None
                r = replace(r, begin=end) if r.begin is None else r
                end = max(end, (r.begin or 0) + r.length)
                yield r

    def __iter__(self) -> Iterator[Round]:
        """The rounds that move anything, each with its `begin`."""
        if callable(self.rounds):
            return self._in_time(self.rounds())
        return iter(self.rounds)

    @property
    def kind(self) -> Collective:
        """The collective itself."""
        return collective(self.collective)

    @property
    def size(self) -> int:
        """Ranks that do the collective together: all, or those of one row of `groups`."""
        return self.ranks if self.groups is None else int(self.groups.shape[1])

    @cached_property
    def steps(self) -> int:
        """Steps from the first move to the last, where every move takes one."""
        return max(((r.begin or 0) + r.length for r in self), default=0)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the rounds' arrays take together."""
        return sum(r.nbytes for r in self)

    def expanded(self) -> int:
        """Number of (move, chunk) pairs the schedule stands for."""
        return sum(r.expanded() for r in self)

    @cached_property
    def setting(self) -> Setting:
        """What the collective's predicates look at."""
        order = np.arange(self.size) if self.owner is None else self.owner
        return Setting(self.size, self.root, order)

    def before(self, rank: Ints, chunk: Ints) -> Bools:
        """Whether the rank contributes to the chunk, elementwise."""
        return self.kind.before(self.setting, rank, self.piece_of(chunk))

    def after(self, rank: Ints, chunk: Ints) -> Bools:
        """Whether the rank must hold the chunk's total in the end, elementwise."""
        return self.kind.after(self.setting, rank, self.piece_of(chunk))

    def piece_of(self, chunk: Ints) -> Ints:
        """The piece that a chunk is part of."""
        piece: Ints = chunk // (self.chunks // self.kind.piece_count(self.size))
        return piece

    def moves(self, columns: Ints | None = None) -> Iterator[Step]:
        """Every step with its moves, chunk by chunk; only those of the chunks `columns`, if given.

        This is the schedule's meaning spelt out. The whole of a large schedule is large.
        """
        lookup = None
        for number, r in enumerate(self):
            begin = r.begin or 0
            distinct = len(np.unique(r.dst)) == len(r.dst)
            if columns is not None and len(r.src) * len(columns) < r.expanded():
                t, move, col = r.touching(self.chunks, columns)
                cuts = np.flatnonzero(np.diff(t)) + 1
                parts = zip(
                    np.split(t, cuts), np.split(move, cuts), np.split(col, cuts), strict=True
                )
                steps = ((int(at[0]), m, c) for at, m, c in parts if len(at))
            else:
                if columns is not None and lookup is None:
                    lookup = np.full(self.chunks, -1)
                    lookup[columns] = np.arange(len(columns))
                steps = _all_steps(r, self.chunks, lookup)
            for at, move, col in steps:
                op = r.op[move] if isinstance(r.op, np.ndarray) else r.op
                yield Step(number, begin + at, r.src[move], r.dst[move], col, op, distinct)

    def part(self, rank: int) -> list[HalfMoves]:
        """What one rank reads and writes, in order, without going through the others' moves.

        Args:
            rank: a rank or helper.

        Raises:
            ScheduleError: there is no such rank.
        """
        if not 0 <= rank < self.ranks + self.helpers:
            raise ScheduleError(f"rank {rank}; expected 0 to {self.ranks + self.helpers - 1}")
        mine = []
        for number, r in enumerate(self):
            for write, own, peers in ((False, r.src, r.dst), (True, r.dst, r.src)):
                for i in np.flatnonzero(own == rank).tolist():
                    op, count, start = (
                        int(f[i]) if isinstance(f, np.ndarray) else f
                        for f in (r.op, r.count, r.start)
                    )
                    mine.append(
                        HalfMoves(number, write, int(peers[i]), int(r.chunk[i]), op, count,
                                  r.stride, r.times, r.shift, start, r.unit, r.wrap,
                                  r.begin or 0)
                    )  # fmt: skip
        return mine

    def __repr__(self) -> str:
        what = f"{self.collective}/{self.name or '?'}"
        params = "".join(f", {k}={v}" for k, v in self.params.items())
        return f"<{what}: {self.ranks} ranks, {self.chunks} chunks, {self.steps} steps{params}>"


def _all_steps(r: Round, chunks: int, lookup: Ints | None) -> Iterator[tuple[int, Ints, Ints]]:
    for t in _busy(r):
        move, chunk = r.active(t, chunks)
        if lookup is not None:
            col = lookup[chunk]
            move, chunk = move[col >= 0], col[col >= 0]
        if len(move):
            yield t, move, chunk


def _busy(r: Round) -> Iterator[int]:
    """The steps of a round in which some move is active."""
    done = 0
    for start in np.unique(r.start).tolist():
        yield from range(max(start, done), start + r.times)
        done = start + r.times
