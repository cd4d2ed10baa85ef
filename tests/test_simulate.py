"""The clock: its shortcuts against the recurrence spelt out, shared links, parts, what is slow."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("roundelay._native", reason="the native core is not built")

import roundelay as rl
from roundelay.algorithms import algorithms, find
from roundelay.clusters import cluster
from roundelay.errors import RoundelayError
from roundelay.simulate.alike import kinds
from roundelay.simulate.candidates import candidates, quickest
from roundelay.simulate.clock import Clock
from roundelay.simulate.disturb import Jitter, expected_most, spread, table
from roundelay.simulate.machine import Machine
from roundelay.simulate.phases import phases
from roundelay.simulate.recurrence import Costs, events
from roundelay.simulate.sharing import fair_rates

EVERY = [pytest.param(a, id=f"{a.collective}-{a.name}") for a in algorithms()]


def built(a, n, **given):
    """Its schedule; None where n or a parameter does not suit it."""
    try:
        return a(n, **given)
    except RoundelayError:
        return None


def fitting(a, numbers):
    return [n for n in numbers if a.fits(n)]


def spelt_out(found, costs):
    """[participant] when its last message has ended or left, by the recurrence in Python."""
    ends = np.zeros(found.participants, np.int64)
    for e in events(found, costs):
        src, dst = int(e.phase.src[e.message]), int(e.phase.dst[e.message])
        offset = 0
        for phase in found.phases:
            if phase is e.phase:
                break
            offset += len(phase)
        ends[dst] = max(ends[dst], e.end)
        ends[src] = max(ends[src], e.begin + int(costs.busy[offset + e.message]))
    return ends


def unit(found):
    one = np.ones(sum(len(p) for p in found.phases), np.int64)
    return Costs(one, one)


@pytest.mark.parametrize("a", EVERY)
def test_the_native_recurrence_is_the_one_spelt_out(a):
    for n in fitting(a, (1, 2, 3, 4, 5, 8, 11)):
        found = phases(a(n))
        rng = np.random.default_rng(n)
        whole = rng.integers(1, 1000, sum(len(p) for p in found.phases))
        for costs in (unit(found), Costs(whole, np.maximum(1, whole // 3))):
            wanted = spelt_out(found, costs)
            machine = Machine(found)
            assert (machine.run(costs, steady=False) == wanted).all()
            assert (machine.run(costs) == wanted).all()


@pytest.mark.parametrize("a", EVERY)
def test_where_every_message_takes_one_step_it_takes_the_steps(a):
    """Fewer only where one part hands on piece by piece what another brings."""
    for n in fitting(a, (2, 3, 4, 7, 8, 12)):
        schedule = a(n)
        found = phases(schedule)
        time = Machine(found).run(unit(found)).max()
        assert rl.cost(schedule).depth <= time <= schedule.steps
        if not any(p.by_piece for p in found.phases):
            assert time == schedule.steps


def test_a_chain_of_8_with_16_pieces_takes_22_steps():
    found = phases(find("broadcast/chain")(8, pieces=16))
    assert Machine(found).run(unit(found)).max() == 22


def test_a_tree_broadcasts_while_it_reduces():
    schedule = find("all_reduce/double_tree")(8, pieces=64)
    found = phases(schedule)
    assert schedule.steps == 132
    assert Machine(found).run(unit(found)).max() == 64 + 5


def timed(clock, size, protocol=None):
    """Its time, or what is said where the cluster has no switches that add."""
    try:
        return clock.time(size, protocol)
    except RoundelayError as error:
        return str(error)


@pytest.mark.parametrize("straggler", [(), ((3, 1.7),)], ids=["alike", "one_late"])
@pytest.mark.parametrize("a", EVERY)
def test_shortcuts_change_nothing(a, straggler):
    """On one node, on several, and on one with uneven rails; to the picosecond."""
    for name, n in (("dgx-h100", 8), ("dgx-h100:3", 24), ("dgx-a100:4", 32), ("dgx-h100:3", 21)):
        where = cluster(name)
        given = {"group": 8} if "group" in a.parameters and n > 8 else {}
        schedule = built(a, n, **given)
        if schedule is None:
            continue
        quick = Clock(schedule, where, slow_ranks=straggler)
        slow = Clock(schedule, where, slow_ranks=straggler, shortcuts=False)
        for size in (8, 100_000, 1 << 26):
            assert timed(quick, size) == timed(slow, size)


@pytest.mark.soak
@pytest.mark.parametrize("a", EVERY)
def test_shortcuts_change_nothing_at_512_ranks(a):
    where = cluster("dgx-h100:64")
    for n in (64, 120, 512):
        given = {"group": 8} if "group" in a.parameters else {}
        schedule = None if a.dense and n > 128 else built(a, n, **given)
        if schedule is None:
            continue
        for straggler in ((), ((5, 1.1),)):
            quick = Clock(schedule, where, slow_ranks=straggler)
            slow = Clock(schedule, where, slow_ranks=straggler, shortcuts=False)
            for size in (8, 1 << 26):
                assert timed(quick, size, "Simple") == timed(slow, size, "Simple")


@pytest.mark.parametrize("name", ["ring", "halving_doubling", "double_tree", "rails"])
def test_a_share_of_512_ranks(name):
    where = cluster("dgx-h100:64")
    schedule = find(f"all_reduce/{name}")(512)
    for straggler in ((), ((5, 1.1),)):
        quick = Clock(schedule, where, slow_ranks=straggler)
        slow = Clock(schedule, where, slow_ranks=straggler, shortcuts=False)
        assert quick.time(1 << 20, "LL") == slow.time(1 << 20, "LL")


def test_repetitions_that_come_again_after_several_steps_are_multiplied_exactly():
    """In a ring over nodes every eighth message is slow, so the pattern has eight steps."""
    found = phases(find("all_reduce/ring")(64))
    whole = np.where(np.arange(128) % 8 == 7, 5000, 700)
    costs = Costs(whole, whole // 2)
    machine = Machine(found)
    assert (machine.run(costs) == machine.run(costs, steady=False)).all()
    assert (machine.run(costs) == spelt_out(found, costs)).all()


def test_ranks_of_a_ring_over_equal_nodes_are_of_as_many_kinds_as_a_node_has():
    clock = Clock(find("all_reduce/ring")(256), cluster("dgx-h100:32"))
    assert clock.usual.kinds.phases.participants == 8
    assert len(Clock(find("all_reduce/halving_doubling")(256), cluster("dgx-h100:32"))
               .usual.kinds.messages) == 16  # fmt: skip


def test_kinds_part_what_differs():
    found = phases(find("all_reduce/ring")(16))
    differ = np.zeros(32)
    differ[3] = 1
    assert kinds(found, [np.zeros(32)], ()).phases.participants == 1
    assert kinds(found, [differ], ()).phases.participants == 16


def progressive(links, capacity):
    """Max-min fair rates by filling up slowly, one link at a time."""
    rate = np.full(links.shape[1], np.inf)
    room = dict(enumerate(capacity.tolist()))
    going = {m for m in range(links.shape[1]) if (links[:, m] >= 0).any()}
    while going:
        users = {k: [m for m in going if k in links[:, m]] for k in room}
        shares = {k: room[k] / len(u) for k, u in users.items() if u}
        link = min(shares, key=lambda k: shares[k])
        for m in users[link]:
            rate[m] = shares[link]
            going.discard(m)
            for k in links[:, m]:
                if k >= 0:
                    room[k] -= shares[link]
    return rate


@given(st.integers(1, 12), st.integers(1, 3), st.integers(1, 6), st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_shared_rates_are_max_min_fair(messages, hops, count, seed):
    rng = np.random.default_rng(seed)
    links = np.full((hops, messages), -1)
    for m in range(messages):
        used = rng.permutation(count)[: rng.integers(0, min(hops, count) + 1)]
        links[: len(used), m] = used
    capacity = rng.integers(1, 9, count).astype(float)
    assert fair_rates(links, capacity) == pytest.approx(progressive(links, capacity))


@pytest.mark.parametrize("a", EVERY)
@pytest.mark.parametrize("where", ["dgx-h100:2", "l40s-pcie", "mi300x", "h800:2", "aws-p4d:2"])
def test_no_link_carries_more_than_it_can_and_parts_add_up(a, where):
    there = cluster(where)
    n = min(there.size, 16)
    given = {"group": there.cards} if "group" in a.parameters and n > there.cards else {}
    schedule = built(a, n, **given)
    if schedule is None:
        return
    if schedule.helpers and not (there.inside.multicast and there.fabric.adds):
        with pytest.raises(RoundelayError, match="switch"):
            Clock(schedule, there).time(8)
        return
    clock = Clock(schedule, there)
    timings = [clock.time(size) for size in (0, 1, 4096, 3_000_001, 1 << 30)]
    for t in timings:
        parts = (t.latency, t.wire, t.reduce, t.wait, t.host)
        assert all(p >= 0 and np.isfinite(p) for p in parts)
        assert sum(parts) == pytest.approx(t.time, rel=1e-9)
        assert t.time >= t.link_time
    assert [t.time for t in timings] == sorted(t.time for t in timings)


def test_a_ring_costs_what_its_protocol_says():
    """base + steps * inside + bytes / (share * rate) + the own chunk's copy."""
    where = cluster("dgx-h100")
    clock = Clock(find("all_reduce/ring")(8), where)
    for protocol in clock.protocols:
        size = 1 << 28
        rate = where.inside.rate * protocol.efficiency["nvlink"]
        wanted = protocol.base + 14 * protocol.inside + size * 14 / 8 / rate
        wanted += protocol.own * size / 8 / rate + protocol.filled(size, 8)
        assert clock.time(size, protocol.name).time == pytest.approx(wanted, rel=1e-6)


