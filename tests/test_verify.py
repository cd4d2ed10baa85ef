"""The verifier: what it proves, what it says when something is wrong, and where it looks."""

import importlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import reference

import roundelay as rl
from roundelay import COPY, REDUCE, Round, Schedule, build, prove, verify
from roundelay.schedule import ScheduleError, apply
from roundelay.verify import exact, numbers, orders
from roundelay.verify.exact import counts

EVERY = pytest.mark.parametrize(
    "algorithm", rl.algorithms(), ids=lambda a: f"{a.collective}/{a.name}"
)


def all_reduce(n: int, chunks: int, *rounds: Round, **more: Any) -> Schedule:
    return Schedule("all_reduce", n, chunks, list(rounds), **more)


def ring(n: int, drop: int | None = None, twice: int | None = None) -> Schedule:
    """A ring that lacks one move of its adding round, or has one of them twice."""
    rank = np.arange(n)
    some = np.delete(rank, [] if drop is None else drop)
    some = some if twice is None else np.r_[some, twice]
    add = Round(some, (some + 1) % n, some, REDUCE, times=n - 1, shift=-1)
    share = Round(rank, (rank + 1) % n, (rank + 1) % n, COPY, times=n - 1, shift=-1)
    return all_reduce(n, n, add, share)


def first_doubled(schedule: Schedule, chunk: int, rank: int) -> int | None:
    """The first round after which any place of the chunk counts the rank more than once."""
    found: list[int] = []

    def watch(moment: reference.Moment, held: dict[Any, Any]) -> None:
        if any(c == chunk and has[rank] > 1 for (_, c), (has, _) in held.items()):
            found.append(moment.round)

    reference.run(schedule, watch)
    return found[0] if found else None


def explained(schedule: Schedule) -> rl.Verdict:
    """A verdict on a wrong schedule whose counterexample is one, to the last rank."""
    verdict = verify(schedule)
    outcome = reference.run(schedule)
    assert outcome.wrong
    assert not verdict.ok
    place = verdict.counterexample
    assert place is not None
    missing, doubled = outcome.wrong[place.rank, place.chunk]
    assert (place.missing, place.doubled) == (missing, doubled)
    assert place.ranks == schedule.ranks
    if doubled:
        assert place.round == first_doubled(schedule, place.chunk, doubled[0])
    return verdict


# --- counterexamples ------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_a_ring_with_a_move_dropped(n: int) -> None:
    for drop in range(n):
        verdict = explained(ring(n, drop=drop))
        place = verdict.counterexample
        assert place is not None
        assert place.missing
        assert not place.doubled
        assert f"rank {place.rank}, chunk {place.chunk}" in verdict.reason
        assert "lacks" in verdict.reason


@pytest.mark.parametrize("n", [2, 3, 4, 7])
def test_a_ring_with_a_move_doubled(n: int) -> None:
    for twice in range(n):
        verdict = explained(ring(n, twice=twice))
        place = verdict.counterexample
        assert place is not None
        assert place.doubled
        assert not place.missing
        assert place.round == 0
        assert "more than once" in verdict.reason


def test_lost_on_the_way() -> None:
    """Rank 2 gets nothing: said is who gave it, and how far it got."""
    chain = Schedule("broadcast", 4, 1, [Round(0, 1, 0), Round(0, 3, 0)])
    verdict = explained(chain)
    place = verdict.counterexample
    assert place is not None
    assert (place.rank, place.chunk, place.missing, place.doubled) == (2, 0, [0], [])
    assert place.round == 1
    assert "0, 1, 3" in verdict.reason


def test_never_moved() -> None:
    verdict = explained(all_reduce(2, 1))
    place = verdict.counterexample
    assert place is not None
    assert (place.rank, place.missing, place.round) == (0, [1], None)


def test_added_twice() -> None:
    swap = Round([0, 1], [1, 0], 0, REDUCE)
    verdict = explained(all_reduce(2, 1, swap, swap))
    place = verdict.counterexample
    assert place is not None
    assert (place.rank, place.missing, place.doubled, place.round) == (0, [], [0, 1], 1)


def test_missing_and_doubled_at_one_place() -> None:
    """Rank 1 is counted twice, rank 2 not at all."""
    wrong = all_reduce(3, 1, Round(1, 0, 0, REDUCE), Round(1, 0, 0, REDUCE), Round(0, [1, 2], 0))
    place = explained(wrong).counterexample
    assert place is not None
    assert (place.rank, place.missing, place.doubled, place.round) == (0, [2], [1], 1)


