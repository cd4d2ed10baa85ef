"""A cluster over time: arrivals, gangs, queues, failures, and what they cost."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise, takewhile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from roundelay import cli
from roundelay.clusters import cluster
from roundelay.errors import RoundelayError
from roundelay.intervals import daly, effective, waste, young
from roundelay.place.sim import (
    CUTS,
    KINDS,
    PARTS,
    POLICIES,
    Arrival,
    ClusterClock,
    Kind,
    Rates,
    Settings,
    by_chance,
    checkpoints,
    compare,
    cut_job,
    failures,
    fitting,
    larger,
    loaded,
    read_trace,
    saving,
    urgent,
)

TRACE = Path(__file__).parent / "files" / "arrivals.csv"
NONE = Rates(card=0, host=0, switch=0, software=0)
OFTEN = Rates(card=3000, host=500, switch=500, software=1000, slow=2000, repair=3600)


def fabric(nodes=16, leaf=4, pod=8, tapers=(4.0, 4.0)):
    base = cluster("dgx-h100")
    wired = replace(base.fabric, nodes_per_leaf=leaf, nodes_per_pod=pod, oversubscription=tapers,
                    radix=None)  # fmt: skip
    return replace(base, fabric=wired, nodes=nodes)


def set_up(jobs, rates, where, policy="ours", exchange=0.3, stop=(30.0, 300.0), **more):
    return Settings(policy, saving(where, jobs, *stop, rates), rates, exchange, **more)


def clock(jobs, rates=NONE, where=None, **more):
    where = where or fabric()
    return ClusterClock(where, jobs, set_up(jobs, rates, where, **more), {})


def starts(jobs, **more):
    return [(r.started, r.ended) for r in clock(jobs, exchange=0.0, **more).run().runs]


# Arrivals


def test_a_trace_in_steps():
    """Half of the jobs of a kind last longer than the median, whatever a step of it takes."""
    jobs = read_trace(TRACE.read_text(), "t", 100.0)
    assert [j.cards for j in jobs] == [8, 16, 4, 64, 8, 32]
    assert [j.seconds for j in jobs] == [100, 100, 200, 50, 50, 200]
    assert [j.cards for j in larger(jobs, 2)] == [16, 32, 8, 128, 16, 64]


def test_a_load_is_what_is_asked_for():
    jobs = loaded(by_chance(500, 3, 64), 128, 0.7)
    asked = sum(j.cards * j.seconds for j in jobs)
    assert asked / (128 * (jobs[-1].submit - jobs[0].submit)) == pytest.approx(0.7)
    raised = urgent(jobs, 0.3, 1)
    assert 0.2 < np.mean([j.priority for j in raised]) < 0.4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "columns none"),
        ("arrival_s,gpus\n0,1\n", "expected arrival_s, gpus or cards"),
        ("arrival_s,cards,duration_s\n", "0 jobs"),
        ("arrival_s,cards,duration_s\n0,1,5\n1,x,5\n", "t, line 3: .*expected numbers"),
        ("arrival_s,cards,duration_s\n0,1.5,5\n", "line 2: 0, 1.5, 5; expected"),
        ("arrival_s,cards,duration_s\n-1,1,5\n", "line 2: -1"),
        ("arrival_s,cards,duration_s\n0,1,nan\n", "line 2: 0, 1, nan"),
        ("arrival_s,cards,duration_s\n0,0,5\n", "1 card or more"),
        ("arrival_s,cards,duration_s\n0\n", "line 2"),
        ("a" * 200_000, "t: no CSV: field larger than"),
    ],
)
def test_bad_traces(text, said):
    with pytest.raises(RoundelayError, match=said):
        read_trace(text, "t")


@given(st.sampled_from(["dgx-h100", "gb200-nvl72"]), st.integers(1, 40), st.integers(1, 50),
       st.integers(0, 5))  # fmt: skip
def test_jobs_by_chance_have_room_whatever_they_are_multiplied_by(machine, nodes, scale, seed):
    where = cluster(f"{machine}:{nodes}")
    assume(scale <= where.size)
    each = where.cards
    jobs = larger(by_chance(20, seed, where.size // scale or 1), scale)
    for job, was in zip(fitting(jobs, where), jobs, strict=True):
        cut = was.cards - job.cards
        assert cut == 0 or (0 < cut < each and job.cards % each == 0)
        block = max(k for k in range(1, each + 1) if job.cards % k == 0)
        assert job.cards <= nodes * (each // block) * block


def test_what_cannot_be_asked_for():
    one = [Arrival(0.0, 8, 100.0)]
    for wrong, said in (
        (lambda: by_chance(0, 1, 8), "0 jobs"),
        (lambda: loaded(one, 8, 0.5), "all jobs arrive at once"),
        (lambda: loaded(by_chance(2, 1, 8), 8, 0.0), "load 0"),
        (lambda: urgent(one, 2.0, 1), "urgent: 2"),
        (lambda: compare(fabric(), [], ["ours"], set_up(one, NONE, fabric())), "no job arrives"),
        (lambda: clock([Arrival(0.0, 129, 1.0)]), "job 0: 129 cards, and dgx-h100 has 128"),
        (lambda: clock([Arrival(0.0, 127, 1.0)], where=fabric(1)), "127 cards"),
        (lambda: saving(fabric(), one, 0.0, 1.0, NONE), "a save of 0 s"),
        (lambda: saving(fabric(), one, 1.0, 1.0, NONE, interval=0.0), "saves every 0 s"),
        (lambda: Rates(card=-1), "card = -1"),
        (lambda: Rates(slower=0.5), "slower = 0.5"),
        (lambda: Rates(card=1e300), r"card = 1e\+300; .* 1e\+09 at most"),
        (lambda: by_chance(2, 1, 8, 0.0), "a median of 0 s"),
        (lambda: read_trace("arrival_s,cards,steps\n0,8,9\n", "t", 0.0), "a median of 0 s"),
        (lambda: set_up(one, NONE, fabric(), exchange=math.nan), "exchange: nan"),
        (lambda: Rates(switch=math.nan), "switch = nan"),
    ):
        with pytest.raises(RoundelayError, match=said):
            wrong()


@pytest.mark.parametrize("cut", CUTS)
@given(cards=st.integers(1, 600))
@settings(max_examples=30, deadline=None)
def test_every_cut_has_all_cards(cut, cards):
    assert cut_job(cut, cards, 8).ranks == cards


# Queues


def test_a_gang_waits_until_all_its_cards_are_free():
    assert starts([Arrival(0, 96, 100), Arrival(1, 64, 10)]) == [(0, 100), (100, 110)]


def test_backfill_passes_only_whom_it_does_not_delay():
    jobs = [Arrival(0, 96, 100), Arrival(1, 128, 10), Arrival(2, 32, 90), Arrival(3, 32, 200)]
    assert starts(jobs) == [(0, 100), (100, 110), (2, 92), (110, 310)]
    assert starts(jobs, backfill=False) == [(0, 100), (100, 110), (110, 200), (110, 310)]


def test_backfill_may_use_what_the_first_leaves():
    jobs = [Arrival(0, 96, 100), Arrival(1, 112, 10), Arrival(2, 16, 500), Arrival(3, 16, 500)]
    assert starts(jobs) == [(0, 100), (100, 110), (2, 502), (110, 610)]


def test_the_urgent_take_the_cards_of_others_who_lose_no_work():
    jobs = [Arrival(0, 128, 1000), Arrival(100, 64, 50, priority=1)]
    first, second = clock(jobs, exchange=0.0).run().runs
    assert (second.started, second.ended) == (100, 150)
    assert (first.preempted, first.again, first.work) == (1, 0.0, 1000)
    assert first.restarting == 330
    assert first.ended == 150 + 300 + 30 + 900


def test_priority_counts_only_where_that_makes_room():
    jobs = [Arrival(0, 64, 100, 1), Arrival(0, 64, 100), Arrival(1, 128, 10, 1)]
    assert starts(jobs) == [(0, 100), (0, 100), (100, 110)]


# Failures


def test_rates_are_the_published_ones():
    rates, llama = Rates(), fabric(2048, 2, 384, (1.0, 7.0))
    between = rates.between_failures(16384, llama)
    assert between / 3600 == pytest.approx(3.09, rel=0.002)
    assert 16384 * between / 3600 == pytest.approx(50677, rel=0.002)
    assert rates.between_failures(8, llama) < 2048 * between  # a leaf takes down more
    assert NONE.between_failures(16384, llama) == math.inf


def test_failures_come_as_often_as_they_should():
    where = fabric(2048, 2, 384, (1.0, 7.0))
    days = 540
    found = list(takewhile(lambda f: f.time < days * 86400, failures(Rates(), where, 1)))
    assert len(found) == pytest.approx(4190, rel=0.05)
    kinds = {kind: sum(f.kind == kind for f in found) for kind in ("card", "switch", "slow")}
    assert kinds["card"] == pytest.approx(2810, rel=0.06)
    assert kinds["switch"] == pytest.approx(350, rel=0.2)
    assert kinds["slow"] == 0
    assert all(a.time < b.time for a, b in pairwise(found))
    assert not list(failures(NONE, where, 1))


def test_a_switch_takes_its_leaf_and_a_host_its_cards():
    one = replace(NONE, switch=1.0)
    failure = next(failures(one, fabric(15), 1))
    assert (failure.node % 4, failure.cards) == (0, 8)
    assert failure.nodes == min(4, 15 - failure.node)
    rack = next(failures(replace(NONE, host=1.0), cluster("gb200-nvl72:2"), 1))
    assert (rack.nodes, rack.cards, rack.card % 4) == (1, 4, 0)


def test_a_job_that_keeps_some_work_is_not_given_up(monkeypatch):
    monkeypatch.setattr("roundelay.place.sim.clock.PATIENCE", 20)
    often = replace(NONE, software=10_000.0, repair=0.0)
    (run,) = clock([Arrival(0, 128, 1e6)], often).run().runs
    assert run.failures > 200
    assert run.work == pytest.approx(1e6)


def test_work_is_lost_since_the_last_save():
    """Saves every 100 s of work, 30 s each; it fails at 250 s and again in its restart."""
    jobs = [Arrival(0, 8, 1000)]
    run = clock(jobs).outcome.runs[0]
    saves = saving(fabric(), jobs, 30.0, 300.0, NONE, interval=100.0)
    run.start(0.0, np.zeros(1, np.int64), 1.0, 1.0)
    run.advance(250.0)
    run.stop(saves, saved=False)
    assert (run.work, run.saving, run.again, run.left) == (100, 30, 120, 900)
    run.start(250.0, np.zeros(1, np.int64), 1.0, 1.0)
    run.advance(450.0)
    run.stop(saves, saved=False)
    assert (run.restarting, run.again, run.left) == (200, 120, 900)
    run.start(450.0, np.zeros(1, np.int64), 1.0, 1.0)
    run.replan(saves)
    assert run.planned == 450 + 300 + 900 + 8 * 30


def test_where_all_fails_before_it_works_no_time_is_work():
    assert effective(30.0, 300.0, 60.0, 1e-9) == 0.0


@pytest.mark.parametrize(("save", "restart"), [(30.0, 300.0), (60.0, 900.0)])
def test_the_time_that_is_work_is_what_daly_says(save, restart):
    """Two years of one job, with spares, on 128 cards that fail as often as 16,384 do."""
    usual, where = Rates(), fabric()
    often = {kind: getattr(usual, kind) * 128 for kind in KINDS}
    rates = replace(usual, repair=0.0, **often)
    jobs = [Arrival(0, 128, 2 * 365 * 86400)]
    (found,) = compare(where, jobs, ["ours"], set_up(jobs, rates, where, stop=(save, restart)))
    (run,) = found.outcome.runs
    assert run.held / run.failures / 3600 == pytest.approx(3.09, rel=0.04)
    (best,) = checkpoints(where, [128], save, restart, rates)
    assert found.effective == pytest.approx(best.effective, rel=0.01)


def test_waste_is_the_published_table():
    m = 54 * 86400 / 419
    for save, restart, part in ((30, 300, 0.100), (30, 900, 0.154), (60, 300, 0.131),
                                (60, 900, 0.185)):  # fmt: skip
        assert waste(save, restart, young(save, m), m) == pytest.approx(part, abs=0.0006)
        best = effective(save, restart, daly(save, m), m)
        assert all(effective(save, restart, daly(save, m) * f, m) <= best for f in (0.8, 1.25))
        assert 1 - best == pytest.approx(part, rel=0.1)


def test_a_slow_node_is_found_and_its_job_moved():
    where, jobs = fabric(), [Arrival(0, 32, 20_000)]
    rates = replace(NONE, slow=20_000.0, lasts=1e7, found=600.0, repair=3600.0)
    (run,) = clock(jobs, rates, where, exchange=0.0).run().runs
    assert run.moved >= 1
    assert run.slowed == pytest.approx(run.moved * (600 - 600 / 1.34), rel=0.4)
    assert (run.again, run.work) == (0, 20_000)
    kept = replace(rates, lasts=300.0, found=1e9)
    (run,) = clock(jobs, kept, where, exchange=0.0).run().runs
    assert run.moved == 0
    assert 0 < run.slowed < 20_000 * 0.34


def test_what_never_ends_is_said():
    with pytest.raises(RoundelayError, match="has failed 10,0"):
        clock([Arrival(0, 128, 1e6)], replace(NONE, software=1e6, repair=0.0)).run()
    later = [Arrival(0, 8, 1.0), Arrival(1e5, 128, 1e3)]
    with pytest.raises(RoundelayError, match="128 cards never finds as many"):
        clock(later, replace(NONE, card=1e5, repair=1e6)).run()


def test_time_begins_with_the_first_job():
    """Arrivals may be in seconds since 1970; nothing breaks before them, and nothing is diluted."""
    jobs = [Arrival(0, 8, 4e4), Arrival(100, 64, 3e4), Arrival(200, 8, 5e4)]
    later = [replace(job, submit=job.submit + 1.7e9) for job in jobs]
    now, then = (clock(some, OFTEN).run() for some in (jobs, later))
    assert now.fragmentation > 0.01
    assert then.fragmentation == pytest.approx(now.fragmentation, rel=1e-4)
    assert [r.ended for r in then.runs] == pytest.approx([r.ended + 1.7e9 for r in now.runs])
    assert then.failures == now.failures


def test_what_fails_where_there_are_no_jobs_is_no_reason_to_give_up(monkeypatch):
    monkeypatch.setattr("roundelay.place.sim.clock.PATIENCE", 20)
    rates = replace(NONE, card=1e4, repair=60.0)
    idle = 20 * 60 / (1e4 * 128 / 1e6)  # minutes in which twenty fail
    jobs = [Arrival(0, 8, 1.0), Arrival(50 * 60 * idle, 8, 1.0)]
    assert [run.ended - run.arrival.submit for run in clock(jobs, rates).run().runs] == [1.0, 1.0]


# What holds whatever comes

arrivals = st.lists(
    st.builds(Arrival, st.floats(0, 5e4), st.sampled_from([1, 3, 4, 8, 12, 16, 24, 64, 128]),
              st.floats(1, 4e4), st.integers(0, 1)),
    min_size=1, max_size=25,
)  # fmt: skip


def check(clock):
    """Cards and jobs fit together at this moment."""
    nodes, running = clock.nodes, clock.queue.running
    used = np.zeros(len(nodes.free), np.int64)
    for run in running:
        assert run.nodes is not None
        assert len(run.nodes) * run.kind.block == run.arrival.cards  # a gang is whole
        np.add.at(used, run.nodes, run.kind.block)
    assert (used + nodes.free == nodes.cluster.cards).all()  # no card twice, none lost
    assert (nodes.free >= 0).all()
    assert (nodes.out >= 0).all()
    assert [sum(held.values()) for held in nodes.held] == used.tolist()
    waiting = clock.queue.waiting
    assert not running & {*waiting}
    assert len(waiting) == len({*waiting})


@settings(max_examples=25, deadline=None)
@given(arrivals, st.sampled_from(POLICIES), st.integers(0, 99), st.booleans(), st.booleans())
def test_cards_jobs_and_time_add_up(jobs, policy, seed, often, backfill):
    jobs = sorted(jobs, key=lambda j: j.submit)
    rates = OFTEN if often else NONE
    ours = clock(jobs, rates, policy=policy, seed=seed, backfill=backfill)
    before = 0.0
    while ours.left:
        ours.step()
        assert ours.now >= before
        before = ours.now
        check(ours)
    for run in ours.outcome.runs:
        parts = [getattr(run, part) for part in PARTS]
        assert min(parts) >= -1e-6
        assert sum(parts) == pytest.approx(run.held, rel=1e-6, abs=1e-3)
        assert run.work == pytest.approx(run.arrival.seconds)
        assert run.arrival.submit <= run.started <= run.ended
        assert run.held <= (run.ended - run.started) * (1 + 1e-9)
    assert not ours.queue.waiting


def figures(found):
    return [(r.started, r.ended, r.held, r.failures, r.moved) for r in found.outcome.runs]


def test_the_same_seed_gives_the_same():
    jobs = loaded(by_chance(30, 2, 64), 128, 0.9)
    where = fabric()
    for policy in POLICIES:
        one, two = (compare(where, jobs, [policy], set_up(jobs, OFTEN, where))[0] for _ in "ab")
        assert figures(one) == figures(two)
        assert one.card_hours == two.card_hours
    other = compare(where, jobs, ["ours"], set_up(jobs, OFTEN, where, seed=2))[0]
    assert figures(other) != figures(two)


def test_order_leaves_the_same_free_as_best_fit_and_is_never_dearer():
    """Where lengths don't depend on places, both have the same nodes at every moment."""
    where = fabric(32, 4, 16)
    jobs = loaded(larger(by_chance(80, 4, 32), 4), where.size, 0.9)
    best, ours = compare(
        where, jobs, ["best_fit", "order"], set_up(jobs, NONE, where, exchange=0.0)
    )
    assert best.fragmentation == ours.fragmentation
    for a, b in zip(best.outcome.runs, ours.outcome.runs, strict=True):
        assert (a.started, a.ended) == (b.started, b.ended)
        assert b.exchanged <= a.exchanged * (1 + 1e-9)
    assert ours.exchange_slowdown < best.exchange_slowdown


