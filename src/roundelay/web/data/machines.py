"""Clusters that may be asked for: the machines that are known, and those of files."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from ...clusters import cluster, names
from ...collectives import UnknownName
from ...errors import RoundelayError
from ...topology import Cluster
from ..clusters import NO_FILES, Clusters
from .parameters import whole

MOST: Final = 16384
"""Cards of a cluster."""
_TEXT: Final = re.compile(r"([^:]+)(?::(.*))?", re.S)


def offered(clusters: Clusters) -> list[str]:
    """Names that may be asked for, those of files first."""
    return [*clusters, *names()]


@lru_cache(maxsize=64)
def _machine(name: str) -> Cluster:
    return cluster(name)


def cards_of(name: str, clusters: Clusters = NO_FILES) -> int:
    """Cards of a node of a cluster that may be asked for."""
    return (clusters[name] if name in clusters else _machine(name)).cards


def named(text: str, clusters: Clusters = NO_FILES, most: int = MOST) -> Cluster:
    """The cluster of a name, with a number of nodes if it has one, such as "dgx-h100:16".

    Args:
        text: the name.
        clusters: of files, that may be asked for as well.
        most: cards that it may have.

    Raises:
        UnknownName: no such cluster.
        RoundelayError: no such number of nodes, or more cards.
    """
    match = _TEXT.fullmatch(text)
    name, nodes = (match[1], match[2]) if match else (text, None)
    if name not in offered(clusters):
        raise UnknownName("cluster", text, offered(clusters))
    found = clusters[name] if name in clusters else _machine(name)
    if nodes is not None:
        found = found.scaled(whole("nodes", 1, max(1, most // found.cards))(nodes))
    if found.size > most:
        raise RoundelayError(f"{text} has {found.size:,} cards; expected at most {most:,}")
    return found
