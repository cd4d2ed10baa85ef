"""Volcano's HyperNodes: domains of the network by tier, and what jobs ask of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..errors import RoundelayError
from .yaml_nodes import read_yaml


@dataclass(frozen=True)
class HyperNode:
    """A domain: its tier (1 is the nearest), members by name, how many are named by a pattern."""

    name: str
    tier: int | None
    nodes: tuple[str, ...]
    below: tuple[str, ...]
    patterns: int
    line: int


@dataclass(frozen=True)
class TierAsked:
    """What a job asks: "hard" or "soft", and the highest tier that it may span."""

    name: str
    mode: str
    tier: int | None
    line: int


@dataclass(frozen=True)
class HyperNodes:
    """All of a file."""

    domains: tuple[HyperNode, ...]
    jobs: tuple[TierAsked, ...]


def read_hypernodes(data: bytes) -> HyperNodes:
    """The HyperNodes and jobs of a file.

    Raises:
        RoundelayError: there is neither; PyYAML is missing.
    """
    yaml = read_yaml(data)
    documents = [d for d in yaml.documents if isinstance(d, dict)]
    listed = [item for d in documents for item in _items(d)]
    domains = tuple(_domain(d, yaml.line(d)) for d in listed if d.get("kind") == "HyperNode")
    jobs = tuple(
        TierAsked(_name(d), str(asked.get("mode", "hard"))[:20],
                  _tier(asked.get("highestTierAllowed")), yaml.line(asked))
        for d in listed if isinstance(spec := d.get("spec"), dict)
        and isinstance(asked := spec.get("networkTopology"), dict)
    )  # fmt: skip
    if not domains and not jobs:
        raise RoundelayError("no HyperNode of Volcano, and no job with networkTopology")
    return HyperNodes(domains, jobs)


def _items(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The document, or those of a list (kubectl get -o yaml)."""
    items = document.get("items")
    for item in items if isinstance(items, list) else [document]:
        if isinstance(item, dict):
            yield item


def _name(document: dict[str, Any]) -> str:
    meta = document.get("metadata")
    return str(meta.get("name") or "")[:200] if isinstance(meta, dict) else ""


def _tier(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isdecimal() and len(text) < 4 else None


def _domain(document: dict[str, Any], line: int) -> HyperNode:
    spec = document.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    found: dict[str, list[str]] = {"Node": [], "HyperNode": []}
    patterns = 0
    members = spec.get("members")
    for member in members if isinstance(members, list) else ():
        selector = member.get("selector") if isinstance(member, dict) else None
        exact = selector.get("exactMatch") if isinstance(selector, dict) else None
        name = exact.get("name") if isinstance(exact, dict) else None
        if name is None:
            patterns += 1
        else:
            found.setdefault(str(member.get("type", ""))[:20], []).append(str(name)[:200])
    return HyperNode(_name(document), _tier(spec.get("tier")), tuple(found["Node"]),
                     tuple(found["HyperNode"]), patterns, line)  # fmt: skip
