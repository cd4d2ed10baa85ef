"""Switches and what hangs on them, as Slurm's files and InfiniBand's tools tell."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Final

from .note import Note


@dataclass(frozen=True)
class Cable:
    """A link between two ends: names, and GB/s one way where it is known."""

    a: str
    b: str
    rate: float | None = None
    label: str = ""


LANES: Final = MappingProxyType(
    {"SDR": 0.25, "DDR": 0.5, "QDR": 1.0, "FDR10": 1.25, "FDR": 1.7, "EDR": 3.125, "HDR": 6.25,
     "NDR": 12.5, "XDR": 25.0}
)  # fmt: skip
"""GB/s of data that a lane of InfiniBand carries one way, after coding: 4xHDR is 25 GB/s."""
NO_HOST: Final = "Aggregation Node"
"""In the name of an end that is part of a switch: there it adds."""
_MODEL: Final = re.compile(r"\bTechnologies\b|InfiniHost|\bQLogic\b|\bInfiniPath\b", re.I)
"""In the title of a card that nobody has named after its host."""


@dataclass(frozen=True)
class Fabric:
    """Switches, hosts and cables.

    Attributes:
        source: "slurm", "ibnetdiscover", "iblinkinfo", "topograph".
        kind: "tree", "block", "ring", "flat", "torus" or "network".
        name: of one of several in a file.
        loose: hosts that hang on no switch.
        default: whether the file says that it is the cluster's.
        kinds: all kinds of lines that stand in it; empty if not told.
        plugin: the kind that TopologyPlugin names in it; "" if not told.
        could: links that the tool says could be more: the end, what it could be, its line.
        differ: links whose two ends are listed with different rates: each end with its own.
        bare: hosts that cables lead to and that have no record of their own.
        titles: of ends that are no switches, by name.
        domains: hosts that share NVLink, by the name of their domain.
        short: switches whose list of hosts ends in a comma or is shorter than a comment says: how
            many hosts that says, 0 where none does.
        switches: titles by name; of blocks and rings each is one.
        hosts: names of hosts, or of their network cards, by the switch they hang on.
        cables: between switches; in a tree from the upper to the lower one.
        host_cables: between hosts and switches.
        block_sizes: of a block topology.
        unlisted: ends that cables lead to and that are not described: the file is cut off.
        left_out: ends that are no hosts, such as aggregation nodes.
        left_cables: between those and switches.
        lines: where each switch stands.
        notes: what was odd.
    """

    source: str
    kind: str
    switches: Mapping[str, str]
    hosts: Mapping[str, tuple[str, ...]]
    cables: tuple[Cable, ...] = ()
    host_cables: tuple[Cable, ...] = ()
    block_sizes: tuple[int, ...] = ()
    unlisted: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    left_cables: tuple[Cable, ...] = ()
    lines: Mapping[str, int] | None = None
    notes: tuple[Note, ...] = ()
    name: str = ""
    loose: tuple[str, ...] = ()
    default: bool = False
    kinds: tuple[str, ...] = ()
    plugin: str = ""
    could: tuple[tuple[str, str, int], ...] = ()
    differ: tuple[str, ...] = ()
    bare: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    domains: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    short: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def all_hosts(self) -> tuple[str, ...]:
        """Every host once, in the file's order."""
        return tuple(dict.fromkeys(host for own in self.hosts.values() for host in own))

    @cached_property
    def twice(self) -> tuple[str, ...]:
        """Hosts that hang on more than one switch."""
        counts = Counter(host for own in self.hosts.values() for host in own)
        return tuple(host for host, count in counts.items() if count > 1)

    @cached_property
    def parts(self) -> tuple[tuple[str, ...], ...]:
        """Switches that cables join, however far apart, one such set after another."""
        joined: dict[str, set[str]] = {name: set() for name in self.switches}
        for cable in self.cables:
            if cable.a in joined and cable.b in joined:
                joined[cable.a].add(cable.b)
                joined[cable.b].add(cable.a)
        left, found = dict.fromkeys(self.switches), list[tuple[str, ...]]()
        while left:
            part = [next(iter(left))]
            del left[part[0]]
            for name in part:
                near = [other for other in joined[name] if other in left]
                part += near
                for other in near:
                    del left[other]
            found.append(tuple(part))
        return tuple(found)

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Switches of each level, from those that hosts hang on up."""
        counts = Counter(self.level_of.values())
        return tuple(counts[i] for i in range(max(counts, default=-1) + 1))

    @cached_property
    def level_of(self) -> dict[str, int]:
        """Levels of the switches that are joined with hosts, however far: 0 where those hang on.

        In a tree a switch is above all that hang below it; else the nearest host counts.
        """
        if self.kind == "tree":
            return self._heights()
        level = dict.fromkeys((name for name, own in self.hosts.items() if own), 0)
        edge, depth = set(level), 0
        while edge and depth < 16:
            depth += 1
            edge = {
                end for cable in self.cables for near, end in ((cable.a, cable.b),
                                                               (cable.b, cable.a))
                if near in edge and end not in level and end in self.switches
            }  # fmt: skip
            level |= dict.fromkeys(edge, depth)
        return level

    def _heights(self) -> dict[str, int]:
        """One more than the highest switch below, from those with hosts up."""
        height = {name: 0 for name, own in self.hosts.items() if own}
        for _ in range(16):  # as many levels; in a circle there is no end
            above: dict[str, int] = {}
            for cable in self.cables:
                if cable.b in height and cable.a in self.switches:
                    above[cable.a] = max(above.get(cable.a, 0), height[cable.b] + 1)
            if all(height.get(name) == level for name, level in above.items()):
                break
            height |= above
        return height


def wired(
    source: str, switches: Mapping[str, str], ends: Mapping[str, str], cables: Iterable[Cable],
    lines: Mapping[str, int], notes: Iterable[Note], could: Iterable[tuple[str, str, int]] = (),
    differ: Iterable[str] = (), bare: Iterable[str] = (),
) -> Fabric:  # fmt: skip
    """The network of cables between named ends.

    Args:
        source: the tool.
        switches: titles of those that are described, by name.
        ends: titles of what is no switch, by name. What is in neither is a switch that is missing.
        cables: each once, with names at both ends.
        lines: where each switch stands.
        notes: what was odd.
        could: see `Fabric`.
        differ: see `Fabric`.
        bare: names of ends without a record of their own.
    """
    ends = _apart(ends)
    hosts: dict[str, dict[str, None]] = {name: {} for name in switches}
    between, host_cables, left_cables = [], [], []
    left_out: dict[str, str] = {}
    unlisted: dict[str, None] = {}
    for cable in cables:
        names = (cable.a, cable.b)
        near = [name for name in names if name in switches]
        unlisted |= dict.fromkeys(n for n in names if n not in switches and n not in ends)
        if len(near) == 2:
            between.append(cable)
            continue
        for name in names:
            if name not in ends:
                continue
            if NO_HOST in ends[name]:
                left_out[name] = ends[name]
                left_cables.append(cable)
            elif near:
                hosts[near[0]][ends[name]] = None  # of two cables to one switch once
                host_cables.append(cable)
    return Fabric(
        source, "network", switches, {name: tuple(own) for name, own in hosts.items()},
        tuple(between), tuple(host_cables), unlisted=tuple(unlisted),
        left_out=tuple(left_out.values()), left_cables=tuple(left_cables), lines=lines,
        notes=tuple(notes), could=tuple(could), titles=dict(ends), differ=tuple(differ),
        bare=tuple(ends[name] for name in bare if name in ends and NO_HOST not in ends[name]),
    )  # fmt: skip


def _apart(ends: Mapping[str, str]) -> dict[str, str]:
    """Titles with the end's name behind those that only name a model, and so many ends have."""
    counts = Counter(ends.values())
    return {name: f"{title} {name.removeprefix('H-')}" if counts[title] > 1 and _MODEL.search(title)
            else title for name, title in ends.items()}  # fmt: skip


def both_ends(first: Cable | None, second: Cable) -> Cable:
    """A cable that is listed at both of its ends: of two rates neither is known to hold."""
    if first is None or not first.label:
        return second
    if not second.label or first.label == second.label:
        return first
    return Cable(first.a, first.b, None, f"{first.label} / {second.label}")
