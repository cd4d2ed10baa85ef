"""Dispatch to experts: the gate, who gets what, and the schemes, proved and broken."""

from dataclasses import replace
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import roundelay as rl
from roundelay import moe, verify
from roundelay.errors import RoundelayError
from roundelay.formats.schedule import read_schedule, write_schedule
from roundelay.moe import Layout, Placement
from roundelay.moe.proof import prove
from roundelay.routing import Routing
from roundelay.schedule import Round, Schedule, ScheduleError

SHAPES = [(1, 1), (1, 4), (2, 2), (3, 2), (2, 3), (4, 1)]


@st.composite
def layouts(draw):
    """Some tokens on some cards, each with some experts or none; and the cards of a node."""
    nodes, group = draw(st.sampled_from(SHAPES))
    ranks, slots, k = nodes * group, draw(st.integers(1, 3)), draw(st.integers(1, 4))
    tokens = draw(st.integers(1, 6))
    chosen = draw(st.lists(
        st.lists(st.integers(-1, ranks * slots - 1), min_size=k, max_size=k),
        min_size=tokens, max_size=tokens,
    ))  # fmt: skip
    home = draw(st.lists(st.integers(0, ranks - 1), min_size=tokens, max_size=tokens))
    return Layout.of(chosen, home, Placement.even(ranks * slots, ranks)), group