@pytest.mark.parametrize("cut", CUTS)
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_every_policy_takes_what_there_is(cut, seed):
    kind = Kind(cut_job(cut, 64, 8), fabric(16))
    rng = np.random.default_rng(seed)
    room = np.zeros(16, np.int64)
    room[rng.choice(16, rng.integers(8, 17), replace=False)] = 1
    seconds = {}
    for policy in POLICIES:
        nodes = kind.choose(policy, room)
        assert (np.bincount(nodes, minlength=16) <= room).all()
        assert len(nodes) == kind.blocks
        seconds[policy] = kind.seconds(nodes)
    assert seconds["ours"] <= seconds["best_fit"]
    assert seconds["order"] <= seconds["best_fit"]


# The command


def run(capsys, *words):
    status = cli.run(["cluster-sim", "--cluster", "dgx-h100:16", *words])
    out, err = capsys.readouterr()
    return status, out, err


def test_jobs_multiplied_have_room(capsys):
    words = ("--jobs", "40", "--scale", "3", "--failures", "repair=1.5h", "--policies", "ours")
    status, out, err = run(capsys, *words, "--json")
    assert status == 0, err
    cards = {job["cards"] for job in json.loads(out)["policies"][0]["jobs"]}
    assert 120 in cards  # 126 of 128 cards are no whole nodes


