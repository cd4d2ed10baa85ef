"""NCCL's choice and our clock: conditions, forms, refusals, puzzles with known answers."""

import json
import math
import os
from dataclasses import astuple, replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay import clusters
from roundelay.errors import RoundelayError
from roundelay.simulate import nccl
from roundelay.simulate.dispatch import dispatch_rate, groups_hit
from roundelay.simulate.nccl import graph
from roundelay.simulate.nccl.choice import choose, costs
from roundelay.simulate.nccl.clock import tree_load
from roundelay.simulate.nccl.shape import Shape
from roundelay.simulate.protocols import constants, protocols
from roundelay.topology import Fabric, Nics

cluster = cache(clusters.cluster)
GB, KIB, MIB, GIB = 1e9, 1 << 10, 1 << 20, 1 << 30
MACHINES = ("dgx-a100", "dgx-h100", "hgx-h200", "dgx-b200", "dgx-b300", "gb200-nvl72", "h800",
            "vr200-nvl144", "mi300x")  # fmt: skip


def busbw(name, collective, size, n=None, **more):
    return nccl.predict(cluster(name), collective, size, n, **more).busbw / GB


def chosen(name, collective, size, n):
    found = choose(Shape.of(cluster(name), n), collective, size)
    return found.algorithm, found.protocol


# Protocols


@pytest.mark.parametrize("name", MACHINES)
def test_protocols_start_quick_or_run_fast(name):
    ll, *_, simple = protocols(cluster(name))
    medium = cluster(name).inside.medium
    assert (ll.name, simple.name) == ("LL", "Simple")
    assert ll.base < simple.base
    assert ll.inside < simple.inside
    assert ll.efficiency[medium] < simple.efficiency[medium] < 1


def test_ll128_needs_nvlink():
    assert [p.name for p in protocols(cluster("dgx-h100"))] == ["LL", "LL128", "Simple"]
    assert [p.name for p in protocols(cluster("l40s-pcie"))] == ["LL", "Simple"]


def test_a_cluster_of_cpus_has_its_own_times():
    inside = replace(cluster("l40s-pcie").inside, medium="memory", latency=2e-6, reduce=1e-10)
    here = replace(cluster("l40s-pcie"), generation="cpu", inside=inside)
    (only,) = protocols(here)
    assert (only.inside, only.efficiency["memory"]) == (2e-6, 1.0)
    assert only.reduce == 1e-10
    with pytest.raises(RoundelayError, match="NCCL runs on GPUs"):
        nccl.predict(here, "all_reduce", 1)


def test_every_generation_has_constants():
    found = constants()
    for generation in ("volta", "ampere", "ada", "hopper", "blackwell", "rubin", "cdna3"):
        assert found.row(generation) in found.steps
        assert found.row(generation) in found.point_to_point


def test_a_ring_is_the_form_of_the_protocols():
    machine = cluster("dgx-h100")
    simple = protocols(machine)[-1]
    made = nccl.predict(machine, "all_gather", 512 * MIB, algorithm="ring", protocol="Simple")
    wire = 512 * MIB * 7 / 8 / (simple.efficiency["nvlink"] * 450e9)
    assert made.latency_s == pytest.approx(simple.base + 7 * simple.inside)
    assert made.wire_s == pytest.approx(wire)
    assert made.reduce_s == pytest.approx(wire / 7 * simple.own)


# NCCL's choice


def test_channels_as_the_search_finds_them():
    assert graph.ring(Shape.of(cluster("dgx-a100"), 8)) == (12, 20, 20)
    assert graph.ring(Shape.of(cluster("dgx-h100"), 8)) == (12, 30, 30)
    assert graph.ring(Shape.of(cluster("dgx-b200"), 8)) == (16, 45, 45)
    assert graph.nvls(Shape.of(cluster("dgx-h100"), 8))[:2] == (8, 40)
    assert graph.nvls(Shape.of(cluster("dgx-b200"), 8))[:2] == (8, 80)
    assert graph.usable(Shape.of(cluster("dgx-b200"), 8)) == pytest.approx(721.8)
    assert graph.usable(Shape.of(cluster("dgx-a100"), 8)) == pytest.approx(240)


@pytest.mark.parametrize(("name", "first"), [("dgx-h100", 5), ("gb200-nvl72", 7)])
def test_nvls_is_chosen_above_a_few_cards(name, first):
    large = [n for n in range(2, 9) if chosen(name, "all_reduce", 8 * GIB, n)[0] == "nvls"]
    assert large == list(range(first, 9))