def wanted(layout):
    """By loops: the cards that each token must reach."""
    return [{t // layout.slots for t in row if t >= 0} for row in layout.targets.tolist()]


def gated(nodes, cards, tokens, limit, seed=0, experts=32, k=8):
    """Uniform scores through V3's gate; a group a node."""
    ranks = nodes * cards
    scores = moe.uniform_scores(tokens * ranks, experts, seed)
    chosen = moe.choose(scores, k, nodes, limit).experts
    return Layout.of(chosen, np.repeat(np.arange(ranks), tokens), Placement.even(experts, ranks))


@given(layouts())
@settings(deadline=None)
def test_every_scheme_is_proved_there_and_back(case):
    layout, group = case
    for name in moe.SCHEMES:
        there = moe.build(name, layout, group)
        for schedule in (there, moe.combine(there)):
            verdict = verify(schedule)
            assert verdict, (name, verdict.reason)
            assert verdict.sampled is None


@given(layouts())
@settings(deadline=None)
def test_copies_are_those_that_are_needed(case):
    layout, group = case
    flat, hops = moe.flat_card(layout), moe.two_hop(layout, group)
    moves = [(int(s), int(d), int(c)) for r in flat for s, d, c in zip(r.src, r.dst, r.chunk,
                                                                     strict=True)]  # fmt: skip
    assert sorted(moves) == sorted(
        (int(h), r, t)
        for t, (h, cards) in enumerate(zip(layout.home, wanted(layout), strict=True))
        for r in cards - {int(h)}
    )
    between = [
        (int(s), int(d), int(c))
        for r in hops
        for s, d, c in zip(r.src, r.dst, r.chunk, strict=True)
        if s // group != d // group
    ]
    assert all(s % group == d % group for s, d, _ in between)  # the first hop keeps the index
    assert sorted((c, d // group) for _, d, c in between) == sorted(
        (t, node)
        for t, (h, cards) in enumerate(zip(layout.home, wanted(layout), strict=True))
        for node in {r // group for r in cards} - {int(h) // group}
    )  # each node once
    back = moe.copies(moe.combine(hops), len(layout.home), group)
    assert back == moe.copies(hops, len(layout.home), group)


@given(layouts(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=200)
def test_what_is_broken_is_found(case, random):
    """A move that is dropped, doubled or led astray: all are needed, so each change is an error."""
    layout, group = case
    whole = moe.build(random.choice(list(moe.SCHEMES)), layout, group)
    if random.random() < 0.5:
        whole = moe.combine(whole)
    rounds = list(whole)
    if not rounds:
        return
    at = random.randrange(len(rounds))
    fields = {n: np.broadcast_to(getattr(rounds[at], n), len(rounds[at])).tolist()
              for n in ("src", "dst", "chunk", "op")}  # fmt: skip
    i, kind = random.randrange(len(fields["src"])), random.choice(["drop", "double", "astray"])
    if kind == "drop":
        for values in fields.values():
            del values[i]
    elif kind == "double":
        for values in fields.values():
            values.append(values[i])
    else:
        fields["dst"][i] = (fields["dst"][i] + 1) % layout.ranks
    rounds[at] = Round(**fields)
    try:
        broken = replace(whole, rounds=rounds)
        fine = bool(verify(broken))
    except ScheduleError:
        return
    assert fine == is_right(broken)


def is_right(schedule):
    """By counting, place by place, how often each card's part has come."""
    held = {}
    combine = schedule.collective == "moe_combine"
    routing = schedule.routing
    for t in range(routing.pieces):
        givers = np.flatnonzero(routing.wanted[:, t]) if combine else [routing.home[t]]
        held |= {(int(r), t): {int(r): 1} for r in givers}
    for r in schedule:
        moves = list(zip(r.src.tolist(), r.dst.tolist(), r.chunk.tolist(),
                         np.broadcast_to(r.op, len(r)).tolist(), strict=True))  # fmt: skip
        read = [dict(held[s, c]) for s, _, c, _ in moves]
        for (_, d, c, op), value in zip(moves, read, strict=True):
            before = held.get((d, c), {}) if op == rl.REDUCE else {}
            held[d, c] = {g: before.get(g, 0) + value.get(g, 0) for g in before | value}
    for t in range(routing.pieces):
        ends = [routing.home[t]] if combine else np.flatnonzero(routing.wanted[:, t])
        givers = np.flatnonzero(routing.wanted[:, t]) if combine else [routing.home[t]]
        total = {int(g): 1 for g in givers}
        if total and any(held.get((int(r), t)) != total for r in ends):
            return False
    return True


@pytest.mark.parametrize("limit", [1, 2, 4, None])
def test_no_token_leaves_for_more_nodes_than_it_may(limit):
    layout = gated(8, 2, 4, limit, k=4 if limit == 1 else 8)
    schedule = moe.two_hop(layout, 2, limit)
    assert layout.in_node(2).sum(axis=1).max() <= (limit or 8)
    assert verify(schedule)
    assert verify(moe.combine(schedule))
    if limit in (2, 4):
        with pytest.raises(RoundelayError, match=rf"goes to {limit} nodes; expected {limit - 1} "):
            moe.two_hop(layout, 2, limit - 1)


EXPECTED = {
    # By formula: E[groups hit] = G (1 - C(E - g, k) / C(E, k)), of which (1 - 1/N) are elsewhere.
    ("flat_expert", None): 8 * 7 / 8,
    ("flat_card", None): 64 * (1 - comb(252, 8) / comb(256, 8)) * 7 / 8,
    ("two_hop", None): 8 * (1 - comb(224, 8) / comb(256, 8)) * 7 / 8,
    ("two_hop", 4): 3.460,  # V3's gate, by simulation of 200,000 tokens
}


@pytest.mark.parametrize(("scheme", "limit"), EXPECTED)
def test_copies_between_nodes_per_token(scheme, limit):
    layout = gated(8, 8, 512, limit, seed=1, experts=256)
    schedule = moe.build(scheme, layout, 8, limit)
    found = moe.copies(schedule, len(layout.home), 8).between
    assert found == pytest.approx(EXPECTED[scheme, limit], rel=0.005)


def test_expected_copies_are_the_published_ones():
    figures = [7.000, 6.716, 4.633, 3.460]
    assert list(EXPECTED.values()) == pytest.approx(figures, abs=6e-4)


def test_ratio_of_node_and_network_copies_as_users_report_it():
    """DeepEP issue #493, "best" lines: NVL / RDMA GB/s, 256 experts, 16 cards of 2 nodes."""
    reported = [145.16 / 44.37, 133.78 / 40.89, 124.92 / 38.19]
    layout = gated(2, 8, 2048, None, seed=3, experts=256)
    ratio = layout.in_rank.sum() / layout.in_node(8).sum()
    assert reported == pytest.approx([ratio] * 3, rel=0.005)


@given(layouts())
@settings(deadline=None)
def test_schedules_are_written_and_read_back(case):
    layout, group = case
    for name in moe.SCHEMES:
        there = moe.build(name, layout, group)
        for schedule in (there, moe.combine(there)):
            data = write_schedule(schedule)
            again = read_schedule(data)
            assert write_schedule(again) == data
            assert (again.routing.home == schedule.routing.home).all()
            assert (again.routing.wanted == schedule.routing.wanted).all()
            assert verify(again)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((b'"home":[0,2]', b'"home":[0,4]'), "homes from 0 to 4; expected ranks, 0 to 3"),
        ((b'"home":[0,2]', b'"home":[0]'), "1 homes, 2 lists of who wants a piece"),
        ((b'"wanted":[[1],[3]]', b'"wanted":[[1],[7]]'), "piece 1: rank 7; expected 0 to 3"),
        ((b'"wanted":[[1],[3]]', b'"wanted":[[1],[-1]]'), "no schedule file of version 1"),
        ((b'"ranks":4', b'"ranks":16000000'), "ranks x pieces at most"),
        ((b"moe_dispatch", b"all_gather"), "all_gather needs no routing"),
        ((b'"routing"', b'"outing"'), "unknown field `outing`"),
    ],
)
def test_files_that_cannot_be_read(change, message, monkeypatch):
    monkeypatch.setattr("roundelay.formats.schedule.PLACES_LIMIT", 1 << 20)
    layout = Layout.of([[1], [3]], [0, 2], Placement.even(4, 4))
    data = write_schedule(moe.two_hop(layout, 2))
    assert change[0] in data
    with pytest.raises(RoundelayError) as found:
        read_schedule(data.replace(*change))
    assert message in str(found.value)


def test_a_dispatch_without_its_routing_is_no_schedule():
    data = write_schedule(moe.two_hop(Layout.of([[1], [3]], [0, 2], Placement.even(4, 4)), 2))
    begin, end = data.index(b',"routing"'), data.index(b',"rounds"')
    with pytest.raises(ScheduleError, match="moe_dispatch needs a routing"):
        read_schedule(data[:begin] + data[end:])


@given(layouts())
@settings(deadline=None)
def test_what_two_hops_promise_is_proved(case):
    layout, group = case
    for name in moe.SCHEMES:
        proof = prove(moe.build(name, layout, group), group)
        assert proof.ok
        assert (proof.limit is None) == (name != "two_hop")


def test_what_two_hops_promise_is_missed_where_it_is_broken():
    layout = gated(4, 2, 8, 2)
    there = moe.two_hop(layout, 2, 2)
    first, _ = there
    fine = prove(there, 2, 2)
    assert (fine.ok, fine.most, fine.limit) == (True, 2, 2)
    assert not prove(there, 2, 1).ok  # a lower limit than the gate kept to
    straight = moe.flat_card(layout)
    other = replace(straight, name="two_hop")
    assert not prove(other, 2, 2).same_index
    lost = replace(there, rounds=[first])
    assert not prove(lost, 2, 2).there.ok
    with pytest.raises(RoundelayError, match="expected the schedule of a dispatch"):
        prove(moe.combine(there), 2)


def test_a_schedule_is_counted_shown_and_timed():
    layout = gated(2, 2, 2, None, experts=8, k=2)
    schedule = moe.two_hop(layout, 2)
    assert rl.cost(schedule, schedule.chunks).bytes_sent_max >= 1
    assert "each token is at every rank" in rl.show(schedule)
    assert "added up at its home" in rl.show(moe.combine(schedule))
    timing = rl.Clock(schedule, rl.cluster("dgx-h100:2"), cards=[0, 1, 8, 9]).time(1 << 20)
    assert 0 < timing.time < 1e-3


@given(
    st.integers(1, 20), st.sampled_from([(1, 8), (2, 4), (4, 4), (8, 2)]), st.integers(0, 9),
    st.data(),
)  # fmt: skip
def test_the_gate_takes_the_best_of_the_best_groups(tokens, shape, seed, data):
    groups, each = shape
    limit = data.draw(st.integers(1, groups))
    k = data.draw(st.integers(1, limit * each))
    scores = moe.uniform_scores(tokens, groups * each, seed)
    choice = moe.choose(scores, k, groups, limit)
    for row, chosen, weights in zip(scores, choice.experts, choice.weights, strict=True):
        worth = [sum(sorted(row[g * each : (g + 1) * each])[-2:]) for g in range(groups)]
        best = sorted(range(groups), key=lambda g: -worth[g])[:limit]
        allowed = [e for g in best for e in range(g * each, (g + 1) * each)]
        assert chosen.tolist() == sorted(sorted(allowed, key=lambda e: -row[e])[:k])
        assert weights == pytest.approx(row[chosen] / row[chosen].sum())


def test_scores_of_a_file(tmp_path):
    file = tmp_path / "scores.npy"
    np.save(file, moe.uniform_scores(3, 4, 1))
    assert moe.read_scores(file).shape == (3, 4)
    for content in (b"", b"no array", np.zeros(3).tobytes()):
        file.write_bytes(content)
        with pytest.raises(RoundelayError, match=r"no array as numpy\.save writes it"):
            moe.read_scores(file)
    np.save(file, np.zeros((2, 2), np.int64))
    with pytest.raises(RoundelayError, match="int64 of shape"):
        moe.read_scores(file)
    np.save(file, np.full((2, 2), np.nan))
    with pytest.raises(RoundelayError, match="not finite"):
        moe.read_scores(file)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"top_k": 0}, "top_k = 0; expected a whole number from 1 up"),
        ({"top_k": 9}, "top_k = 9; expected 1 to 8"),
        ({"groups": 3}, "3 groups do not divide 8 experts"),
        ({"groups": 0}, "groups = 0"),
        ({"groups": 4, "max_groups": 0}, "max_groups = 0"),
        ({"groups": 4, "max_groups": 1, "top_k": 3}, "expected 1 to 2"),
    ],
    ids=str,
)
def test_a_gate_that_cannot_be(asked, message):
    with pytest.raises(RoundelayError, match=message):
        moe.choose(moe.uniform_scores(2, 8), **{"top_k": 2} | asked)


