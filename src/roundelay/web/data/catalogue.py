"""What there is to choose from: collectives, their algorithms, clusters."""

from __future__ import annotations

from typing import Any

from ...algorithms import algorithms
from ..clusters import NO_FILES, Clusters
from .machines import cards_of, offered


def catalogue(clusters: Clusters = NO_FILES) -> dict[str, Any]:
    """All algorithms by collective, each with its card; clusters, and the cards of their nodes."""
    found: dict[str, list[dict[str, Any]]] = {}
    for a in algorithms():
        entry = {
            "name": a.name,
            "parameters": list(a.parameters),
            "rooted": a.kind.rooted,
            "dense": a.dense,
            "good": a.good,
            "bad": a.bad,
        }
        found.setdefault(a.collective, []).append(entry)
    names = offered(clusters)
    cards = {name: cards_of(name, clusters) for name in names}
    return {"collectives": found, "clusters": names, "cards": cards}
