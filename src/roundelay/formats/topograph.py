"""Topograph's model of a data centre: switches below switches, and blocks of nodes on them.

The form is that of tests/models in github.com/NVIDIA/topograph: `switches` by name with the
switches below them, and `blocks` (or `nodes` of a switch) with lists of hosts.
"""

from __future__ import annotations

from typing import Any, Final

from ..errors import RoundelayError
from ..i18n import message
from .fabric import Cable, Fabric
from .hostlist import Lists
from .note import Note
from .yaml_nodes import read_yaml

DOMAIN: Final = "domain"
"""In the name of the annotation that tells which nodes share NVLink."""


def read_topograph(data: bytes) -> Fabric:
    """The switches and hosts of a model. Domains of NVLink become its block sizes.

    Raises:
        RoundelayError: it is no such file, or a list of hosts is not sound; PyYAML is missing.
    """
    yaml = read_yaml(data)
    document = next((d for d in map(_by_name, yaml.documents) if d is not None), None)
    if document is None:
        raise RoundelayError("no switches by name; expected a model of topograph")
    notes: list[Note] = []
    switches: dict[str, str] = {}
    lines: dict[str, int] = {}
    own: dict[str, list[str]] = {}
    cables: list[Cable] = []
    lists = Lists()
    for name, body in document["switches"].items():
        switches[name], lines[name] = name, yaml.line(body)
        fields = body if isinstance(body, dict) else {}
        cables += [Cable(name, str(low)) for low in _listed(fields.get("switches"))]
        own[name] = _hosts(lists, fields.get("nodes"), lines[name])
    domains: dict[str, list[str]] = {}
    loose: list[str] = []
    placed = any(b.get("switch") for b in _listed(document.get("blocks")) if isinstance(b, dict))
    for block in (b for b in _listed(document.get("blocks")) if isinstance(b, dict)):
        at = yaml.line(block)
        name, found = str(block.get("switch", ""))[:200], _hosts(lists, block.get("nodes"), at)
        if domain := _domain(block):
            domains.setdefault(domain, []).extend(found)
        if placed and not name:
            loose += found
            continue
        if name not in switches:
            switches[name], lines[name] = name or f"block {len(switches)}", at
        own.setdefault(name, []).extend(found)
    if not any(own.values()):
        notes.append(Note(0, message("no nodes stand in the file")))
    unlisted = tuple(dict.fromkeys(c.b for c in cables if c.b not in switches))
    return Fabric(
        "topograph", "tree", switches, {name: tuple(found) for name, found in own.items()},
        tuple(cables), block_sizes=_sizes(tuple(map(len, domains.values()))),
        unlisted=unlisted, lines=lines,
        notes=tuple(notes), loose=tuple(loose),
        domains={name: tuple(own) for name, own in domains.items()},
    )  # fmt: skip


def _by_name(document: Any) -> dict[str, Any] | None:
    """A model with its switches by name; older ones list them, with blocks of their own names."""
    whole: dict[str, Any] = document if isinstance(document, dict) else {}
    switches = whole.get("switches")
    if isinstance(switches, dict):
        return whole
    if not isinstance(switches, list):
        return None
    named = {str(s.get("name", ""))[:200]: s for s in switches if isinstance(s, dict)}
    on = {str(block): name for name, s in named.items()
          for block in _listed(s.get("capacity_blocks"))}  # fmt: skip
    blocks = [
        {**block, "switch": on.get(str(block.get("name", "")), "")}
        for block in _listed(whole.get("capacity_blocks")) if isinstance(block, dict)
    ]  # fmt: skip
    return {**whole, "switches": named, "blocks": blocks}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _sizes(domains: tuple[int, ...]) -> tuple[int, ...]:
    """Sizes of blocks for Slurm: that of a domain, and twice it again and again up to all."""
    size, total = min(filter(None, domains), default=0), sum(domains)
    if not size:
        return ()
    found = [size]
    while found[-1] * 2 <= total:
        found.append(found[-1] * 2)
    return tuple(found)


def _domain(block: dict[str, Any]) -> str:
    if block.get("nvlink"):  # of older models
        return str(block["nvlink"])
    for table in ("annotations", "labels"):
        inside = block.get(table)
        for key, value in inside.items() if isinstance(inside, dict) else ():
            if DOMAIN in key or "nvlink" in key.lower():
                return str(value)
    return ""


def _hosts(lists: Lists, value: Any, line: int) -> list[str]:
    """Names in a list of lists of hosts, or of nodes by name."""
    parts = [value] if isinstance(value, str) else value or ()
    return [name for part in parts if isinstance(part, str) for name in lists.read(part, line)]
