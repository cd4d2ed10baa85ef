"""Slurm's hosts: topology.conf, topology.yaml, or what scontrol prints, in one file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from ...errors import RoundelayError
from ...formats.fabric import Fabric
from ...formats.note import Note
from ...formats.plain import text_of
from ...formats.scontrol import SlurmNode, read_nodes
from ...formats.slurm import read_topology_conf
from ...formats.topology_yaml import read_topology_yaml, topology_named
from ...i18n import Message, message
from ...topology import Cluster
from ..site import Host, Site, oldest, settle

JOINED: Final = ("tree", "block", "ring")
"""Kinds of topologies that say how nodes are joined."""
_SWITCH: Final = re.compile(r"\s*(?:switch|block|ring)(?:name|sizes)\s*=", re.I)


def slurm_site(data: bytes, machine: Cluster, yaml: bool = False, wanted: str = "") -> Site:
    """The hosts of a file.

    Args:
        data: topology.conf, topology.yaml, or the output of ``scontrol show topology``,
            ``scontrol show node``, or both, one behind the other.
        machine: what a node is.
        yaml: whether it is topology.yaml.
        wanted: which topology of a topology.yaml.

    Raises:
        RoundelayError: it is none of these, no single tree, or contradicts itself.
    """
    nodes = [] if yaml else read_nodes(data)
    if yaml:
        fabric: Fabric | None = _chosen(read_topology_yaml(data), wanted)
    elif nodes:
        lines = [line for line in text_of(data).splitlines() if _SWITCH.match(line)]
        fabric = read_topology_conf("\n".join(lines).encode()) if lines else None
    else:
        fabric = read_topology_conf(data)
    notes = [note.what for note in fabric.notes] if fabric else []
    paths = _paths(fabric) if fabric else {node.name: () for node in nodes}
    hosts = list(_hosts(paths, nodes, notes))
    version = oldest(node.version for node in nodes)
    blocks = fabric is not None and fabric.kind != "tree"
    return settle(hosts, machine, "block" if blocks else "tree", version=version, notes=notes)


def _chosen(fabrics: Sequence[Fabric], wanted: str) -> Fabric:
    """The topology to place by, with a note of those that are not."""
    chosen = topology_named(fabrics, wanted)
    if chosen.kind not in JOINED:
        raise RoundelayError(
            f"topology {chosen.name} is {chosen.kind}; expected one of {', '.join(JOINED)}: "
            "nothing else says how nodes are joined"
        )
    if len(fabrics) == 1:
        return chosen
    others = ", ".join(fabric.name for fabric in fabrics if fabric is not chosen)
    what = message("topology {name} is taken; left out: {others}", name=chosen.name, others=others)
    return replace(chosen, notes=(*chosen.notes, Note(0, what)))


def _hosts(
    paths: Mapping[str, tuple[str, ...]], nodes: Sequence[SlurmNode], notes: list[Message]
) -> Iterator[Host]:
    known = {node.name: node for node in nodes}
    for name in known:
        if name not in paths:
            raise RoundelayError(f"{name} hangs on no switch; expected every node of `scontrol "
                                 "show node` in the topology")  # fmt: skip
    for name, path in paths.items():
        node = known.get(name)
        if node is None:
            if known:
                notes.append(message("{name} is no node of `scontrol show node`: left out",
                                     name=name))  # fmt: skip
            yield Host(name, path, free=not known)
            continue
        if not node.free:
            notes.append(message("{name} is {state}: left out", name=name, state=node.state))
        yield Host(name, path, node.cards, node.used, node.free, node.sliced)


def _paths(fabric: Fabric) -> dict[str, tuple[str, ...]]:
    """Each host's switches, from the top to the leaf."""
    above = _above(fabric)
    below = set(above.values())
    found: dict[str, tuple[str, ...]] = {}
    for switch, own in fabric.hosts.items():
        if switch in below or not own:
            continue
        path = _climb(switch, above)
        for host in own:
            if host in found:
                raise RoundelayError(f"{host} hangs on {found[host][-1]} and on {switch}; expected "
                                     "one of them")  # fmt: skip
            found[host] = path
    for switch in below:
        for host in fabric.hosts.get(switch, ()):
            if switch not in found.get(host, ()):
                raise RoundelayError(f"{host} hangs on {switch}, and on no leaf below it; expected "
                                     "nodes on leaves only")  # fmt: skip
    if fabric.kind == "tree":
        _one_tree(found)
        return found
    return _aggregated(found, fabric.block_sizes)


def _above(fabric: Fabric) -> dict[str, str]:
    above: dict[str, str] = {}
    for cable in fabric.cables:
        if cable.b in fabric.unlisted:
            line = (fabric.lines or {}).get(cable.a)
            where = f"line {line}: " if line else ""
            raise RoundelayError(f"{where}{cable.a} leads to {cable.b}, which isn't described; "
                                 "expected a line for every switch")  # fmt: skip
        if above.setdefault(cable.b, cable.a) != cable.a:
            raise RoundelayError(f"{cable.b} hangs on {above[cable.b]} and on {cable.a}; expected "
                                 "one above each switch: Slurm's topology is a tree")  # fmt: skip
    return above


def _climb(switch: str, above: Mapping[str, str]) -> tuple[str, ...]:
    path = [switch]
    while path[0] in above:
        path.insert(0, above[path[0]])
        if path[0] in path[1:]:
            raise RoundelayError(f"{' > '.join(path)}: a switch above itself; expected a tree")
    return tuple(path)


def _one_tree(paths: Mapping[str, tuple[str, ...]]) -> None:
    tops: dict[str, list[str]] = {}
    for host, path in paths.items():
        tops.setdefault(path[0], []).append(host)
    if len(tops) > 1:
        each = ", ".join(f"{top} ({len(own)} nodes, such as {own[0]})" for top, own in tops.items())
        raise RoundelayError(f"{len(tops)} trees that nothing joins: {each}; expected one, as a "
                             "job can't span them. Leave the lines of the others out")  # fmt: skip


def _aggregated(
    paths: dict[str, tuple[str, ...]], sizes: tuple[int, ...]
) -> dict[str, tuple[str, ...]]:
    """Blocks, and above them those that the second size joins, one after another."""
    blocks = list(dict.fromkeys(path[-1] for path in paths.values()))
    if len(sizes) < 2 or sizes[1] % sizes[0] or sizes[1] == sizes[0]:
        return paths
    joined = sizes[1] // sizes[0]
    number = {block: str(i // joined) for i, block in enumerate(blocks)}
    return {host: (number[path[-1]], path[-1]) for host, path in paths.items()}
