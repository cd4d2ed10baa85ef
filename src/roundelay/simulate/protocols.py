"""The wire protocols of a cluster: what a step costs beyond its bytes, and how fast bytes go.

A protocol is how the two ends of a link agree that data have come. LL sends a flag with every eight
bytes: quick, and half of the link is flags. LL128 sends one with every 120. Simple sends whole
pieces and then says so: slow to start, and the link is full. A schedule of ``steps`` steps that
puts ``bytes`` on a card's link takes::

    base + steps * inside + bytes / (efficiency * rate)

inside a node. The constants are in ``constants.toml``, each with its source.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Final

import msgspec

from ..topology import Cluster

US: Final = 1e-6


@dataclass(frozen=True)
class Protocol:
    """A wire protocol on a cluster.

    Attributes:
        name: "LL", "LL128" or "Simple"; on hosts also "Cached".
        base: seconds once a collective.
        inside: seconds of a step inside a node, beyond bytes / rate, with the link's latency.
        between: seconds of a step between nodes, beyond bytes / rate and `Path.latency`.
        efficiency: medium -> part of its line rate, one way, that data get.
        fill: seconds more once every channel moves whole blocks: ``fill * min(1, size / (ranks *
            block))``.
        block: bytes a rank of one channel's block, or 0.
        own: what copying its own chunk costs a card, as part of that chunk's time on the wire.
        reduce: seconds a byte that is added, where it isn't hidden behind the wire (0 on GPUs).
        switch: part of the line rate, one way, that data get to and from a switch in a node that
            adds; 0 where the protocol can't.
        peer: seconds that each further message of a step costs a card, beyond its bytes.
        most: bytes of a collective up to which it is of use; None: no limit.
    """

    name: str
    base: float
    inside: float
    between: float
    efficiency: Mapping[str, float]
    fill: float = 0.0
    block: int = 0
    own: float = 0.0
    reduce: float = 0.0
    switch: float = 0.0
    peer: float = 0.0
    most: int | None = None

    def filled(self, size: int, ranks: int) -> float:
        """Seconds that blocks cost a collective of so many bytes, see `fill`."""
        return self.fill * min(1.0, size / (ranks * self.block)) if self.block else 0.0


class Steps(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Microseconds of one protocol on one generation."""

    base: float
    inside: float
    fill: float


class Nvls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Adding on the switch; see constants.toml."""

    base: float
    fill: float
    fill_joint: float
    joint: float
    share: dict[str, float]
    channel: dict[str, float]


class PointToPoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Grouped sends and receives on one generation; see constants.toml."""

    base: float
    peer: float
    fill: float
    share: float
    own: float


class Constants(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole of constants.toml."""

    steps: dict[str, dict[str, Steps]]
    nearest: dict[str, str]
    block: dict[str, int]
    share: dict[str, dict[str, float]]
    own: dict[str, float]
    between: dict[str, dict[str, float]]
    most: dict[str, int]
    nvls: Nvls
    point_to_point: dict[str, PointToPoint | int]
    band: dict[str, tuple[float, float]]
    dispatch: dict[str, float]

    def row(self, generation: str) -> str:
        """The generation whose measured figures are used for this one."""
        return self.nearest.get(generation, generation)


@cache
def constants() -> Constants:
    """The constants that come with the package."""
    text = resources.files(__package__).joinpath("constants.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), Constants)


def protocols(cluster: Cluster) -> tuple[Protocol, ...]:
    """The protocols that a cluster's cards speak.

    Those of a cluster of CPUs have the cluster's own step times and rates: "Simple", and "Cached"
    for data that stay in caches, where their rate was measured.
    """
    if cluster.generation == "cpu":
        return _host(cluster)
    found = constants()
    nvlink = cluster.inside.medium == "nvlink"
    names = [p for p in found.block if nvlink or p != "LL128"]
    return tuple(_card(cluster, name, found) for name in names)


def _card(cluster: Cluster, name: str, found: Constants) -> Protocol:
    steps = found.steps[found.row(cluster.generation)][name]
    between = found.between[cluster.nics.medium][name] if cluster.nics.count else 0.0
    return Protocol(
        name,
        steps.base * US,
        steps.inside * US,
        between * US,
        MappingProxyType(found.share[name]),
        fill=steps.fill * US,
        block=found.block[name],
        own=0.0 if cluster.inside.medium == "pcie" else found.own[name],
        switch=_switch(cluster, found) if name == "Simple" else 0.0,
        peer=_peer(cluster, found),
        most=found.most.get(cluster.nics.medium) if name == "LL" and cluster.nodes > 1 else None,
    )


def _peer(cluster: Cluster, found: Constants) -> float:
    """What one more peer costs in NCCL's grouped sends and receives."""
    known = found.point_to_point[found.row(cluster.generation)]
    assert isinstance(known, PointToPoint)
    return known.peer * US


def _switch(cluster: Cluster, found: Constants) -> float:
    """A card's data go up once and come down once, and a share of them once more: (n + 1) / n."""
    if not cluster.inside.multicast:
        return 0.0
    n, share = cluster.cards, found.nvls.share
    return share.get(found.row(cluster.generation), 0.0) * n / (n + 1)


def _host(cluster: Cluster) -> tuple[Protocol, ...]:
    """Rates that were measured between processes need no further share.

    A rank that takes a message does not add it beside the wire, as a GPU does: its processor copies
    it or adds it, so what adding takes beyond copying comes on top.
    """
    inside, far = cluster.inside, cluster.nics.medium
    simple = Protocol(
        "Simple",
        0.0,
        inside.latency,
        0.0,
        MappingProxyType[str, float]({far: 1.0, inside.medium: 1.0}),
        reduce=inside.reduce,
    )
    if inside.cached is None or inside.uplink is None:
        return (simple,)
    faster = MappingProxyType[str, float]({far: 1.0, inside.medium: inside.cached / inside.uplink})
    cached = replace(simple, name="Cached", efficiency=faster, reduce=0.0, most=inside.cache)
    return (simple, cached)


def band(nodes: int, rack: bool, size: int) -> tuple[float, float]:
    """Between which multiples of a predicted time measured ones are expected.

    Args:
        nodes: that take part.
        rack: whether a node is a rack of several hosts.
        size: bytes, as in nccl-tests' size column.
    """
    bands = constants().band
    if nodes > 1 and rack:
        return bands["racks"]
    if nodes > 1:
        return bands["several_large" if size >= 256 << 20 else "several_small"]
    if size <= 64 << 10:
        return bands["small"]
    return bands["middle" if size < 64 << 20 else "large"]