def test_many_missing_are_shortened() -> None:
    verdict = verify(all_reduce(40, 1))
    assert verdict.counterexample is not None
    assert verdict.counterexample.missing == list(range(1, 40))
    assert len(verdict.reason) < 200
    assert "39" in verdict.reason


def test_a_helper_needs_nothing() -> None:
    """What a switch holds in the end is nobody's business; what a rank holds is."""
    up, down = Round([0, 1], 2, 0, [COPY, REDUCE]), Round(2, [0, 1], 0)
    assert verify(all_reduce(2, 1, up, down, helpers=1)).ok
    again = Round(0, 2, 0, REDUCE)
    assert verify(all_reduce(2, 1, up, down, again, helpers=1)).ok
    explained(all_reduce(2, 1, up, again, down, helpers=1))


@EVERY
def test_exact_counts_are_the_reference(algorithm: rl.Algorithm) -> None:
    """What `explain` rests on: how often every place holds every contribution."""
    for n in (3, 4):
        schedule = algorithm(n)
        held: dict[Any, Any] = {}
        reference.run(schedule, lambda _, places, held=held: held.update(places))
        *_, (_, values) = counts(schedule, np.arange(schedule.chunks))
        for (rank, chunk), (has, _) in held.items():
            assert values[rank, chunk].tolist() == list(has)


# --- the smallest n ---------------------------------------------------------------------------


def own(function: Any, **card: str) -> rl.Algorithm:
    fields = {"messages": "2*(n-1)", "bytes_sent": "2*S*(n-1)/n", "steps": "2*(n-1)"} | card
    return rl.algorithm("all_reduce", **fields, good="-", bad="-", source="-")(function)


def test_the_smallest_n_that_fails() -> None:
    """Right up to 4 ranks, then a step short: asked about 12, 5 is shown."""

    def short(n: int) -> Schedule:
        rank = np.arange(n)
        add = Round(rank, (rank + 1) % n, rank, REDUCE, times=min(n - 1, 3), shift=-1)
        share = Round(rank, (rank + 1) % n, (rank + 1) % n, COPY, times=n - 1, shift=-1)
        return all_reduce(n, n, add, share)

    algorithm = own(short)
    assert all(prove(algorithm, n).ok for n in range(1, 5))
    for n in (5, 6, 12, 40):
        verdict = prove(algorithm, n)
        assert not verdict.ok
        assert verdict.ranks == n
        assert verdict.counterexample is not None
        assert verdict.counterexample.ranks == 5
        assert ("n = 5" in verdict.reason) is (n != 5)


def test_the_smallest_n_keeps_the_root_in_range() -> None:
    def lazy(n: int) -> Schedule:
        return Schedule("broadcast", n, 1, [Round(0, 1, 0)] if n > 1 else [])

    algorithm = rl.algorithm("broadcast", messages="1", bytes_sent="S", steps="1",
                             good="-", bad="-", source="-")(lazy)  # fmt: skip
    verdict = prove(algorithm, 9, root=8)
    assert verdict.counterexample is not None
    assert verdict.counterexample.ranks == 3


def test_the_smallest_n_it_can_be_built_at() -> None:
    """Powers of two only, or even numbers only: the others are passed over."""

    def pairs(n: int) -> Schedule:
        if n % 2 and n > 1:
            raise ScheduleError(f"{n} ranks; expected pairs")
        return all_reduce(n, 1, Round(range_of(n), range_of(n) ^ 1, 0, REDUCE))

    def range_of(n: int) -> np.ndarray:
        return np.arange(n if n > 1 else 0)

    for needs in ("n == pow2_below(n)", ""):
        algorithm = rl.algorithm("all_reduce", messages="1", bytes_sent="S", steps="1", good="-",
                                 bad="-", source="-", needs=needs)(pairs)  # fmt: skip
        assert prove(algorithm, 2).ok
        verdict = prove(algorithm, 16)
        assert verdict.counterexample is not None
        assert verdict.counterexample.ranks == 4


def test_too_many_moves_to_prove() -> None:
    with pytest.raises(ScheduleError, match="prove it at a smaller n"):
        prove(rl.find("all_to_all/pairwise"), 10**6)


