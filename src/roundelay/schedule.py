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
from typing import Any, Final

import numpy as np

from .collectives import Bools, Collective, Ints, Setting, Where, collective
from .rounds import COPY, REDUCE, Round, ScheduleError, as_ids, whole_numbers
from .routing import Routing
from .steps import Step, apply, occupy, steps_of

__all__ = [
    "COPY",
    "MAX_CHUNKS",
    "MAX_RANKS",
    "REDUCE",
    "HalfMoves",
    "Round",
    "Schedule",
    "ScheduleError",
    "Step",
    "apply",
    "changed",
    "occupy",
]


MAX_RANKS: Final = 2**24
"""More ranks and helpers than this are refused: arrays of them would be a mistake."""
MAX_CHUNKS: Final = 10**11
"""More chunks than this are refused, so that ids can be worked out in 64 bits."""


@dataclass(frozen=True, slots=True)
class HalfMoves:
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
        routing: of a dispatch to experts or its combine: the pieces, and who wants them.

    Raises:
        ScheduleError: an id is out of range, `chunks` do not divide among the pieces, or a
            routing is missing, superfluous or for other ranks.
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
    routing: Routing | None = None

    def __post_init__(self) -> None:
        for name, low in (("ranks", 1), ("chunks", 1), ("helpers", 0), ("root", 0)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < low:
                raise ScheduleError(f"{name} = {value!r}; expected a whole number from {low} up")
            object.__setattr__(self, name, int(value))
        if self.ranks + self.helpers > MAX_RANKS or self.chunks > MAX_CHUNKS:
            raise ScheduleError(
                f"{self.ranks + self.helpers:,} ranks and helpers, {self.chunks:,} chunks; "
                f"expected at most {MAX_RANKS:,} and {MAX_CHUNKS:,}"
            )
        if self.root >= self.size:
            raise ScheduleError(f"root = {self.root}; expected a rank, 0 to {self.size - 1}")
        self._check_routing()
        if self.chunks % self.pieces:
            raise ScheduleError(
                f"{self.chunks} chunks do not divide among the {self.pieces} pieces"
            )
        if self.owner is not None:
            owner = whole_numbers("owner", self.owner)
            order = np.arange(self.size)
            if not np.array_equal(np.sort(owner), order):
                raise ScheduleError("owner must name every rank once")
            rank_order = np.array_equal(owner, order)
            object.__setattr__(self, "owner", None if rank_order else as_ids(owner))
        if not callable(self.rounds):
            object.__setattr__(self, "rounds", tuple(self._in_time(self.rounds)))

    def _check_routing(self) -> None:
        known = self.routing
        if self.kind.routed != (known is not None):
            wanted = "a routing" if self.kind.routed else "no routing"
            raise ScheduleError(f"{self.collective} needs {wanted}")
        if known is not None and (known.ranks != self.size or not known.pieces):
            raise ScheduleError(
                f"the routing has {known.ranks} ranks and {known.pieces} pieces; expected "
                f"{self.size} ranks and at least one piece"
            )

    def _in_time(self, rounds: Iterable[Round]) -> Iterator[Round]:
        end = 0
        for number, r in enumerate(rounds):
            if not isinstance(r, Round):
                raise ScheduleError(f"round {number} is {r!r:.60}; expected a Round")
            if len(r):
                try:
                    r.check(self.ranks + self.helpers, self.chunks)
                except ScheduleError as error:
                    raise ScheduleError(f"round {number}, {error}") from None
                r = replace(r, begin=end) if r.begin is None else r
                end = max(end, r.end)
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

    @property
    def pieces(self) -> int:
        """Number of pieces that the collective's predicates speak of."""
        return self.routing.pieces if self.routing else self.kind.piece_count(self.size)

    @property
    def rows(self) -> Ints:
        """The rows of ranks that do the collective: `groups`, or one row of all."""
        return np.arange(self.ranks)[None, :] if self.groups is None else self.groups

    @cached_property
    def steps(self) -> int:
        """Steps from the first move to the last, where every move takes one."""
        return max((r.end for r in self), default=0)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the rounds' arrays take together."""
        return sum(r.nbytes for r in self)

    def moments(self) -> int:
        """Number of (round, step) pairs in which something moves: what going through it takes."""
        return sum(r.moments() for r in self)

    @cached_property
    def overlaps(self) -> bool:
        """Whether some round begins before one that stands before it has ended."""
        end = 0
        for r in self:
            if r.at < end:
                return True
            end = r.end
        return False

    def whole(self) -> Schedule:
        """The schedule itself, if it is one collective over all its ranks.

        Raises:
            ScheduleError: it is a part, for rows of ranks.
        """
        if self.groups is not None:
            raise ScheduleError(
                f"a {self.collective} by each of {len(self.groups)} rows of ranks is a part; "
                "make it a whole with `then`"
            )
        return self

    def expanded(self) -> int:
        """Number of (move, chunk) pairs the schedule stands for."""
        return sum(r.expanded() for r in self)

    @cached_property
    def setting(self) -> Setting:
        """What the collective's predicates look at."""
        order = np.arange(self.size) if self.owner is None else self.owner
        return Setting(self.size, self.root, order, self.routing)

    def before(self, columns: Ints | None = None) -> Bools:
        """Who contributes to which of the chunks `columns` (all): [participant, column]."""
        return self._grid(self.kind.before, columns)

    def after(self, columns: Ints | None = None) -> Bools:
        """Who must hold the total of which of the chunks `columns` (all): [participant, column]."""
        return self._grid(self.kind.after, columns)

    def _grid(self, where: Where, columns: Ints | None) -> Bools:
        rank = np.arange(self.ranks + self.helpers)[:, None]
        chunk = np.arange(self.chunks) if columns is None else columns
        piece = chunk // (self.chunks // self.pieces)
        return np.array(where(self.setting, rank, piece[None, :]))

    def moves(self, columns: Ints | None = None) -> Iterator[Step]:
        """Every step with its moves, chunk by chunk; only those of the chunks `columns`, if given.

        `columns` must rise.

        This is the schedule's meaning spelt out. The whole of a large schedule is large.
        """
        for number, r in enumerate(self):
            yield from steps_of(r, number, self.chunks, columns)

    def part(self, rank: int) -> list[HalfMoves]:
        """What one rank reads and writes, in order, without going through the others' moves.

        Args:
            rank: a rank or helper.

        Raises:
            ScheduleError: there is no such rank.
        """
        if not isinstance(rank, int | np.integer) or not 0 <= rank < self.ranks + self.helpers:
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
                                  r.at)
                    )  # fmt: skip
        return mine

    def __repr__(self) -> str:
        what = f"{self.collective}/{self.name or '?'}"
        params = "".join(f", {k}={v}" for k, v in self.params.items())
        return f"<{what}: {self.ranks} ranks, {self.chunks} chunks, {self.steps} steps{params}>"


def changed(parts: list[tuple[Schedule, Callable[[Round], Round]]]) -> Any:
    """The rounds of all parts, each changed: listed, or lazy where one of the parts is lazy."""

    def rounds() -> Iterator[Round]:
        return (change(r) for part, change in parts for r in part)

    lazy = any(callable(part.rounds) for part, _ in parts)
    return rounds if lazy else tuple(rounds())