def test_policies_as_json(capsys, tmp_path):
    picture = tmp_path / "waits.svg"
    status, out, _ = run(capsys, "--trace", str(TRACE), "--failures", "card=2000", "--json",
                         "--plot", str(picture), "--what", "wait")  # fmt: skip
    value = json.loads(out)
    assert status == 0
    assert [one["policy"] for one in value["policies"]] == [*POLICIES]
    for one in value["policies"]:
        assert {"wait_s", "makespan_s", "fragmentation", "exchange_slowdown", "lost_card_hours",
                "recomputed_card_hours"} <= {*one}  # fmt: skip
        assert [job["cards"] for job in one["jobs"]] == [8, 16, 4, 64, 8, 32]
        assert one["effective"] <= 1
        assert sum(one["card_hours"].values()) > 0
    assert [c["cards"] for c in value["checkpoints"]] == [4, 8, 16, 32, 64]
    assert "<svg" in picture.read_text()


@pytest.mark.parametrize(("lang", "said"), [("en", "best fit, ranks in our order"),
                                            ("zh", "最佳适配，rank 按我们的顺序")])  # fmt: skip
def test_policies_for_people(capsys, lang, said):
    words = ("--jobs", "20", "--urgent", "0.3", "--failures", "slow=900", "--lang", lang)
    status, out, _ = run(capsys, *words)
    assert status == 0
    assert said in out
    status, out, _ = run(capsys, "--jobs", "3", "--failures", "none", "--policies", "ours",
                         "--lang", lang)  # fmt: skip
    assert status == 0
    assert ("Nothing fails" in out) == (lang == "en")