def test_nvls_wins_on_latency_with_fewer_cards_of_blackwell():
    assert chosen("gb200-nvl72", "all_reduce", 16 * MIB, 6) == ("nvls", "Simple")
    sizes = [1 << k for k in range(10, 34)]
    assert all(chosen("gb200-nvl72", "all_reduce", s, 4)[0] == "ring" for s in sizes)


@pytest.mark.parametrize(
    ("machine", "collective", "n", "rows"),
    [
        # github.com/NVIDIA/nccl-tests, issue 309: the log of an H100 node.
        ("dgx-h100", "all_reduce", 8, {MIB: "ring LL", 2 * MIB: "nvls Simple"}),
        ("dgx-h100", "all_reduce", 16, {16 * MIB: "nvls_tree Simple"}),
        ("dgx-h100", "all_reduce", 32, {16 * GIB: "ring Simple"}),
        ("dgx-a100", "all_reduce", 8, {2 * MIB: "ring LL", 4 * MIB: "ring LL128"}),
        ("dgx-a100", "all_reduce", 16, {1: "tree LL", GIB: "tree Simple"}),
    ],
)
def test_choices(machine, collective, n, rows):
    nodes = max(1, n // 8)
    for size, wanted in rows.items():
        assert " ".join(chosen(f"{machine}:{nodes}", collective, size, n)) == wanted


def test_conditions():
    def names(machine, collective):
        return {c.algorithm for c in costs(Shape.of(machine, None), collective, MIB)}

    h100 = cluster("dgx-h100:2")
    assert names(h100, "all_reduce") == {"tree", "ring", "nvls_tree"}
    assert names(h100, "broadcast") == names(h100, "all_gather") == {"ring"}
    sharp = replace(h100, fabric=replace(h100.fabric, adds=True))
    assert {"nvls", "collnet_direct", "collnet_chain"} <= names(sharp, "all_reduce")
    alone = replace(h100, cards=1, nics=replace(h100.nics, count=1))
    assert names(alone, "all_gather") == {"ring", "pat"}
    assert names(cluster("dgx-a100"), "all_reduce") == {"tree", "ring"}
    far = replace(h100, nics=replace(h100.nics, gpudirect=False))
    found = costs(Shape.of(far, None), "all_reduce", MIB)
    assert "LL128" not in {c.protocol for c in found}
    pcie = costs(Shape.of(cluster("l40s-pcie"), 2), "all_reduce", MIB)
    assert "LL128" not in {c.protocol for c in pcie}


def test_small_sizes_open_few_channels():
    shape = Shape.of(cluster("dgx-h100"), 8)
    opened = [choose(shape, "all_reduce", size).channels for size in (KIB, 64 * KIB, MIB)]
    assert opened == [1, 2, 24]


# The clock


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("collective", nccl.COLLECTIVES)
def test_parts_add_up_and_no_rate_is_above_the_line(name, collective):
    machine = cluster(name)
    for size in (0, 1, 4 * KIB, MIB, GIB):
        for n in {2, machine.cards}:
            made = nccl.predict(machine, collective, size, n)
            parts = (made.latency_s, made.wire_s, made.reduce_s, made.wait_s, made.host_s)
            assert math.isclose(sum(parts), made.time_s)
            assert all(part >= 0 for part in parts)
            assert 0 < made.time_s < math.inf
            assert made.band[0] < 1 < made.band[1]
            if not made.algorithm.startswith("nvls"):
                assert made.busbw <= machine.inside.rate


@pytest.mark.parametrize("name", ["dgx-h100:4", "aws-p4d:3", "gb200-nvl72:3", "mi300x:2"])
@pytest.mark.parametrize("collective", nccl.COLLECTIVES)
def test_all_options_of_several_nodes_have_a_time(name, collective):
    machine = cluster(name)
    adds = replace(machine, fabric=Fabric("switch", adds=True))
    for one in (machine, adds):
        for size in (0, MIB, GIB):
            for cost, made in nccl.options(one, collective, size):
                assert (made.algorithm, made.protocol) == (cost.algorithm, cost.protocol)
                assert 0 < made.time_s < math.inf


@given(
    st.sampled_from((*MACHINES, "dgx-h100:16", "aws-p5:2", "l40s-pcie")),
    st.text(max_size=8) | st.sampled_from(nccl.COLLECTIVES),
    st.integers(-2, 2**64),
    st.integers(-1, 200) | st.none(),
    st.sampled_from((None, "ring", "tree", "nvls", "pat", "x")),
    st.sampled_from((None, "LL", "LL128", "Simple", "y")),
)
def test_a_time_or_a_reason(name, collective, size, n, algorithm, protocol):
    try:
        made = nccl.predict(cluster(name), collective, size, n, algorithm, protocol)
    except RoundelayError:
        return
    assert not any(math.isnan(v) for v in astuple(made) if isinstance(v, float))


def test_a_host_that_launches_slowly_is_a_floor():
    machine = cluster("dgx-h100")
    slow = replace(machine, launch=50e-6)
    small, large = (nccl.predict(slow, "all_reduce", s) for s in (8, GIB))
    assert small.time_s == pytest.approx(50e-6)
    assert small.binding_link == "the host's launching"
    assert large.host_s == 0
    assert large.time_s == nccl.predict(machine, "all_reduce", GIB).time_s


def test_what_leaves_a_node_in_a_double_tree():
    assert [tree_load(n) for n in (1, 2, 3, 4, 100)] == [0, 1, 1.5, 2, 2]


def test_a_mesh_gives_few_cards_few_links():
    two, eight = (busbw("mi300x", "all_reduce", 8 * GIB, n) for n in (2, 8))
    assert two < 0.75 * 64
    assert 280 < eight < 336  # seven links of 48 GB/s


def test_odd_machines_have_a_time():
    l40s, a100, mi300x = (cluster(name) for name in ("l40s-pcie", "dgx-a100:2", "mi300x:4"))
    slow = replace(l40s.inside, rate=0.8e9)
    host = replace(l40s.inside, medium="memory")
    adding = replace(a100.inside, multicast=True)
    single = replace(mi300x.inside, kind="mesh")
    for machine, n in (
        (replace(l40s, inside=slow), 2),
        (replace(l40s, inside=host), 2),
        (replace(a100, inside=adding), 16),
        (replace(mi300x, inside=single, cards=1, nics=replace(mi300x.nics, count=1)), 4),
    ):
        for collective in nccl.COLLECTIVES:
            assert 0 < nccl.predict(machine, collective, MIB, n).time_s < 1


def test_gpudirect_off_is_slower():
    near = cluster("dgx-h100:4")
    far = replace(near, nics=replace(near.nics, gpudirect=False))
    times = [nccl.predict(c, "all_reduce", GIB).time_s for c in (near, far)]
    assert times[1] > 1.2 * times[0]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"n": 0}, "0 cards; expected 2 to 8"),
        ({"n": 9}, "give it more nodes"),
        ({"collective": "all_redcue"}, "did you mean all_reduce"),
        ({"size": -1}, "expected 0 or more"),
        ({"algorithm": "tre"}, "expected one of: .*tree with LL"),
        ({"algorithm": "nvls", "protocol": "LL"}, "no all_reduce by nvls with LL"),
    ],
)
def test_refusals(call, words):
    asked = {"collective": "all_reduce", "size": 8} | call
    with pytest.raises(RoundelayError, match=words):
        nccl.predict(cluster("dgx-h100"), **asked)


