"""The time of a job's exchanges for many placements at once, from what crosses switches.

Blocks of ranks stand in slots. On a tree of switches the load of a bundle of links upwards is that
of the messages which leave its switches; `cost.price` finds the same link by link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..simulate.protocols import Protocol, protocols
from ..topology import Cluster
from .cost import usable
from .job import Ints
from .traffic import Floats, Stage, Traffic

Bools = npt.NDArray[np.bool_]
EVEN: Final = 1e-4
"""Weight of the mean load beside the largest, so that a search sees every step towards less."""
DOMAINS: Final = 1 << 20
"""More than a level has."""


class Tier(NamedTuple):
    """One level of links between nodes.

    Attributes:
        nodes: of a domain, whose messages to others these links carry.
        parts: links of a domain: one a port, or a plane.
        rate: bytes a second one way of each; those of a dragonfly are between two domains.
        passed: switches after the first that a message over them passes.
        pairs: whether each two domains have links of their own.
    """

    nodes: int
    parts: int
    rate: float
    passed: int
    pairs: bool = False


def tiers(cluster: Cluster) -> list[Tier] | None:
    """The levels from the network cards up; None where the fabric is no tree (torus)."""
    rate = {links.name: links.rate for links in cluster.links}
    if cluster.nodes == 1:
        return []
    if cluster.fabric.kind == "torus":
        return None
    found = [Tier(1, cluster.ports, rate["NIC out"], 0)]
    if cluster.fabric.kind == "dragonfly":
        (level,) = cluster.levels
        if "group to group" in rate:
            found.append(Tier(level.nodes, level.parts, rate["group to group"], 1, True))
        return found
    for height, level in enumerate(cluster.levels[:-1]):
        up = rate[f"{level.name} up"]
        found.append(Tier(level.nodes, level.parts, up, 2 * (height + 1)))
    return found


class Edges(NamedTuple):
    """Messages of a stage between blocks.

    Attributes:
        src, dst: [edge] blocks.
        out, into: [edge] ports.
        bytes: [edge] of a call.
        copies: ports that have the same messages as the one that is kept, or 1.
        steps, fan: of the stage.
        inside: whether the stage has messages inside blocks.
    """

    src: Ints
    dst: Ints
    out: Ints
    into: Ints
    bytes: Floats
    copies: int
    steps: int
    fan: int
    inside: bool


@dataclass(frozen=True, eq=False)
class Whole:
    """An exchange between blocks.

    Attributes:
        stages: its messages.
        inside: bytes on the busiest card's links inside a block.
        calls, size: see `Traffic`.
    """

    stages: tuple[Edges, ...]
    inside: float
    calls: int
    size: float


def between_blocks(traffics: Sequence[Traffic], cluster: Cluster, block: int) -> list[Whole]:
    """Messages between ranks as messages between blocks."""
    found = []
    for t in traffics:
        inside = _busiest_inside(t.stages, block)
        stages = tuple(_edges(s, cluster, block) for s in t.stages)
        found.append(Whole(stages, inside, t.calls, t.size))
    return found


def _busiest_inside(stages: Sequence[Stage], block: int) -> float:
    most = 0.0
    for ends in ("src", "dst"):
        at = np.concatenate([getattr(s, ends)[s.src // block == s.dst // block] for s in stages])
        own = np.concatenate([s.bytes[s.src // block == s.dst // block] for s in stages])
        most = max(most, float(np.bincount(at, own).max(initial=0.0)))
    return most


def _edges(stage: Stage, cluster: Cluster, block: int) -> Edges:
    src, dst = stage.src // block, stage.dst // block
    away = src != dst
    ports = cluster.ports or 1
    out, into = (e[away] % block * ports // cluster.cards for e in (stage.src, stage.dst))
    blocks = int(max(src.max(initial=0), dst.max(initial=0))) + 1
    key = ((out * ports + into) * blocks + src[away]) * blocks + dst[away]
    keys, where = np.unique(key, return_inverse=True)
    bytes_ = np.bincount(where, stage.bytes[away], len(keys)).astype(np.float64)
    lanes, pair = divmod(keys, blocks * blocks)
    (a, b), (o, i) = divmod(pair, blocks), divmod(lanes, ports)
    used = np.unique(o)
    if len(used) > 1 and (o == i).all() and len(o) % len(used) == 0:
        each = [x.reshape(len(used), -1) for x in (pair, bytes_)]  # keys are ordered by port
        even = np.diff(np.bincount(o)[used]).any()
        if not even and all((x == x[0]).all() for x in each):
            k = each[0].shape[1]
            return Edges(a[:k], b[:k], o[:k], i[:k], bytes_[:k], len(used), stage.steps,
                         stage.fan, bool((~away).any()))  # fmt: skip
    return Edges(a, b, o, i, bytes_, 1, stage.steps, stage.fan, bool((~away).any()))


@dataclass(frozen=True, eq=False)
class Crossing:
    """What one placement's exchanges put on links that other jobs may use, too, in a step.

    Attributes:
        wire: [part] seconds of an exchange that its busiest link takes, whichever that is.
        part, link: [entry] of an exchange, and a number of a link, each way of its own.
        seconds: [entry] that it takes where it has all of the link.
    """

    wire: Floats
    part: Ints
    link: Ints
    seconds: Floats


class Objective:
    """Seconds of a step's exchanges, of many placements at once."""

    def __init__(self, wholes: Sequence[Whole], cluster: Cluster, levels: Sequence[Tier]) -> None:
        """For blocks of one job, on a tree."""
        self.wholes, self.cluster, self.tiers = wholes, cluster, levels
        self.protocols = protocols(cluster)

    def __call__(self, nodes: Ints) -> Floats:
        """[placement] seconds, with a little of the mean load.

        Args:
            nodes: [placement, block] the node it stands in.
        """
        return self._all(nodes, EVEN)

    def exact(self, nodes: Ints) -> Floats:
        """[placement] seconds."""
        return self._all(nodes, 0.0)

    def crossing(self, nodes: Ints) -> Crossing:
        """What crosses levels of switches, of one placement.

        Args:
            nodes: [block] the node it stands in.
        """
        nothing = np.zeros(0, np.int64)
        wires, parts, links, seconds = [], [nothing], [nothing], [np.zeros(0)]
        for number, whole in enumerate(self.wholes):
            wire, _, tops = self._wire(whole, nodes[None])
            p = min(usable(self.protocols, whole.size),
                    key=lambda p: self._by(p, whole, wire, tops)[0])  # fmt: skip
            own, net = self._rates(p, whole)
            wires.append(whole.calls * max(own, float(wire[0]) / net))
            for height, tier in enumerate(self.tiers[1:]):
                for stage in whole.stages:
                    for link, load in _by_link(stage, tier, nodes):
                        links.append(link * len(self.tiers) + height)
                        seconds.append(whole.calls * load / net)
                        parts.append(np.full(len(link), number))
        return Crossing(np.array(wires), np.concatenate(parts), np.concatenate(links),
                        np.concatenate(seconds))  # fmt: skip

    def _all(self, nodes: Ints, even: float) -> Floats:
        nodes = np.atleast_2d(nodes)
        total = np.zeros(len(nodes))
        for whole in self.wholes:
            total += whole.calls * self._one(whole, nodes, even)
        return total

    def _one(self, whole: Whole, nodes: Ints, even: float) -> Floats:
        wire, mean, tops = self._wire(whole, nodes)
        best = np.full(len(nodes), np.inf)
        for p in usable(self.protocols, whole.size):
            best = np.minimum(best, self._by(p, whole, wire, tops))
        return best + even * mean

    def _wire(self, whole: Whole, nodes: Ints) -> tuple[Floats, Floats, list[Ints]]:
        """[placement] seconds of the busiest link, of all, and by stage the highest level."""
        wire, mean, tops = np.zeros(len(nodes)), np.zeros(len(nodes)), []
        for stage in whole.stages:
            tops.append(np.zeros(len(nodes), np.int64))
            for height, tier in enumerate(self.tiers):
                most, sums, crossing = _load(stage, tier, nodes, height == 0)
                wire = np.maximum(wire, most)
                mean += sums / nodes.shape[1]
                tops[-1][crossing] = height + 1
        return wire, mean, tops

    def _rates(self, p: Protocol, whole: Whole) -> tuple[float, float]:
        """Seconds of a call inside a block, and the part of a network's line rate."""
        cluster = self.cluster
        own = whole.inside / (cluster.inside.rate * p.efficiency[cluster.inside.medium])
        return own, p.efficiency.get(cluster.nics.medium, 1.0)

    def _by(self, p: Protocol, whole: Whole, wire: Floats, tops: Sequence[Ints]) -> Floats:
        cluster, passed = self.cluster, np.array([0, *(tier.passed for tier in self.tiers)])
        own, net = self._rates(p, whole)
        seconds = p.base + np.maximum(own, wire / net)
        for stage, top in zip(whole.stages, tops, strict=True):
            far = p.between + cluster.nics.latency
            hops = passed[top] * cluster.fabric.hop_latency
            inside = stage.inside | (len(stage.src) > 0) & (top == 0)
            step = np.maximum(np.where(top > 0, far + hops, 0.0), np.where(inside, p.inside, 0.0))
            seconds += stage.steps * (step + stage.fan * p.peer)
        return seconds


