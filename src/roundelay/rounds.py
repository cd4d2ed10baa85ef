"""A round: arrays of moves, and what they stand for, chunk by chunk and step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd
from operator import index
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from .collectives import Ints
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
        if self.times < 0:
            raise ScheduleError(f"times = {self.times}; expected at least 0")
        if self.begin is not None:
            object.__setattr__(self, "begin", _number("begin", self.begin))
        fields = {name: whole_numbers(name, getattr(self, name)) for name in _PER_MOVE}
        shapes = {a.shape for a in fields.values() if a.ndim}
        if not shapes:
            shapes = {(1,)}
        if len(shapes) > 1 or len(next(iter(shapes))) != 1:
            raise ScheduleError(
                "src, dst, chunk, op, count and start need one entry a move or a single value; "
                f"found lists of shapes {', '.join(map(str, sorted(shapes)))}"
            )
        shape = shapes.pop()
        keep: Any = slice(None)
        if fields["count"].size and fields["count"].min() == 0:
            keep = np.broadcast_to(fields["count"], shape) != 0
        for name, given in fields.items():
            a = given[keep] if given.ndim else given
            if name in ("src", "dst", "chunk") and not a.ndim:
                a = np.full(shape, a)[keep]
            listed = name in ("src", "dst", "chunk")
            object.__setattr__(self, name, as_ids(a) if listed else _scalar_if_equal(a))

    def __len__(self) -> int:
        return 0 if self.times < 1 else len(self.src)

    @property
    def length(self) -> int:
        """Steps from the round's begin to its end."""
        last = self.start if isinstance(self.start, int) else int(self.start.max())
        return last + self.times

    @property
    def at(self) -> int:
        """The step of the schedule at which it begins, once it stands in one."""
        return self.begin or 0

    @property
    def end(self) -> int:
        """The step of the schedule after its last."""
        return self.at + self.length

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

    def moments(self) -> int:
        """Number of steps in which some move is under way."""
        starts = np.unique(self.start)
        apart = np.minimum(np.diff(starts), self.times)
        return int(apart.sum()) + self.times

    def busy(self) -> Iterator[int]:
        """The steps, counted from the round's begin, in which some move is under way."""
        done = 0
        for start in np.unique(self.start).tolist():
            yield from range(max(start, done), start + self.times)
            done = start + self.times

    def ids(self, chunks: int, move: Ints, k: Any, j: Any) -> Ints:
        """Id number `j` of repetition `k` of the given moves, elementwise."""
        block = self.block(chunks)
        shift, stride = self.shift % block, self.stride % block
        first = self.chunk[move].astype(np.int64)
        inside = first % block
        if block >= 2**31:  # the products below might not fit into 64 bits
            k, j, inside = (np.asarray(a).astype(object) for a in (k, j, inside))
        moved = (inside + k * shift + j * stride) % block
        found: Ints = first - first % block + np.asarray(moved).astype(np.int64)
        return found

    def active(self, t: int, chunks: int) -> tuple[Ints, Ints]:
        """The moves of step `t` of the round, and each chunk they touch, in listed order."""
        move = np.arange(len(self.src))
        k: Any = t - np.asarray(self.start, np.int64)
        if k.ndim:
            move = move[(k >= 0) & (k < self.times)]
            k = k[move]
        elif not 0 <= k < self.times:
            move = move[:0]
        j: Any = 0
        if not isinstance(self.count, int) or self.count > 1:
            counts = np.broadcast_to(self.count, len(self.src))[move]
            j = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
            k = np.repeat(k, counts) if k.ndim else k
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
        if block >= 2**31:  # the products below might not fit into 64 bits
            delta = delta.astype(object)
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
        repetition = np.concatenate([f[0] for f in found] or [move[:0]])
        some = np.concatenate([f[1] for f in found] or [move[:0]])
        move, col = move[some], col[some]
        t = repetition + np.broadcast_to(self.start, len(self.src))[move]
        order = np.lexsort((move, t))
        return t[order], move[order], col[order]

    def inside(self, chunks: int, scale: int, piece: int | Ints, **changes: Any) -> Round:
        """The same of `chunks` chunks that lie inside a piece of a larger whole.

        Args:
            chunks: number of chunks the round's schedule has.
            scale: chunks of the whole to one of these.
            piece: number of the piece, one for all moves or one each.
            **changes: of other fields, at the same time.
        """
        ids = chunks // self.unit
        return replace(
            self,
            chunk=self.chunk + np.multiply(piece, ids, dtype=np.int64),
            unit=self.unit * scale,
            wrap=self.wrap or ids,
            **changes,
        )

    def check(self, participants: int, chunks: int) -> None:
        """Refuse ids out of range.

        Raises:
            ScheduleError: naming the field, the value and what was expected.
        """
        for name, low in (("unit", 1), ("wrap", 0), ("begin", 0)):
            if (getattr(self, name) or 0) < low and getattr(self, name) is not None:
                raise ScheduleError(f"{name} = {getattr(self, name)}; expected at least {low}")
        if chunks % self.unit:
            raise ScheduleError(f"unit = {self.unit} does not divide the {chunks} chunks")
        ids = chunks // self.unit
        if self.wrap and ids % self.wrap:
            raise ScheduleError(f"wrap = {self.wrap} does not divide the {ids} ids")
        block = self.block(chunks)
        longest = block // gcd(self.stride, block)
        most = self.count if isinstance(self.count, int) else int(self.count.max())
        if most * len(self.src) * self.times * self.unit >= 2**62:
            raise ScheduleError("the round stands for 2**62 moves or more; that is too many")
        if self.end >= 2**62:
            raise ScheduleError("the round ends at step 2**62 or later; that is too late")
        limits = (participants, participants, ids, 2, longest + 1, None)
        for name, limit in zip(_PER_MOVE, limits, strict=True):
            value = getattr(self, name)
            low, high = (value, value) if isinstance(value, int) else (value.min(), value.max())
            if low < 0 or (limit is not None and high >= limit):
                values = np.atleast_1d(value)
                i = int(np.argmax((values < 0) | (limit is not None and values >= limit)))
                upto = "" if limit is None else f" to {limit - 1}"
                raise ScheduleError(f"move {i}: {name} = {values[i]}; expected 0{upto}")