def test_cards_that_are_no_whole_nodes_and_pcie_trees_are_refused():
    with pytest.raises(RoundelayError, match="no whole nodes of 8"):
        nccl.predict(cluster("dgx-h100:2"), "all_reduce", 8, 12)
    with pytest.raises(RoundelayError, match="share PCIe"):
        nccl.predict(cluster("l40s-pcie"), "all_reduce", 8, 4)


# Puzzles with known answers


def test_ring_and_nvls_of_one_node():
    """Nvidia/nccl-tests issues 326 and 309, nccl issues 1807 and 2140."""
    h100 = busbw("dgx-h100", "all_reduce", 16 * GIB, algorithm="ring")
    assert h100 == pytest.approx(365, rel=0.05)
    assert 0.75 < h100 / 450 < 0.85
    assert busbw("dgx-b300", "all_reduce", 8 * GIB) == pytest.approx(845, rel=0.05)
    assert busbw("dgx-b300", "all_reduce", 8 * GIB, algorithm="ring") == pytest.approx(
        695, rel=0.05
    )
    assert busbw("dgx-b200", "all_reduce", 8 * GIB) > 721.8  # not a rate of wires


def test_a100_is_not_flat_at_512_mib():
    half, full = (busbw("dgx-a100", "all_reduce", s, 8) for s in (512 * MIB, 8 * GIB))
    assert full == pytest.approx(230, rel=0.05)
    assert half < 0.98 * full


def test_two_nodes_by_nvls_four_by_ring():
    """Nvidia/nccl-tests, issue 309."""
    for nodes, wanted in ((1, 482), (2, 470), (4, 365.84)):
        found = busbw(f"dgx-h100:{nodes}", "all_reduce", 16 * GIB)
        assert found == pytest.approx(wanted, rel=0.06)


