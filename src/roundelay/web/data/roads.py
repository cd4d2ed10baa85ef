"""What the two roads show: how fast data go inside a node and between nodes, on named machines."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, NamedTuple

import msgspec

from ...clusters import cluster, names
from ...topology import Cluster

CORE: Final = 42e9 / 8
"""Bytes a second, one way, that the kernel's TCP moves with one core at the receiver: about
42 Gb/s with all offloads (Cai et al., Understanding host network stack overheads, SIGCOMM 2021)."""


class Road(msgspec.Struct, omit_defaults=True):
    """A way for data of one card.

    Attributes:
        medium: what it is made of.
        rate: bytes a second, one way.
        links: how many there are for it; less than 1 where cards share one.
        printed: "duplex" where data sheets print both directions together, else "oneway".
        bits: whether data sheets print bits.
        latency: seconds of a small message, one way; 0: not known.
        source: where the rate is from.
    """

    medium: str
    rate: float
    links: float
    printed: str
    bits: bool
    latency: float
    source: str


class Machine(msgspec.Struct):
    """A named machine.

    Attributes:
        name, title: as in `roundelay cluster`.
        cards: of a node.
        inside: from card to card of a node.
        between: from a card to the network; None where no network is described.
        pcie: bytes a second, one way, between a card and PCIe; 0: not described.
    """

    name: str
    title: str
    cards: int
    inside: Road
    between: Road | None
    pcie: float


class Hop(NamedTuple):
    """A step of a way between nodes.

    Attributes:
        name: "wire", "pcie", or "copy" by a core.
        rate: bytes a second.
        ends: how often data pass such a step, both ends together.
    """

    name: str
    rate: float
    ends: int


def roads() -> dict[str, Any]:
    """All named machines, and what one core moves: `Machine` each, bytes a second."""
    return {"core": CORE, "machines": [_machine(name) for name in names()]}


@cache
def _machine(name: str) -> Machine:
    of = cluster(name)
    inside, nics = of.inside, of.nics
    both = inside.medium != "pcie"
    return Machine(
        name, of.title, of.cards,
        Road(inside.medium, inside.rate, inside.links, "duplex" if both else "oneway", False,
             inside.latency, of.sources.get("inside.rate", "")),
        _between(of), nics.card_pcie,
    )  # fmt: skip


def _between(of: Cluster) -> Road | None:
    nics = of.nics
    if not nics.count:
        return None
    share = nics.count / of.cards
    return Road(nics.medium, nics.rate * share, share, "oneway", True, nics.latency,
                of.sources.get("nics.rate", ""))  # fmt: skip


def hops(machine: Machine, way: str, cores: int = 1) -> list[Hop]:
    """What data of a card pass on their way to a card of another node.

    Args:
        machine: with a network.
        way: "gpudirect": the network card reads the card's memory; "rdma": by way of the host's
            memory, so that data cross the card's PCIe and the network card's; "kernel": over TCP,
            where cores copy as well.
        cores: that work for this card, at each end.
    """
    assert machine.between is not None
    wire, pcie = Hop("wire", machine.between.rate, 1), machine.pcie
    if way == "gpudirect":
        return [Hop("pcie", pcie, 2), wire]
    if way == "rdma":
        return [Hop("pcie", pcie, 4), wire]
    return [Hop("pcie", pcie, 4), Hop("copy", CORE * cores, 2), wire]


def seconds(found: list[Hop], size: int) -> float:
    """Of so many bytes: in pieces that follow one another, so the slowest hop decides."""
    return size / min(hop.rate for hop in found)
