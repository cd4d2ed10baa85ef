"""Clusters that the page may time on, and clocks on them.

They are the machines known by name, and the files that were given when the page was started or
written. A request names one; it never names a file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from ...algorithms import Algorithm, find
from ...clusters import cluster, names
from ...collectives import UnknownName
from ...errors import RoundelayError
from ...simulate import Clock
from ...simulate.candidates import fitted
from ...topology import Cluster
from .grouped import MOST, built
from .parameters import whole

DENSE: Final = 256
"""Cards of an algorithm in which each card has to do with each other."""
_GIVEN: Final[dict[str, Cluster]] = {}
_TEXT: Final = re.compile(r"([^:]+)(?::(.*))?", re.S)


def give(path: Path) -> str:
    """Let a cluster file be asked for, by the name that stands in it.

    Raises:
        RoundelayError: no such file, a file that describes no possible cluster, or a name that is
            one of a known machine.
    """
    found = cluster(str(path.absolute()))
    if found.name in names() or ":" in found.name:
        raise RoundelayError(
            f"{path}: name = {found.name!r}; expected one without a colon that no known machine "
            "has, such as 'mine'"
        )
    _GIVEN[found.name] = found
    return found.name


def known() -> list[str]:
    """Names that may be asked for, those of files first."""
    return [*_GIVEN, *names()]


@lru_cache(maxsize=64)
def _machine(name: str) -> Cluster:
    return cluster(name)


def named(text: str, most: int = MOST) -> Cluster:
    """The cluster of a name, with a number of nodes if it has one, such as "dgx-h100:16".

    Args:
        text: the name.
        most: cards that it may have.

    Raises:
        UnknownName: no such cluster.
        RoundelayError: no such number of nodes, or more cards.
    """
    match = _TEXT.fullmatch(text)
    name, nodes = (match[1], match[2]) if match else (text, None)
    if name not in _GIVEN and name not in names():
        raise UnknownName("cluster", text, known())
    found = _GIVEN[name] if name in _GIVEN else _machine(name)
    if nodes is not None:
        found = found.scaled(whole("nodes", 1, max(1, most // found.cards))(nodes))
    if found.size > most:
        raise RoundelayError(f"{text} has {found.size:,} cards; expected at most {most:,}")
    return found


def clock_of(
    collective: str, algorithm: str, n: int | None, params: Mapping[str, Any], root: int, text: str
) -> tuple[Algorithm, Clock]:
    """An algorithm, and its clock on a cluster.

    Args:
        collective: its name.
        algorithm: its name.
        n: cards that take part; None: all.
        params: of the algorithm; a group is a node where nothing is said.
        root: of a rooted collective.
        text: as `named` takes it.

    Raises:
        RoundelayError: nothing of that name, or too many cards or moves.
    """
    chosen, where = find(collective, algorithm), named(text)
    n = where.size if n is None else n
    if n < 2 or n > where.size:
        raise RoundelayError(f"n = {n}; expected 2 to {where.size:,}, the cards of {text}")
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