@pytest.mark.parametrize(
    ("experts", "home", "message"),
    [
        ([[0, 8]], [0], r"expert 8; expected 0 to 7, or -1 for none"),
        ([[-2, 1]], [0], "expert -2"),
        ([[0.5, 1]], [0], "experts is float64"),
        ([0, 1], [0, 0], r"experts is int64 of shape \(2,\)"),
        ([[0, 1]], [0, 1], r"expected whole numbers of shape \(2, k\)"),
        ([[0, 1]], [4], "homes from 4 to 4; expected ranks, 0 to 3"),
        ([[0, 1]], [0.5], "home is float64"),
    ],
    ids=str,
)
def test_a_layout_that_cannot_be(experts, home, message):
    with pytest.raises(RoundelayError, match=message):
        Layout.of(experts, home, Placement.even(8, 4))


def test_schedules_that_cannot_be():
    layout = Layout.of([[0, 7]], [0], Placement.even(8, 4))
    with pytest.raises(RoundelayError, match="group = 3; expected a divisor of the 4 ranks"):
        moe.two_hop(layout, 3)
    with pytest.raises(RoundelayError, match="max_nodes = 0; expected a whole number from 1 up"):
        moe.two_hop(layout, 2, 0)
    with pytest.raises(RoundelayError, match="no scheme 'ring'; expected one of flat_expert"):
        moe.build("ring", layout)
    with pytest.raises(RoundelayError, match="no token to dispatch"):
        moe.flat_card(Layout.of(np.empty((0, 2), int), np.empty(0, int), Placement.even(8, 4)))
    with pytest.raises(RoundelayError, match="expected the schedule of a dispatch"):
        moe.combine(rl.build("all_reduce/ring", 4))
    with pytest.raises(ScheduleError, match="moe_dispatch needs a routing"):
        Schedule("moe_dispatch", 4, 4, [])
    routing = Routing(np.zeros(2, int), np.ones((4, 2), bool))
    with pytest.raises(ScheduleError, match="all_gather needs no routing"):
        Schedule("all_gather", 4, 4, [], routing=routing)
    with pytest.raises(ScheduleError, match="4 ranks and 2 pieces; expected 5 ranks"):
        Schedule("moe_dispatch", 5, 2, [], routing=routing)
    with pytest.raises(RoundelayError, match="homes from 0 to 4"):
        Routing(np.array([0, 4]), np.ones((4, 2), bool))
    with pytest.raises(RoundelayError, match=r"expected bool of shape \(ranks, 2\)"):
        Routing(np.array([0, 1]), np.ones((4, 3), bool))


