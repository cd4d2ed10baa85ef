"""The four verbs that build schedules from schedules: `on`, `then`, `split` and `reverse`.

`then` names chunks by a stack. A reduce_scatter or scatter inside ``on(groups, ...)`` opens a
level: from there on each rank works inside the piece it owns in its group. An all_gather or
gather closes the level again. With the open levels' pieces as digits, most significant first,
the chunk that a part calls c is called ``prefix * chunks + c`` in the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce as fold
from math import lcm, prod
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from .collectives import Ints, collective, everyone, matching, owner, root
from .schedule import COPY, REDUCE, Round, Schedule, ScheduleError


def on(groups: Any, schedule: Schedule) -> Schedule:
    """The schedule, done by every row of `groups` at once.

    Args:
        groups: ranks, shape (rows, g) or (g,) for one row; no rank twice. Rows need not cover
            all ranks.
        schedule: over g ranks.

    Returns:
        One row that covers every rank gives a plain schedule; several rows give a part for
        `then`, with `groups` set. Every row gets helpers of its own.

    Raises:
        ScheduleError: a rank stands twice, or rows are not as long as the schedule is wide.
    """
    rows = np.atleast_2d(np.asarray(groups))
    if rows.dtype.kind not in "iu" or rows.ndim != 2 or rows.size == 0 or rows.min() < 0:
        raise ScheduleError(f"groups must be rows of ranks, found {groups!r:.80}")
    if len(np.unique(rows)) != rows.size:
        raise ScheduleError("a rank stands twice in groups; expected every rank once at most")
    if schedule.groups is not None:
        raise ScheduleError("`on` takes a schedule for all its ranks, found one for rows of them")
    if schedule.ranks != rows.shape[1]:
        raise ScheduleError(
            f"rows have {rows.shape[1]} ranks but the schedule is for {schedule.ranks}"
        )
    ranks = int(rows.max()) + 1
    extra = ranks + np.arange(len(rows) * schedule.helpers).reshape(len(rows), -1)
    names = np.hstack([rows, extra])

    def spread(r: Round) -> Round:
        def tile(a: int | Ints) -> int | Ints:
            return np.tile(a, len(rows)) if isinstance(a, np.ndarray) else a

        return replace(
            r,
            src=names[:, r.src].ravel(),
            dst=names[:, r.dst].ravel(),
            chunk=np.tile(r.chunk, len(rows)),
            op=tile(r.op),
            count=tile(r.count),
            start=tile(r.start),
        )

    whole = len(rows) == 1 and rows.size == ranks
    return replace(
        schedule,
        ranks=ranks,
        helpers=extra.size,
        rounds=_each(schedule, spread),
        groups=None if whole else rows,
        root=int(rows[0, schedule.root]) if whole and schedule.kind.rooted else schedule.root,
        owner=rows[0][schedule.setting.owner] if whole else schedule.owner,
        name="",
        params={},
    )


def then(*stages: Schedule | Sequence[Schedule]) -> Schedule:
    """One after the other; a list stands for parts that different ranks do at the same time.

    Returns:
        A schedule over all ranks. Its collective follows from who contributes before the first
        part and who holds the total after the last.

    Raises:
        ScheduleError: a close that does not mirror its open, ranks of one group that work in
            different pieces, or a chain that is no collective.
    """
    listed = [list(s) if isinstance(s, list | tuple) else [s] for s in stages]
    parts = [p for stage in listed for p in stage]
    if not parts:
        raise ScheduleError("`then` needs at least one schedule")
    n = max(p.ranks for p in parts)
    levels = _open_from_the_start(listed, n)
    at_start = list(levels)
    placed: list[_Placed] = []
    begin = 0
    for stage in listed:
        opened: list[_Level] = []
        closing = levels.pop() if stage[0].kind.closes else None
        for p in stage:
            prefix = _prefix(p, levels)
            if closing is not None:
                _mirror(p, closing)
            if p.kind.opens:
                opened.append(_Level.of(p, n))
            scale = prod(level.size for level in levels)
            placed.append(_Placed(p, prefix, scale * p.chunks, begin))
        if opened:
            levels.append(_Level.merged(opened))
        begin += max(p.steps for p in stage)
    kind = matching(listed[0][0].kind.before, listed[-1][0].kind.after)
    if kind is None or (at_start and levels):
        raise ScheduleError(
            f"{listed[0][0].collective} ... {listed[-1][0].collective} is no collective"
        )
    chunks = fold(lcm, (p.chunks for p in placed))
    shared: dict[bytes, int] = {}
    helpers = 0
    for p in placed:
        rows = b"" if p.part.groups is None else p.part.groups.tobytes()
        key = rows + p.part.helpers.to_bytes(8, "big")
        if key not in shared:
            shared[key] = n + helpers
            helpers += p.part.helpers
        p.helper = shared[key]
    rooted = listed[0][0] if kind.before is root else listed[-1][0]
    return Schedule(
        kind.name,
        n,
        chunks,
        _gather_rounds([(p.part, p.rename(chunks)) for p in placed]),
        helpers=helpers,
        root=_root(rooted) if kind.rooted else 0,
        owner=_owners(at_start or levels, n) if owner in (kind.before, kind.after) else None,
    )


def split(*parts: Schedule) -> Schedule:
    """The parts side by side, each on an equal share of the data; all begin at once.

    Raises:
        ScheduleError: the parts differ in collective, ranks or root, or cut their data by
            owners (divide each owner's piece by chunks instead).
    """
    first = parts[0]
    if any((p.collective, p.ranks, p.root) != (first.collective, first.ranks, first.root)
           or p.groups is not None for p in parts):  # fmt: skip
        raise ScheduleError("`split` needs parts of one collective over the same ranks and root")
    if owner in (first.kind.before, first.kind.after) or first.kind.pieces:
        raise ScheduleError(f"`split` cannot divide {first.collective}: its pieces have owners")
    share = fold(lcm, (p.chunks for p in parts))

    def beside(i: int, p: Schedule) -> Callable[[Round], Round]:
        return lambda r: _rename(r, p.chunks, share // p.chunks, prefix=i)

    return Schedule(
        first.collective,
        first.ranks,
        share * len(parts),
        _gather_rounds([(p, beside(i, p)) for i, p in enumerate(parts)]),
        helpers=max(p.helpers for p in parts),
        root=first.root,
    )


_PAIRS = (("all_gather", "reduce_scatter"), ("broadcast", "reduce"), ("scatter", "gather"))
TRANSPOSE: Final = MappingProxyType({a: b for pair in _PAIRS for a, b in (pair, pair[::-1])})
"""The collective that `reverse` makes of each that has a transpose."""


def reverse(schedule: Schedule) -> Schedule:
    """The transpose: time runs backwards, and what was copied out is added up (or back).

    all_gather becomes reduce_scatter, broadcast becomes reduce, scatter becomes gather, and the
    other way round.

    Raises:
        ScheduleError: the collective has no transpose; a switch takes part; or the schedule
            writes a place twice, or one that already held something, so that its transpose
            would add a contribution twice.
    """
    if schedule.collective not in TRANSPOSE:
        raise ScheduleError(f"{schedule.collective} has no transpose; {', '.join(TRANSPOSE)} have")
    if schedule.helpers:
        raise ScheduleError("a schedule with adding switches has no transpose")
    name = TRANSPOSE[schedule.collective]
    op = REDUCE if collective(name).before is everyone else COPY
    if op == REDUCE:
        _writes_once(schedule)
    steps, chunks = schedule.steps, schedule.chunks

    def back(r: Round) -> Round:
        last = r.length - r.times
        every = np.arange(len(r.src))
        return replace(
            r,
            src=r.dst,
            dst=r.src,
            chunk=r.ids(chunks, every, r.times - 1, 0),
            op=op,
            start=last - r.start,
            shift=-r.shift,
            begin=steps - (r.begin or 0) - r.length,
        )

    def backwards() -> Iterator[Round]:
        return map(back, reversed(tuple(schedule)))

    lazy = callable(schedule.rounds)
    return replace(
        schedule,
        collective=name,
        rounds=backwards if lazy else tuple(backwards()),
        name="",
        params={},
    )


def _writes_once(schedule: Schedule) -> None:
    """Refuse a copy that is not needed: by pigeonhole, one that writes a place twice.

    A right schedule fills every missing place, so a rank that writes exactly as many places as
    it misses writes each once and none that held something.
    """
    written = np.zeros(schedule.ranks, np.int64)
    for r in schedule:
        if np.any(np.equal(r.op, REDUCE)):
            raise ScheduleError(f"only copies can be transposed; {schedule.collective} adds")
        each = np.broadcast_to(np.multiply(r.count, r.times * r.unit), len(r.src))
        written += np.bincount(r.dst, each, schedule.ranks).astype(np.int64)
    has = np.zeros(schedule.ranks, np.int64)
    if schedule.kind.before is root:
        has[schedule.root] = schedule.chunks
    else:
        has += schedule.chunks // schedule.ranks
    if (written != schedule.chunks - has).any():
        rank = int(np.argmax(written != schedule.chunks - has))
        raise ScheduleError(
            f"rank {rank} writes {written[rank]} chunks but misses {schedule.chunks - has[rank]}: "
            "it writes a place twice or one it already holds, so the transpose would not be right"
        )


class _Level(NamedTuple):
    """An open level: how many pieces, and which one each rank owns (-1: none yet)."""

    size: int
    digit: Ints

    @classmethod
    def of(cls, part: Schedule, n: int) -> _Level:
        digit = np.full(n, -1)
        digit[_rows(part)[:, part.setting.owner]] = np.arange(part.size)
        return cls(part.size, digit)

    @classmethod
    def merged(cls, levels: list[_Level]) -> _Level:
        if len({level.size for level in levels}) > 1:
            raise ScheduleError("groups of different sizes cannot open one level")
        return cls(levels[0].size, np.max([level.digit for level in levels], axis=0))


class _Placed:
    """A part with its place in the whole: the piece each participant works in, and when."""

    def __init__(self, part: Schedule, prefix: Ints, chunks: int, begin: int) -> None:
        self.part, self.prefix, self.chunks, self.begin = part, prefix, chunks, begin
        self.helper = 0

    def rename(self, total: int) -> Callable[[Round], Round]:
        """How the whole calls what a round of the part calls by the part's own names."""
        ranks, move_to = self.part.ranks, self.helper - self.part.ranks

        def names(ids: Ints) -> Ints:
            return np.where(ids < ranks, ids, ids + move_to)

        def rename(r: Round) -> Round:
            r = _rename(r, self.part.chunks, total // self.chunks, self.prefix[r.src])
            return replace(r, src=names(r.src), dst=names(r.dst), begin=(r.begin or 0) + self.begin)

        return rename


def _rename(r: Round, chunks: int, scale: int, prefix: int | Ints) -> Round:
    """The round inside piece `prefix`, where it has `chunks` chunks of `scale` finer ones each."""
    ids = chunks // r.unit
    return replace(
        r,
        chunk=r.chunk + np.multiply(prefix, ids, dtype=np.int64),
        unit=r.unit * scale,
        wrap=r.wrap or ids,
    )


def _rows(part: Schedule) -> Ints:
    return np.arange(part.ranks)[None, :] if part.groups is None else part.groups


def _root(part: Schedule) -> int:
    return part.root if part.groups is None else int(part.groups[0, part.root])


def _open_from_the_start(stages: list[list[Schedule]], n: int) -> list[_Level]:
    """The levels that closes without an open of their own imply, outermost first."""
    depth, unmatched = 0, []
    for stage in stages:
        closes = [p.kind.closes for p in stage]
        if any(closes) != all(closes) or len({p.kind.opens for p in stage}) > 1:
            raise ScheduleError("parts of one stage must all open, all close, or do neither")
        if stage[0].kind.opens:
            depth += 1
        elif closes[0] and depth:
            depth -= 1
        elif closes[0]:
            unmatched.append(_Level.merged([_Level.of(p, n) for p in stage]))
    return unmatched[::-1]


def _prefix(part: Schedule, levels: list[_Level]) -> Ints:
    """The piece each participant of the part works in: one for all ranks of a row.

    A rank that owns nothing yet (it was not in the group that opened the level) works in the
    piece of its row.
    """
    rows = _rows(part)
    total = np.zeros(len(rows), np.int64)
    for level in levels:
        digits = level.digit[rows]
        row = digits.max(axis=1)
        if (row < 0).any() or ((digits != row[:, None]) & (digits >= 0)).any():
            i = int(np.argmax((row < 0) | ((digits != row[:, None]) & (digits >= 0)).any(axis=1)))
            raise ScheduleError(
                f"ranks {rows[i].tolist()} of one group own different pieces "
                f"{digits[i].tolist()} of an open level; a group must work inside one piece"
            )
        level.digit[rows] = row[:, None]
        total = total * level.size + row
    prefix = np.zeros(part.ranks + part.helpers, np.int64)
    prefix[rows] = total[:, None]
    prefix[part.ranks :] = np.repeat(total, part.helpers // len(rows))
    return prefix


def _mirror(part: Schedule, level: _Level) -> None:
    """Refuse a close whose groups or owners are not those of the open."""
    own = _Level.of(part, len(level.digit))
    differs = (own.digit != level.digit) & (own.digit >= 0)
    if own.size != level.size or differs.any():
        where = f" (rank {int(np.argmax(differs))} owns another piece)" if differs.any() else ""
        raise ScheduleError(
            f"{part.collective} over {own.size} ranks does not close what was opened over "
            f"{level.size}{where}; a close must mirror its open, group by group and owner by owner"
        )


def _owners(levels: list[_Level], n: int) -> Ints:
    """Which rank owns each piece, where the open levels' digits number the pieces."""
    piece = np.zeros(n, np.int64)
    for level in levels:
        if (level.digit < 0).any():
            raise ScheduleError(f"rank {int(np.argmin(level.digit))} ends up with no piece")
        piece = piece * level.size + level.digit
    if len(np.unique(piece)) != n or prod(level.size for level in levels) != n:
        raise ScheduleError("the parts do not give every rank a piece of its own")
    return np.argsort(piece)


def _each(schedule: Schedule, change: Callable[[Round], Round]) -> Any:
    return _gather_rounds([(schedule, change)])


def _gather_rounds(parts: list[tuple[Schedule, Callable[[Round], Round]]]) -> Any:
    """The changed rounds of all parts: listed, or lazy where one of the parts is lazy."""

    def rounds() -> Iterator[Round]:
        return (change(r) for part, change in parts for r in part)

    lazy = any(callable(part.rounds) for part, _ in parts)
    return rounds if lazy else tuple(rounds())
