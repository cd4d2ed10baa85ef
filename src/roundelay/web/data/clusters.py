"""Clocks of algorithms on the clusters that may be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from ...algorithms import Algorithm, find
from ...errors import RoundelayError
from ...simulate import Clock
from ...simulate.candidates import fitted
from ...topology import Cluster
from .grouped import built

DENSE: Final = 256
"""Cards of an algorithm in which each card has to do with each other."""


def clock_of(
    collective: str, algorithm: str, n: int | None, params: Mapping[str, Any], root: int,
    where: Cluster,
) -> tuple[Algorithm, Clock]:  # fmt: skip
    """An algorithm, and its clock on a cluster.

    Args:
        collective: its name.
        algorithm: its name.
        n: cards that take part; None: all.
        params: of the algorithm; a group is a node where nothing is said.
        root: of a rooted collective.
        where: the cluster.

    Raises:
        RoundelayError: nothing of that name, or too many cards or moves.
    """
    chosen = find(collective, algorithm)
    n = where.size if n is None else n
    if n < 2 or n > where.size:
        raise RoundelayError(f"n = {n}; expected 2 to {where.size:,}, the cards of {where.name}")
    if chosen.dense and n > DENSE:
        raise RoundelayError(
            f"{chosen.collective}/{chosen.name} over {n:,} cards has more than {n:,} * {n - 1:,} "
            f"moves; expected at most {DENSE} cards of an algorithm in which each card has to do "
            "with each other"
        )
    return chosen, _clock(chosen, n, tuple(fitted(chosen, params, where, n).items()), root, where)


@lru_cache(maxsize=4)
def _clock(
    chosen: Algorithm, n: int, params: tuple[tuple[str, Any], ...], root: int, where: Cluster
) -> Clock:
    return Clock(built(chosen, n, root, params), where)
