"""How long what NCCL chose takes: latency of its steps, bytes on the link that binds, and waiting.

Constants are those of `protocols`, so a ring here costs what it costs in the clock of any schedule.
What NCCL does beyond a schedule is here: fewer channels for small sizes, the copy of a card's own
chunk, adding on the switch, and grouped sends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from ...units import Rate, format_rate, format_size, format_time
from ..protocols import US, PointToPoint, Protocol, constants
from . import tables
from .prediction import Parts
from .shape import Shape


class Call(NamedTuple):
    """One collective on its cards.

    Attributes:
        shape: the cards.
        collective: its name.
        size: bytes.
        algorithm: one of `CLOCKS`.
        protocol: the wire protocol.
        channels: that it runs on.
    """

    shape: Shape
    collective: str
    size: int
    algorithm: str
    protocol: Protocol
    channels: int


class _Link(NamedTuple):
    """A link that may bind."""

    name: str
    line: float
    """Bytes a second one way."""
    share: float
    bytes: float
    """That it carries, one way."""

    @property
    def seconds(self) -> float:
        return self.bytes / (self.line * self.share)

    def __str__(self) -> str:
        return f"{self.name}, {format_rate(Rate(self.line, 'oneway'))}"


def tree_load(nodes: int) -> float:
    """Sizes that leave the fullest node of a double tree: 1, 1.5 or 2.

    A node of two is a leaf in one tree and the root of the other. From four nodes on some node has
    two children in one tree, half of the data each way, and is a leaf in the other.
    """
    return {1: 0.0, 2: 1.0, 3: 1.5}.get(nodes, 2.0)


def _slower(*links: _Link) -> _Link:
    return max(links, key=lambda link: link.seconds)


def _card(shape: Shape, share: float, bytes: float) -> _Link:
    return _Link(f"{_NAMES[shape.medium]} of a card", shape.inside, share, bytes)


def _node(shape: Shape, share: float, bytes: float) -> _Link:
    nics = shape.cluster.nics
    return _Link(f"{nics.count} network cards of a node", shape.network, share, bytes)


_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {"nvlink": "NVLink", "xgmi": "xGMI", "pcie": "PCIe", "memory": "memory"}
)


def _steps(shape: Shape, protocol: Protocol, inside: int, between: int) -> tuple[float, str]:
    """Seconds of steps, and the sum in words."""
    hop = protocol.between + shape.cluster.nics.latency
    total = protocol.base + inside * protocol.inside + between * hop
    text = f"{format_time(protocol.base)} start + {inside} steps x {format_time(protocol.inside)}"
    if between:
        text += f" + {between} steps between nodes x {format_time(hop)}"
    return total, text


def _parts(latency: tuple[float, str], link: _Link, own: float, wait: float) -> Parts:
    text = (
        f"{latency[1]} + {format_size(round(link.bytes))} / ({link.share:.3g} x "
        f"{format_rate(Rate(link.line, 'oneway'))})"
    )
    text += f" + {format_time(own)} own chunk" if own else ""
    text += f" + {format_time(wait)} filling" if wait >= 1e-12 else ""
    return Parts(latency[0], link.seconds, own, wait, str(link), text)


def ring(call: Call) -> Parts:
    """A ring: every card passes on chunks; broadcast and reduce are a chain of n cards."""
    shape, protocol, n = call.shape, call.protocol, call.shape.ranks
    rounds = 2 if call.collective == "all_reduce" else 1
    steps, crossings = rounds * (n - 1), rounds * (shape.nodes - 1)
    chain = call.collective in ("broadcast", "reduce")
    carried = call.size if chain else call.size * steps / n
    share = protocol.efficiency[shape.medium]
    link = _card(shape, share, carried)
    own = 0.0 if chain else protocol.own * call.size / n / (shape.inside * share)
    near = steps - crossings
    if shape.nodes > 1:
        network = _node(shape, protocol.efficiency[shape.cluster.nics.medium], carried)
        if network.seconds > link.seconds + near * protocol.inside:
            link, near = network, 0  # steps inside are over before the network is
    latency = _steps(shape, protocol, near, crossings)
    return _parts(latency, link, own, protocol.filled(call.size, n))


def tree(call: Call) -> Parts:
    """A double tree between nodes, with chains inside: all of the data up, and down again."""
    shape, protocol = call.shape, call.protocol
    chain = 2 * (shape.cards - 1)
    levels = 2 * math.ceil(math.log2(shape.nodes)) if shape.nodes > 1 else 0
    link = _card(shape, protocol.efficiency[shape.medium], call.size * chain / shape.cards)
    if shape.nodes > 1:
        share = protocol.efficiency[shape.cluster.nics.medium]
        link = _slower(link, _node(shape, share, call.size * tree_load(shape.nodes)))
    latency = _steps(shape, protocol, chain, levels)
    return _parts(latency, link, 0.0, protocol.filled(call.size, shape.ranks))


def nvls(call: Call) -> Parts:
    """Adding and multicasting on the switch: some cards are heads, and carry a part more.

    With several nodes the heads also form a double tree, or give to switches that add.
    """
    shape, found = call.shape, constants().nvls
    several = shape.nodes > 1
    heads = min(shape.cards, tables.NVLS_HEADS)
    moved = call.size * (heads + 1) / heads
    generation = constants().row(shape.cluster.generation)
    share = found.share[generation] * (found.joint if several else 1.0)
    lane = found.channel.get(shape.cluster.generation, found.channel[generation])
    lanes = call.channels * lane * 1e9 * (found.joint if several else 1.0)
    adding = call.algorithm != "nvls_tree"
    load = 1.0 if adding else tree_load(shape.nodes)
    link = _slower(
        _card(shape, share, moved),
        _Link(f"{call.channels} channels of a card", lanes, 1.0, call.size * load),
    )
    hops = 0
    if several:
        hops = 2 if adding else 2 * math.ceil(math.log2(shape.nodes))
        medium = shape.cluster.nics.medium
        link = _slower(link, _node(shape, call.protocol.efficiency[medium], call.size * load))
    fill = found.fill_joint if several else found.fill
    wait = fill * US * math.sqrt(moved / shape.inside / US)
    hop = call.protocol.between + shape.cluster.nics.latency
    text = f"{found.base:g} us start" + (f" + {hops} hops x {format_time(hop)}" if hops else "")
    return _parts((found.base * US + hops * hop, text), link, 0.0, wait)


def collnet(call: Call) -> Parts:
    """Switches between nodes add: a node gives each byte once and gets it once.

    Inside, cards share the data out to those with network cards and gather it again: at once
    ("direct"), or along a chain.
    """
    shape, protocol = call.shape, call.protocol
    rounds = 2 if call.collective == "all_reduce" else 1
    hops = min(1, shape.cards - 1) if call.algorithm == "collnet_direct" else shape.cards - 1
    share = protocol.efficiency[shape.medium]
    carried = rounds * call.size * (shape.cards - 1) / shape.cards
    link = _slower(
        _card(shape, share, carried),
        _node(shape, protocol.efficiency[shape.cluster.nics.medium], call.size),
    )
    return _parts(_steps(shape, protocol, rounds * hops, rounds), link, 0.0, 0.0)


def pat(call: Call) -> Parts:
    """Parallel aggregated trees, one card a node: log2(n) hops, and all chunks but one's own."""
    shape, protocol = call.shape, call.protocol
    share = protocol.efficiency[shape.cluster.nics.medium]
    link = _node(shape, share, call.size * (shape.nodes - 1) / shape.nodes)
    latency = _steps(shape, protocol, 0, math.ceil(math.log2(shape.nodes)))
    return _parts(latency, link, 0.0, 0.0)


