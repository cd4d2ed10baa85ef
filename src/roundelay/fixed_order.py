"""Schedules that add up in rank order: the same bits for every size and placement of ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from .algorithms import build
from .collectives import Ints
from .errors import RoundelayError
from .rounds import COPY, REDUCE, Round
from .schedule import Schedule
from .verbs import then

SMALL: Final = 64 << 10
"""Bytes up to which every rank adds up everything; above, a piece each."""


def in_rank_order(collective: str, ranks: int, root: int, small: bool) -> Schedule:
    """The schedule for a collective that adds up.

    Args:
        collective: all_reduce, reduce or reduce_scatter.
        ranks: of the collective.
        root: of a rooted one.
        small: whether every rank adds up everything; else each a piece.
    """
    if collective == "reduce":
        rank = np.arange(ranks if ranks > 1 else 0)
        return Schedule("reduce", ranks, 1, [Round(rank, root, 0, _op(rank))], root=root,
                        name="rank_order")  # fmt: skip
    if collective == "reduce_scatter":
        return reduce_scatter(ranks)
    if small and ranks <= 4096:  # one_shot has n * n moves
        return build("all_reduce/one_shot", ranks)
    return then(reduce_scatter(ranks), build("all_gather/direct", ranks))


def reduce_scatter(ranks: int) -> Schedule:
    """Everybody adds up its piece: a copy from rank 0, then 1, 2, ..., itself included."""
    rank = np.arange(ranks)

    def rounds() -> Iterator[Round]:
        sources = range(ranks if ranks > 1 else 0)
        return (Round(np.full(ranks, s), rank, rank, _op(s), begin=0) for s in sources)

    return Schedule("reduce_scatter", ranks, ranks, rounds, name="rank_order")


def _op(source: int | Ints) -> Ints:
    return np.where(np.equal(source, 0), COPY, REDUCE)


def check(schedule: Schedule, summation: str | None) -> None:
    """Refuse a schedule that adds up in another order.

    Raises:
        RoundelayError: naming what may be used.
    """
    if summation != "rank":
        raise RoundelayError(
            f"{schedule!r} does not add up in rank order (but: {summation}), and the "
            "communicator was made with fixed_order; expected auto, one_shot, or a schedule of "
            "your own of which `verify` says: rank"
        )