def test_a_tree_over_two_nodes_beats_the_network_card():
    """Nvidia/nccl-tests, issue 196: 8 cards share one 100 Gb/s network card."""
    machine = replace(cluster("dgx-a100:2"), nics=Nics(1, 12.5e9, "ib", 2.8e-6, True, 31.5e9))
    made = nccl.predict(machine, "all_reduce", 8 * GIB)
    assert made.algorithm == "tree"
    assert "1 network cards of a node" in made.binding_link
    assert 12.5 < made.busbw / GB <= 12.5 * 2 * 15 / 16


def test_three_nodes_with_four_network_cards():
    """Nvidia/nccl-tests, issue 119: 24 A100, 96 GB/s at 127,926,280 bytes."""
    machine = replace(cluster("dgx-a100:3"), nics=Nics(4, 25e9, "ib", 2.8e-6, True, 31.5e9))
    assert nccl.predict(machine, "all_reduce", 127926280).busbw / GB == pytest.approx(
        95.75, rel=0.1
    )


def test_all_to_all_over_two_nodes_counts_what_stays():
    """Nvidia/nccl-tests, issue 181: half of the data stays, so algbw is at most twice the rate."""
    machine = replace(cluster("dgx-a100:2"), nics=Nics(8, 12.5e9, "ib", 2.8e-6, True, 31.5e9))
    made = nccl.predict(machine, "all_to_all", GIB)
    assert "network cards" in made.binding_link
    assert 10 < made.algbw * 8 / 16 / GB <= 12.5


def test_h800_gives_what_its_report_gets():
    """arXiv 2412.19437: 160 of NVLink's 200 GB/s one way; about 45 of the network's 50."""
    machine = cluster("h800:2")
    simple = protocols(machine)[-1]
    assert machine.inside.rate / GB * simple.efficiency["nvlink"] == pytest.approx(160, rel=0.05)
    assert machine.nics.rate / GB * constants().dispatch["network"] == pytest.approx(45)


def test_a_link_of_mi300x():
    """ROCm/rccl, issue 1210."""
    machine = cluster("mi300x")
    (link,) = {machine.inside.rate / machine.inside.links}
    assert link * constants().share["Simple"]["xgmi"] / GB == pytest.approx(48)


# Expert dispatch


@pytest.mark.parametrize(
    ("nodes", "published", "binds"), [(2, 43, "nvlink"), (4, 58, "network"), (8, 51, "network")]
)
def test_deepep_dispatch(nodes, published, binds):
    """DeepEP, docs/legacy.md, H800 with 400 Gb/s: EP16, EP32, EP64, 4,096 tokens, FP8."""
    found = dispatch_rate(cluster(f"h800:{nodes}"))
    assert found.rate / GB == pytest.approx(published, rel=0.08)
    assert found.binds == binds


def test_groups_hit():
    assert groups_hit(8, 256, 8) == pytest.approx(5.2947, abs=1e-4)
    assert groups_hit(16, 256, 8) / groups_hit(2, 256, 8) == pytest.approx(3.2731, abs=1e-4)
    with pytest.raises(RoundelayError, match="one node"):
        dispatch_rate(cluster("h800"))
    with pytest.raises(RoundelayError, match="multiple of the cards"):
        dispatch_rate(cluster("h800:3"))


# Outside data

if DATA := os.environ.get("ROUNDELAY_DATA"):

    def case(name):
        path = next(Path(DATA, "cases", "bandwidth").glob(f"{name}-*.json"))
        return json.loads(path.read_text())

    def test_case_29():
        found = case("29")
        for words, wanted in found["busbw"].items():
            nodes = int(words.split()[0])
            made = busbw(f"dgx-h100:{nodes}", "all_reduce", 16 * GIB)
            assert made == pytest.approx(wanted, rel=0.06)

    def test_case_13():
        found = case("13")
        on, off = (busbw("dgx-b300", "all_reduce", 8 * GIB, algorithm=a) for a in ("nvls", "ring"))
        assert on == pytest.approx(found["busbw_nvls_on"], rel=0.05)
        assert off == pytest.approx(found["busbw_nvls_off"], rel=0.05)

    def test_case_05():
        found = case("05")
        assert graph.usable(Shape.of(cluster("dgx-b200"), 8)) == pytest.approx(found["nccl_maxBw"])
        made = busbw("dgx-b200", "all_reduce", 8 * GIB)
        assert made == pytest.approx(found["measured_busbw_8gpu_GBps"], rel=0.05)

    def test_case_01():
        found = case("01")
        for collective in found["op"].split(","):
            made = busbw("dgx-h100", collective, found["max_bytes"], algorithm="ring")
            assert made == pytest.approx(found["measured_busbw_GBps"], rel=0.06)
