"""One step of a schedule over up to 16,384 ranks, in groups, and one rank's part in it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from ...algorithms import Algorithm, find
from ...errors import RoundelayError
from ...rounds import REDUCE, Round
from ...schedule import Schedule
from ...show import Move, words
from ...show.sentences import what_happens
from .parameters import Reader, of_schedule, whole
from .player import Said, card_of, said

Ints = npt.NDArray[np.int64]

MOST: Final = 16384
"""Ranks of a schedule."""
GROUPS: Final = 16
"""Groups that are drawn, at most; switches are one more."""
MANY: Final = ("pieces", "rings")
"""Parameters that make a schedule so many times as long."""
PARTS: Final = 2**18
"""Of these and of ranks, multiplied: what the page works out in some seconds."""
DENSE: Final = 1024
"""Ranks of an algorithm with n * n moves."""
MOVES: Final = 4_000_000
"""Moves that all rounds list together."""
SPOKEN: Final = 100_000
"""Pieces that move in a step, up to which it is put into words."""
ROWS: Final = 200
"""Moves of one rank in one step that are listed."""
READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    of_schedule(MOST)
    | {
        "step": whole("step", 0, 10**9),
        "rank": whole("rank", 0, MOST - 1),
    }
)


class Flow(msgspec.Struct):
    """What a group sends another in the step: messages, bytes, and bytes that are added."""

    src: int
    dst: int
    messages: int
    bytes: float
    added: float


class Grouped(msgspec.Struct):
    """A step of a schedule, in groups.

    Attributes:
        name, purpose, said: in words; `said` is what happens in the step, empty where there is
            too much to say.
        ranks, helpers, steps, step: `step` counts from 1, and 0 is the start.
        groups: (first rank, last rank) of each; where there are switches, the last is theirs.
        flows: between groups, and inside them.
        busiest_sent, busiest_received: bytes in this step of the rank with most of them.
        rank: whose part is shown.
        part: its moves in this step, (source, destination, first piece, pieces, added); at most
            200 of them.
        part_moves: how many there are.
        part_sent, part_received: bytes until the end of this step.
        card: as of the player.
    """

    name: str
    purpose: Said
    said: Said
    ranks: int
    helpers: int
    steps: int
    step: int
    size: int
    groups: list[tuple[int, int]]
    flows: list[Flow]
    busiest_sent: float
    busiest_received: float
    rank: int
    part: list[tuple[int, int, int, int, bool]]
    part_moves: int
    part_sent: float
    part_received: float
    card: dict[str, tuple[str, float]]


def grouped(
    collective: str = "all_reduce",
    algorithm: str = "ring",
    n: int = 1024,
    params: Mapping[str, Any] = MappingProxyType({}),
    root: int = 0,
    size: int = 1 << 20,
    step: int = 0,
    rank: int = 0,
) -> Grouped:
    """A step of an algorithm's schedule, in at most 16 groups of ranks.

    Args:
        collective: its name.
        algorithm: its name.
        n: ranks, 2 to 16,384; 1,024 where each rank has to do with each other.
        params: of the algorithm.
        root: of a rooted collective.
        size: bytes, as in nccl-tests' size column.
        step: from 1; 0 for the start.
        rank: whose part is told in detail.

    Raises:
        RoundelayError: nothing of that name, no such step or rank, or too many moves.
    """
    chosen = find(collective, algorithm)
    schedule = built(chosen, n, root, tuple(params.items()))
    if rank >= n or step > schedule.steps:
        raise RoundelayError(
            f"step {step:,}, rank {rank:,}; expected a step up to {schedule.steps:,} and a rank "
            f"up to {n - 1:,}"
        )
    each = schedule.kind.total_bytes(size, n) / schedule.chunks
    moves = _moves(schedule, step - 1)
    sent, received = (
        np.bincount(end, moves[3], n + schedule.helpers)[:n] * each for end in moves[:2]
    )
    part_sent, part_received = _so_far(schedule, step, rank)
    return Grouped(
        words.name(schedule), said(words.purpose(schedule)), _told(schedule, step, moves),
        n, schedule.helpers, schedule.steps, step, size, _groups(schedule),
        _flows(schedule, moves, each), float(sent.max()), float(received.max()), rank,
        *_part(moves, rank), part_sent * each, part_received * each,
        card_of(chosen, n, size, params),
    )  # fmt: skip


@lru_cache(maxsize=2)
def built(chosen: Algorithm, n: int, root: int, params: tuple[tuple[str, Any], ...]) -> Schedule:
    """An algorithm's schedule with its rounds listed, unless they have too many moves."""
    if chosen.dense and n > DENSE:
        raise RoundelayError(
            f"{chosen.collective}/{chosen.name} over {n:,} ranks has more than {n:,} * {n - 1:,} "
            f"moves; expected at most {DENSE:,} ranks of an algorithm in which each rank has to "
            "do with each other"
        )
    for name, value in params:
        if name in MANY and isinstance(value, int) and n * value > PARTS:
            raise RoundelayError(
                f"{name} = {value:,} over {n:,} ranks; expected {PARTS // n:,} at most"
            )
    schedule = chosen(n, root, **dict(params))
    rounds, count = [], 0
    for r in schedule:
        rounds.append(r)
        count += len(r.src)
        if count > MOVES:
            raise RoundelayError(f"{schedule!r} lists more than {MOVES:,} moves; try fewer ranks")
    # Listed, so that a step of a lazy schedule is found without making all rounds again.
    return Schedule(
        schedule.collective, n, schedule.chunks, tuple(rounds), schedule.helpers, schedule.root,
        schedule.owner, schedule.name, schedule.params,
    )  # fmt: skip