@pytest.mark.parametrize("chosen", [[[5, 5, 5]] * 4, [[-1, -1, -1]] * 4, [[-1, 0, -1]] * 4])
def test_all_tokens_to_one_expert_and_none_at_all(chosen):
    layout = Layout.of(chosen, [0, 1, 2, 3], Placement.even(8, 4))
    for name in moe.SCHEMES:
        schedule = moe.build(name, layout, 2)
        assert verify(schedule)
        assert verify(moe.combine(schedule))


@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 10), st.integers(0, 99))
def test_redundant_experts_balance_a_load(ranks, slots, missing, seed):
    experts = max(1, ranks * slots - missing)
    load = np.random.default_rng(seed).zipf(1.5, experts).astype(float)
    placed = Placement.balanced(load, ranks, slots)
    assert placed.slots.shape == (ranks, slots)
    assert placed.experts == experts
    copies = np.bincount(placed.slots.ravel())
    # One copy more anywhere else would have been given to the busiest that some card lacks.
    busiest = (load / copies)[copies < ranks].max(initial=0)
    spare = copies > 1
    assert (load[spare] / (copies[spare] - 1) >= busiest * (1 - 1e-12)).all()


def test_copies_of_an_expert_are_on_different_cards_and_share_the_tokens():
    load = np.array([100, 1, 1, 1, 1, 1])
    placed = Placement.balanced(load, 4, 2)
    cards = [r for r in range(4) if 0 in placed.slots[r]]
    assert len(cards) == 3 == (placed.slots == 0).sum()
    home = np.arange(12) % 4
    layout = Layout.of(np.zeros((12, 1), int), home, placed)
    assert set(layout.cards[:, 0]) == set(cards)
    counts = layout.per_slot()
    assert counts.sum() == 12
    assert (counts[placed.slots.ravel() != 0] == 0).all()
    assert verify(moe.two_hop(layout, 2))


