"""Execution traces that a tool has put together in one JSON object, such as one of each NPU."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from ...errors import RoundelayError
from .graph import Graph
from .reader import read_chakra

DEEP: Final = 8
MOST: Final = 4096
"""Traces."""


def gathered_graphs(value: Any) -> list[Graph]:
    """The traces in an object: every list of nodes whose types are Chakra's."""
    found: list[Graph] = []
    for nodes in _lists(value, 0):
        if len(found) == MOST:
            break
        try:
            found.append(read_chakra(json.dumps({"workload_graph": nodes}).encode()))
        except RoundelayError:
            continue
    return found


def _lists(value: Any, depth: int) -> Iterator[list[Any]]:
    if depth > DEEP:
        return
    if isinstance(value, dict):
        for inner in value.values():
            yield from _lists(inner, depth + 1)
    elif isinstance(value, list):
        if any(_is_node(item) for item in value[:8]):
            yield value
            return
        for inner in value:
            yield from _lists(inner, depth + 1)


def _is_node(item: Any) -> bool:
    if not isinstance(item, dict) or "id" not in item:
        return False
    kinds = [item[key] for key in ("type", "node_type", "nodeType") if key in item]
    return any(isinstance(kind, str) and kind.endswith("_NODE") for kind in kinds)