def _active(r: Round, at: int) -> tuple[Ints, Ints]:
    """The moves of a round that are under way at a step of the schedule, and their repetition."""
    repetition = np.broadcast_to(at - r.at - np.asarray(r.start, np.int64), r.src.shape)
    some = np.flatnonzero((repetition >= 0) & (repetition < r.times) & (r.src != r.dst))
    return some, repetition[some]


def _moves(schedule: Schedule, at: int) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Source, destination, first piece, number of pieces and kind of every move of a step."""
    found = [np.empty((5, 0), np.int64)]
    for r in schedule:
        if not r.at <= at < r.end:
            continue
        some, repetition = _active(r, at)
        first = r.ids(schedule.chunks, some, repetition, 0) * r.unit
        count, op = (
            np.broadcast_to(np.asarray(v, np.int64), r.src.shape)[some] for v in (r.count, r.op)
        )
        found.append(np.stack([r.src[some], r.dst[some], first, count * r.unit, op]))
    src, dst, first, count, op = np.concatenate(found, axis=1)
    return src, dst, first, count, op


def _width(n: int) -> int:
    """Ranks of a group."""
    return -(-n // GROUPS)


def _groups(schedule: Schedule) -> list[tuple[int, int]]:
    n, width = schedule.ranks, _width(schedule.ranks)
    found = [(first, min(first + width, n) - 1) for first in range(0, n, width)]
    return [*found, (n, n + schedule.helpers - 1)] if schedule.helpers else found


def _flows(schedule: Schedule, moves: tuple[Ints, ...], each: float) -> list[Flow]:
    n, width, count = schedule.ranks, _width(schedule.ranks), len(_groups(schedule))
    src, dst = (np.where(end < n, end // width, count - 1) for end in moves[:2])
    pair = src * count + dst
    messages = np.bincount(pair, minlength=count**2)
    carried = np.bincount(pair, moves[3], count**2) * each
    added = np.bincount(pair, moves[3] * (moves[4] == REDUCE), count**2) * each
    return [
        Flow(int(p) // count, int(p) % count, int(messages[p]), float(carried[p]), float(added[p]))
        for p in np.flatnonzero(messages)
    ]


def _part(moves: tuple[Ints, ...], rank: int) -> tuple[list[tuple[Any, ...]], int]:
    mine = np.flatnonzero((moves[0] == rank) | (moves[1] == rank))
    rows = zip(*(column[mine[:ROWS]].tolist() for column in moves), strict=True)
    return [(*row[:4], row[4] == REDUCE) for row in rows], len(mine)


def _so_far(schedule: Schedule, steps: int, rank: int) -> tuple[int, int]:
    """Pieces that a rank has sent, and received, before step `steps` (from 0)."""
    totals = []
    for side in ("src", "dst"):
        total = 0
        for r in schedule:
            mine = np.flatnonzero((getattr(r, side) == rank) & (r.src != r.dst))
            start, count = (
                np.broadcast_to(np.asarray(v, np.int64), r.src.shape)[mine]
                for v in (r.start, r.count)
            )
            done = np.clip(steps - r.at - start, 0, r.times)
            total += int((done * count).sum()) * r.unit
        totals.append(total)
    return totals[0], totals[1]


def _told(schedule: Schedule, step: int, moves: tuple[Ints, ...]) -> Said:
    """What happens; whether a piece is finished is not known here, so nothing is said of it."""
    if not step or moves[3].sum() > SPOKEN:
        return {}
    listed = [
        Move(src, dst, list(range(first, first + count)), op == REDUCE)
        for src, dst, first, count, op in zip(*(c.tolist() for c in moves), strict=True)
    ]
    return said(what_happens(schedule, listed, None))