def test_balancing_measured_load_lowers_the_busiest_card():
    scores = moe.uniform_scores(2000, 32, 5) + np.where(np.arange(32) < 3, 0.5, 0)
    chosen, home = moe.choose(scores, 4).experts, np.arange(2000) % 8
    even = Layout.of(chosen, home, Placement.even(32, 8))
    balanced = Layout.of(chosen, home, Placement.balanced(even.per_slot(), 8, 5))

    def busiest(layout):
        return layout.per_slot().reshape(8, -1).sum(axis=1).max()

    assert busiest(even) > 1.9 * 1000 > 1.1 * 1000 > busiest(balanced)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Placement.even(7, 2), "7 experts on 2 ranks"),
        (lambda: Placement.balanced([1, 2, 3], 1, 2), "1 ranks of 2 slots for 3 experts"),
        (lambda: Placement.balanced([1, -2], 1, 2), "a number from 0 up"),
        (lambda: Placement.balanced([1, np.nan], 1, 2), "a number from 0 up"),
        (lambda: Placement(np.array([[0, 2]])), "slots lack an expert"),
        (lambda: Placement(np.array([0, 1])), r"slots is int64 of shape \(2,\)"),
    ],
)
def test_a_placement_that_cannot_be(make, message):
    with pytest.raises(RoundelayError, match=message):
        make()
