"""Break algorithms at random and see whether the verifier says so, and only then.

Whether a mutant is illegal, wrong or as good as before is decided by counting every contribution
with loops (`reference`): many changes change nothing, so it cannot be assumed that a mutant is
wrong. The verifier must come to the same answer each time, down to the ranks it names.

Of 20,000 mutants drawn evenly 27 in 100 were illegal, 30 wrong and 43 as good as before; 12 in all
had right sums in different bits. `--hypothesis-show-statistics` counts those of a run.
"""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import reference
from hypothesis import event, given, settings
from hypothesis import strategies as st

import roundelay as rl
from roundelay import Round, Schedule, verify
from roundelay.schedule import ScheduleError

ALGORITHMS = rl.algorithms()
PER_MOVE = ("src", "dst", "chunk", "op", "count", "start")
Pick = Callable[[int, int], int]
"""A whole number between two others, both included."""


def lists(r: Round) -> dict[str, list[int]]:
    """The fields that have one entry a move, as lists of that length."""
    return {name: np.broadcast_to(getattr(r, name), len(r.src)).tolist() for name in PER_MOVE}


def original(pick: Pick) -> Schedule:
    """Some algorithm at some n, with some parameters, that moves something."""
    algorithm = ALGORITHMS[pick(0, len(ALGORITHMS) - 1)]
    n = pick(2, 8)
    if not algorithm.fits(n):
        n = 1 << n.bit_length() - 1
    variants = list(algorithm.variants(n))
    root = (
        pick(0, n - 1) if rl.build(f"{algorithm.collective}/{algorithm.name}", n).kind.rooted else 0
    )
    return algorithm(n, root, **variants[pick(0, len(variants) - 1)])


def drop_a_move(fields: dict[str, list[int]], i: int, pick: Pick, top: dict[str, int]) -> None:
    for values in fields.values():
        del values[i]


def repeat_a_move(fields: dict[str, list[int]], i: int, pick: Pick, top: dict[str, int]) -> None:
    at = pick(0, len(fields["src"]))
    for values in fields.values():
        values.insert(at, values[i])


def change(name: str) -> Callable[..., None]:
    """Give one move another value of a field; now and then one just out of range."""

    def changed(fields: dict[str, list[int]], i: int, pick: Pick, top: dict[str, int]) -> None:
        fields[name][i] = pick(0, top[name])

    changed.__name__ = f"change_{name}"
    return changed


def swap_two_moves(fields: dict[str, list[int]], i: int, pick: Pick, top: dict[str, int]) -> None:
    j = pick(0, len(fields["src"]) - 1)
    for values in fields.values():
        values[i], values[j] = values[j], values[i]


def flip_all(fields: dict[str, list[int]], i: int, pick: Pick, top: dict[str, int]) -> None:
    fields["op"] = [1 - op for op in fields["op"]]


MOVE_CHANGES = [drop_a_move, repeat_a_move, swap_two_moves, flip_all, *map(change, PER_MOVE)]
SCALAR_CHANGES = ("shift", "stride", "times", "wrap", "unit")
ROUND_CHANGES = ("drop a round", "repeat a round", "swap two rounds")


def mutate(schedule: Schedule, pick: Pick) -> tuple[str, list[Round]]:
    """What was changed, and the rounds after it."""
    rounds = list(schedule)
    at = pick(0, len(rounds) - 1)
    r = rounds[at]
    ids = schedule.chunks // r.unit
    kind = pick(0, len(MOVE_CHANGES) + len(SCALAR_CHANGES) + len(ROUND_CHANGES) - 1)
    if kind < len(MOVE_CHANGES):
        people = schedule.ranks + schedule.helpers
        top = {"src": people, "dst": people, "chunk": ids, "op": 1, "start": 3,
               "count": min(ids, 8)}  # fmt: skip
        fields = lists(r)
        move_change = MOVE_CHANGES[kind]
        move_change(fields, pick(0, len(r.src) - 1), pick, top)
        rounds[at] = replace(r, **fields)
        return move_change.__name__, rounds
    kind -= len(MOVE_CHANGES)
    if kind < len(SCALAR_CHANGES):
        name = SCALAR_CHANGES[kind]
        value = getattr(r, name)
        if name == "wrap":
            value = pick(0, ids)
        elif name == "unit":
            value = pick(1, schedule.chunks)
        else:
            value += pick(-2, 2)
        rounds[at] = replace(r, **{name: max(value, 0) if name == "times" else value})
        return name, rounds
    kind -= len(SCALAR_CHANGES)
    if ROUND_CHANGES[kind] == "drop a round":
        del rounds[at]
    elif ROUND_CHANGES[kind] == "repeat a round":
        rounds.insert(pick(0, len(rounds)), r)
    else:
        other = pick(0, len(rounds) - 1)
        rounds[at], rounds[other] = rounds[other], rounds[at]
    return ROUND_CHANGES[kind], rounds


