"""Jobs that share links: what they take from one another, and what that does over time."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundelay import cli
from roundelay.clusters import cluster
from roundelay.place.objective import Crossing
from roundelay.place.sim import (
    KINDS,
    PARTS,
    Arrival,
    ClusterClock,
    Kind,
    Rates,
    Settings,
    by_chance,
    compare,
    cut_job,
    larger,
    loaded,
    saving,
)
from roundelay.place.sim.contention import longer

NEVER = Rates(**dict.fromkeys(KINDS, 0.0))


def fabric(nodes=16, leaf=4, pod=8, tapers=(4.0, 4.0)):
    base = cluster("dgx-h100")
    wired = replace(base.fabric, nodes_per_leaf=leaf, nodes_per_pod=pod, oversubscription=tapers,
                    radix=None)  # fmt: skip
    return replace(base, fabric=wired, nodes=nodes)


def crossing(seconds, links=(0,), wire=None):
    """One exchange over some links."""
    links = np.array(links)
    each = np.broadcast_to(np.asarray(seconds, float), links.shape)
    return Crossing(np.array([wire or each.max()]), np.zeros(len(links), np.int64), links, each)


def times(*jobs):
    """How many times longer a step takes."""
    steps = np.array([step for _, step in jobs])
    return 1 + longer(jobs) / steps


# What jobs take from one another


def test_alone_nobody_is_slowed():
    assert times((crossing(1.0, [3, 4]), 2.0)) == pytest.approx([1.0])
    apart = times((crossing(1.0, [1]), 1.0), (crossing(1.0, [2]), 1.0))
    assert apart == pytest.approx([1.0, 1.0])


@pytest.mark.parametrize("count", [2, 3, 7])
def test_who_does_nothing_but_exchange_has_an_equal_part(count):
    jobs = [(crossing(1.0), 1.0)] * count
    assert times(*jobs) == pytest.approx([count] * count, rel=1e-2)


def test_who_leaves_room_slows_nobody():
    """One can only use a quarter of the link, the other three quarters."""
    both = times((crossing(0.25, wire=1.0), 1.0), (crossing(0.75, wire=1.0), 1.0))
    assert both == pytest.approx([1.0, 1.0], abs=1e-3)
    more = times((crossing(0.25, wire=1.0), 1.0), (crossing(0.9, wire=1.0), 1.0))
    assert more[0] == pytest.approx(1.0, abs=1e-3)
    assert 1.1 < more[1] < 1.25


def test_rare_exchanges_meet_rarely():
    """Of two that exchange a tenth of the time, one meets the other in a tenth of its exchange."""
    extra = longer([(crossing(1.0), 10.0)] * 2)
    assert extra == pytest.approx([0.1, 0.1], rel=0.12)


def exact(jobs, between):
    """Times longer, by mean value analysis (Reiser and Lavenberg 1980): a closed queue."""
    found, there = 1.0, 0.0
    for count in range(1, jobs + 1):
        found = 1 + there
        there = count * found / (between + found)
    return found


@pytest.mark.parametrize("jobs", [2, 3, 5, 8, 15, 30])
@pytest.mark.parametrize("between", [0.0, 0.5, 2.0, 9.0, 49.0])
def test_beside_the_exact_mean_of_a_closed_queue(jobs, between):
    """Equal jobs on one link, that compute for a while between exchanges of one second."""
    found = 1 + longer([(crossing(1.0), 1.0 + between)] * jobs)
    assert 0.99 <= found.max() / exact(jobs, between) <= 1.16
    assert found.max() == pytest.approx(found.min())


def test_only_the_link_that_decides_counts():
    """The first has another link that takes as long; its other exchange crosses nothing."""
    one = Crossing(np.array([1.0, 5.0]), np.array([0, 0]), np.array([0, 9]), np.array([0.1, 1.0]))
    extra = longer([(one, 8.0), (crossing(1.0), 1.0)])
    assert extra[0] == 0.0
    assert extra[1] > 0.0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(1.0, 50.0), st.integers(0, 3)),
                min_size=1, max_size=8))  # fmt: skip
def test_no_link_carries_more_than_it_can(jobs):
    """And nobody waits for more than all others together."""
    made = [(crossing(s, [link]), step * s) for s, step, link in jobs]
    extra = longer(made)
    assert (extra >= 0).all()
    for link in range(4):
        mine = [i for i, (_, _, at) in enumerate(jobs) if at == link]
        carried = sum(jobs[i][0] / (made[i][1] + extra[i]) for i in mine)
        assert carried <= 1.02
        for i in mine:
            assert extra[i] <= jobs[i][0] * (len(mine) - 1) * 1.02


@pytest.mark.parametrize("cut", ["dense", "sharded", "experts"])
def test_a_placement_crosses_what_decides_it(cut):
    """The busiest link between switches is the one of its price, where that is one of these."""
    where = fabric()
    kind = Kind(cut_job(cut, 64, 8), where)
    nodes = np.array([0, 4, 8, 12, 1, 5, 9, 13])
    found = kind.objective.crossing(nodes)
    assert len(found.wire) == len(kind.objective.wholes)
    assert found.seconds.max() <= found.wire.max() * (1 + 1e-9)
    assert (np.bincount(found.part, minlength=len(found.wire)) > 0).any()
    for part in np.unique(found.part):
        assert found.seconds[found.part == part].max() <= found.wire[part] * (1 + 1e-9)
    alone = kind.objective.crossing(np.array([0, 1, 2, 3] * 2)[:8] // 2)
    assert not len(alone.link)  # one leaf


def test_with_as_much_above_as_below_nobody_slows_anybody():
    """Three jobs, laid across each other's leaves."""
    flat, thin = fabric(tapers=(1.0, 1.0)), fabric(tapers=(4.0, 1.0))
    for where, slows in ((flat, False), (thin, True)):
        kind = Kind(cut_job("sharded", 32, 8), where)
        laid = [np.arange(i, 16, 4) for i in range(3)]
        jobs = [(kind.objective.crossing(at), 1.01 * kind.seconds(at)) for at in laid]
        extra = longer(jobs)
        assert (extra > 0.05).all() if slows else (extra < 1e-3).all()


