"""A cluster whose hosts have names: where they stand, and what is free on them.

A machine says what a node is and how fast its links are; the scheduler's files say which nodes
there are, and which switches join them. Nodes are numbered so that those of a leaf, and the leaves
of a pod, follow one another. Where leaves or pods are not equally full, numbers are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

import numpy as np

from ..errors import RoundelayError
from ..formats.hostlist import hosts as expand
from ..i18n import Message, message
from ..topology import Cluster, Fabric
from .job import Ints
from .room import Room, numbers

Source: TypeAlias = Literal["tree", "block", "kubernetes"]
LEVELS: Final = 2
"""Levels of domains that a fabric has, besides the whole: leaves and pods."""
PLACES: Final = 1 << 20
"""Nodes of a site, those that are left out between unequal domains among them."""
_HOST: Final = re.compile(r"[A-Za-z0-9][\w.-]*", re.A)


@dataclass(frozen=True)
class Host:
    """A host.

    Attributes:
        name: of the host.
        path: domains it is in, such as switches, from the top to the leaf.
        cards: that it says it has; None: not said.
        used: numbers of cards in use.
        free: whether it takes jobs.
        sliced: whether its cards are given in parts.
    """

    name: str
    path: tuple[str, ...]
    cards: int | None = None
    used: tuple[int, ...] = ()
    free: bool = True
    sliced: bool = False


@dataclass(frozen=True, eq=False)
class Site:
    """Named hosts of a cluster.

    Attributes:
        cluster: as wide as its fullest leaf and pod.
        names: [node, host of it] names; "" where there is none.
        paths: domains of each host, by name, from the top to the leaf.
        levels: what the domains of a path are called, such as labels of nodes.
        room: what is free.
        source: whose files.
        version: of the scheduler; "" where it isn't said.
        notes: what was odd.
        taints: keys of those that pods have to tolerate.
        networks: resources by which pods get at network cards.
    """

    cluster: Cluster
    names: tuple[tuple[str, ...], ...]
    paths: Mapping[str, tuple[str, ...]]
    levels: tuple[str, ...]
    room: Room
    source: Source
    version: str = ""
    notes: tuple[Message, ...] = ()
    taints: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()

    def host(self, card: int) -> str:
        """The name of the host of a card of the cluster."""
        node, inside = divmod(card, self.cluster.cards)
        return self.names[node][inside // (self.cluster.cards // self.cluster.hosts)]

    def cards(self, hosts: Sequence[str]) -> Ints:
        """[host, card of it] numbers of cards.

        Raises:
            RoundelayError: no such host.
        """
        each = self.cluster.cards // self.cluster.hosts
        where = {name: node * self.cluster.cards + i * each
                 for node, names in enumerate(self.names)
                 for i, name in enumerate(names) if name}  # fmt: skip
        for name in hosts:
            if name not in where:
                raise RoundelayError(f"no host {name!r}; expected hosts of the topology, such as "
                                     f"{next(iter(where))}")  # fmt: skip
        return np.array([where[name] for name in hosts])[:, None] + np.arange(each)

    def named(self, text: str) -> str:
        """A text that speaks of nodes by number, such as of a link's ends, with their names."""
        if self.cluster.hosts > 1:
            return text
        return re.sub(r"\bnode (\d{1,8})\b", lambda found: self.names[int(found[1])][0], text)

    def only(self, hosts: Sequence[str]) -> Site:
        """All cards of these hosts are free, and no others."""
        room = Room(self.cluster, np.zeros_like(self.room.free), np.zeros_like(self.room.free))
        room.free.ravel()[self.cards(hosts).ravel()] = True
        return replace(self, room=room)

    def narrowed(self, text: str, name: str) -> Site:
        """Of what is free, the hosts of a file, a line for some: ``gpu[0-3] [CARDS]``.

        Raises:
            RoundelayError: a line that is none, with its number, or a host that isn't there.
        """
        kept = np.zeros_like(self.room.free)
        for number, line in enumerate(text.splitlines(), 1):
            words = line.partition("#")[0].split()
            try:
                if len(words) > 2:
                    raise RoundelayError(f"{line.strip()!r:.80}; expected HOSTS [CARDS], such as "
                                         "gpu[0-3] 0-7")  # fmt: skip
                if words:
                    cards = self.cards(expand(words[0]))
                    some = numbers(words[1], cards.shape[1], "cards") if words[1:] else slice(None)
                    kept.ravel()[cards[:, some].ravel()] = True
            except RoundelayError as error:
                raise RoundelayError(f"{name}, line {number}: {error}") from None
        free, sliced = self.room.free & kept, self.room.sliced & kept
        return replace(self, room=Room(self.cluster, free, sliced))


def oldest(versions: Iterable[str]) -> str:
    """The oldest of those that are known; "" where none is."""
    return min(filter(None, versions), default="", key=_numbers)


def at_least(version: str, least: str) -> bool:
    """Whether a version is known, and not older than another."""
    return bool(version) and _numbers(version) >= _numbers(least)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d{1,9}", version)))


def settle(
    hosts: Sequence[Host],
    machine: Cluster,
    source: Source,
    levels: Sequence[str] = (),
    version: str = "",
    notes: Sequence[Message] = (),
) -> Site:
    """The site of these hosts.

    Args:
        hosts: all of them.
        machine: what a node is; its fabric says how links above leaves are tapered.
        source: whose files.
        levels: what the domains of a path are called.
        version: of the scheduler.
        notes: what was odd so far.

    Raises:
        RoundelayError: there are none, they contradict the machine, or their paths differ in kind.
    """
    _check(hosts, machine)
    nodes = _nodes(hosts, machine)
    found, told = _levels([path for path, _ in nodes])
    if found[0] and not machine.fabric.oversubscription:
        told.append(message("{machine} says nothing of links above leaves, so they are taken as "
                            "wide as those below: fabric.oversubscription in a cluster file says "
                            "it", machine=machine.name))  # fmt: skip
    names, sizes = _numbered([names for _, names in nodes], found, machine.hosts)
    cluster = replace(machine, nodes=len(names), fabric=_fabric(machine, sizes))
    by_name = {h.name: h.path for h in hosts}
    site = Site(cluster, names, by_name, tuple(levels), Room.all_of(cluster), source, version,
                (*notes, *told))  # fmt: skip
    return replace(site, room=_room(site, hosts))