@pytest.mark.parametrize(
    ("words", "said"),
    [(("--policies", "worst_fit"), "policy 'worst_fit'; expected some of"),
     (("--failures", "cards=2"), "failures: 'cards=2'; expected llama3, none"),
     (("--failures", "card=many"), "card = 'many'; expected a number"),
     (("--failures", "card=-1"), "card = -1; expected 0 or more"),
     (("--failures", "repair=5"), "'5'"),
     (("--failures", "card=5,card=7"), "card stands there twice"),
     (("--save", "0s"), "a save of 0 s"),
     (("--interval", "0s"), "saves every 0 s"),
     (("--load", "0"), "load 0"),
     (("--urgent", "2"), "urgent: 2"),
     (("--trace", str(TRACE), "--scale", "40"), "cards, and dgx-h100 has 128"),
     (("--trace", "/nowhere.csv"), "/nowhere.csv"),
     (("--trace", str(TRACE), "--jobs", "4"), "--jobs changes nothing with --trace"),
     (("--failures", "none", "--save", "9s"), "--save changes nothing where nothing fails"),
     (("--what", "wait"), "--what changes nothing without --plot; add --plot FILE.svg"),
     (("--plot", "x.gif"), "x.gif ends in .gif")],
)  # fmt: skip
def test_bad_input_is_status_two(capsys, words, said):
    status, out, err = run(capsys, *words)
    assert status == 2
    assert out == ""
    assert said in err