def test_the_machine_of_deepseek_gives_160_and_45_gb_s():
    """NVLink of 200 GB/s one way and a network of 50: what its report gets of them, as answers."""
    where = cluster("h800:2")
    size = 1 << 32
    inside = Clock(find("send_recv/direct")(2), where).time(size).time
    between = Clock(find("send_recv/direct")(2), where, cards=[0, 8]).time(size).time
    assert size / inside / 1e9 == pytest.approx(160, rel=0.05)
    assert size / between / 1e9 == pytest.approx(45, rel=0.08)


def test_a_rank_that_is_slow_makes_a_ring_wait():
    where = cluster("dgx-h100")
    schedule = find("all_reduce/ring")(8)
    usual = Clock(schedule, where).time(1 << 24)
    late = Clock(schedule, where, slow_ranks=[(5, 1.5)]).time(1 << 24)
    assert late.time > usual.time
    assert late.wait - usual.wait == pytest.approx(late.time - usual.time)
    assert (late.latency, late.wire) == (usual.latency, usual.wire)


def test_a_link_that_is_slow_binds():
    where = cluster("dgx-h100:4")
    link = next(k for k in range(len(where.rates)) if "NIC 3 of node 1, out" in where.link_name(k))
    schedule = find("all_reduce/rails")(32, group=8)
    usual = Clock(schedule, where).time(1 << 30)
    slow = Clock(schedule, where, slow_links={link: 4.0}).time(1 << 30)
    assert slow.binding_link == "NIC 3 of node 1, out"
    assert slow.time > 2 * usual.time


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"slow_ranks": [(8, 2.0)]}, "rank 8; expected 0 to 7"),
        ({"slow_ranks": [(1, 0.5)]}, "0.5 times slower; expected 1 to"),
        ({"slow_links": {99999: 2.0}}, "link 99999; expected"),
        ({"slow_ranks": [(1, float("nan"))]}, "nan times slower"),
        ({"cards": [0, 0, 1, 2, 3, 4, 5, 6]}, "8 different numbers of cards"),
        ({"cards": [0, 1, 2, 3, 4, 5, 6, 8]}, "0 to 7, one a rank"),
    ],
)
def test_bad_input_is_refused(given, complaint):
    with pytest.raises(RoundelayError, match=complaint):
        Clock(find("all_reduce/ring")(8), cluster("dgx-h100"), **given)