def all_differ(ids: Ints) -> bool:
    """Whether no id stands twice; ids are not negative."""
    if ids.size and int(ids.max()) < 8 * ids.size:
        return int(np.bincount(ids.ravel()).max()) == 1
    ordered = np.sort(ids, axis=None)
    return not (ordered[1:] == ordered[:-1]).any()


_PER_MOVE: Final = ("src", "dst", "chunk", "op", "count", "start")


def _number(name: str, value: Any) -> int:
    try:
        return index(value)
    except TypeError:
        raise ScheduleError(f"{name} = {value!r:.60}; expected a whole number") from None


def whole_numbers(name: str, value: Any) -> Ints:
    """The value as an array of whole numbers, or a `ScheduleError` that names it."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise ScheduleError(f"{name} must be a flat list, found {value!r:.60}") from None
    if array.dtype == np.int32:
        return array
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu" or (array.size and abs(int(array.max())) >= 2**62):
        wanted = "COPY or REDUCE" if name == "op" else "whole numbers below 2**62"
        raise ScheduleError(f"{name} must hold {wanted}, found {array.dtype} {value!r:.60}")
    return array


def as_ids(array: Ints) -> Ints:
    """int32 where it fits: half the memory, and 2**31 ids are more than most ever need."""
    if array.dtype == np.int32 and not array.flags.writeable:
        return array
    small = (
        array.dtype == np.int32
        or array.size == 0
        or (array.min() >= -(2**31) and array.max() < 2**31)
    )
    narrow: Ints = np.array(array, np.int32 if small else np.int64)
    narrow.flags.writeable = False
    return narrow


def _scalar_if_equal(array: Ints) -> int | Ints:
    if array.ndim == 0 or (array.size and (array == array[0]).all()):
        return int(array.flat[0])
    return as_ids(array) if array.size else 1


def _solve(step: int, target: Ints, block: int, limit: Ints) -> tuple[Ints, Ints]:
    """All x with ``step * x = target (mod block)`` and 0 <= x < limit, as (index, x)."""
    common = gcd(step, block)
    period = block // common
    some = np.flatnonzero(target % common == 0)
    x = (target[some] % block) // common * pow(step // common, -1, period) % period
    repeats = np.maximum(0, -((x - limit[some]) // period)).astype(np.int64)
    again = np.arange(repeats.sum()) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    return np.repeat(some, repeats), np.repeat(x, repeats).astype(np.int64) + again * period
