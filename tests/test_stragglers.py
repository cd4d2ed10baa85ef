"""Who is late: made arrays with a known answer, and real jobs in which a rank sleeps."""

import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("roundelay._native", reason="the native core is not built")

from ranks import environment, finish, free_address, run

from roundelay.stragglers import NOISE, report

MS = 1_000_000


def arrivals(ranks, calls, late=(), by=2 * MS, noise=0, seed=0):
    """Calls, 10 ms apart, that end 0.1 ms after the last rank has come."""
    rng = np.random.default_rng(seed)
    begun = np.arange(calls) * 10 * MS + rng.integers(0, noise + 1, (ranks, calls))
    for rank, some in late:
        begun[rank, some] += by
    return begun, np.broadcast_to(begun.max(axis=0) + MS // 10, begun.shape)


def none(ranks):
    return np.zeros((ranks, ranks, 2), np.int64)


def test_one_that_is_late():
    some = np.arange(1000) < 412
    found = report("dp", *arrivals(4, 1000, [(3, some)]), none(4))
    late = found.ranks[0]
    assert (late.rank, late.last, late.stands_out) == (3, 412, True)
    assert late.median_seconds == late.p90_seconds == late.max_seconds == 0.002
    assert late.waited_seconds == pytest.approx(3 * 412 * 0.002)
    assert found.sentences() == [
        "rank 3 was last in 412 of 1,000 calls of group dp, by 2 ms (median); the others waited "
        "2.472 s for it in all"
    ]
    assert not any(r.last or r.stands_out or r.waited_seconds for r in found.ranks[1:])
    assert "rank 3" in str(found)
    assert "rank 1" not in str(found)


def test_two_that_are_late():
    """In turns, or both at once: then the last of them is named, against the median of the rest."""
    every, odd = np.arange(400) >= 0, np.arange(400) % 2 == 1
    turns = report("g", *arrivals(6, 400, [(1, odd), (4, ~odd)]), none(6))
    assert {(r.rank, r.last, r.stands_out) for r in turns.ranks[:2]} == {
        (1, 200, True),
        (4, 200, True),
    }
    begun, _ = arrivals(6, 400, [(1, every), (4, every)], noise=NOISE // 4)
    both = report("g", begun, begun.max(axis=0) + np.zeros_like(begun), none(6))
    assert {r.rank for r in both.ranks if r.stands_out} == {1, 4}
    assert sum(r.last for r in both.ranks) == 400


@pytest.mark.parametrize("ranks", [2, 3, 4, 16])
@pytest.mark.parametrize("seed", range(5))
def test_chance_is_nobodys_fault(ranks, seed):
    """Ranks that come in any order, even far apart, are all alike."""
    found = report("g", *arrivals(ranks, 1000, noise=5 * MS, seed=seed), none(ranks))
    assert sum(r.last for r in found.ranks) > 900
    assert found.sentences() == ["nobody stands out in 1,000 calls of group g"]


def test_noise_is_not_late():
    found = report("g", *arrivals(4, 500, [(2, slice(None))], by=NOISE), none(4))
    assert not any(r.last for r in found.ranks)
    assert str(found) == "nobody stands out in 500 calls of group g"


def test_clocks_that_may_be_wrong_blame_nobody():
    given = arrivals(4, 500, [(2, slice(None))])
    error = np.array([0, 0, 1 * MS, 1 * MS])
    sure, unsure = (report("g", *given, none(4), error * k) for k in (1, 3))
    assert sure.ranks[0].stands_out
    assert unsure.sentences() == ["nobody stands out in 500 calls of group g"]
    assert unsure.error_seconds == 0.003


def test_who_has_left_does_not_wait():
    """The root of a broadcast goes on; a rank that comes later keeps nobody."""
    begun, _ = arrivals(3, 100, [(2, slice(None))])
    found = report("g", begun, begun + MS // 10, none(3))
    assert found.ranks[0].last == 100
    assert found.ranks[0].waited_seconds == pytest.approx(2 * 100 * 0.0001)
    waits = report("g", begun, np.broadcast_to(begun.max(axis=0), begun.shape), none(3))
    assert waits.ranks[0].waited_seconds == pytest.approx(2 * 100 * 0.002)


def test_a_little_costs_nobody_much():
    """Late by 0.1 ms, always, to calls of 10 ms: that is not worth a look."""
    begun, _ = arrivals(4, 500, [(2, slice(None))], by=MS // 10)
    found = report("g", begun, begun + 10 * MS, none(4))
    assert found.ranks[0].last == 500
    assert not found.ranks[0].stands_out


def test_few_calls_tell_nothing():
    found = report("g", *arrivals(4, 19, [(1, slice(None))]), none(4))
    assert found.ranks[0].last == 19
    assert found.sentences() == [
        "19 calls of group g are too few to tell who is late; expected 20 or more"
    ]
    empty = np.empty((3, 0), np.int64)
    assert report("g", empty, empty, none(3)).calls == 0
    alone = report("g", *arrivals(1, 100), none(1))
    assert alone.sentences() == ["nobody stands out in 100 calls of group g"]


def test_links_by_who_waited_longest():
    waits = none(3)
    waits[0, 2] = 5, 3 * MS
    waits[1, 0] = 1, 7 * MS
    found = report("g", *arrivals(3, 100), waits)
    assert [(w.rank, w.peer, w.waits, w.seconds) for w in found.links] == [
        (1, 0, 1, 0.007),
        (0, 2, 5, 0.003),
    ]
    plain = json.loads(found.to_json())
    assert plain["links"][0] == {"rank": 1, "peer": 0, "waits": 1, "seconds": 0.007}
    assert plain["sentences"] == found.sentences()


@pytest.mark.parametrize("nodes", [None, "aabb"], ids=["one_node", "two_nodes"])
@pytest.mark.parametrize(("who", "switch"), [(0, False), (3, False), (2, True)])
def test_a_rank_that_sleeps_is_named(nodes, who, switch):
    run("late", 4, who, 100, switch, nodes=nodes, module="watch_programs")


def asked_clocks():
    """Whether a process may have a clock of its own."""
    try:
        return subprocess.run([*clock(1), "true"], capture_output=True).returncode == 0
    except FileNotFoundError:
        return False


def clock(seconds):
    """A command that gives its children a monotonic clock which is so much ahead."""
    return ["unshare", "--time", "--fork", "--kill-child", "--monotonic", str(seconds)]


@pytest.mark.skipif(not asked_clocks(), reason="no clocks of one's own: needs root and unshare")
@pytest.mark.parametrize("who", [1, 2])
def test_clocks_of_other_machines(who):
    ahead, nodes, secret, address = (None, None, 300, 1000), "aabc", "s" * 16, free_address()
    code = f"import watch_programs; watch_programs.main('late_on_other_clocks', ({who},))"
    python = [sys.executable, "-W", "error", "-c", code]
    processes = [
        subprocess.Popen(
            python if ahead[r] is None else [*clock(ahead[r]), *python],
            env=environment(r, 4, address, secret, nodes[r]),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for r in range(4)
    ]
    codes, said = finish(processes)
    assert codes == [0] * 4, "\n".join(said)


def test_the_last_calls_are_kept():
    run("long_ago", 2, module="watch_programs")