def test_more_ranks_than_cards_sizes_and_protocols_that_are_none():
    with pytest.raises(RoundelayError, match="9 ranks, and dgx-h100 has 8 cards"):
        Clock(find("all_reduce/ring")(9), cluster("dgx-h100"))
    clock = Clock(find("all_reduce/ring")(8), cluster("dgx-h100"))
    for size in (-1, 1.5, 2**63):
        with pytest.raises(RoundelayError, match="expected a whole number of bytes"):
            clock.time(size)
    with pytest.raises(RoundelayError, match="expected one of LL, LL128, Simple"):
        clock.time(8, "Complex")
    with pytest.raises(RoundelayError, match="needs switches in the nodes that add"):
        Clock(find("all_reduce/switch")(8), cluster("dgx-a100")).time(8)


def test_figures_far_beyond_one_another_are_refused_not_infinite():
    where = cluster("dgx-h100")
    slow = replace(where, inside=replace(where.inside, rate=1e3))
    with pytest.raises(RoundelayError, match="a message would take more than 1e\\+06 s"):
        Clock(find("all_reduce/ring")(8), slow).time(1 << 50)


def test_one_rank_alone_only_starts():
    t = Clock(find("all_reduce/ring")(1), cluster("dgx-h100")).time(1 << 20)
    assert t.time == pytest.approx(t.latency)
    assert t.binding_link == ""


def test_slices_let_levels_overlap():
    clock = Clock(find("all_reduce/rails")(64, group=8), cluster("dgx-h100:8"))
    size = 1 << 30
    t = clock.time(size, "Simple")
    protocol = next(p for p in clock.protocols if p.name == "Simple")
    assert t.slices > 1
    assert t.time < clock._device(clock.usual, protocol, size, 1)


def test_the_quickest_is_the_quickest_of_all():
    where = cluster("dgx-h100:2")
    for size in (8, 1 << 16, 1 << 28):
        found = quickest("all_reduce", where, 16, size)
        every = [Clock(c.schedule(16), where).time(size).time
                 for c in candidates("all_reduce", where, 16)]  # fmt: skip
        assert found[0][1].time == min(every)
        assert [t.time for _, t in found] == sorted(t.time for _, t in found)