def test_prove_checks_the_card_too() -> None:
    verdict = prove(own(ring, messages="2*n"), 4)
    assert not verdict.ok
    assert verdict.counterexample is None
    assert "messages" in verdict.reason


def test_an_illegal_algorithm_is_not_proved() -> None:
    """It fails, at the smallest n where it is illegal; `verify` on its schedule raises."""

    def empty(n: int) -> Schedule:
        rounds = [Round(0, 1, 0), Round(0, n, 0, REDUCE)] if n > 1 else []
        return all_reduce(n, n, *rounds, helpers=1)

    verdict = prove(own(empty), 4)
    assert not verdict.ok
    assert "already at n = 2" in verdict.reason
    assert "a REDUCE into chunk 0 of rank 2" in verdict.reason
    with pytest.raises(rl.RoundelayError, match="a REDUCE into chunk 0 of rank 4"):
        verify(empty(4))


# --- where it looks ---------------------------------------------------------------------------


def test_a_sample_says_so() -> None:
    big = build("all_reduce/ring", 1500)
    verdict = verify(big)
    assert (verdict.ok, verdict.sampled, verdict.chunks) == (True, 16, 1500)
    assert verify(big, samples=5).sampled == 5
    small = build("all_reduce/ring", 30)
    assert verify(small).sampled is None
    assert verify(small, complete=False).sampled == 16
    assert verify(small, complete=False, samples=30).sampled is None
    assert verify(build("all_reduce/recursive_doubling", 1500)).sampled is None  # one chunk


def test_all_chunks_when_asked() -> None:
    verdict = verify(build("all_reduce/halving_doubling", 1030), complete=True)
    assert (verdict.ok, verdict.sampled) == (True, None)


def test_a_sample_of_very_many_rounds() -> None:
    many = build("all_to_all/pairwise", 150)
    verdict = verify(many, complete=False, samples=20)
    assert (verdict.ok, verdict.sampled, verdict.chunks) == (True, 20, 150 * 150)


@pytest.mark.parametrize("count", [2, 3, 8, 16, 100])
def test_samples_take_in_the_borders(count: int) -> None:
    """Distinct, rising, in range; the first and last chunk always; block borders with room."""
    schedule = build("all_reduce/rails", 96, group=8)
    assert schedule.chunks == 96
    for seed in range(5):
        chosen = numbers.sample(schedule, count, np.random.default_rng(seed))
        assert (np.diff(chosen) > 0).all()
        assert chosen[0] == 0
        assert chosen[-1] == 95
        assert min(count, 96) <= len(chosen) <= max(count, 3)
        if count >= 16:
            assert len({11, 12} & set(chosen.tolist())) > 0


def test_a_sample_finds_what_is_wrong_everywhere() -> None:
    assert not verify(ring(1100, twice=5)).ok
    verdict = verify(ring(1100, drop=5))
    assert verdict.sampled == 16
    assert not verdict.ok
    assert verdict.counterexample is not None
    assert len(verdict.counterexample.missing) >= 1


def test_a_sample_finds_what_is_wrong_at_an_end() -> None:
    good = Round(0, 1, 0, unit=5000)
    for chunk in (0, 4999):
        stale = Schedule("broadcast", 2, 5000, [good, Round(1, 1, chunk, REDUCE)])
        verdict = verify(stale, complete=False)
        assert verdict.counterexample is not None
        assert verdict.counterexample.chunk == chunk