def _check(hosts: Sequence[Host], machine: Cluster) -> None:
    if not hosts:
        raise RoundelayError("no hosts; expected one at least")
    depth = len(hosts[0].path)
    each = machine.cards // machine.hosts
    seen: set[str] = set()
    for host in hosts:
        if host.name in seen:
            raise RoundelayError(f"{host.name} stands there twice; expected every host once")
        seen.add(host.name)
        _check_names(host)
        if len(host.path) != depth:
            raise RoundelayError(
                f"{host.name} is {len(host.path)} levels deep "
                f"({' > '.join(host.path) or '-'}), and {hosts[0].name} {depth} "
                f"({' > '.join(hosts[0].path) or '-'}); expected all in one depth"
            )
        if host.cards is not None and host.cards != each and not host.sliced:
            raise RoundelayError(
                f"{host.name} has {host.cards} cards, and a host of "
                f"{machine.name} {each}; expected the machine that it is"
            )


def _check_names(host: Host) -> None:
    """Names go into scripts and manifests, line by line."""
    if not _HOST.fullmatch(host.name):
        raise RoundelayError(f"host {host.name!r:.80}; expected a name of letters, digits, -, _ "
                             "and dots, such as gpu1")  # fmt: skip
    for domain in host.path:
        if not domain.isprintable() or domain.split() != [domain]:
            raise RoundelayError(f"{host.name} is in {domain!r:.80}; expected a name without "
                                 "spaces and line ends, such as leaf0")  # fmt: skip


def _nodes(
    hosts: Sequence[Host], machine: Cluster
) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """The path of each node, and its hosts: one, or where they share one those of a domain."""
    if machine.hosts == 1:
        return [(host.path, (host.name,)) for host in hosts]
    shared: dict[tuple[str, ...], list[str]] = {}
    for host in hosts:
        if not host.path:
            raise RoundelayError(
                f"{machine.hosts} hosts of {machine.name} share a node, and "
                f"nothing says with whom {host.name} does; expected blocks"
            )
        shared.setdefault(host.path, []).append(host.name)
    for path, names in shared.items():
        if len(names) > machine.hosts:
            raise RoundelayError(
                f"{path[-1]} has {len(names)} hosts, and a node of "
                f"{machine.name} {machine.hosts}; expected as many at most"
            )
    return [(path[:-1], tuple(names)) for path, names in shared.items()]


def _levels(paths: list[tuple[str, ...]]) -> tuple[list[tuple[str, ...]], list[Message]]:
    """The parts of paths that tell nodes apart, at most `LEVELS` of them, those next to nodes."""
    while paths[0] and len({path[0] for path in paths}) == 1:
        paths = [path[1:] for path in paths]
    more = len(paths[0]) - LEVELS
    if more <= 0:
        return paths, []
    note = message("{more} levels above pods count as one: a fabric has three here", more=more)
    return [path[more:] for path in paths], [note]


def _numbered(
    nodes: Sequence[tuple[str, ...]], paths: Sequence[tuple[str, ...]], hosts: int
) -> tuple[tuple[tuple[str, ...], ...], tuple[int, ...]]:
    """[node] names, filled up so that domains of a level are equal; and nodes of each level."""
    groups: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for path, names in zip(paths, nodes, strict=True):
        groups.setdefault(path, []).append(names + ("",) * (hosts - len(names)))
    none, sizes = ("",) * hosts, []
    for _ in range(len(paths[0])):
        most = max(map(len, groups.values()))
        sizes.append(most)
        if most * len(groups) > PLACES:
            raise RoundelayError(
                f"{len(nodes):,} nodes in domains so unequal that filling them up makes "
                f"{most * len(groups):,}; expected {PLACES:,} at most: leave out nodes of the "
                "fullest domain, or a level"
            )
        above: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for path, found in groups.items():
            above.setdefault(path[:-1], []).extend(found + [none] * (most - len(found)))
        groups = above
    return tuple(groups[()]), tuple(sizes)


def _fabric(machine: Cluster, sizes: tuple[int, ...]) -> Fabric:
    base = machine.fabric
    if not machine.nics.count:
        return base
    planes, adds = base.planes, base.adds
    if not sizes:
        return Fabric("switch", planes=planes, adds=adds)
    given = base.oversubscription[: len(sizes)]
    tapers = given + (1.0,) * (len(sizes) - len(given)) if given else ()
    return Fabric(base.kind if base.kind in ("rail", "fat_tree") else "fat_tree",
                  nodes_per_leaf=sizes[0], nodes_per_pod=sizes[1] if sizes[1:] else None,
                  oversubscription=tapers, planes=planes, hop_latency=base.hop_latency,
                  adds=adds, flows=base.flows)  # fmt: skip


def _room(site: Site, hosts: Sequence[Host]) -> Room:
    shape = site.room.free.shape
    free, sliced = np.zeros(shape, bool), np.zeros(shape, bool)
    for host, cards in zip(hosts, site.cards([h.name for h in hosts]), strict=True):
        if host.free:
            some = np.delete(cards, [n for n in host.used if n < len(cards)])
            (sliced if host.sliced else free).ravel()[some] = True
    return Room(site.cluster, free, sliced)
