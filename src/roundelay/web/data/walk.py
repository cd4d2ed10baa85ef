"""A walk along one request through a language model."""

from __future__ import annotations

from typing import Any

from ...collectives import UnknownName
from ..walks import EXAMPLE, Walk, Walks


def walks(walks: Walks) -> list[dict[str, Any]]:
    """Which walks there are."""
    return [
        {"name": name, "ranks": w.ranks, "tokens": w.tokens, "cluster": w.cluster}
        for name, w in walks.items()
    ]


def walk(walks: Walks, name: str = EXAMPLE) -> Walk:
    """One of them.

    Raises:
        UnknownName: there is none of this name.
    """
    if name not in walks:
        raise UnknownName("walk", name, walks)
    return walks[name]