# Over time


def clock(jobs, where, policy="first_fit", **more):
    saves = saving(where, jobs, 30.0, 300.0, NEVER)
    given = {"exchange": 0.5, "contention": True} | more
    return ClusterClock(where, jobs, Settings(policy, saves, NEVER, **given), {})


def test_a_job_is_slowed_while_the_other_runs():
    """The third splits a leaf with the second; the first stands alone, and ends first."""
    where = fabric(12, 4, 12)
    jobs = [Arrival(0, 48, 1000), Arrival(0, 48, 100_000)]
    both = clock(jobs, where).run().runs
    each = [clock([job], where).run().runs[0] for job in jobs]
    assert all(run.crowded == 0 for run in each)
    assert both[0].crowded > 1
    assert both[1].crowded > 1
    assert both[1].held < 100_000 * 2
    for run in both:
        assert sum(getattr(run, part) for part in PARTS) == pytest.approx(run.held)
        assert run.work == pytest.approx(run.arrival.seconds)
        assert run.shared > run.exchanged
    without = clock(jobs, where, contention=False).run().runs
    assert [run.crowded for run in without] == [0, 0]
    assert all(run.shared == run.exchanged for run in without)
    assert without[0].ended < both[0].ended


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 99), st.sampled_from(["first_fit", "best_fit", "ours"]))
def test_time_adds_up_with_failures_and_contention(seed, policy):
    where = fabric(32, 4, 16)
    rates = Rates(card=500, host=100, switch=100, software=200, slow=2000, repair=3600)
    jobs = loaded(larger(by_chance(25, seed, 32), 4), where.size, 1.0)
    saves = saving(where, jobs, 30.0, 300.0, rates)
    given = Settings(policy, saves, rates, 0.3, contention=True)
    runs = [ClusterClock(where, jobs, given, {}).run() for _ in "ab"]
    for run, again in zip(*(one.runs for one in runs), strict=True):
        parts = [getattr(run, part) for part in PARTS]
        assert min(parts) >= -1e-6
        assert sum(parts) == pytest.approx(run.held, rel=1e-6, abs=1e-3)
        assert run.work == pytest.approx(run.arrival.seconds)
        assert (run.ended, run.crowded) == (again.ended, again.crowded)


def test_less_is_shared_where_jobs_are_placed_by_their_exchange():
    where = fabric(32, 4, 16)
    jobs = loaded(larger(by_chance(60, 4, 32), 4), where.size, 0.9)
    saves = saving(where, jobs, 30.0, 300.0, NEVER)
    found = compare(where, jobs, ["first_fit", "order"],
                    Settings("", saves, NEVER, 0.3, contention=True))  # fmt: skip
    first, order = (one.crowding for one in found)
    assert first > order > 1.0
    assert sum(found[0].card_hours.values()) > 0


def test_contention_without_exchange_is_refused(capsys):
    words = ["cluster-sim", "--cluster", "dgx-h100:4", "--contention", "--exchange", "0"]
    assert cli.run(words) == 2
    assert "no job can slow another" in capsys.readouterr().err


@pytest.mark.parametrize(("lang", "head"), [("en", "shared links"), ("zh", "共享链路")])
def test_the_command(capsys, lang, head):
    words = [
        "cluster-sim",
        "--cluster",
        "dgx-h100:64",
        "--jobs",
        "15",
        "--scale",
        "8",
        "--lang",
        lang,
    ]
    assert cli.run([*words, "--contention"]) == 0
    assert head in capsys.readouterr().out
    assert cli.run(words) == 0
    assert head not in capsys.readouterr().out
    for more in ([], ["--contention"]):
        assert cli.run([*words, "--json", *more]) == 0
        value = json.loads(capsys.readouterr().out)["policies"][0]
        assert (value["exchange_crowding"] is None) is (not more)
        assert value["card_hours"]["crowded"] >= 0
        assert value["jobs"][0]["crowding"] >= 1