def test_switches_are_candidates_where_there_are_some():
    def named(where, n):
        return {c.algorithm.name for c in candidates("all_reduce", cluster(where), n)}

    assert "switch" in named("dgx-h100", 8)
    assert "switch" not in named("dgx-a100", 8)
    assert "rails_switch" not in named("dgx-a100:2", 16)


# What differs from time to time.


def test_tables_have_the_mean_and_the_tail_of_their_distributions():
    normal, log = table("normal", 0.05), table("lognormal", 0.3)
    assert normal.mean() == pytest.approx(1, abs=1e-4)
    assert normal.std() == pytest.approx(0.05, rel=1e-3)
    assert log.mean() == pytest.approx(1, abs=1e-3)
    assert log.std() == pytest.approx(0.3, rel=0.01)
    assert table("exponential", 0.2).mean() == pytest.approx(1.2, abs=1e-3)
    assert np.median(table("pareto", 3)) == pytest.approx(2 ** (1 / 3), rel=1e-4)
    assert table("uniform", 0.1).max() == pytest.approx(1.1, abs=1e-4)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("step=normal", "is no jitter"),
        ("wheel=normal:0.1", "is no jitter"),
        ("step=normal:x", "is no jitter"),
        ("step=gauss:0.1", "unknown distribution 'gauss'"),
        ("step=normal:0", "above 0 and up to 1"),
        ("step=normal:-1", "above 0"),
        ("step=normal:inf", "up to 1"),
    ],
)
def test_jitter_that_is_none(text, complaint):
    with pytest.raises(RoundelayError, match=complaint):
        Jitter.parse(text)


def test_the_same_seed_gives_the_same_samples_whatever_the_threads():
    clock = Clock(find("all_reduce/rails")(32, group=8), cluster("dgx-h100:4"))
    jitter = Jitter.parse("step=normal:0.1,card=lognormal:0.05,link=pareto:3")
    _, one = spread(clock, 1 << 20, jitter, 200, seed=7)
    _, two = spread(clock, 1 << 20, jitter, 200, seed=7, threads=3)
    _, other = spread(clock, 1 << 20, jitter, 200, seed=8)
    assert (one == two).all()
    assert (one != other).any()


def test_where_nothing_differs_every_sample_is_the_time():
    clock = Clock(find("all_reduce/ring")(16), cluster("dgx-h100:2"))
    found, times = spread(clock, 1 << 20, Jitter(), 5)
    assert times == pytest.approx(clock.time(1 << 20).time)
    assert found.p50 == found.most


def test_the_slowest_of_many_cards_decides():
    """A message is as slow as the slower of its two cards: with cards that differ, the more take
    part, the longer one step takes: 1 + sigma * z(n), by the expected maximum of n normal ones."""
    where, sigma = cluster("dgx-h100:1024"), 0.05
    jitter = Jitter(card=table("normal", sigma))
    for n, z in ((8, 1.423), (64, 2.343), (512, 3.044), (1024, 3.248)):
        alone = Clock(one_step(n), where, cards=np.arange(n) * 8)
        usual = alone.time(1 << 36, "Simple")
        found, _ = spread(alone, 1 << 36, jitter, 400, "Simple")
        once = alone.protocols[-1].base + usual.reduce
        assert found.mean - once == pytest.approx((usual.time - once) * (1 + sigma * z), rel=0.01)


def one_step(n):
    """Every rank sends a chunk to the next, all over links of one kind: a step of a rail."""
    rank = np.arange(n)
    chunks = rl.Round(rank, (rank + 1) % n, rank)
    return rl.Schedule("all_gather", n, n, [chunks])


def test_the_slowest_of_so_many_calls():
    rng = np.random.default_rng(3)
    times = rng.exponential(1.0, 200_000)
    assert expected_most(times, 1) == pytest.approx(times.mean())
    assert expected_most(times, 64) == pytest.approx(4.74, rel=0.02)


@pytest.mark.parametrize("name", ["dgx-h100", "dgx-a100", "mi300x"])
@pytest.mark.parametrize("algorithm", ["ring", "double_tree", "recursive_doubling"])
def test_the_protocol_that_is_chosen_is_the_quickest_of_all(name, algorithm):
    where = cluster(name).scaled(2)
    clock = Clock(rl.build(f"all_reduce/{algorithm}", where.size), where)
    for size in (2**k for k in range(10, 31)):
        usable = [p.name for p in clock.protocols if p.most is None or size <= p.most]
        assert clock.choose(size)[2] == min(clock.choose(size, p)[2] for p in usable)
