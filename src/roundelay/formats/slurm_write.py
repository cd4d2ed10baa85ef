"""Slurm's topology.conf and topology.yaml, of what other files say of switches, or of a cluster."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from ..errors import RoundelayError
from ..topology import Cluster
from .fabric import Cable, Fabric
from .hostlist import compressed
from .slurm import NAME

_NO_NAME: Final = re.compile(r"[^\w.-]+")


def write_topology_conf(fabric: Fabric) -> bytes:
    """A topology.conf: a tree, blocks or a ring.

    Raises:
        RoundelayError: no host is known, a host hangs on two switches, or the kind has no place
            there (a torus stands in topology.yaml only).
    """
    fabric = _checked(fabric)
    key = {"tree": "SwitchName", "block": "BlockName", "ring": "RingName"}.get(fabric.kind)
    if key is None:
        raise RoundelayError(f"a {fabric.kind} has no place in topology.conf; write topology.yaml")
    below = _below(fabric)
    lines = []
    for name in fabric.switches:
        parts = [f"{key}={name}"]
        if own := fabric.hosts.get(name):
            parts.append(f"Nodes={_list(fabric, own)}")
        if low := below.get(name):
            parts.append(f"Switches={compressed(low)}")
        lines.append(" ".join(parts))
    if fabric.kind == "block" and fabric.block_sizes:
        lines.append(f"BlockSizes={','.join(map(str, fabric.block_sizes))}")
    return ("\n".join(lines) + "\n").encode()


def write_topology_yaml(fabric: Fabric) -> bytes:
    """A topology.yaml with this one topology, the cluster's default.

    Raises:
        RoundelayError: no host is known, a host hangs on two switches, or it is a torus, whose
            dimensions are not known here.
    """
    fabric = _checked(fabric)
    name = _word(fabric.name or "default")
    lines = [f"- topology: {name}", "  cluster_default: true"]
    kinds = {"tree": ("switches", "switch"), "block": ("blocks", "block"),
             "ring": ("rings", "ring")}  # fmt: skip
    if fabric.kind not in kinds:
        raise RoundelayError(f"a {fabric.kind} cannot be written; expected {', '.join(kinds)}")
    many, one = kinds[fabric.kind]
    lines.append(f"  {fabric.kind}:")
    if fabric.kind == "block" and fabric.block_sizes:
        lines.append(f"    block_sizes: [{', '.join(map(str, fabric.block_sizes))}]")
    lines.append(f"    {many}:")
    below = _below(fabric)
    for switch in fabric.switches:
        lines.append(f"      - {one}: {switch}")
        if low := below.get(switch):
            lines.append(f'        children: "{compressed(low)}"')
        elif own := fabric.hosts.get(switch):
            lines.append(f'        nodes: "{_list(fabric, own)}"')
    return ("\n".join(lines) + "\n").encode()


def _list(fabric: Fabric, own: Iterable[str]) -> str:
    """Names of hosts; in a ring they keep their order."""
    return ",".join(own) if fabric.kind == "ring" else compressed(own)


def _below(fabric: Fabric) -> Mapping[str, list[str]]:
    below: dict[str, list[str]] = defaultdict(list)
    for cable in fabric.cables:
        below[cable.a].append(cable.b)
    return below


def _checked(fabric: Fabric) -> Fabric:
    if fabric.kind == "network":
        fabric = as_tree(fabric)
    if not fabric.all_hosts:
        raise RoundelayError("no host hangs on any switch; there is nothing to place jobs on")
    names = {name: _word(name) for name in fabric.switches}
    seen: dict[str, str] = {}
    for switch, own in fabric.hosts.items():
        for host in own:
            if seen.setdefault(host, switch) != switch:
                raise RoundelayError(f"{host} hangs on {seen[host]} and on {switch}; Slurm wants "
                                     "one switch for each host")  # fmt: skip
    if len(set(names.values())) < len(names):
        raise RoundelayError("two switches have the same name once what Slurm does not take is "
                             "replaced; rename one")  # fmt: skip
    cables = tuple(Cable(names[c.a], names.get(c.b, _word(c.b))) for c in fabric.cables)
    return replace(fabric, switches={n: n for n in names.values()}, cables=cables,
                   hosts={names[s]: own for s, own in fabric.hosts.items()})  # fmt: skip


def _word(name: str) -> str:
    return _NO_NAME.sub("_", name)[:NAME] or "_"


class _Sets:
    """What belongs together (union-find)."""

    def __init__(self, members: Iterable[str]) -> None:
        self.parent = {m: m for m in members}

    def find(self, m: str) -> str:
        while self.parent[m] != m:
            self.parent[m] = self.parent[self.parent[m]]
            m = self.parent[m]
        return m

    def join(self, a: str, b: str) -> None:
        self.parent[self.find(b)] = self.find(a)


def as_tree(fabric: Fabric) -> Fabric:
    """A network as Slurm's tree: switches that share hosts are one, and so are upper ones.

    Hosts are called by the first word of what the tools call them: "node1 mlx5_0" is node1.
    Switches of a level that reach one another through switches up to that level are one group.

    Raises:
        RoundelayError: no host hangs on any switch.
    """
    level = _levels(fabric)
    leaves = [name for name in fabric.switches if level.get(name) == 0]
    groups = _Sets(leaves)
    first: dict[str, str] = {}
    for leaf in leaves:
        for host in fabric.hosts[leaf]:
            groups.join(first.setdefault(host.split()[0] if host.split() else host, leaf), leaf)
    hosts: dict[str, tuple[str, ...]] = {}
    for host, leaf in first.items():
        group = fabric.switches[groups.find(leaf)]
        hosts[group] = (*hosts.get(group, ()), host)
    below = {groups.find(leaf): fabric.switches[groups.find(leaf)] for leaf in leaves}
    cables: list[Cable] = []
    switches = dict.fromkeys(hosts)
    joined = _Sets(fabric.switches)
    for leaf in leaves:
        joined.join(groups.find(leaf), leaf)
    for height in range(1, max(level.values(), default=0) + 1):
        for cable in fabric.cables:
            if all(level.get(end, height + 1) <= height for end in (cable.a, cable.b)):
                joined.join(cable.a, cable.b)
        below = dict(_merged(fabric, level, height, joined, below, switches, cables))
    return Fabric("slurm", "tree", {name: name for name in switches},
                  {name: hosts.get(name, ()) for name in switches}, tuple(cables))  # fmt: skip


def _merged(
    fabric: Fabric, level: Mapping[str, int], height: int, joined: _Sets, below: Mapping[str, str],
    switches: dict[str, None], cables: list[Cable],
) -> Iterator[tuple[str, str]]:  # fmt: skip
    """Groups of the level below that became one, with the name of the switch that joins them."""
    together: dict[str, list[str]] = defaultdict(list)
    for member, name in below.items():
        together[joined.find(member)].append(name)
    for root, names in together.items():
        if len(names) == 1:
            yield root, names[0]
            continue
        upper = next(fabric.switches[s] for s in fabric.switches
                     if level.get(s) == height and joined.find(s) == root)  # fmt: skip
        switches[upper] = None
        cables += [Cable(upper, name) for name in names]
        yield root, upper


def _levels(fabric: Fabric) -> dict[str, int]:
    """Steps of each switch from those that hosts hang on."""
    near: dict[str, list[str]] = defaultdict(list)
    for cable in fabric.cables:
        near[cable.a].append(cable.b)
        near[cable.b].append(cable.a)
    level = {name: 0 for name, own in fabric.hosts.items() if own}
    edge = list(level)
    if not edge:
        raise RoundelayError("no host hangs on any switch; there is nothing to place jobs on")
    while edge:
        ends = {end for name in edge for end in near[name]
                if end not in level and end in fabric.switches}  # fmt: skip
        level |= dict.fromkeys(ends, level[edge[0]] + 1)
        edge = sorted(ends)
    return level


def tree_of(cluster: Cluster, name: str = "node") -> Fabric:
    """A cluster's switches as a tree, its nodes called node1, node2, ...

    Leaf switches of a rail fabric are one for all rails, since a node hangs on all of them.

    Raises:
        RoundelayError: its fabric is no tree of switches.
    """
    fabric, nodes = cluster.fabric, cluster.nodes
    if fabric.kind == "torus":
        raise RoundelayError(f"{cluster.name} is a torus; expected switches")
    names = [f"{name}{i + 1}" for i in range(nodes)]
    per_leaf = fabric.nodes_per_leaf or nodes
    per_group = fabric.nodes_per_pod or fabric.nodes_per_group or nodes
    leaves = {f"leaf{i + 1}": tuple(names[at : at + per_leaf])
              for i, at in enumerate(range(0, nodes, per_leaf))}  # fmt: skip
    cables: list[Cable] = []
    upper: list[str] = []
    each = max(1, per_group // per_leaf)
    low = list(leaves)
    if len(low) > 1:
        for i, at in enumerate(range(0, len(low), each)):
            upper.append(f"spine{i + 1}")
            cables += [Cable(upper[-1], leaf) for leaf in low[at : at + each]]
    top = ["core"] if len(upper) > 1 else []
    cables += [Cable("core", spine) for spine in upper if top]
    switches = [*low, *upper, *top]
    return Fabric("cluster", "tree", {s: s for s in switches},
                  {s: leaves.get(s, ()) for s in switches}, tuple(cables))  # fmt: skip