class Ways(NamedTuple):
    """What a stage puts on the links of a level.

    Attributes:
        used: [domain] their numbers.
        each: by way, [placement, domain, lane] seconds by line rate; [placement, domain * domain,
            lane] where each two have links of their own.
        crosses: [placement] whether any message crosses.
    """

    used: Ints
    each: list[Floats]
    crosses: Bools


def _load(stage: Edges, tier: Tier, nodes: Ints, cards: bool) -> tuple[Floats, Floats, Bools]:
    """[placement] seconds of the busiest link by line rate, of all, and whether any crosses."""
    k = len(nodes)
    most, sums = np.zeros(k), np.zeros(k)
    ways = _ways(stage, tier, nodes, cards)
    if ways is None:
        return most, sums, np.zeros(k, bool)
    for load in ways.each:
        flat = load.reshape(k, -1)
        most, sums = np.maximum(most, flat.max(axis=1)), flat.sum(axis=1)
    return most, sums, ways.crosses


def _by_link(stage: Edges, tier: Tier, nodes: Ints) -> list[tuple[Ints, Floats]]:
    """By way, numbers of links and the seconds of each; of its lanes the busiest stands for all."""
    ways = _ways(stage, tier, nodes[None], cards=False)
    if ways is None:
        return []
    found, numbers = [], ways.used
    if tier.pairs:
        numbers = (ways.used[:, None] * DOMAINS + ways.used).ravel()
    for way, load in enumerate(ways.each):
        seconds = load[0].max(axis=1)
        busy = np.flatnonzero(seconds)
        found.append((2 * numbers[busy] + way, seconds[busy]))
    return found


