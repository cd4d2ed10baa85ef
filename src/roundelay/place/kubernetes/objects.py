"""Parts of objects of Kubernetes, which may be anything, as others wrote them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def at(tree: Any, *keys: str) -> Any:
    """What stands under these keys; None where nothing does."""
    for key in keys:
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return tree


def listed(tree: Any, *keys: str) -> list[Any]:
    """The list that stands under these keys; an empty one where none does."""
    found = at(tree, *keys)
    return found if isinstance(found, list) else []
