"""Clusters on arrays, beside a graph of the same links and a search for the shortest way."""

import doctest
import itertools
import math
import sys
from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from roundelay.errors import RoundelayError
from roundelay.topology import MEDIA, Cluster, Fabric, Inside, Nics, collision_factor

SWITCH = Inside("switch", "nvlink", 450e9, 18, 3e-6, multicast=True)
MESH = Inside("mesh", "xgmi", 448e9, 7, 1e-6)
PCIE = Inside("bus", "pcie", 31.5e9, latency=2e-6, uplink=31.5e9, between_sockets=22e9)
MEMORY = Inside("bus", "memory", 12e9, latency=2e-6, uplink=80e9, between_sockets=40e9)
IB = Nics(8, 50e9, "ib", 2.8e-6, card_pcie=63e9)


def make(inside=SWITCH, nics=IB, fabric=None, nodes=6, cards=8, **more):
    fabric = fabric or Fabric("switch")
    return Cluster("c", "C", "hopper", nodes, cards, inside, nics, fabric, **more)


def rail(**more):
    return Fabric("rail", nodes_per_leaf=2, hop_latency=0.5e-6, **more)


def tree(**more):
    return Fabric("fat_tree", nodes_per_leaf=2, hop_latency=0.5e-6, **more)


CLUSTERS = {
    "one switch": make(),
    "a node": make(nics=Nics(0), fabric=Fabric("none"), nodes=1),
    "one card a node": make(nics=replace(IB, count=1), cards=1),
    "mesh": make(MESH),
    "mesh, no GPUDirect": make(MESH, replace(IB, gpudirect=False)),
    "shared network cards": make(nics=replace(IB, count=3)),
    "bundled network cards": make(nics=replace(IB, count=32, rate=12.5e9)),
    "no GPUDirect": make(nics=replace(IB, gpudirect=False), fabric=rail()),
    "PCIe": make(PCIE, replace(IB, count=3, rate=25e9)),
    "PCIe, no GPUDirect": make(PCIE, replace(IB, count=1, gpudirect=False)),
    "PCIe, nothing shared": make(replace(PCIE, uplink=None), replace(IB, count=4)),
    "PCIe, one socket": make(replace(PCIE, between_sockets=None), sockets=1),
    "PCIe, four sockets": make(PCIE, replace(IB, count=4), sockets=4),
    "memory": make(MEMORY, replace(IB, count=1, medium="tcp", gpudirect=False)),
    "rail": make(fabric=rail(oversubscription=(2.0,))),
    "rail, three levels": make(fabric=rail(nodes_per_pod=4), nodes=9),
    "rail, planes": make(fabric=rail(planes=4)),
    "fat tree": make(fabric=tree()),
    "fat tree, three levels": make(
        fabric=tree(nodes_per_pod=4, oversubscription=(1.0, 3.0)), nodes=10
    ),
    "fat tree, planes": make(fabric=tree(planes=8)),
    "switches, planes": make(nics=replace(IB, count=4), fabric=Fabric("switch", planes=2)),
    "dragonfly": make(fabric=Fabric("dragonfly", nodes_per_group=2, hop_latency=0.5e-6)),
    "dragonfly, planes": make(
        fabric=Fabric("dragonfly", nodes_per_group=4, planes=2, oversubscription=(2.0,)), nodes=9
    ),
    "dragonfly, one group": make(fabric=Fabric("dragonfly", nodes_per_group=8)),
}  # fmt: skip
TORI = {
    "torus": make(nics=replace(IB, count=6), cards=1, nodes=24,
                  fabric=Fabric("torus", dims=(4, 3, 2), hop_latency=0.5e-6)),
    "ring": make(nics=replace(IB, count=4), cards=4, nodes=5, fabric=Fabric("torus", dims=(5,))),
}  # fmt: skip
EVERY = [pytest.param(c, id=name) for name, c in (CLUSTERS | TORI).items()]
EACH = [pytest.param(c, id=name) for name, c in CLUSTERS.items()]


