"""The four verbs that build schedules from schedules: `on`, `then`, `split` and `reverse`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import lcm
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from .collectives import Ints, collective, everyone, owner, root
from .levels import then
from .rounds import COPY, REDUCE, Round, ScheduleError, all_differ, whole_numbers
from .schedule import MAX_RANKS, Schedule, changed

__all__ = ["TRANSPOSE", "on", "reverse", "split", "then"]


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
    try:
        rows = np.atleast_2d(whole_numbers("groups", groups)).astype(np.int64)
    except ScheduleError:
        rows = np.empty(0, np.int64)
    if rows.ndim != 2 or rows.size == 0 or rows.min() < 0 or rows.max() >= MAX_RANKS:
        raise ScheduleError(f"groups must be rows of ranks, found {groups!r:.80}")
    if not all_differ(rows):
        raise ScheduleError("a rank stands twice in groups; expected every rank once at most")
    if schedule.groups is not None:
        raise ScheduleError("`on` takes a schedule for all its ranks, found one for rows of them")
    if schedule.ranks != rows.shape[1]:
        raise ScheduleError(
            f"rows have {rows.shape[1]} ranks but the schedule is for {schedule.ranks}"
        )
    ranks = int(rows.max()) + 1
    extra = ranks + np.arange(len(rows) * schedule.helpers).reshape(len(rows), -1)
    names = np.hstack([rows, extra]).astype(np.int32)

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
        rounds=changed([(schedule, spread)]),
        groups=None if whole else rows,
        root=int(rows[0, schedule.root]) if whole and schedule.kind.rooted else schedule.root,
        owner=rows[0][schedule.setting.owner] if whole else schedule.owner,
        name="",
        params={},
    )


def split(*parts: Schedule) -> Schedule:
    """The parts side by side, each on an equal share of the data; all begin at once.

    Raises:
        ScheduleError: the parts differ in collective, ranks or root, or cut their data by
            owners (divide each owner's piece by chunks instead).
    """
    if not parts:
        raise ScheduleError("`split` needs at least one schedule")
    first = parts[0]
    if any((p.collective, p.ranks, p.root) != (first.collective, first.ranks, first.root)
           or p.groups is not None for p in parts):  # fmt: skip
        raise ScheduleError("`split` needs parts of one collective over the same ranks and root")
    if owner in (first.kind.before, first.kind.after) or first.kind.pieces:
        raise ScheduleError(f"`split` cannot divide {first.collective}: its pieces have owners")
    share = lcm(*(p.chunks for p in parts))

    def beside(i: int, p: Schedule) -> Callable[[Round], Round]:
        return lambda r: r.inside(p.chunks, share // p.chunks, i)

    return Schedule(
        first.collective,
        first.ranks,
        share * len(parts),
        changed([(p, beside(i, p)) for i, p in enumerate(parts)]),
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
            begin=steps - r.end,
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
    misses = np.zeros(schedule.ranks, np.int64)
    if schedule.kind.before is root:
        misses[schedule.rows] = schedule.chunks
        misses[schedule.rows[:, schedule.root]] = 0
    else:
        misses[schedule.rows] = schedule.chunks - schedule.chunks // schedule.size
    if (written != misses).any():
        rank = int(np.argmax(written != misses))
        raise ScheduleError(
            f"rank {rank} writes {written[rank]} chunks but misses {misses[rank]}: "
            "it writes a place twice or one it already holds, so the transpose would not be right"
        )
