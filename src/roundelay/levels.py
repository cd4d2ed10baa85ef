"""`then`: schedules one after the other, each inside the pieces that the ones before left open.

A reduce_scatter or scatter inside ``on(groups, ...)`` opens a level: from there on each rank
works inside the piece it owns in its group. An all_gather or gather closes the level again.
With the open levels' pieces as digits, most significant first, the chunk that a part calls c is
called ``prefix * chunks + c`` in the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import lcm, prod
from typing import NamedTuple

import numpy as np

from .collectives import Ints, matching, owner, root
from .rounds import Round, ScheduleError, all_differ
from .schedule import Schedule, changed


def then(*stages: Schedule | Sequence[Schedule]) -> Schedule:
    """One after the other; a list stands for parts that different ranks do at the same time.

    Returns:
        A schedule over all ranks. Its collective follows from who contributes before the first
        part and who holds the total after the last.

    Raises:
        ScheduleError: a close that does not mirror its open, ranks of one group that work in
            different pieces, or a chain that is no collective.
    """
    listed = [[s] if isinstance(s, Schedule) else list(s) for s in stages]
    _check(listed)
    first, last = listed[0][0], listed[-1][0]
    n = max(p.ranks for stage in listed for p in stage)
    levels = _open_from_the_start(listed, n)
    at_start = list(levels)
    placed, helpers = _place(listed, n, levels)
    kind = matching(first.kind.before, last.kind.after)
    left_open = bool(at_start), bool(levels)
    if kind is None or left_open != (kind.before is owner, kind.after is owner):
        raise ScheduleError(f"{first.collective} ... {last.collective} is no collective")
    chunks = lcm(*(p.chunks for p in placed))
    rooted = first if kind.before is root else last
    return Schedule(
        kind.name,
        n,
        chunks,
        changed([(p.part, p.rename(chunks)) for p in placed]),
        helpers=helpers,
        root=int(rooted.rows[0, rooted.root]) if kind.rooted else 0,
        owner=_owners(at_start or levels, n) if owner in (kind.before, kind.after) else None,
    )


def _check(stages: list[list[Schedule]]) -> None:
    if not stages or not all(stages):
        raise ScheduleError("`then` needs at least one schedule, and one in every list")
    for stage in stages:
        if len({(p.kind.opens, p.kind.closes) for p in stage}) > 1:
            raise ScheduleError("parts of one stage must all open, all close, or do neither")
        ranks = np.concatenate([p.rows.ravel() for p in stage])
        if not all_differ(ranks):
            raise ScheduleError("parts of one stage are done at the same time, by different ranks")


def _place(stages: list[list[Schedule]], n: int, levels: list[_Level]) -> tuple[list[_Placed], int]:
    """Give every part its piece, its time and its helpers; leaves the open levels in `levels`.

    Parts for the same rows share their helpers: it is the same switch that adds and multicasts.
    """
    placed: list[_Placed] = []
    first_helper: dict[tuple[bytes, int], int] = {}
    begin = helpers = 0
    for stage in stages:
        if stage[0].kind.closes:
            _mirror(stage, levels.pop(), n)
        scale = prod(level.size for level in levels)
        for p in stage:
            key = (p.rows.tobytes(), p.helpers)
            if key not in first_helper:
                first_helper[key] = n + helpers
                helpers += p.helpers
            prefix = _enter(p, levels)
            placed.append(_Placed(p, prefix, scale * p.chunks, begin, first_helper[key]))
        if stage[0].kind.opens:
            levels.append(_Level.of(stage, n))
        begin += max(p.steps for p in stage)
    return placed, helpers


class _Level(NamedTuple):
    """An open level: how many pieces, and which one each rank works in (-1: none yet).

    `owned` is the piece as the opening gave it; `digit` also that of ranks which took it over
    from their row.
    """

    size: int
    owned: Ints
    digit: Ints

    @classmethod
    def of(cls, stage: list[Schedule], n: int) -> _Level:
        """The level that the parts of a stage open, or close, together."""
        if len({p.size for p in stage}) > 1:
            raise ScheduleError("groups of different sizes cannot open one level")
        owned = np.full(n, -1)
        for p in stage:
            owned[p.rows[:, p.setting.owner]] = np.arange(p.size)
        return cls(stage[0].size, owned, owned.copy())


class _Placed(NamedTuple):
    """A part with its place in the whole.

    Attributes:
        part: the schedule.
        prefix: the piece that each of its participants works in.
        chunks: chunks that a whole cut as finely as the part would have.
        begin: its first step.
        helper: what its first helper is called in the whole.
    """

    part: Schedule
    prefix: Ints
    chunks: int
    begin: int
    helper: int

    def rename(self, total: int) -> Callable[[Round], Round]:
        """How the whole calls what a round of the part calls by the part's own names."""
        ranks, move_to = self.part.ranks, self.helper - self.part.ranks

        def names(ids: Ints) -> Ints:
            return np.where(ids < ranks, ids, ids + move_to) if self.part.helpers else ids

        def rename(r: Round) -> Round:
            return r.inside(
                self.part.chunks,
                total // self.chunks,
                self.prefix[r.src],
                src=names(r.src),
                dst=names(r.dst),
                begin=r.at + self.begin,
            )

        return rename


def _open_from_the_start(stages: list[list[Schedule]], n: int) -> list[_Level]:
    """The levels that closes without an open of their own imply, outermost first."""
    depth, closes = 0, []
    for stage in stages:
        if stage[0].kind.opens:
            depth += 1
        elif stage[0].kind.closes and depth:
            depth -= 1
        elif stage[0].kind.closes:
            closes.append(stage)
    levels: list[_Level] = []
    for stage in reversed(closes):
        for p in stage:  # whoever is not in an outer group works in the piece of one who is
            for level in levels:
                row = level.digit[p.rows].max(axis=1, keepdims=True)
                level.digit[p.rows] = np.where(row >= 0, row, level.digit[p.rows])
        levels.append(_Level.of(stage, n))
    return levels


def _enter(part: Schedule, levels: list[_Level]) -> Ints:
    """Let the part's rows into the open levels: the piece each participant works in.

    One for all ranks of a row.

    A rank that owns nothing yet (it was not in the group that opened the level) works in the
    piece of its row.
    """
    rows = part.rows
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


def _mirror(stage: list[Schedule], level: _Level, n: int) -> None:
    """Refuse a close whose groups or owners are not those of the open."""
    own = _Level.of(stage, n)
    if own.size != level.size or (own.owned != level.owned).any():
        where = f" (rank {int(np.argmax(own.owned != level.owned))} owns another piece)"
        raise ScheduleError(
            f"{stage[0].collective} over {own.size} ranks does not close what was opened over "
            f"{level.size}{where}; a close must mirror its open, group by group and owner by owner"
        )


def _owners(levels: list[_Level], n: int) -> Ints:
    """Which rank owns each piece, where the open levels' digits number the pieces."""
    piece = np.zeros(n, np.int64)
    for level in levels:
        if (level.digit < 0).any():
            raise ScheduleError(f"rank {int(np.argmin(level.digit))} ends up with no piece")
        piece = piece * level.size + level.digit
    if not all_differ(piece) or prod(level.size for level in levels) != n:
        raise ScheduleError("the parts do not give every rank a piece of its own")
    return np.argsort(piece)
