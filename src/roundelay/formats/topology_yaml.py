"""Slurm's topology.yaml: trees, blocks, rings, tori and flat networks (Slurm 26.11's manual)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any, Final

from ..errors import RoundelayError
from ..i18n import message
from .fabric import Cable, Fabric
from .hostlist import Lists
from .note import Note
from .yaml_nodes import Yaml, read_yaml

KINDS: Final = ("tree", "block", "ring", "flat", "torus3d")


def read_topology_yaml(data: bytes) -> tuple[Fabric, ...]:
    """The topologies of a topology.yaml, in its order.

    Raises:
        RoundelayError: it is no such file, or a list of hosts is not sound; PyYAML is missing.
    """
    yaml = read_yaml(data)
    found = [entry for document in yaml.documents if isinstance(document, list)
             for entry in document if isinstance(entry, dict) and "topology" in entry]  # fmt: skip
    if not found:
        raise RoundelayError("no topology; expected a topology.yaml of Slurm: a list with entries "
                             "such as {topology: name, tree: {switches: [...]}}")  # fmt: skip
    return tuple(_one(yaml, entry) for entry in found)


def topology_named(fabrics: Sequence[Fabric], name: str) -> Fabric:
    """The topology of a name; without one the cluster's default, else the first.

    Raises:
        RoundelayError: there is none of this name.
    """
    if not name:
        return next((fabric for fabric in fabrics if fabric.default), fabrics[0])
    for fabric in fabrics:
        if fabric.name == name:
            return fabric
    known = ", ".join(fabric.name for fabric in fabrics)
    raise RoundelayError(f"no topology {name!r}; the file has {known}")


def _one(yaml: Yaml, entry: Mapping[str, Any]) -> Fabric:
    line = yaml.line(entry)
    kinds = [kind for kind in KINDS if kind in entry]
    notes = [Note(line, message("not understood, and left out: {name}", name=key[:80]))
             for key in entry if key not in (*KINDS, "topology", "cluster_default")]  # fmt: skip
    if not kinds:
        raise RoundelayError(f"line {line}: topology {entry['topology']!r:.80} is of no kind; "
                             f"expected one of {', '.join(KINDS)}")  # fmt: skip
    if len(kinds) > 1:
        notes.append(Note(line, message("more than one kind: {kinds}", kinds=", ".join(kinds))))
    kind, body = kinds[0], entry[kinds[0]]
    listed = {"tree": ("switches", "switch"), "block": ("blocks", "block"),
              "ring": ("rings", "ring"), "torus3d": ("toruses", "name")}  # fmt: skip
    switches: dict[str, str] = {}
    own: dict[str, tuple[str, ...]] = {}
    lines: dict[str, int] = {}
    cables: list[Cable] = []
    lists = Lists()
    for item in _items(body, listed[kind][0]) if kind in listed else ():
        name, at = str(item.get(listed[kind][1], ""))[:200], yaml.line(item)
        if not name or name in switches:
            what = message("{name} stands there twice; the first one counts", name=name)
            notes.append(Note(at, what))
            continue
        switches[name], lines[name] = name, at
        own[name] = _hosts(lists, item.get("nodes", ""), at) + tuple(_regions(lists, item, at))
        cables += [Cable(name, low) for low in _hosts(lists, item.get("children", ""), at)]
        if kind == "torus3d":
            _check_torus(item, own[name], at, notes)
    unlisted = tuple(dict.fromkeys(c.b for c in cables if c.b not in switches))
    sizes = body.get("block_sizes") if isinstance(body, dict) else None
    return Fabric(
        "slurm", "torus" if kind == "torus3d" else kind, switches, own, tuple(cables),
        block_sizes=tuple(int(n) for n in sizes if str(n).isdecimal() and len(str(n)) < 10)
        if isinstance(sizes, list) else (),
        unlisted=unlisted, lines=lines, notes=tuple(notes), name=str(entry["topology"])[:200],
        default=str(entry.get("cluster_default")).lower() in ("true", "yes"),
    )  # fmt: skip


def _items(body: Any, name: str) -> Iterator[dict[str, Any]]:
    listed = body.get(name) if isinstance(body, dict) else None
    for item in listed if isinstance(listed, list) else ():
        if isinstance(item, dict):
            yield item


def _regions(lists: Lists, item: Mapping[str, Any], line: int) -> Iterator[str]:
    for region in _items(item, "regions"):
        yield from _hosts(lists, region.get("nodes", ""), line)


def _check_torus(
    item: Mapping[str, Any], own: tuple[str, ...], line: int, notes: list[Note]
) -> None:
    """Whether as many nodes are named as the dimensions have room for."""
    dims = item.get("dims")
    sizes = [str(dims.get(axis, "")) for axis in "xyz"] if isinstance(dims, dict) else []
    if len(sizes) == 3 and all(size.isdecimal() and len(size) < 7 for size in sizes):
        places = prod(map(int, sizes))
        if places != len(own):
            what = message("a torus of {places} places with {count:node|nodes}", places=places,
                           count=len(own))  # fmt: skip
            notes.append(Note(line, what))


def _hosts(lists: Lists, text: Any, line: int) -> tuple[str, ...]:
    """The names in a list of hosts, or in a YAML list of such."""
    parts = text if isinstance(text, list) else [text]
    return tuple(name for part in parts if isinstance(part, str)
                 for name in lists.read(part, line))  # fmt: skip
