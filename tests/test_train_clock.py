"""What the clock says of a training with a slow rank, from steps whose stamps are made up."""

import pytest

from roundelay.workloads.train.measure import parts
from roundelay.workloads.train.predict import predict
from roundelay.workloads.train.settings import Slow
from roundelay.workloads.train.stamps import Exchanged, Noted

PIECE, MOVES, REST = 1000, 400, 500


def noted(rank, times, arrived, alone=1.0):
    """A step of two pieces and what is left, each followed by an exchange, in ns.

    Args:
        rank: its number.
        times: slower it computes.
        arrived: when the last rank has issued each exchange.
        alone: part of the time in which it had a core.
    """
    issued = [PIECE * times, 2 * PIECE * times]
    ends = [moment + MOVES for moment in arrived]
    exchanges = [Exchanged("all_reduce", 4096, *both) for both in zip(issued, ends, strict=True)]
    computed = round((2 * PIECE + REST) * times * alone)
    return Noted(
        rank=rank, round=0, step=1, ranks=2, loss=1.0, span=(0, ends[-1] + REST * times),
        forward=0, update=0, computed=computed,
        blocked=[(issued[-1], ends[-1])], exchanges=exchanges,
    )  # fmt: skip


@pytest.mark.parametrize("times", [1, 2, 4])
def test_the_clock_finds_what_a_slow_rank_costs(times):
    arrived = [PIECE * times, 2 * PIECE * times]
    steps = [[noted(0, 1, arrived), noted(1, times, arrived)]] * 3
    timing, even = predict(steps, [Slow(1, times)])
    quick, slow = parts(steps[0])
    assert timing.time == pytest.approx((2 * PIECE * times + MOVES + REST * times) * 1e-9)
    assert even == pytest.approx((2 * PIECE + MOVES + REST) * 1e-9)
    late = max(0, 2 * PIECE * (times - 1) - MOVES)  # one exchange goes on before the other waits
    assert quick.wait_us == pytest.approx(late / 1000)
    waits = (late + REST * (times - 1)) * 1e-9  # at the end of the step too
    assert timing.by_rank.wait == pytest.approx([waits, 0])
    assert slow.wait_us == 0


def test_of_the_slow_rank_only_what_it_is_told_counts():
    """How fast it really was, is not looked at: the clock slows what the others compute."""
    arrived = [PIECE * 4, 2 * PIECE * 4]
    disturbed = [[noted(0, 1, arrived), noted(1, 4, arrived)]]
    timing, _ = predict(disturbed, [Slow(1, 2)])
    assert timing.time == pytest.approx((2 * PIECE * 2 + MOVES + REST * 2) * 1e-9)


def test_the_time_that_others_take_of_a_core_is_not_slowed():
    arrived = [PIECE, 2 * PIECE]
    shared = [[noted(0, 1, arrived, alone=0.5), noted(1, 1, arrived, alone=0.5)]]
    timing, even = predict(shared, [Slow(1, 2)])
    assert timing.time == pytest.approx((2 * PIECE + MOVES + REST) * 1e-9)
    assert even == pytest.approx((PIECE + MOVES + REST / 2) * 1e-9)
