"""Counted cost against loops over every event; bounds against every algorithm there is."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import reference

import roundelay as rl
from roundelay import COPY, REDUCE, Algorithm, Round, RoundelayError, Schedule, bound, build, cost
from roundelay.collectives import COLLECTIVES
from roundelay.cost import COUNT_LIMIT, cost_of

EVERY = pytest.mark.parametrize(
    "algorithm", rl.algorithms(), ids=lambda a: f"{a.collective}/{a.name}"
)


def sizes(algorithm: Algorithm, *candidates: int) -> list[int]:
    return [n for n in candidates if algorithm.fits(n)]


def agrees(schedule: Schedule, counted: Any, each: Any) -> None:
    wanted = reference.count(schedule, each)
    found = {name: getattr(counted, name) for name in wanted._fields}
    assert found == wanted._asdict()
    assert counted.counted


# --- counted --------------------------------------------------------------------------------


@EVERY
def test_counts_are_those_of_every_event(algorithm: Algorithm) -> None:
    """Messages, bytes each way, bytes added, and a switch's multicast once: n = 1 to 12."""
    for n in sizes(algorithm, *range(1, 13)):
        variants = list(algorithm.variants(n)) if n in (6, 8, 12) else [{}]
        for params in variants[:8]:
            schedule = algorithm(n, **params)
            total = schedule.kind.total_bytes(1000, n)
            each = Fraction(total, schedule.chunks)
            agrees(schedule, cost(schedule, 1000, with_depth=False), lambda chunk, each=each: each)


@EVERY
def test_depth_is_the_longest_chain(algorithm: Algorithm) -> None:
    """Against every half-move compared with all earlier ones at its place, n = 1 to 8."""
    for n in sizes(algorithm, *range(1, 9)):
        for params in algorithm.variants(n):
            schedule = algorithm(n, **params)
            counted = cost(schedule)
            assert counted.depth == reference.depth(schedule)
            assert counted.depth <= counted.steps == schedule.steps


def test_depth_is_less_where_parts_overlap() -> None:
    """Pieces come back down a chain while later ones still go up."""
    chain = build("broadcast/chain", 5, pieces=6)
    made = rl.then(rl.reverse(chain), chain)
    counted = cost(made)
    assert counted.depth == reference.depth(made)
    assert counted.depth < counted.steps == 2 * (4 + 5)


@pytest.mark.parametrize(
    ("rounds", "depth"),
    [
        ([Round(0, 1, 0), Round(0, 2, 0)], 1),  # neither waits for the other
        ([Round(0, 1, 0), Round(1, 2, 0)], 2),  # flow
        ([Round(1, 2, 0), Round(0, 1, 0), Round(0, 2, 0)], 1),  # anti: may be the same step
        ([Round(0, 1, 0), Round(1, 2, 0), Round(0, 1, 0)], 2),  # written as it is read
        ([Round(0, 1, 0), Round(1, 2, 0), Round(0, 1, 0), Round(1, 2, 0)], 3),
        ([Round([0, 1], [1, 0], 0, REDUCE)] * 3, 3),
        ([Round([0, 1, 2], 3, 0, [COPY, REDUCE, REDUCE])], 1),
        ([], 0),
    ],
)
def test_depth_by_hand(rounds: list[Round], depth: int) -> None:
    schedule = Schedule("all_reduce", 4, 1, rounds)
    assert cost(schedule).depth == reference.depth(schedule) == depth


def test_all_moves_of_a_step_between_two_ranks_are_one_message() -> None:
    """Pieces 0 and 2, in two moves; a second start counts the steps that it adds."""
    two = Round([0, 0, 0], [1, 1, 2], [0, 2, 0])
    assert cost(Schedule("broadcast", 3, 4, [two])).messages_max == 2
    for start, messages in (([0, 0], 3), ([0, 1], 4), ([0, 2], 5), ([0, 3], 6), ([7, 0], 6)):
        late = Round(0, 1, [0, 4], times=3, shift=1, start=start)
        schedule = Schedule("broadcast", 2, 8, [late])
        assert cost(schedule).messages_max == messages
        agrees(schedule, cost(schedule), lambda chunk: Fraction(1, 8))


def test_what_stays_on_a_rank_is_no_message() -> None:
    """A rank's own share of a one-shot is added, but not sent."""
    counted = cost(build("all_reduce/one_shot", 4), 100)
    assert (counted.messages_max, counted.bytes_sent_max) == (3, 300)
    assert (counted.bytes_received_max, counted.bytes_reduced_max) == (300, 300)


