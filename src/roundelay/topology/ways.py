"""Ways from position to position, on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import RoundelayError
from .fabrics import Tree, Wiring
from .inside import Node
from .links import Path, Rows
from .parts import Bools, Floats, Ints

Positions = npt.ArrayLike


class Latencies(NamedTuple):
    """Seconds of a small message.

    Attributes:
        inside: from card to card of a node.
        nics: from network card to network card over one switch.
        hop: for each further switch.
    """

    inside: float
    nics: float
    hop: float


class _Way(NamedTuple):
    """Rows of links, latency, and whether it is forwarded, of some messages."""

    rows: Rows
    latency: Any
    forwarded: Any = False


class Ways:
    """The ways of a cluster.

    Args:
        node, fabric: the links inside nodes and between them.
        shape: nodes, cards of a node, ports of a node.
        planes: of the fabric.
        latencies: see `Latencies`.
    """

    def __init__(
        self,
        node: Node,
        fabric: Wiring,
        shape: tuple[int, int, int],
        planes: int,
        latencies: Latencies,
    ) -> None:
        self.node, self.fabric, self.planes, self.latencies = node, fabric, planes, latencies
        self.nodes, self.cards, self.ports = shape
        self.size = self.nodes * self.cards
        self.switches = self.size + self.nodes  # the first of the fabric's
        counts = [level.count for level in fabric.levels]
        self.firsts = np.cumsum([0, *counts])

    def port(self, card: Any) -> Any:
        """The port of a card, by its index in the node."""
        return card * self.ports // self.cards

    def path(self, src: Positions, dst: Positions) -> Path:
        """See `Cluster.path`."""
        a, b = np.broadcast_arrays(*(np.atleast_1d(np.asarray(p)) for p in (src, dst)))
        for end in (a, b):
            if end.ndim != 1 or not np.issubdtype(end.dtype, np.integer):
                raise RoundelayError(f"positions of type {end.dtype} and shape {end.shape}; "
                                     "expected integers in one dimension")  # fmt: skip
            if end.size and not 0 <= end.min() <= end.max() < self.switches + self.firsts[-1]:
                raise RoundelayError(f"positions {end.min()} to {end.max()}; expected 0 to "
                                     f"{self.switches + self.firsts[-1] - 1}")  # fmt: skip
        a, b = a.astype(np.int64), b.astype(np.int64)
        cards = (a < self.size) & (b < self.size)
        here = a // self.cards == b // self.cards
        low = np.maximum(a, b) < self.switches
        leaves = (cards & ~here) | ~low
        kinds: list[tuple[Bools, Callable[[Ints, Ints], _Way]]] = [
            (cards & here & (a != b), self._inside),
            (cards & ~here, self._between),
            (~cards & low & (a < b), self._to_node_switch),
            (~cards & low & (a > b), self._from_node_switch),
            (~low & (a < b), self._upwards),
            (~low & (a > b), self._downwards),
        ]
        parts = [(mask, way(a[mask], b[mask])) for mask, way in kinds if mask.any()]
        return _merge(parts, leaves)

    def _inside(self, a: Ints, b: Ints) -> _Way:
        node = a // self.cards
        return _Way(self.node.across(node, a % self.cards, b % self.cards), self.latencies.inside)

    def _between(self, a: Ints, b: Ints) -> _Way:
        """Where the planes differ, first over its own node to the card of the other's index."""
        (at, i), (to, j) = divmod(a, self.cards), divmod(b, self.cards)
        forwarded = self.port(i) % self.planes != self.port(j) % self.planes
        rows: Rows = []
        if self.planes > 1 and forwarded.any():
            rows = [np.where(forwarded, row, -1) for row in self.node.across(at, i, j)]
            i = np.where(forwarded, j, i)
        out, into = self.port(i), self.port(j)
        rows += self.node.to_nic(at, i, out)
        between, passed = self.fabric.between(at, out, to, into)
        rows += between
        rows += self.node.from_nic(to, j, into)
        latency = self.latencies.nics + passed * self.latencies.hop
        return _Way(rows, latency + forwarded * self.latencies.inside, forwarded)

    def _to_node_switch(self, card: Ints, switch: Ints) -> _Way:
        node, i = self._under_node_switch(card, switch)
        return _Way(self.node.to_switch(node, i), self.latencies.inside / 2)

    def _from_node_switch(self, switch: Ints, card: Ints) -> _Way:
        node, i = self._under_node_switch(card, switch)
        return _Way(self.node.from_switch(node, i), self.latencies.inside / 2)

    def _under_node_switch(self, card: Ints, switch: Ints) -> tuple[Ints, Ints]:
        node, i = divmod(card, self.cards)
        self._refuse((card >= self.size) | (node != switch - self.size), card, switch)
        return node, i

    def _upwards(self, a: Ints, b: Ints) -> _Way:
        under = self._under_fabric_switch(a, b)
        tree, node, port = under.tree, under.node, under.port
        first = [*self.node.to_nic(node, under.card_index, port), tree.out.at(node, port)]
        rows = [np.where(under.card, row, -1) for row in first]
        rows += tree.climb(node, port, under.low, under.high, tree.up)
        return _Way(rows, self._climb(under))

    def _downwards(self, a: Ints, b: Ints) -> _Way:
        under = self._under_fabric_switch(b, a)
        tree, node, port = under.tree, under.node, under.port
        rows = tree.climb(node, port, under.low, under.high, tree.down)[::-1]
        last = [tree.into.at(node, port), *self.node.from_nic(node, under.card_index, port)]
        rows += [np.where(under.card, row, -1) for row in last]
        return _Way(rows, self._climb(under))

    def _climb(self, under: _Under) -> Floats:
        """To the first switch half the way over it; then hops."""
        hops = (under.high - under.low) * self.latencies.hop
        latency: Floats = np.where(under.card, self.latencies.nics / 2, 0.0) + hops
        return latency

    def _under_fabric_switch(self, lower: Ints, upper: Ints) -> _Under:
        """Where a card or switch stands beneath a fabric's switch."""
        tree = self.fabric
        assert isinstance(tree, Tree)  # others have no switches
        card = lower < self.size
        node, index = divmod(np.where(card, lower, 0), self.cards)
        port = self.port(index)
        low, within = self._level(lower)
        high, above = self._level(upper)
        fits = np.zeros(card.shape, bool)
        for height, level in enumerate(tree.levels):
            first_node, first_port = level.below(within)
            mine = ~card & (low == height)
            node, port = np.where(mine, first_node, node), np.where(mine, first_port, port)
            fits |= (high == height) & (level.above(node, port) == above)
        fits &= card | (lower >= self.switches) & (low < high)
        self._refuse(~fits, lower, upper)
        return _Under(tree, card, node, index, port, np.where(card, 0, low), high)

    def _level(self, position: Ints) -> tuple[Ints, Ints]:
        """Level of a fabric's switch, and its number there."""
        number = np.maximum(position - self.switches, 0)
        level = np.searchsorted(self.firsts, number, "right") - 1
        return level, number - self.firsts[level]

    def _refuse(self, wrong: Bools, lower: Ints, upper: Ints) -> None:
        if wrong.any():
            first = np.flatnonzero(wrong)[0]
            names = self.name(int(lower[first])), self.name(int(upper[first]))
            raise RoundelayError(
                f"no way between {names[0]} and {names[1]}; expected two cards, a card and a "
                "switch above it, or two switches of the fabric, one above the other"
            )

    def name(self, position: int) -> str:
        """What stands at a position, in words."""
        if position < self.size:
            return f"card {position % self.cards} of node {position // self.cards}"
        if position < self.switches:
            return f"the switch of node {position - self.size}"
        height, number = (int(x) for x in self._level(np.array(position)))
        level = self.fabric.levels[height]
        return f"{level.name} {number % level.parts} of group {number // level.parts}"

    def above(self, cards: Positions) -> int:
        """See `Cluster.above`."""
        found = np.unique(np.asarray(cards))
        if not found.size or not 0 <= found[0] <= found[-1] < self.size:
            raise RoundelayError(f"cards {found.tolist()!s:.60}; expected some of 0 to "
                                 f"{self.size - 1}")  # fmt: skip
        node, index = divmod(found, self.cards)
        if node[0] == node[-1]:
            if not self.node.switch:
                raise RoundelayError("cards in a mesh have no switch above them; "
                                     "choose an algorithm without adding switches")  # fmt: skip
            return self.size + int(node[0])
        port, levels = self.port(index), self.fabric.levels
        for height, level in enumerate(levels):
            if len(switch := np.unique(level.above(node, port))) == 1:
                return int(self.switches + self.firsts[height] + switch[0])
        raise RoundelayError(
            f"no switch stands above all {len(found)} cards; choose an algorithm without adding "
            "switches, or one that uses them on each rail"
        )


class _Under(NamedTuple):
    """Cards or switches beneath switches of a tree.

    Attributes:
        tree: the switches.
        card: whether it is a card.
        node: whose it is, or the first below.
        card_index: of the card in its node.
        port: of the card, or the first below.
        low: first level that links lead up from.
        high: level that they lead to.
    """

    tree: Tree
    card: Bools
    node: Ints
    card_index: Ints
    port: Ints
    low: Ints
    high: Ints


def _merge(parts: list[tuple[Bools, _Way]], between: Bools) -> Path:
    """Messages of several kinds, side by side; hops that none of a kind has are left out."""
    m = len(between)
    latency, forwarded = np.zeros(m), np.zeros(m, bool)
    blocks = []
    for mask, way in parts:
        rows = [row for row in way.rows if np.any(row >= 0)]
        blocks.append((mask, rows))
        latency[mask], forwarded[mask] = way.latency, way.forwarded
    links = np.full((max((len(rows) for _, rows in blocks), default=0), m), -1)
    for mask, rows in blocks:
        for hop, row in enumerate(rows):
            links[hop, mask] = row
    return Path(links, latency, between, forwarded)