def check(pick: Pick) -> tuple[str, str]:
    """Mutate, count, verify: what was changed, and what became of it."""
    schedule = original(pick)
    if not list(schedule):
        return "nothing", "nothing to change"
    what, rounds = mutate(schedule, pick)
    if pick(0, 2):  # let every round begin after those before it, however long these are now
        rounds = [replace(r, begin=None) for r in rounds]
    people = schedule.ranks + schedule.helpers
    if not all(reference.in_range(r, people, schedule.chunks) for r in rounds if len(r)):
        with pytest.raises(ScheduleError):
            replace(schedule, rounds=rounds)
        return what, "illegal"
    mutant = replace(schedule, rounds=rounds)
    outcome = reference.run(mutant)
    if outcome.illegal:
        with pytest.raises(ScheduleError, match=outcome.illegal.split(":")[0]):
            verify(mutant)
        return what, "illegal"
    same_cost(mutant)
    verdict = verify(mutant)
    if outcome.wrong:
        assert not verdict.ok
        place = verdict.counterexample
        assert place is not None
        assert (place.rank, place.chunk) in outcome.wrong
        assert (place.missing, place.doubled) == outcome.wrong[place.rank, place.chunk]
        return what, "wrong"
    assert verdict.counterexample is None
    if not schedule.kind.sums:
        assert verdict.ok, verdict.reason
        return what, "as good as before"
    assert verdict.same_bits is outcome.same_bits
    assert verdict.ok is outcome.same_bits, verdict.reason
    if not outcome.same_bits:
        return what, "right sums in different bits"
    assert verdict.summation == outcome.summation(schedule.ranks)
    return what, "as good as before"


def same_cost(mutant: Schedule) -> None:
    """Rounds that nobody would write are counted as rightly as those of an algorithm."""
    counted = rl.cost(mutant)
    wanted = reference.count(mutant, lambda _: Fraction(1, mutant.chunks))._asdict()
    wanted.pop("helper_bytes_max")  # a multicast is moves of equal ids, not of equal chunks
    volume = mutant.kind.total_bytes(1, mutant.ranks)
    for name, value in wanted.items():
        assert getattr(counted, name) == value * (volume if "bytes" in name else 1)
    assert counted.depth == reference.depth(mutant)
    assert counted.depth <= counted.steps


def drawn(data: st.DataObject) -> Pick:
    return lambda low, high: data.draw(st.integers(low, high))


@settings(max_examples=400)
@given(st.data())
def test_the_verifier_finds_what_counting_finds(data: st.DataObject) -> None:
    what, outcome = check(drawn(data))
    event(outcome)
    event(f"{what}: {outcome}")


@pytest.mark.soak
@pytest.mark.timeout(7200)
@settings(max_examples=20_000)
@given(st.randoms(use_true_random=True))
def test_the_verifier_finds_what_counting_finds_soak(rng: random.Random) -> None:
    event(check(rng.randint)[1])


def test_mutants_are_of_every_kind() -> None:
    """So that the test above is not empty: 300 drawn evenly, none of the kinds rare."""
    rng = random.Random(1)
    found: Counter[str] = Counter()
    changes: Counter[str] = Counter()
    for _ in range(300):
        what, outcome = check(rng.randint)
        found[outcome] += 1
        changes[what] += 1
    assert min(found[kind] for kind in ("illegal", "wrong", "as good as before")) >= 30
    assert len(changes) >= len(ROUND_CHANGES) + len(SCALAR_CHANGES) + 5


def test_unchanged_is_as_good_as_before() -> None:
    """The oracle itself has nothing against the originals."""
    rng = random.Random(2)
    for _ in range(60):
        schedule = original(rng.randint)
        outcome: Any = reference.run(schedule)
        assert (outcome.illegal, outcome.wrong, outcome.same_bits) == ("", {}, True)
