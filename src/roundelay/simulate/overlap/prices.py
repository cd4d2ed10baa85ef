"""What an exchange takes on a cluster, by the clock."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd
from typing import Final

from ...errors import RoundelayError
from ...topology import Cluster, Fabric, Inside, Nics
from ..candidates import quickest
from ..nccl import predict
from .cards import Share
from .tasks import Exchange, Group

ALGORITHMS: Final = ("nccl", "auto")
"""What exchanges take: NCCL's choice, or the quickest algorithm of ours."""


@dataclass(frozen=True)
class Price:
    """What an exchange takes, in seconds.

    Attributes:
        latency: that bytes have no part in.
        wire: that bytes take.
        launch: the host's launching takes that long at least.
        algorithm: by which it is done.
        part: the part of the cluster that a group has; None where it has but one rank.
    """

    latency: float = 0.0
    wire: float = 0.0
    launch: float = 0.0
    algorithm: str = ""
    part: Cluster | None = None

    def seconds(self, share: Share | None = None) -> float:
        """In all, where a share of the card does it, or all that it needs."""
        stretch = share.stretch(self.part) if share and self.part else 1.0
        return max(self.launch, self.latency + self.wire * stretch)


def price(exchange: Exchange, cluster: Cluster, ranks: int, algorithm: str = "nccl") -> Price:
    """What an exchange takes where all groups do it at once.

    Args:
        exchange: what is exchanged, and by whom.
        cluster: rank r drives card r.
        ranks: that take part.
        algorithm: one of `ALGORITHMS`.

    Raises:
        RoundelayError: no such algorithm, or groups that the clock cannot time.
    """
    if algorithm not in ALGORITHMS:
        raise RoundelayError(f"algorithm {algorithm!r}; expected {' or '.join(ALGORITHMS)}")
    n = exchange.group.size if exchange.group else ranks
    if n == 1:
        return Price()
    try:
        part = part_of(cluster, exchange.group, ranks)
        if algorithm == "nccl":
            p = predict(part, exchange.collective, exchange.size, n)
            wire = p.wire_s + p.reduce_s + p.wait_s
            return Price(p.latency_s, wire, cluster.launch, f"{p.algorithm}, {p.protocol}", part)
        found, t = quickest(exchange.collective, part, n, exchange.size)[0]
    except RoundelayError as error:
        whom = exchange.group or "all ranks"
        raise RoundelayError(f"{exchange.collective} of {whom}: {error}") from None
    wire = t.wire + t.reduce + t.wait
    return Price(t.latency, wire, cluster.launch, f"{found.name}, {t.protocol}", part)


def part_of(cluster: Cluster, group: Group | None, ranks: int) -> Cluster:
    """The part of a cluster that a group has to itself, where all groups exchange at once.

    Its cards, their part of the network cards and of the switches above. Several groups that share
    a leaf switch are taken to have leaves of their own, with fewer nodes under each.

    Args:
        cluster: rank r drives card r.
        group: the ranks of it; None: all.
        ranks: that take part.

    Raises:
        RoundelayError: groups do not fall on nodes evenly.
    """
    if group is None:
        return _of(cluster, nodes=-(-ranks // cluster.cards))
    cards = _cards_of_node(cluster.cards, group)
    nodes = group.size // cards
    apart = max(1, group.stride // cluster.cards)
    if cards == cluster.cards and apart == 1:
        return _of(cluster, nodes=nodes)
    if cluster.inside.kind == "bus":
        raise RoundelayError(f"{cards} of the {cluster.cards} cards of a node, which share a bus; "
                             "expected groups of whole nodes")  # fmt: skip
    parts = gcd(cluster.hosts, cards)
    network = _nics(cluster, cards, group.stride)
    fabric = _fabric(cluster, min(network.count, cards), apart)
    return replace(cluster, nodes=nodes, cards=cards, hosts=parts, nics=network, fabric=fabric,
                   inside=_inside(cluster, cards))  # fmt: skip


def _of(cluster: Cluster, nodes: int) -> Cluster:
    return cluster if nodes == cluster.nodes else cluster.scaled(nodes)


def _cards_of_node(cards: int, group: Group) -> int:
    """Cards of a node that one group has."""
    if group.block <= cards:
        even, found = cards % group.block == 0, group.size
    elif group.stride <= cards:
        even, found = cards % group.stride == 0 and group.block % cards == 0, cards // group.stride
    else:
        even, found = group.stride % cards == 0, 1
    if not even:
        raise RoundelayError(f"they fall on nodes of {cards} cards unevenly; expected sizes and "
                             "strides that divide the cards of a node, or whole nodes")  # fmt: skip
    return found


def _inside(cluster: Cluster, cards: int) -> Inside:
    """In a mesh, a card has links to the others of its group only."""
    inside = cluster.inside
    if inside.kind != "mesh":
        return inside
    others, peers = max(1, cards - 1), cluster.cards - 1
    return replace(inside, rate=inside.rate * others / peers,
                   links=max(1, inside.links * others // peers))  # fmt: skip


def _nics(cluster: Cluster, cards: int, stride: int) -> Nics:
    """A card's own network cards, or its part of one that cards of several groups share."""
    nics = cluster.nics
    if nics.count >= cluster.cards or not nics.count:
        return replace(nics, count=nics.count // cluster.cards * cards)
    used = {k * stride * nics.count // cluster.cards for k in range(cards)}
    return replace(nics, count=len(used), rate=cluster.network_rate * cards / len(used))


def _fabric(cluster: Cluster, ports: int, apart: int) -> Fabric:
    """The switches above every `apart`-th node."""
    fabric = cluster.fabric
    sizes = {name: max(1, value // apart)
             for name in ("nodes_per_leaf", "nodes_per_pod", "nodes_per_group")
             if (value := getattr(fabric, name)) is not None}  # fmt: skip
    if "nodes_per_pod" in sizes:
        leaf = sizes["nodes_per_leaf"]
        sizes["nodes_per_pod"] = max(leaf, sizes["nodes_per_pod"] // leaf * leaf)
    return replace(fabric, planes=gcd(fabric.planes, ports), radix=None, **sizes)
