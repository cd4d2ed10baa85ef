"""Orders of calls: circles, against the execution of all interleavings; recorded programs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundelay.diagnose.hang.order import Use, Wait, circle, unmade

A, B, C = ("a", (0, 1)), ("b", (0, 1)), ("c", (1, 2))


def deadlocks(programs, serial):
    """Whether some order of execution gets stuck: all of them are gone through.

    `serial`: each device runs one call at a time, in the order they were made; else any number at
    once, but those of a group in order.
    """
    ranks = sorted(programs)
    start = tuple((0, (), ()) for _ in ranks), frozenset()
    seen, todo = {start}, [start]
    while todo:
        state = todo.pop()
        following = list(_steps(programs, ranks, serial, *state))
        if not following and any(at < len(programs[r]) for r, (at, _, _) in
                                 zip(ranks, state[0], strict=True)):  # fmt: skip
            return True
        if not following and any(queue or running for _, queue, running in state[0]):
            return True
        for new in following:
            if new not in seen:
                seen.add(new)
                todo.append(new)
    return False


def _steps(programs, ranks, serial, places, done):
    """All that can happen next: a rank makes a call, a device begins one, a call ends."""
    for i, rank in enumerate(ranks):
        at, queue, running = places[i]
        if at < len(programs[rank]):
            item = programs[rank][at]
            before = programs[rank][at - 1] if at else None
            held = isinstance(before, Use) and before.waits and before[:2] not in done
            if not held and isinstance(item, Wait):
                if item[:2] in done:
                    yield _put(places, i, (at + 1, queue, running)), done
            elif not held:
                yield _put(places, i, (at + 1, (*queue, item[:2]), running)), done
        for q, call in enumerate(queue):
            if serial and (q or running):
                break
            earlier = [c for c in (*running, *queue[:q]) if c[0] == call[0]]
            if not earlier:
                rest = queue[:q] + queue[q + 1 :]
                yield _put(places, i, (at, rest, (*running, call))), done
    for call in {c for _, _, running in places for c in running}:
        if all(call in places[ranks.index(r)][2] for r in call[0][1]):
            ended = tuple(
                (at, queue, tuple(c for c in running if c != call)) for at, queue, running in places
            )
            yield ended, done | {call}


def _put(places, i, place):
    return (*places[:i], place, *places[i + 1 :])


@st.composite
def programs(draw):
    """Every member makes the same calls of each group, but the groups' order differs."""
    groups = draw(st.lists(st.sampled_from([A, B, C, ("d", (0, 2)), ("e", (0, 1, 2))]),
                           min_size=1, max_size=3, unique=True))  # fmt: skip
    counts = {g: draw(st.integers(1, 2)) for g in groups}
    found = {}
    for rank in range(3):
        calls = draw(st.permutations([g for g in groups if rank in g[1] for _ in range(counts[g])]))
        program, made = [], {}
        for group in calls:
            number = made[group] = made.get(group, -1) + 1
            program.append(Use(group, number, draw(st.booleans())))
            if draw(st.integers(0, 3)) == 0:
                past = draw(st.sampled_from(sorted(made)))
                program.append(Wait(past, draw(st.integers(0, made[past]))))
        found[rank] = program
    return found


@settings(deadline=None, max_examples=400)
@given(programs())
def test_a_circle_is_there_if_and_only_if_some_execution_hangs(them):
    found = circle(them)
    must, may = deadlocks(them, serial=False), deadlocks(them, serial=True)
    assert (found is not None and found.certain) == must
    assert (found is not None) == may
    assert unmade(them) == []
    if found:
        _check(them, found)


def _check(them, found):
    """Every link stands in the rank's program, and they are a circle."""
    for link, following in zip(found.links, (*found.links[1:], found.links[0]), strict=True):
        calls = [item for item in them[link.rank] if isinstance(item, Use)]
        assert calls.index(link.before) < calls.index(link.after)
        assert link.after[:2] == following.before[:2]


def test_two_groups_in_two_orders():
    waits = {0: [Use(A, 1, True), Use(B, 1, True)], 1: [Use(B, 1, True), Use(A, 1, True)]}
    found = circle(waits)
    assert found.certain
    assert sorted(link.rank for link in found.links) == [0, 1]
    does_not = {rank: [use._replace(waits=False) for use in uses] for rank, uses in waits.items()}
    assert not circle(does_not).certain
    assert circle({0: waits[0], 1: waits[0]}) is None


def test_one_stream_is_as_strict_as_waiting():
    both = {r: [Use(g, 1, stream="7") for g in ((A, B) if r else (B, A))] for r in (0, 1)}
    assert circle(both).certain


def test_three_ranks_in_a_ring():
    pairs = [("x", (0, 1)), ("y", (1, 2)), ("z", (0, 2))]
    ring = {0: (0, 2), 1: (1, 0), 2: (2, 1)}
    found = circle({r: [Use(pairs[g], 1, True) for g in own] for r, own in ring.items()})
    assert len(found.links) == 3
    assert found.certain


def test_calls_that_a_member_never_makes():
    them = {0: [Use(A, 1), Use(A, 2, what="all_reduce")], 1: [Use(A, 1)]}
    ((use, rank, missing),) = unmade(them)
    assert (use.number, rank, missing) == (2, 0, (1,))


def test_many_calls_in_no_time():
    them = {r: [Use(g, i, i % 3 == 0) for i in range(3000) for g in (A, B)] for r in (0, 1)}
    assert circle(them) is None
    them[1][-2:] = them[1][:-3:-1]
    assert circle(them).certain == (2999 % 3 == 0)


@pytest.mark.parametrize("empty", [{}, {0: []}, {0: [Wait(A, 1)]}])
def test_nothing_is_safe(empty):
    assert circle(empty) is None
