"""The whole product in seconds: if this file fails, look here first."""

import numpy as np
import pytest

import roundelay as rl
from roundelay import COPY, REDUCE, Round, Schedule


def test_public_names() -> None:
    assert all(hasattr(rl, name) for name in rl.__all__)
    assert len(rl.algorithms()) > 40


@pytest.mark.parametrize("algorithm", rl.algorithms(), ids=lambda a: f"{a.collective}/{a.name}")
def test_every_algorithm_is_right_and_costs_what_it_says(algorithm: rl.Algorithm) -> None:
    for n in (1, 2, 4, 6):
        verdict = rl.prove(algorithm, n)
        assert verdict.ok, verdict.reason
        assert verdict.sampled is None


def test_by_hand() -> None:
    """A schedule written here, without the registry: two ranks swap what they have and add."""
    swap = Schedule("all_reduce", 2, 1, [Round([0, 1], [1, 0], 0, REDUCE)])
    assert rl.verify(swap).ok
    assert swap.steps == 1
    once = Schedule("all_reduce", 2, 1, [Round(0, 1, 0, REDUCE)])
    verdict = rl.verify(once)
    assert not verdict.ok
    assert verdict.counterexample is not None
    assert (verdict.counterexample.rank, verdict.counterexample.missing) == (0, [1])


def test_wrong_schedule_is_found_by_name() -> None:
    rank = np.arange(4)
    right = (rank + 1) % 4
    add = Round(rank, right, rank, REDUCE, times=3, shift=-1)
    share = Round(rank, right, (rank + 2) % 4, COPY, times=3, shift=-1)  # should be rank + 1
    verdict = rl.verify(Schedule("all_reduce", 4, 4, [add, share]))
    assert not verdict.ok
    place = verdict.counterexample
    assert place is not None
    assert f"rank {place.rank}, chunk {place.chunk}" in verdict.reason
    assert place.missing
    assert not place.doubled


def test_illegal_schedule_is_refused() -> None:
    with pytest.raises(rl.RoundelayError, match="rank 1 sends chunk 0"):
        rl.verify(Schedule("broadcast", 3, 1, [Round(1, 2, 0)]))
    with pytest.raises(rl.RoundelayError, match="move 1: chunk = 4; expected 0 to 3"):
        Schedule("all_gather", 4, 4, [Round([0, 3], [1, 0], [0, 4])])


def test_four_verbs() -> None:
    """Two levels over nodes of 2, written by hand, in two rings that run against each other."""
    nodes = np.arange(8).reshape(4, 2)
    spread = rl.build("all_gather/bruck", 2)
    gather = rl.reverse(spread)
    between = rl.on(nodes.T, rl.build("all_reduce/ring", 4))
    two_levels = rl.then(rl.on(nodes, gather), between, rl.on(nodes, spread))
    both = rl.split(two_levels, rl.on(np.arange(8)[::-1], two_levels))
    for schedule in (two_levels, both):
        verdict = rl.verify(schedule)
        assert verdict.ok, verdict.reason
        assert verdict.same_bits
    assert two_levels.collective == both.collective == "all_reduce"
    assert two_levels.steps == both.steps == 1 + 6 + 1


def test_cost_and_bound() -> None:
    counted = rl.cost(rl.build("all_reduce/ring", 8), size=1 << 20)
    least = rl.bound("all_reduce", 8, size=1 << 20)
    assert (counted.steps, counted.depth, counted.messages_max) == (14, 14, 14)
    assert counted.bytes_sent_max == least.bytes_sent_max == 2 * 7 * (1 << 20) // 8
    assert least.steps == 3


def test_large_ring_is_small() -> None:
    ring = rl.build("all_reduce/ring", 16_384)
    assert len(list(ring)) == 2
    assert ring.nbytes < 400_000
    assert ring.expanded() == 2 * 16_384 * 16_383
    assert len(ring.part(5)) == 4


def test_unknown_names_suggest() -> None:
    with pytest.raises(rl.RoundelayError, match="did you mean ring"):
        rl.build("all_reduce/rign", 4)