def test_a_multicast_counts_once() -> None:
    counted = cost(build("all_reduce/switch", 8), 100)
    assert counted.helper_bytes_max == 100
    assert counted.bytes_received_max == 100
    up = Round([0, 1], 2, 0, [COPY, REDUCE])
    apart = Schedule("all_reduce", 2, 1, [up, Round(2, 0, 0), Round(2, 1, 0)], helpers=1)
    assert cost(apart, 100).helper_bytes_max == 200


def test_bytes_are_exact() -> None:
    assert cost(build("all_reduce/ring", 3), 1).bytes_sent_max == Fraction(4, 3)
    big = 10**15 + 1
    assert cost(build("all_reduce/ring", 7), big).bytes_sent_max == Fraction(12 * big, 7)


def test_nothing_to_do() -> None:
    for algorithm in rl.algorithms():
        counted = cost(algorithm(1), 100)
        assert (counted.steps, counted.messages_max, counted.bytes_sent_max) == (0, 0, 0)


# --- weights --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["all_gather_v", "reduce_scatter_v", "all_to_all_v"])
def test_uneven_pieces(name: str) -> None:
    """Every piece its own bytes, zero among them; against loops."""
    rng = np.random.default_rng(3)
    for algorithm in rl.algorithms(name):
        for n in sizes(algorithm, 1, 2, 3, 5, 8):
            schedule = algorithm(n)
            weights = rng.integers(0, 1000, schedule.kind.piece_count(n))
            finer = schedule.chunks // len(weights)
            agrees(
                schedule,
                cost(schedule, weights=weights),
                lambda chunk, w=weights, f=finer: Fraction(int(w[chunk // f]), f),
            )


def test_weights_of_equal_size_are_the_even_form() -> None:
    for algorithm in rl.algorithms():
        schedule = algorithm(6)
        pieces = schedule.kind.piece_count(6)
        total = schedule.kind.total_bytes(60 * 36, 6)
        assert cost(schedule, weights=[total // pieces] * pieces) == cost(schedule, 60 * 36)


def test_weights_follow_the_owner() -> None:
    """The order is that of the pieces, whoever owns them."""
    swing = build("all_gather_v/swing", 8)
    assert swing.owner is not None
    weights = np.arange(8) * 10
    agrees(swing, cost(swing, weights=weights), lambda chunk: Fraction(int(weights[chunk])))


@pytest.mark.parametrize(
    "weights",
    [[1, 2], [1, 2, 3, 4], [[1, 2, 3]], [1, 2, -3], [1.0, 2.0, 3.0], ["1", "2", "3"], 3, [],
     [[1], [2, 3]]],
    ids=repr,
)  # fmt: skip
def test_weights_that_are_none(weights: Any) -> None:
    with pytest.raises(RoundelayError, match="weights"):
        cost(build("all_gather_v/ring", 3), weights=weights)


def test_too_many_to_weigh() -> None:
    with pytest.raises(RoundelayError, match="too many to weigh one by one"):
        cost(build("all_gather_v/ring", 4000), weights=[1] * 4000, with_depth=False)


# --- large ----------------------------------------------------------------------------------


@EVERY
def test_large_n_is_counted_or_says_that_it_is_not(algorithm: Algorithm) -> None:
    n = 1056 if algorithm.fits(1056) else 2048
    counted = cost_of(algorithm, n, 1 << 20)
    assert counted.counted is not algorithm.dense
    card = algorithm.card(n, 1 << 20)
    assert (counted.messages_max, counted.bytes_sent_max, counted.steps) == tuple(card)
    if algorithm.dense:
        assert counted.depth is None
        assert counted.bytes_received_max is None
    small = cost_of(algorithm, 64, 1 << 20)
    assert small.counted
    assert (small.messages_max, small.bytes_sent_max, small.steps) == tuple(
        algorithm.card(64, 1 << 20)
    )


def test_counted_up_to_the_limit() -> None:
    dense = rl.find("all_gather/direct")
    assert dense.dense
    assert cost_of(dense, COUNT_LIMIT).counted
    assert not cost_of(dense, COUNT_LIMIT + 1).counted


@pytest.mark.parametrize(
    ("name", "n", "params"),
    [
        ("all_to_all/hierarchical", 4096, {"group": 0}),
        ("all_to_all/hierarchical", 4096, {"group": 3}),
        ("all_to_all/hierarchical", 4096, {"group": -4}),
        ("all_to_all/bruck", 4096, {"radix": 1}),
        ("all_to_all/bruck", 4096, {"radix": 0}),
        ("all_to_all/bruck", 4096.5, {}),
        ("all_to_all/bruck", 4096, {"raidx": 4}),
        ("all_to_all/bruck", 0, {}),
        ("all_reduce/ring", 0, {}),
    ],
)
@pytest.mark.timeout(10)
def test_cost_of_refuses_what_building_would(name: str, n: Any, params: dict[str, Any]) -> None:
    """Also where nothing is built, as the formulas answer."""
    with pytest.raises(RoundelayError):
        cost_of(rl.find(name), n, **params)


# --- bounds ---------------------------------------------------------------------------------


@EVERY
def test_no_algorithm_is_below_the_bound(algorithm: Algorithm) -> None:
    """Each in the model that it keeps to: its ports, and whether switches help."""
    for n in sizes(algorithm, *range(1, 13)):
        for params in list(algorithm.variants(n))[:6]:
            schedule = algorithm(n, **params)
            counted = cost(schedule, 840)
            least = bound(algorithm.collective, n, 840, ports=reference.ports(schedule),
                          in_switch=schedule.helpers > 0)  # fmt: skip
            assert counted.bytes_sent_max >= least.bytes_sent_max
            assert counted.steps >= least.steps
            assert counted.depth is not None
            any_ports = bound(algorithm.collective, n, 840, ports="all")
            assert counted.depth >= any_ports.steps


def test_bounds_are_reached() -> None:
    """So they could not be higher: some algorithm is as good in steps, some in bytes."""
    for name in COLLECTIVES:
        if name.endswith("_v"):
            continue
        for n in (2, 5, 8):
            least = bound(name, n, 840)
            counted = [cost(a(n), 840) for a in rl.algorithms(name) if not a(n).helpers]
            assert min(c.bytes_sent_max for c in counted) == least.bytes_sent_max
            one_port = [
                a(n) for a in rl.algorithms(name)
                if not a(n).helpers and reference.ports(a(n)) == "one"
            ]  # fmt: skip
            folded = 2 if name == "all_reduce" and n == 5 else 0
            assert min(s.steps for s in one_port) <= least.steps + folded


@pytest.mark.parametrize(
    ("name", "steps", "share", "switched"),
    [
        ("all_reduce", 3, "14/8", "1"),
        ("reduce", 3, "1", "1"),
        ("broadcast", 3, "1", "1"),
        ("all_gather", 3, "7/8", "1/8"),
        ("reduce_scatter", 3, "7/8", "7/8"),
        ("gather", 3, "1/8", "1/8"),
        ("scatter", 3, "7/8", "7/8"),
        ("all_to_all", 3, "7/8", "7/8"),
        ("send_recv", 1, "1", "1"),
        ("barrier", 3, "0", "0"),
        ("all_gather_v", 3, "7/8", "1/8"),
        ("reduce_scatter_v", 3, "7/8", "7/8"),
        ("all_to_all_v", 3, "7/8", "7/8"),
    ],
)
def test_bounds_of_eight(name: str, steps: int, share: str, switched: str) -> None:
    assert bound(name, 8, 80) == (steps, 80 * Fraction(share), "one", False)
    assert bound(name, 8, 80, ports="all") == (1, 80 * Fraction(share), "all", False)
    fewer = min(2, steps)
    assert bound(name, 8, 80, in_switch=True) == (fewer, 80 * Fraction(switched), "one", True)
    assert bound(name, 1, 80) == (0, 0, "one", False)


def test_bound_takes_numbers_of_numpy() -> None:
    assert bound("all_reduce", np.int64(8)) == bound("all_reduce", 8)


@pytest.mark.parametrize(
    ("name", "n", "ports", "message"),
    [
        ("allreduce", 8, "one", "did you mean all_reduce"),
        ("all_reduce", 0, "one", "0 ranks"),
        ("all_reduce", -3, "one", "-3 ranks"),
        ("all_reduce", 8, "two", "ports = 'two'; expected 'one' or 'all'"),
        ("all_reduce", 2.5, "one", "2.5 ranks"),
    ],
)
def test_bound_refuses(name: str, n: Any, ports: str, message: str) -> None:
    with pytest.raises(RoundelayError, match=message):
        bound(name, n, ports=ports)