class Graph:
    """The links of a cluster as edges with their names, written down one by one."""

    def __init__(self, c, network=True):
        self.c, self.edges = c, {}
        for node in range(c.nodes):
            self.inside(node)
            for port in range(c.ports) if network else ():
                self.join(
                    ("nic up", node, port), ("port", node, port), f"NIC {port} of node {node}, out"
                )
                self.join(
                    ("port in", node, port),
                    ("nic down", node, port),
                    f"NIC {port} of node {node}, in",
                )
                self.between(node, port)

    def join(self, a, b, name=None):
        self.edges.setdefault(a, []).append((b, name))

    def inside(self, node):
        c = self.c
        for i in range(c.cards):
            card = node * c.cards + i
            port = i * c.ports // c.cards
            out, into = (f"card {i} of node {node}, {way}" for way in ("out", "in"))
            switch = ("switch", c.size + node)
            if c.inside.kind == "switch":
                self.join(("src", card), switch, out)
                self.join(switch, ("dst", card), into)
            if c.inside.kind == "mesh":
                for j in set(range(c.cards)) - {i}:
                    self.join(
                        ("src", card),
                        ("dst", node * c.cards + j),
                        f"card {i} to card {j} of node {node}",
                    )
            if c.inside.kind == "bus":
                self.bus(node, i, port)
                continue
            direct = c.nics.gpudirect
            self.join(("src", card), ("nic up", node, port), None if direct else f"PCIe of {out}")
            self.join(
                ("nic down", node, port), ("dst", card), None if direct else f"PCIe of {into}"
            )
            for j in range(c.cards) if c.fabric.planes > 1 else ():
                # to a card of the sender's node, and out from there
                there = node * c.cards + j
                away = j * c.ports // c.cards
                if c.inside.kind == "switch" and port % c.fabric.planes != away % c.fabric.planes:
                    self.join(("src", card), ("half", card, there), out)
                    self.join(
                        ("half", card, there),
                        ("nic up", node, away),
                        f"card {j} of node {node}, in",
                    )

    def bus(self, node, i, port):
        """From `low` to `low`: straight, or up to the host, on to another socket, and down."""
        c, (socket, home) = self.c, (self.socket(i), self.home(port))
        card, memory = node * c.cards + i, c.inside.medium == "memory"
        self.join(("src", card), ("card", node, socket, port), f"card {i} of node {node}, out")
        self.join(("to card", node, socket, port), ("dst", card), f"card {i} of node {node}, in")
        self.join(("nic down", node, port), ("nic", node, home, port))
        self.join(("to nic", node, home, port), ("nic up", node, port))
        self.join(("card host", node, socket, port), ("switch", c.size + node))
        down = f"socket {socket} of node {node}, in" if c.inside.uplink else None
        self.join(("from host", c.size + node), ("to card", node, socket, port), down)
        for j in range(c.cards):
            self.through("card", "to card", node, i, j, memory)
        self.through("card", "to nic", node, i, None, memory or not c.nics.gpudirect)
        self.through("nic", "to card", node, None, i, memory or not c.nics.gpudirect)

    def through(self, start, end, node, i, j, bounce):
        """From the socket of card i to that of card j; None: to its network card."""
        port, to = ((k or 0) * self.c.ports // self.c.cards for k in (i, j))
        port, to = (to if i is None else port), (port if j is None else to)
        s, t = (self.home(port) if k is None else self.socket(k) for k in (i, j))
        shared = self.c.inside.uplink
        host = (f"{start} host", node, s, port)
        self.join(
            (start, node, s, port), host, f"socket {s} of node {node}, out" if shared else None
        )
        there = host
        if s != t:
            there = (f"{start} over {end}", node, s, t, port)
            self.join(host, there, f"socket {s} to socket {t} of node {node}")
        elif not bounce:
            self.join((start, node, s, port), (end, node, t, to))
            return
        self.join(there, (end, node, t, to), f"socket {t} of node {node}, in" if shared else None)

    def socket(self, i):
        return i * self.c.sockets // self.c.cards

    def home(self, port):
        first = (k for k in range(self.c.cards) if k * self.c.ports // self.c.cards == port)
        return self.socket(next(first))

    def between(self, node, port):
        c, f = self.c, self.c.fabric
        plane = port % f.planes
        if f.kind == "torus":
            return
        spans = [f.nodes_per_leaf or f.nodes_per_group or c.nodes]
        names = ["switch"]
        if f.kind in ("rail", "fat_tree"):
            spans += [f.nodes_per_pod, c.nodes] if f.nodes_per_pod else [c.nodes]
            names = ["leaf", "spine", "core"] if f.nodes_per_pod else ["leaf", "spine"]
        first, below = c.size + c.nodes, None
        for level, (span, name) in enumerate(zip(spans, names, strict=True)):
            each = c.ports if f.kind == "rail" and level == 0 else f.planes
            part, group = port % each, node // span
            here = ("switch", first + group * each + part)
            if below is None:
                self.join(("port", node, port), here)
                self.join(here, ("port in", node, port))
            else:
                self.join(below[0], here, f"{below[1]}, up")
                self.join(here, below[0], f"{below[1]}, down")
            below = here, f"{name} {part} of group {group}"
            first += math.ceil(c.nodes / span) * each
        if f.kind == "dragonfly":
            group, groups = node // f.nodes_per_group, math.ceil(c.nodes / f.nodes_per_group)
            for other in set(range(groups)) - {group}:
                far = ("far", other, plane)
                self.join(("port", node, port), ("leaves", group, plane))
                self.join(
                    ("leaves", group, plane), far, f"group {group} to group {other}, plane {plane}"
                )
                self.join(("far", group, plane), ("port in", node, port))

    def shortest(self, start, goal):
        """Names of the links on the way with the fewest; None where there is none."""
        best, todo = {start: []}, deque([start])
        while todo:
            at = todo.popleft()
            for to, name in self.edges.get(at, ()):
                way = best[at] + ([name] if name else [])
                if to not in best or len(way) < len(best[to]):
                    best[to] = way
                    todo.append(to)
        return best.get(goal)


def named(c, path, k):
    return [c.link_name(int(i)) for i in path.links[:, k] if i >= 0]


@pytest.mark.parametrize("c", EACH)
def test_ways_between_cards_are_the_shortest_in_the_graph(c):
    inside, graph = Graph(c, network=False), Graph(c)
    some = sorted({0, 1, c.cards // 2, c.size // 2, c.size - 1} & set(range(c.size)))
    pairs = list(itertools.product(some, range(c.size)))
    path = c.path(*np.array(pairs).T)
    for k, (a, b) in enumerate(pairs):
        if a == b:
            assert named(c, path, k) == []
            continue
        here = a // c.cards == b // c.cards
        way = (inside if here else graph).shortest(("src", a), ("dst", b))
        if path.forwarded[k]:  # over either node is as short; this one is over the sender's
            assert len(named(c, path, k)) == len(way)
            assert named(c, path, k)[0] == f"card {a % c.cards} of node {a // c.cards}, out"
            continue
        assert named(c, path, k) == way, (a, b)


@pytest.mark.parametrize("c", EACH)
def test_ways_to_switches_and_back_are_those_in_the_graph(c):
    graph = Graph(c)
    if c.inside.kind == "mesh":
        levels = range(c.size + c.nodes, c.size + c.nodes + sum(x.count for x in c.levels))
    else:
        levels = range(c.size, c.size + c.nodes + sum(x.count for x in c.levels))
    for card in {0, c.size // 2, c.size - 1}:
        for switch in levels:
            up = graph.shortest(("src", card), ("switch", switch))
            start = ("from host" if ("from host", switch) in graph.edges else "switch", switch)
            down = graph.shortest(start, ("dst", card))
            above = up is not None and not forwards(c, card, switch) and climbs(up)
            if not above:
                with pytest.raises(RoundelayError, match="no way between"):
                    c.path(card, switch)
                continue
            path = c.path([card, switch], [switch, card])
            assert named(c, path, 0) == up
            assert named(c, path, 1) == down
            assert path.between.tolist() == [switch >= c.size + c.nodes] * 2


def climbs(way):
    return not any("down" in name or ("NIC" in name and name.endswith("in")) for name in way)


def forwards(c, card, switch):
    """Whether the switch is on another plane than the card."""
    if switch < c.size + c.nodes or c.fabric.planes == 1:
        return False
    port = card % c.cards * c.ports // c.cards
    name = c.position_name(switch)
    part = int(name.split()[1])
    each = c.ports if name.startswith("leaf") and c.fabric.kind == "rail" else c.fabric.planes
    return port % each != part


def test_ways_between_switches():
    c = CLUSTERS["fat tree, three levels"]
    leaf, spine, core = c.above([0, 8]), c.above([0, 16]), c.above([0, 32])
    assert (leaf, spine, core) == (90, 95, 98)
    path = c.path([leaf, leaf, spine, core], [spine, core, leaf, spine])
    up = ["leaf 0 of group 0, up", "spine 0 of group 0, up"]
    assert [named(c, path, k) for k in range(4)] == [
        up[:1], up, ["leaf 0 of group 0, down"], ["spine 0 of group 0, down"],
    ]  # fmt: skip
    assert path.latency == pytest.approx([0.5e-6, 1e-6, 0.5e-6, 0.5e-6])
    assert path.between.all()
    for a, b in ((leaf, leaf + 1), (leaf, spine + 1), (c.size, leaf), (spine, spine + 1)):
        with pytest.raises(RoundelayError, match="no way between"):
            c.path(a, b)


@pytest.mark.parametrize("c", EVERY)
def test_above_is_the_lowest_switch_that_all_reach(c):
    rng = np.random.default_rng(5)
    last = c.size + c.nodes + sum(level.count for level in c.levels)
    for count in (1, 2, 3, c.size):
        cards = rng.choice(c.size, min(count, c.size), replace=False)
        reached = [s for s in range(c.size, last) if all(reaches(c, card, s) for card in cards)]
        if c.inside.kind == "mesh" and len(set(cards // c.cards)) == 1:
            reached = []
        if reached:
            assert c.above(cards) == reached[0]
        else:
            with pytest.raises(RoundelayError, match="switch"):
                c.above(cards)


def reaches(c, card, switch):
    try:
        c.path(card, switch)
    except RoundelayError:
        return False
    return True


# Tori: dimension by dimension, the shorter way round.


@pytest.mark.parametrize("c", [pytest.param(c, id=name) for name, c in TORI.items()])
def test_ways_of_a_torus_step_from_neighbour_to_neighbour(c):
    dims = c.fabric.dims
    torus = next(links for links in c.links if links.name == "torus")
    for a, b in itertools.product(range(c.nodes), repeat=2):
        if a == b:
            continue
        ids = [int(i) for i in c.path(a * c.cards, b * c.cards).links[:, 0] if i >= 0]
        at = list(np.unravel_index(a, dims))
        seen = []
        for id in ids:
            node, dimension, way = np.unravel_index(id - torus.first, torus.shape)
            assert node == np.ravel_multi_index(at, dims)
            at[dimension] = (at[dimension] + (1, -1)[way]) % dims[dimension]
            seen.append(dimension)
        assert seen == sorted(seen)
        assert at == list(np.unravel_index(b, dims))
        gaps = [abs(x - y) for x, y in zip(np.unravel_index(a, dims), at, strict=True)]
        assert len(ids) == sum(min(g, s - g) for g, s in zip(gaps, dims, strict=True))


def test_torus_has_its_figures():
    c = TORI["torus"]
    assert [(x.name, x.count, x.rate) for x in c.links][2:] == [("torus", 24 * 3 * 2, 50e9)]
    assert c.path(0, 23).latency == pytest.approx(
        [2.8e-6 + 2 * 0.5e-6]
    )  # (3, 2, 1): 1 + 1 + 1 hops
    assert c.bisection() == 2 * 6 * 50e9


# Links: their numbers, rates and names.


@pytest.mark.parametrize("c", EVERY)
def test_tables_of_links_agree_with_the_classes(c):
    assert len(c.rates) == len(c.media) == sum(links.count for links in c.links)
    assert all(links.first == sum(x.count for x in c.links[:k]) for k, links in enumerate(c.links))
    for links in c.links:
        ids = np.arange(links.first, links.first + links.count)
        assert (c.rates[ids] == links.rate).all()
        assert {MEDIA[m] for m in c.media[ids]} == {links.medium}
    names = [c.link_name(i) for i in range(len(c.rates))]
    assert len(set(names)) == len(names)
    for id in (-1, len(c.rates)):
        with pytest.raises(RoundelayError, match="link"):
            c.link_name(id)


def counts(c):
    return {links.name: (links.count, links.cables, links.rate) for links in c.links}


def test_numbers_of_links():
    assert counts(make(nodes=3)) == {
        "card out": (24, 18, 450e9), "card in": (24, 18, 450e9),
        "NIC out": (24, 1, 50e9), "NIC in": (24, 1, 50e9),
    }  # fmt: skip
    mesh = counts(CLUSTERS["mesh, no GPUDirect"])
    assert mesh["card to card"] == (6 * 8 * 7, 1, 64e9)
    assert mesh["card PCIe out"] == (48, 1, 63e9)
    assert counts(make(replace(MESH, links=9), replace(IB, count=4), cards=4))["card to card"] == (
        72,
        3,
        448e9 / 3,
    )
    assert counts(CLUSTERS["bundled network cards"])["NIC out"] == (48, 4, 50e9)
    assert counts(CLUSTERS["shared network cards"])["NIC out"] == (18, 1, 50e9)
    pcie = counts(CLUSTERS["PCIe, four sockets"])
    assert pcie["socket out"][0] == 24
    assert pcie["between sockets"] == (6 * 4 * 3, 1, 22e9)


def test_bundles_upwards_have_the_rate_of_what_is_below():
    three = counts(make(fabric=rail(nodes_per_pod=4, oversubscription=(2.0, 4.0)), nodes=8))
    assert three["leaf up"] == (4 * 8, 1, 2 * 50e9 / 2)
    assert three["spine down"] == (2, 4, 4 * 8 * 50e9 / 8)
    planes = counts(CLUSTERS["fat tree, planes"])
    assert planes["leaf up"] == (3 * 8, 2, 100e9)
    fly = counts(CLUSTERS["dragonfly, planes"])
    assert fly["group to group"] == (2 * 3 * 2, 4, 4 * 4 * 50e9 / 2 / 2)


def test_a_hundred_thousand_cards_take_megabytes():
    c = make(fabric=Fabric("rail", nodes_per_leaf=32, nodes_per_pod=256), nodes=12_500)
    assert c.size == 100_000
    assert c.rates.nbytes + c.media.nbytes < 5e6
    assert c.path(0, 99_999).links.shape == (6, 1)


# Latencies and forwarding.


def test_latency_counts_switches():
    c = CLUSTERS["rail, three levels"]
    path = c.path([0, 0, 0, 0, 0], [1, 8, 17, 71, 0])
    assert path.latency == pytest.approx([3e-6, 2.8e-6, 3.8e-6, 4.8e-6, 0])
    assert path.between.tolist() == [False, True, True, True, False]
    assert c.path(0, c.above([0, 8])).latency == pytest.approx([1.4e-6])
    assert c.path(0, c.above([0, 71])).latency == pytest.approx([1.4e-6 + 1e-6])
    assert c.path(c.size, 5).latency == pytest.approx([1.5e-6])
    fly = CLUSTERS["dragonfly"]
    assert fly.path([0, 0], [8, 16]).latency == pytest.approx([2.8e-6, 3.3e-6])


def test_other_plane_is_reached_over_the_own_node():
    c = CLUSTERS["fat tree, planes"]
    path = c.path([0, 0], [8 * 2 + 3, 8 * 2])
    assert named(c, path, 0) == [
        "card 0 of node 0, out", "card 3 of node 0, in", "NIC 3 of node 0, out",
        "leaf 3 of group 0, up", "leaf 3 of group 1, down", "NIC 3 of node 2, in",
    ]  # fmt: skip
    assert path.forwarded.tolist() == [True, False]
    assert path.latency == pytest.approx([2.8e-6 + 1e-6 + 3e-6, 2.8e-6 + 1e-6])
    mesh = make(MESH, fabric=tree(planes=8))
    assert named(mesh, mesh.path(0, 19), 0)[0] == "card 0 to card 3 of node 0"


def test_no_messages_have_no_ways():
    path = make().path(np.array([], int), 0)
    assert (path.links.shape, path.latency.shape) == ((0, 0), (0,))


def test_positions_have_names():
    c = CLUSTERS["rail, three levels"]
    names = [c.position_name(p) for p in (0, 17, 72, 81, 89, 121, 124)]
    assert names == [
        "card 0 of node 0", "card 1 of node 2", "the switch of node 0", "leaf 0 of group 0",
        "leaf 0 of group 1", "spine 0 of group 0", "core 0 of group 0",
    ]  # fmt: skip


def test_bisection():
    assert make(nodes=1, nics=Nics(0), fabric=Fabric("none")).bisection() == 4 * 450e9
    assert make(MESH, nodes=1, nics=Nics(0), fabric=Fabric("none")).bisection() == 16 * 64e9
    assert make(PCIE, nodes=1, nics=Nics(0), fabric=Fabric("none")).bisection() == 22e9
    assert make().bisection() == 3 * 8 * 50e9
    assert make(fabric=rail(oversubscription=(2.0,)), nodes=8).bisection() == 4 * 8 * 50e9 / 2
    assert make(nodes=5).network_rate == 50e9


# Collisions of hashed flows.


@pytest.mark.parametrize(
    ("links", "flows"), [(1, 4), (2, 2), (8, 8), (32, 32), (32, 512), (64, 256)]
)
def test_collisions_are_those_of_balls_in_boxes(links, flows):
    rng = np.random.default_rng(1)
    thrown = rng.integers(0, links, (4000, flows)) + links * np.arange(4000)[:, None]
    loads = np.bincount(thrown.ravel(), minlength=4000 * links).reshape(4000, links)
    expected = flows / links / loads.max(axis=1).mean()
    assert collision_factor(links, flows) == pytest.approx(expected, rel=0.03)


def test_example_of_collisions_is_right():
    assert doctest.testmod(sys.modules[collision_factor.__module__]) == (0, 1)


def test_collisions_of_many_flows_are_few():
    assert 0.97 < collision_factor(32, 32 * 10_000) < 1
    assert 0.999 < collision_factor(32, 32 * 10_000_000) <= 1
    assert collision_factor(1, 1) == pytest.approx(1)
    c = make(fabric=rail(flows=4), nodes=8)
    assert counts(c)["leaf up"][2] == pytest.approx(100e9 * collision_factor(2, 8))


# What is refused.


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: replace(SWITCH, rate=0.0), "inside.rate: 0 bytes a second; expected"),
        (lambda: replace(SWITCH, rate=-1e9), "inside.rate"),
        (lambda: replace(SWITCH, rate=math.nan), "inside.rate"),
        (lambda: replace(SWITCH, links=0), "inside.links: 0; expected 1 to"),
        (lambda: replace(SWITCH, latency=-1e-6), "inside.latency: -1e-06 s; expected 0 s, or"),
        (lambda: replace(SWITCH, latency=60.0), "inside.latency"),
        (lambda: replace(SWITCH, kind="ring"), "inside.kind: 'ring'; expected switch or mesh"),
        (lambda: replace(SWITCH, uplink=1e9), "inside.uplink is for a bus"),
        (lambda: replace(MESH, multicast=True), "only a switch adds"),
        (lambda: replace(IB, medium="atm"), "nics.medium"),
        (lambda: Nics(0, rate=1e9), "nics.count: 0, but more is said"),
        (lambda: Fabric("switch", nodes_per_leaf=4), "nodes_per_leaf is for rail and fat_tree"),
        (lambda: Fabric("rail"), "fabric.nodes_per_leaf is missing"),
        (lambda: Fabric("torus"), "fabric.dims is missing"),
        (lambda: Fabric("torus", dims=(4, 1)), "fabric.dims: 1; expected 2 to"),
        (lambda: rail(nodes_per_pod=5), "expected a multiple of nodes_per_leaf, 2"),
        (lambda: rail(oversubscription=(0.5,)), "fabric.oversubscription: 0.5; expected 1"),
        (lambda: rail(oversubscription=(1.0, 1.0)), "oversubscription: 1, 1; expected 1 of them"),
        (lambda: rail(flows=0), "fabric.flows: 0; expected 1 to 65,536"),
        (lambda: make(nodes=0), "nodes: 0; expected 1 to"),
        (lambda: make(cards=2**24), "nodes \\* cards"),
        (lambda: make(hosts=3), "hosts: 3; expected a divisor of the 8 cards"),
        (lambda: make(launch=-1.0), "launch"),
        (lambda: make(fabric=Fabric("none")), "6 nodes are not connected"),
        (lambda: make(nics=Nics(0), fabric=Fabric("none")), "6 nodes are not connected"),
        (lambda: make(nics=Nics(0), nodes=1), "fabric.kind: switch; expected none"),
        (lambda: make(nics=replace(IB, count=12)), "nics.count: 12; expected at most 8, or"),
        (lambda: make(nics=replace(IB, card_pcie=31.5e9)), "through PCIe of 31.5 GB/s"),
        (lambda: make(nics=replace(IB, count=16)), "2 network cards of a card would take 100 GB/s"),
        (lambda: make(fabric=tree(planes=3)), "fabric.planes: 3; expected a divisor of the 8"),
        (lambda: make(fabric=Fabric("switch", radix=40)), "40 ports, but 48 network cards"),
        (lambda: make(fabric=tree(radix=8)), "8 ports, but 16 network cards"),
        (lambda: make(replace(MESH, links=6)), "a mesh of 8 cards needs at least 7"),
        (lambda: make(replace(PCIE, between_sockets=None)), "2 sockets of a node are not"),
        (lambda: make(fabric=Fabric("torus", dims=(2, 2))), "2 x 2 are 4 nodes; the cluster has 6"),
        (lambda: make(fabric=Fabric("torus", dims=(2, 3)), nics=replace(IB, count=2)), "needs 4"),
        (lambda: TORI["torus"].scaled(25), "4 x 3 x 2 are 24 nodes"),
        (lambda: make().path(0, 54 + 1), "positions 55 to 55; expected 0 to 54"),
        (lambda: make().path(-1, 0), "positions -1"),
        (lambda: make().path(0.5, 0), "positions of type float64"),
        (lambda: make().above([48]), "expected some of 0 to 47"),
        (lambda: make().above([]), "expected some of"),
        (lambda: make(MESH).above([0, 1]), "cards in a mesh have no switch above them"),
        (lambda: make(MESH).path(0, 48), "cards in a mesh have no switch above them"),
        (lambda: CLUSTERS["fat tree, planes"].above([0, 9]), "no switch stands above all 2 cards"),
        (lambda: TORI["ring"].above([0, 5]), "no switch stands above"),
    ],
)  # fmt: skip
def test_refused(build, says):
    with pytest.raises(RoundelayError, match=says):
        build()


def test_scaled_changes_the_nodes_alone():
    c = make(fabric=rail())
    assert c.scaled(3) == make(fabric=rail(), nodes=3)
    assert hash(c.scaled(3)) == hash(make(fabric=rail(), nodes=3))
