"""Switches and what hangs on them, as Slurm's files and InfiniBand's tools tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from .note import Note


@dataclass(frozen=True)
class Cable:
    """A link between two ends: names, and GB/s one way where it is known."""

    a: str
    b: str
    rate: float | None = None
    label: str = ""


@dataclass(frozen=True)
class Fabric:
    """Switches, hosts and cables.

    Attributes:
        source: "slurm", "ibnetdiscover".
        kind: "tree", "block", "ring" or "network".
        switches: titles by name; of blocks and rings each is one.
        hosts: names of hosts, or of their network cards, by the switch they hang on.
        cables: between switches; in a tree from the upper to the lower one.
        host_cables: between hosts and switches.
        block_sizes: of a block topology.
        unlisted: ends that cables lead to and that are not described: the file is cut off.
        left_out: ends that are no hosts, such as aggregation nodes.
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
    lines: Mapping[str, int] | None = None
    notes: tuple[Note, ...] = ()

    @cached_property
    def all_hosts(self) -> tuple[str, ...]:
        """Every host once, in the file's order."""
        return tuple(dict.fromkeys(host for own in self.hosts.values() for host in own))

    @cached_property
    def levels(self) -> tuple[int, ...]:
        """Switches of each level, from those that hosts hang on up."""
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
        counts = Counter(level.values())
        return tuple(counts[i] for i in range(max(counts, default=-1) + 1))