@EVERY
@pytest.mark.parametrize("columns", [1, 3])
def test_in_blocks_as_in_one(
    algorithm: rl.Algorithm, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Short of memory the chunks go block by block, to the same verdict."""
    schedules = [algorithm(n) for n in (5, 8)]
    whole = [verify(s, orders=0) for s in schedules]
    for schedule, verdict in zip(schedules, whole, strict=True):
        cells = columns * (schedule.ranks + schedule.helpers)
        monkeypatch.setattr(numbers, "CELLS", cells)
        assert verify(schedule, orders=0) == verdict


def test_a_fault_in_a_later_block(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in (ring(7, drop=3), ring(7, twice=5)):
        whole = explained(wrong)
        monkeypatch.setattr(numbers, "CELLS", 2 * 7)
        assert explained(wrong) == whole
        monkeypatch.undo()
    illegal = Schedule("broadcast", 3, 6, [Round(0, 1, 0, count=5), Round(1, 2, 0, count=6)])
    monkeypatch.setattr(numbers, "CELLS", 2 * 3)
    with pytest.raises(rl.RoundelayError, match="rank 1 sends chunk 5"):
        verify(illegal)


def test_the_same_every_time() -> None:
    for schedule in (build("all_reduce/ring", 6), ring(6, drop=2), build("all_reduce/swing", 1100)):
        first = verify(schedule, seed=5)
        assert verify(schedule, seed=5) == first
        assert verify(schedule, seed=6).ok == first.ok


# --- bits and trees ---------------------------------------------------------------------------


def naive(n: int) -> Schedule:
    """One-shot where each rank starts from what it has: right sums, other bits on each rank."""
    return all_reduce(n, 1, naive_round(n))


def naive_round(n: int) -> Round:
    src, dst = np.repeat(np.arange(n), n), np.tile(np.arange(n), n)
    other = src != dst
    return Round(src[other], dst[other], 0, REDUCE)


@pytest.mark.parametrize("n", [3, 4, 8])
def test_right_sums_in_different_bits(n: int) -> None:
    outcome = reference.run(naive(n))
    assert not outcome.wrong
    assert not outcome.same_bits
    verdict = verify(naive(n))
    assert (verdict.ok, verdict.same_bits, verdict.counterexample) == (False, False, None)
    assert "bits" in verdict.reason


def test_different_bits_of_any_chunk_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """One chunk of four is added as each rank likes; looked at in one block or in four."""
    good = Round([0, 0, 0, 1, 1, 1, 2, 2, 2], [0, 1, 2] * 3, 0, [COPY] * 3 + [REDUCE] * 6)
    for bad in range(4):
        rounds = [
            replace(naive_round(3) if chunk == bad else good, chunk=chunk) for chunk in range(4)
        ]
        schedule = all_reduce(3, 4, *rounds)
        assert not reference.run(schedule).same_bits
        for cells in (numbers.CELLS, 3):
            monkeypatch.setattr(numbers, "CELLS", cells)
            verdict = verify(schedule)
            assert (verdict.ok, verdict.same_bits) == (False, False)
        monkeypatch.undo()


def test_two_ranks_cannot_differ() -> None:
    assert verify(naive(2)).ok


@pytest.mark.parametrize(
    ("name", "n", "summation"),
    [
        ("all_reduce/one_shot", 6, "rank"),
        ("all_reduce/switch", 6, "rank"),
        ("all_reduce/star", 6, "rank"),
        ("reduce/chain", 6, "per_chunk"),
        ("all_reduce/ring", 6, "per_chunk"),
        ("all_reduce/ring", 2, "rank"),
        ("all_reduce/recursive_doubling", 8, "tree"),
        ("all_reduce/halving_doubling", 8, "tree"),
        ("all_reduce/double_tree", 8, "per_chunk"),
        ("reduce_scatter/ring", 5, "per_chunk"),
        ("broadcast/chain", 6, None),
        ("all_gather/ring", 6, None),
        ("all_to_all/bruck", 6, None),
    ],
)
def test_order_of_summation(name: str, n: int, summation: str | None) -> None:
    schedule = build(name, n)
    verdict = verify(schedule)
    if name == "reduce/chain":  # from the far end towards rank 0: one order for all pieces
        summation = reference.run(schedule).summation(n)
    assert verdict.summation == summation
    assert verdict.same_bits is (None if summation is None else True)


def mixes(schedule: Schedule) -> list[int]:
    """The distinct hash words of the trees that the places with a total hold."""
    columns = np.arange(schedule.chunks)
    values, _ = numbers.start(schedule, columns, np.random.default_rng(1))
    for step in schedule.moves():
        apply(step, values, numbers.AddAndMix())
    must = schedule.after()
    return np.unique(values[..., 1][must]).tolist()


ONE_TREE = ["recursive_doubling", "halving_doubling"]


@pytest.mark.parametrize("n", [2, 3, 4, 6, 8, 12, 13, 16])
def test_small_and_large_all_reduce_add_in_one_tree(n: int) -> None:
    """Equal hash words, and equal trees by the reference: equal bits from both algorithms."""
    made = [build(f"all_reduce/{name}", n) for name in ONE_TREE]
    words = [mixes(s) for s in made]
    assert len(words[0]) == 1
    assert words[0] == words[1]
    trees = [set(reference.run(s).trees.values()) for s in made]
    assert trees[0] == trees[1]


@pytest.mark.parametrize(("n", "group"), [(8, 2), (8, 4), (16, 4)])
def test_two_levels_add_in_the_same_tree(n: int, group: int) -> None:
    """Nodes of an aligned power of two, near ranks first."""
    one = mixes(build("all_reduce/recursive_doubling", n))
    leader = build("all_reduce/leader", n, group=group, inner="binomial",
                   outer="recursive_doubling")  # fmt: skip
    assert mixes(leader) == one
    assert mixes(build("reduce/binomial", n)) == one


def test_words_differ_where_trees_do() -> None:
    """Over every algorithm that adds: as many hash words as trees, and equal just together."""
    for n in (4, 6, 8):
        word_of: dict[int, int] = {}
        for algorithm in rl.algorithms("all_reduce"):
            schedule = algorithm(n)
            trees = sorted(set(reference.run(schedule).trees.values()))
            found = mixes(schedule)
            assert len(found) == len(trees)
            if len(trees) == 1:
                assert word_of.setdefault(trees[0], found[0]) == found[0]
        assert len(set(word_of.values())) == len(word_of) >= 2


# --- other orders of execution ------------------------------------------------------------------


@EVERY
def test_any_order_that_keeps_dependences(algorithm: rl.Algorithm) -> None:
    for n in range(1, 7):
        schedule = algorithm(n)
        for seed in range(2):
            assert orders.any_order(schedule, np.random.default_rng(seed))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@EVERY
def test_any_order_soak(algorithm: rl.Algorithm) -> None:
    for n in range(1, 13):
        for params in algorithm.variants(n):
            for seed in range(20):
                assert orders.any_order(algorithm(n, **params), np.random.default_rng(seed))


@EVERY
def test_dependences_order_every_conflict(algorithm: rl.Algorithm) -> None:
    """Two half-moves at one place, one of them a write, are never free to swap; n <= 4.

    And nothing waits for what comes later, so that no order is a dead end.
    """
    for n in (2, 3, 4):
        halves = orders.half_moves(algorithm(n))
        number = {id(half): i for i, half in enumerate(halves)}
        reached = [1 << i for i in range(len(halves))]  # bit sets: what must come after
        for i in reversed(range(len(halves))):
            for follower in halves[i].followers:
                assert number[id(follower)] > i
                reached[i] |= reached[number[id(follower)]]
        at_place = defaultdict(list)
        for i, half in enumerate(halves):
            at_place[half.place].append(i)
        for same in at_place.values():
            for a, i in enumerate(same):
                for j in same[a + 1 :]:
                    if halves[i].write or halves[j].write:
                        assert reached[i] >> j & 1
        for half in halves:
            assert half.waits_for == sum(h.followers.count(half) for h in halves)


def results(halves: list[Any], schedule: Schedule) -> Iterator[dict[Any, Any]]:
    """What the half-moves come to in 30 random orders."""
    values, held = numbers.start(schedule, np.arange(schedule.chunks), np.random.default_rng(0))
    for seed in range(30):
        state = {(int(r), int(c)): tuple(values[r, c].tolist()) for r, c in np.argwhere(held)}
        orders.execute(halves, state, np.random.default_rng(seed))
        yield state


@pytest.mark.parametrize(
    ("name", "ignored"),
    [
        ("recursive_doubling", "write after read"),
        ("one_shot", "write after read"),
        ("ring", "read after write"),
        ("star", "write after write"),
        ("one_shot", "write after write"),
    ],
)
def test_an_order_that_breaks_a_dependence_shows(name: str, ignored: str) -> None:
    """With the waits of one kind taken away, some order gives other numbers or other bits."""
    schedule = build(f"all_reduce/{name}", 4)
    kept = list(results(orders.half_moves(schedule), schedule))
    assert all(state == kept[0] for state in kept)
    loose = orders.half_moves(schedule)
    for half in loose:
        for follower in [f for f in half.followers if f.move != half.move]:
            kind = [{True: "write", False: "read"}[h.write] for h in (follower, half)]
            if " after ".join(kind) == ignored:
                half.followers.remove(follower)
                follower.waits_for -= 1
    broken = list(results(loose, schedule))
    assert any(state != kept[0] for state in broken)


def test_verify_tries_other_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    schedule = build("all_reduce/ring", 4)
    tried = []
    module = importlib.import_module("roundelay.verify")
    monkeypatch.setattr(module, "any_order", lambda s, rng: tried.append(s) or False)
    verdict = verify(schedule, orders=3)
    assert not verdict.ok
    assert "order" in verdict.reason
    assert tried == [schedule]
    assert verify(schedule, orders=0).ok
    assert verify(build("all_reduce/ring", 40), orders=3).ok  # too many moves to try


@pytest.mark.parametrize("doublings", [32, 63, 64, 65, 128])
def test_a_contribution_counted_a_power_of_two_times_too_often(doublings: int) -> None:
    """A switch that adds its place to itself 64 times: modulo 2**64 that would not be seen."""
    rounds = [Round(1, 2, 0, COPY), Round(2, 2, 0, REDUCE, times=doublings), Round(2, 1, 0, REDUCE),
              Round(1, 0, 0, REDUCE)]  # fmt: skip
    assert not verify(Schedule("reduce", 2, 1, rounds, helpers=1)).ok


def test_a_contribution_counted_as_often_too_often_as_the_largest_prime_says() -> None:
    """No number that one can know beforehand hides a wrong total: the modulus is drawn."""
    for many in (2**63 - 25, 2**64 - 59, 2**64):
        rounds = [Round(0, 2, 0)]  # the switch comes to hold `many` times what rank 0 gave
        for bit in bin(many)[3:]:
            rounds.append(Round(2, 2, 0, REDUCE))
            rounds += [Round(0, 2, 0, REDUCE)] if bit == "1" else []
        rounds += [Round(1, 0, 0, REDUCE), Round(2, 0, 0, REDUCE), Round(0, 1, 0)]
        verdict = verify(Schedule("all_reduce", 2, 1, rounds, helpers=1))
        assert not verdict.ok
        assert verdict.counterexample is not None
        assert verdict.counterexample.doubled == [0]


def test_the_primes_drawn_are_prime() -> None:
    """Against trial division on small numbers, and Fermat's little theorem on large ones."""
    small = [n for n in range(2, 2000) if all(n % d for d in range(2, n))]
    assert [n for n in range(2, 2000) if numbers._is_prime(n)] == small
    for _ in range(5):
        prime = numbers.random_prime()
        assert 2**62 < prime < 2**63
        assert all(pow(a, prime - 1, prime) == 1 for a in (41, 43, 1_000_003))


@pytest.mark.parametrize("cells", [1, 40, 200])
@pytest.mark.parametrize("lost", [0, 5, 22])
def test_who_is_missing_is_found_among_many(
    monkeypatch: pytest.MonkeyPatch, cells: int, lost: int
) -> None:
    """Groups of contributions are followed together until few remain."""
    monkeypatch.setattr(exact, "CELLS", cells)
    n = 23
    others = [r for r in range(1, n) if r != lost]
    source = others if lost else others[1:]
    star = [Round(source, 0, 0, REDUCE), Round(0, list(range(1, n)), 0)]
    verdict = verify(Schedule("all_reduce", n, 1, star))
    assert verdict.counterexample is not None
    assert verdict.counterexample.missing == [lost or others[0]]
    assert verdict.counterexample.doubled == []


def test_a_wrong_schedule_over_many_ranks_fails_in_little_memory() -> None:
    verdict = verify(Schedule("broadcast", 100_000, 1, [Round(0, 1, 0)]))
    assert not verdict.ok
    assert verdict.counterexample is not None
    assert verdict.counterexample.missing == [0]


def test_a_verdict_is_true_or_false_and_says_why() -> None:
    ring = build("all_reduce/ring", 4)
    assert verify(ring)
    assert str(verify(ring)) == "all_reduce/ring, 4 ranks: proved"
    half = verify(replace(ring, rounds=list(ring)[:1]))
    assert not half
    assert str(half).startswith("all_reduce/ring, 4 ranks: not proved: rank 0, chunk 0 lacks")
    big = verify(build("all_gather/bruck", 2000))
    assert str(big) == "all_gather/bruck, 2000 ranks: proved on 16 of 2,000 chunks"