def point_to_point(call: Call) -> Parts:
    """Sends and receives in a group: all_to_all to every other card, send_recv to one."""
    shape, n = call.shape, call.shape.ranks
    row = constants().row(shape.cluster.generation)
    found, block = constants().point_to_point[row], constants().point_to_point["block"]
    assert isinstance(found, PointToPoint)
    assert isinstance(block, int)
    pairwise = call.collective == "send_recv"
    peers, chunk = (1, float(call.size)) if pairwise else (n - 1, call.size / n)
    near = 1 if pairwise and shape.nodes == 1 else 0 if pairwise else shape.cards - 1
    link = _card(shape, found.share, chunk * near)
    hop = 0.0
    if shape.nodes > 1:
        away = chunk if pairwise else chunk * (n - shape.cards)
        share = call.protocol.efficiency[shape.cluster.nics.medium]
        link = _slower(link, _node(shape, share, away * shape.cards))
        hop = call.protocol.between + shape.cluster.nics.latency
    own = 0.0 if pairwise else found.own * chunk / (shape.inside * found.share)
    latency = (found.base + peers * found.peer) * US + hop
    text = f"{found.base:g} us start + {peers} peers x {found.peer:g} us"
    text += f" + {format_time(hop)} between nodes" if hop else ""
    wait = found.fill * US * min(1.0, chunk / block)
    return _parts((latency, text), link, own, wait)


CLOCKS: Final[Mapping[str, Callable[[Call], Parts]]] = MappingProxyType(
    {
        "ring": ring,
        "tree": tree,
        "nvls": nvls,
        "nvls_tree": nvls,
        "collnet_direct": collnet,
        "collnet_chain": collnet,
        "pat": pat,
        "p2p": point_to_point,
    }
)
