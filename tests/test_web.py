"""What the page shows: equal to what the schedules, the verifier, the clock and the cost say."""

from fractions import Fraction

import numpy as np
import pytest

import roundelay as rl
from roundelay.errors import RoundelayError
from roundelay.show import frames, words
from roundelay.simulate import step_ends
from roundelay.web.data.breaking import without
from roundelay.web.data.grouped import grouped
from roundelay.web.data.player import player

ALL = pytest.mark.parametrize("a", rl.algorithms(), ids=lambda a: f"{a.collective}/{a.name}")


def last_state(played):
    """(contributions, mark) of every place, after all the changes."""
    shape = (played.ranks + played.helpers, len(played.pieces))
    counts, marks = np.zeros(shape, int), np.zeros(shape, int)
    for state in played.states:
        for place, piece, count, mark in state.changes:
            counts[place, piece], marks[place, piece] = count, mark
    return counts, marks


@ALL
@pytest.mark.parametrize("n", [5, 8])
def test_player_ends_as_the_frames_do(a, n):
    if not a.fits(n):
        pytest.skip("not for this n")
    schedule, played = a(n), player(a.collective, a.name, n)
    last = frames(schedule)[-1]
    counts, marks = last_state(played)
    assert np.array_equal(counts, last.holds.sum(axis=-1))
    assert np.array_equal(marks == 1, last.complete & last.holds.any(axis=-1))
    assert not (marks == 2).any()
    assert played.right
    assert len(played.states) == schedule.steps + 1
    assert played.outcome["en"] == str(words.outcome(schedule, last.counts))
    assert sum(last - first + 1 for first, last, _ in played.parts) == schedule.steps


@ALL
def test_player_sends_what_the_cost_counts(a):
    n = 8
    played, counted = player(a.collective, a.name, n, size=8 * 5040), rl.cost(a(n), 8 * 5040)
    sent = np.zeros(played.ranks + played.helpers)
    for state in played.states:
        for src, dst, pieces, _ in state.moves:
            sent[src] += len(pieces) * played.piece_bytes * (src != dst)
    assert sent[:n].max() == pytest.approx(float(counted.bytes_sent_max))
    assert played.card["steps"][1] == float(a.card(n).steps)


def test_every_algorithm_of_64_ranks_is_shown():
    for a in rl.algorithms():
        if a.fits(64):
            assert player(a.collective, a.name, 64).right, a.name


@pytest.mark.parametrize(
    ("name", "layout"),
    [
        ("all_reduce/ring", "circle"),
        ("all_reduce/star", "star"),
        ("all_reduce/switch", "switch"),
        ("all_reduce/rails", "grid"),
        ("all_reduce/rails_switch", "switches"),
        ("broadcast/binomial", "tree"),
    ],
)
@pytest.mark.parametrize("n", [8, 64])
def test_places_are_apart(name, layout, n):
    played = player(*name.split("/"), n)
    assert played.layout == layout
    where = np.array(played.places)
    assert ((where >= 0) & (where <= 1)).all()
    assert len({tuple(p) for p in played.places}) == n + played.helpers


def test_ring_splits_into_two_halves():
    assert player(n=4).parts == [(1, 3, "reduce_scatter"), (4, 6, "all_gather")]
    assert player(algorithm="star", n=4).parts == [(1, 1, "reduce"), (2, 2, "broadcast")]
    assert player(algorithm="recursive_doubling", n=4).parts == [(1, 2, "adding")]


def test_seconds_end_with_the_clock():
    clock = rl.Clock(rl.build("all_reduce/ring", 16), rl.cluster("dgx-h100:2"))
    ends = step_ends(clock, 1 << 20)
    timing = clock.time(1 << 20)
    assert timing.slices == 1
    assert ends[-1] == pytest.approx(timing.time, rel=1e-9)
    assert (np.diff(ends) >= 0).all()
    assert ends[0] > 0
    played = player(n=16, cluster="dgx-h100:2")
    assert played.seconds == ends.tolist()
    assert played.timing["binding_link"] == timing.binding_link


def test_a_move_left_out_is_found():
    played = player(n=4, drop=(2, 0, 1, 3))
    assert not played.right
    assert played.dropped == (2, 0, 1, 3)
    assert "The first is piece 3 of rank 0, which lacks what rank" in played.broken["en"]
    assert "分块 3" in played.broken["zh"]
    counts, _ = last_state(played)
    assert counts[:, 3].min() < 4
    illegal = player("broadcast", "binomial", 4, drop=(1, 0, 2, 0))
    assert illegal.broken["en"].startswith("Step 2 becomes impossible")
    assert illegal.broken["zh"].startswith("第 2 步无法进行")
    assert len(illegal.states) == 2


def test_leaving_out_keeps_all_other_moves():
    for name in ("all_reduce/ring", "all_reduce/double_tree", "all_reduce/switch"):
        schedule = rl.build(name, 6)
        first = next(iter(schedule.moves()))
        drop = (first.at + 1, int(first.src[0]), int(first.dst[0]), int(first.col[0]))
        assert without(schedule, drop).expanded() == schedule.expanded() - 1
    with pytest.raises(RoundelayError, match="no move of piece 9"):
        player(n=4, drop=(1, 0, 1, 9))


@pytest.mark.parametrize("name", ["ring", "rails", "double_tree", "bine", "rails_switch"])
def test_groups_send_what_the_cost_counts(name):
    schedule = rl.build(f"all_reduce/{name}", 96)
    each = Fraction(1 << 20, schedule.chunks)
    flows = sum(
        flow.bytes
        for step in range(1, schedule.steps + 1)
        for flow in grouped(algorithm=name, n=96, step=step).flows
    )
    moved = sum(int((s.src != s.dst).sum()) for s in schedule.moves())
    assert flows == pytest.approx(float(moved * each))
    most = max(grouped(algorithm=name, n=96, step=schedule.steps, rank=r).part_sent
               for r in range(96))  # fmt: skip
    assert most == pytest.approx(float(rl.cost(schedule, 1 << 20).bytes_sent_max))


def test_groups_list_a_ranks_moves():
    found = grouped(n=100, step=3, rank=7)
    wanted = {
        (int(a), int(b), int(c))
        for s in rl.build("all_reduce/ring", 100).moves()
        if s.at == 2
        for a, b, c in zip(s.src, s.dst, s.col, strict=True)
        if 7 in (a, b)
    }
    assert {move[:3] for move in found.part} == wanted
    assert found.groups[-1][1] == 99


def test_the_largest_groups_are_answered():
    for name in ("ring", "halving_doubling", "star", "rails_switch"):
        found = grouped(algorithm=name, n=16384, step=1, rank=16383)
        assert found.flows
        assert len(found.groups) <= 17
