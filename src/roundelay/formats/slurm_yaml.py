"""Slurm's topology.yaml: several topologies by name (Slurm 25.05's manual page and later)."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ..errors import RoundelayError
from ..i18n import message
from .fabric import Cable, Fabric
from .hostlist import hosts
from .note import Note
from .plain import text_of

_KINDS: Final = {"tree": ("switches", "switch"), "block": ("blocks", "block"),
                 "ring": ("rings", "ring")}  # fmt: skip


def read_topology_yaml(data: bytes, wanted: str = "") -> Fabric:
    """The switches, blocks or rings of one topology of a topology.yaml.

    Args:
        data: the file.
        wanted: the topology; "" for the first that is the cluster's default, else the first.

    Raises:
        RoundelayError: no such topology, or one of no kind that is understood.
    """
    found = _listed(data)
    names = [str(one.get("topology", "")) for one in found]
    if wanted and wanted not in names:
        raise RoundelayError(f"no topology {wanted!r}; expected one of {', '.join(names)}")
    default = (one for one in found if one.get("cluster_default"))
    chosen = found[names.index(wanted)] if wanted else next(default, found[0])
    name = chosen.get("topology", "")
    for kind, keys in _KINDS.items():
        if kind in chosen:
            try:
                fabric = _fabric(kind, chosen[kind], *keys)
            except RoundelayError as error:
                raise RoundelayError(f"topology {name}: {error}") from None
            return fabric if len(found) == 1 else _told(fabric, name, names)
    raise RoundelayError(
        f"topology {name} has {', '.join(sorted(map(str, chosen)))}; expected "
        f"{', '.join(_KINDS)}: nothing else says how nodes are joined"
    )


def _told(fabric: Fabric, name: str, names: list[str]) -> Fabric:
    others = ", ".join(n for n in names if n != name)
    what = message("topology {name} is taken; left out: {others}", name=name, others=others)
    return replace(fabric, notes=(*fabric.notes, Note(0, what)))


def _listed(data: bytes) -> list[dict[str, Any]]:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise RoundelayError(
            "reading topology.yaml needs PyYAML: pip install 'roundelay[yaml]', "
            "or give the output of `scontrol show topology`"
        ) from None
    try:
        tree = yaml.safe_load(text_of(data))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise RoundelayError(f"no YAML: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(tree, list) or not tree or not all(isinstance(one, dict) for one in tree):
        raise RoundelayError("no list of topologies; expected Slurm's topology.yaml, which begins "
                             "with such as `- topology: main`")  # fmt: skip
    return tree


def _fabric(kind: str, body: Any, many: str, one: str) -> Fabric:
    items = body.get(many) if isinstance(body, Mapping) else None
    if not isinstance(items, list) or not items:
        raise RoundelayError(f"{kind} without {many}; expected a list of them")
    own: dict[str, tuple[str, ...]] = {}
    below: dict[str, tuple[str, ...]] = {}
    for item in items:
        if not isinstance(item, Mapping) or not isinstance(item.get(one), str):
            raise RoundelayError(f"{many}: {str(item)[:80]}; expected `{one}: NAME`")
        name = item[one]
        if name in own:
            raise RoundelayError(f"{one} {name} stands there twice")
        own[name] = hosts(str(item.get("nodes") or ""))
        below[name] = hosts(str(item.get("children") or ""))
    sizes = body.get("block_sizes") or []
    if not isinstance(sizes, list) or not all(isinstance(n, int) and n > 0 for n in sizes):
        raise RoundelayError(f"block_sizes: {str(sizes)[:80]}; expected numbers of nodes")
    cables = tuple(Cable(name, low) for name, lows in below.items() for low in lows)
    unlisted = tuple(dict.fromkeys(c.b for c in cables if c.b not in own))
    return Fabric("slurm", kind, {name: name for name in own}, own, cables,
                  block_sizes=tuple(sizes), unlisted=unlisted)  # fmt: skip
