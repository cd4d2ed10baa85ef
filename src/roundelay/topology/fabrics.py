"""The links between nodes, and the ways over them, on arrays of (node, port).

A port is what a card has of network cards: one that cards share, one of its own, or several that
work as one. A way is a list of rows of link ids, as inside a node.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import RoundelayError
from .collisions import collision_factor
from .links import Links, Register, Rows
from .parts import Fabric, Ints, Nics


class Ends(NamedTuple):
    """What a fabric joins.

    Attributes:
        nodes: how many.
        ports: of each node.
        cables: network cards of a port.
        nics: the network cards.
    """

    nodes: int
    ports: int
    cables: int
    nics: Nics


@dataclass(frozen=True)
class Level:
    """The switches of one level; those that stand above the same ports count as one.

    Attributes:
        name: such as "leaf".
        nodes: nodes below one.
        groups: groups of so many nodes.
        parts: switches of a group: one a plane, or one a port (rail).
    """

    name: str
    nodes: int
    groups: int
    parts: int

    @property
    def count(self) -> int:
        """How many switches."""
        return self.groups * self.parts

    def above(self, node: Any, port: Any) -> Any:
        """The number, within the level, of the switch above a port."""
        return node // self.nodes * self.parts + port % self.parts

    def below(self, switch: Any) -> tuple[Any, Any]:
        """The first node and the first port below a switch."""
        return switch // self.parts * self.nodes, switch % self.parts


class Tree:
    """Levels of switches; each level but the top has a bundle of links up and one down.

    A bundle's rate is that of the links below it over the level's oversubscription. Where flows are
    hashed it is less by their collisions; see `collision_factor`.
    """

    def __init__(self, fabric: Fabric, ends: Ends, register: Register) -> None:
        self.fabric, self.ends = fabric, ends
        self.levels = _levels(fabric, ends)
        self.out, self.into = register.both_ways(
            "NIC", ends.nics.medium, ends.nics.rate * ends.cables, (ends.nodes, ends.ports),
            "NIC {1} of node {0}", cables=ends.cables,
        )  # fmt: skip
        self.up: list[Links] = []
        self.down: list[Links] = []
        cables = float(ends.ports * ends.cables)  # of a node
        for level, taper in zip(self.levels[:-1], fabric.tapers(), strict=False):
            cables /= taper
            whole, rate = self.bundle(cables * level.nodes / level.parts, taper)
            up, down = register.both_ways(
                level.name, ends.nics.medium, rate, (level.groups, level.parts),
                f"{level.name} {{1}} of group {{0}}", ("up", "down"), whole,
            )  # fmt: skip
            self.up.append(up)
            self.down.append(down)

    def bundle(self, cables: float, taper: float) -> tuple[int, float]:
        """Whole cables of a bundle, and its rate one way, where so much more is below it."""
        whole = max(1, round(cables))
        rate = cables * self.ends.nics.rate
        if self.fabric.flows:
            rate *= collision_factor(whole, whole * taper * self.fabric.flows)
        return whole, rate

    def bisection(self) -> float:
        """Rate one way between halves of the groups of the level that has the least."""
        halves = [
            level.groups // 2 * level.parts * up.rate
            for level, up in zip(self.levels, self.up, strict=False)
            if level.groups > 1
        ]
        return min(halves, default=np.inf)

    def joined(self, node_a: Any, port_a: Any, node_b: Any, port_b: Any) -> Any:
        """The lowest level with one switch above both ports; as many as levels where none has."""
        found = np.full(np.broadcast(node_a, port_a, node_b, port_b).shape, len(self.levels))
        for height in reversed(range(len(self.levels))):
            level = self.levels[height]
            same = level.above(node_a, port_a) == level.above(node_b, port_b)
            found = np.where(same, height, found)
        return found

    def between(
        self, node_a: Ints, port_a: Ints, node_b: Ints, port_b: Ints
    ) -> tuple[Rows, Ints | int]:
        """From port to port of one plane: the rows, and the switches passed after the first."""
        top = self.joined(node_a, port_a, node_b, port_b)
        rows = [self.out.at(node_a, port_a)]
        rows += self.climb(node_a, port_a, 0, top, self.up)
        rows += self.climb(node_b, port_b, 0, top, self.down)[::-1]
        return [*rows, self.into.at(node_b, port_b)], 2 * top

    def climb(self, node: Ints, port: Ints, low: Any, high: Any, links: list[Links]) -> Rows:
        """The links of one way between the levels low and high above a port, lowest first."""
        rows: Rows = []
        for height, (level, bundle) in enumerate(zip(self.levels, links, strict=False)):
            used = (low <= height) & (height < high)
            ids = bundle.at(node // level.nodes, port % level.parts)
            rows.append(np.where(used, ids, -1))
        return rows


class Dragonfly(Tree):
    """Groups, each as one switch, and a bundle of links from every group to every other.

    The links of a group to others have the rate of its network cards over the oversubscription,
    in equal parts; messages take the direct one.
    """

    def __init__(self, fabric: Fabric, ends: Ends, register: Register) -> None:
        super().__init__(fabric, ends, register)
        (level,) = self.levels
        self.far: Links | None = None
        if level.groups == 1:
            return
        taper = fabric.tapers()[0]
        ports = level.nodes * ends.ports * ends.cables / level.parts
        whole, rate = self.bundle(ports / taper / (level.groups - 1), taper)
        self.far = register.add(
            Links("group to group", ends.nics.medium, rate,
                  (level.parts, level.groups, level.groups - 1),
                  "group {1} to group {2}, plane {0}", pairs=True, cables=whole)
        )  # fmt: skip

    def bisection(self) -> float:
        """Rate one way between halves of the groups."""
        (level,) = self.levels
        pairs = level.groups // 2 * -(-level.groups // 2)
        return pairs * level.parts * self.far.rate if self.far else np.inf

    def between(
        self, node_a: Ints, port_a: Ints, node_b: Ints, port_b: Ints
    ) -> tuple[Rows, Ints | int]:
        """Over the link between the groups, if they are two."""
        (level,) = self.levels
        ends = [self.out.at(node_a, port_a), self.into.at(node_b, port_b)]
        if self.far is None:
            return ends, 0
        a, b = node_a // level.nodes, node_b // level.nodes
        other = np.where(a == b, (a + 1) % level.groups, b)
        far = self.far.at(port_a % level.parts, a, other)
        return [ends[0], np.where(a == b, -1, far), ends[1]], np.where(a == b, 0, 1)


class Torus:
    """Nodes linked to their neighbours in every dimension, both ways round.

    Messages go along the dimensions in order, the shorter way round each; half way round, upwards.
    A link has the network cards of a node over the directions.
    """

    levels: tuple[Level, ...] = ()

    def __init__(self, fabric: Fabric, ends: Ends, register: Register) -> None:
        self.dims = fabric.dims
        ways = 2 * len(self.dims)
        if math.prod(self.dims) != ends.nodes:
            shape = " x ".join(map(str, self.dims))
            raise RoundelayError(f"fabric.dims: {shape} are {math.prod(self.dims)} nodes; the "
                                 f"cluster has {ends.nodes}")  # fmt: skip
        if ends.nics.count % ways:
            raise RoundelayError(
                f"nics.count: {ends.nics.count}; a torus of {len(self.dims)} dimensions needs "
                f"{ways} of each node, one each way, or a multiple"
            )
        cables = ends.nics.count // ways
        self.links = register.add(
            Links("torus", ends.nics.medium, ends.nics.rate * cables,
                  (ends.nodes, len(self.dims), 2),
                  "node {0}, dimension {1}, way {2}", cables=cables)
        )  # fmt: skip

    def bisection(self) -> float:
        """Rate one way across the longest dimension, cut in two places."""
        return float(2 * math.prod(self.dims) // max(self.dims) * self.links.rate)

    def between(
        self, node_a: Ints, port_a: Ints, node_b: Ints, port_b: Ints
    ) -> tuple[Rows, Ints | int]:
        """Dimension by dimension: the rows, and the nodes passed."""
        node, passed = node_a, np.zeros(node_a.shape, np.int64)
        rows: Rows = []
        for d, size in enumerate(self.dims):
            stride = math.prod(self.dims[d + 1 :])
            at, to = node_a // stride % size, node_b // stride % size
            ahead = (to - at) % size
            back = 2 * ahead > size
            far = np.where(back, size - ahead, ahead)
            rest, step = node - at * stride, np.where(back, -1, 1)
            for k in range(int(far.max(initial=0))):
                here = rest + (at + k * step) % size * stride
                rows.append(np.where(k < far, self.links.at(here, d, back), -1))
            node = rest + to * stride
            passed = passed + far
        return rows, passed - 1


class Alone:
    """A single node."""

    levels: tuple[Level, ...] = ()

    def bisection(self) -> float:
        """There is no other half."""
        return 0.0

    def between(
        self, node_a: Ints, port_a: Ints, node_b: Ints, port_b: Ints
    ) -> tuple[Rows, Ints | int]:
        """There is no other node."""
        raise AssertionError("a way out of a single node")


Wiring = Tree | Torus | Alone


def wiring(fabric: Fabric, ends: Ends, register: Register) -> Wiring:
    """The links of a fabric, added to the register.

    Raises:
        RoundelayError: the fabric does not join these nodes.
    """
    if fabric.kind == "none":
        return Alone()
    if fabric.kind == "torus":
        return Torus(fabric, ends, register)
    return (Dragonfly if fabric.kind == "dragonfly" else Tree)(fabric, ends, register)


def _levels(fabric: Fabric, ends: Ends) -> list[Level]:
    def level(name: str, nodes: int | None, parts: int = fabric.planes) -> Level:
        nodes = nodes or ends.nodes
        return Level(name, nodes, -(-ends.nodes // nodes), parts)

    if fabric.kind == "switch":
        return [level("switch", None)]
    if fabric.kind == "dragonfly":
        return [level("group", fabric.nodes_per_group)]
    leaf_parts = ends.ports if fabric.kind == "rail" else fabric.planes
    found = [level("leaf", fabric.nodes_per_leaf, leaf_parts)]
    if fabric.nodes_per_pod:
        found.append(level("spine", fabric.nodes_per_pod))
    found.append(level("core" if fabric.nodes_per_pod else "spine", None))
    return found