def _ways(stage: Edges, tier: Tier, nodes: Ints, cards: bool) -> Ways | None:
    """What is on the links; of cards on a block's own. None where nothing crosses."""
    k, blocks = nodes.shape
    if not len(stage.src):
        return None
    used, domain = np.unique(nodes // tier.nodes, return_inverse=True)
    domain = domain.reshape(nodes.shape)
    a, b = domain[:, stage.src], domain[:, stage.dst]
    out, into = stage.out % tier.parts, stage.into % tier.parts
    cross = a != b
    if not cards:
        cross = cross | (out != into)
    if not cross.any():
        return None
    if cards:  # a block has network cards of its own
        a, b, count = stage.src[None, :], stage.dst[None, :], blocks
    else:
        count = len(used)
    links = count * (count if tier.pairs else 1)
    first = np.arange(k)[:, None] * links
    alike = 1 if cards else -(-stage.copies // tier.parts)
    weight = np.where(cross, stage.bytes * alike, 0.0).ravel()
    lanes, lane = np.unique([out, into], return_inverse=True)
    out, into = lane.reshape(2, -1)
    each = []
    for at, port in [(a * count + b, out)] if tier.pairs else [(a, out), (b, into)]:
        index = ((first + at) * len(lanes) + port).ravel()
        load = np.bincount(index, weight, k * links * len(lanes)) / tier.rate
        each.append(load.reshape(k, links, len(lanes)))
    return Ways(used, each, cross.any(axis=1))
