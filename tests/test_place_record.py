"""What is recorded of a cluster over time, and the file of it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import msgspec
import pytest

from roundelay import cli
from roundelay.clusters import cluster
from roundelay.errors import RoundelayError
from roundelay.place.sim import (
    Rates,
    Settings,
    by_chance,
    compare,
    loaded,
    make_log,
    read_log,
    saving,
    urgent,
)

OFTEN = Rates(card=3000, host=500, switch=500, software=1000, slow=2000, repair=3600)


@pytest.fixture(scope="module")
def told():
    base = cluster("dgx-h100")
    wired = replace(base.fabric, nodes_per_leaf=4, nodes_per_pod=8, oversubscription=(4.0, 4.0),
                    radix=None)  # fmt: skip
    where = replace(base, fabric=wired, nodes=16)
    jobs = urgent(loaded(by_chance(40, 3, 96), where.size, 0.9), 0.2, 1)
    saves = saving(where, jobs, 30.0, 300.0, OFTEN)
    settings = Settings("ours", saves, OFTEN, 0.3)
    found = compare(where, jobs, ["best_fit", "ours"], settings, record=True)
    return found, make_log(where, found, saves), jobs


def test_times_are_from_the_first_arrival(told):
    found, log, jobs = told
    later = [replace(job, submit=job.submit + 1.7e9) for job in jobs]
    where = found[0].outcome.runs[0].kind.cluster
    saves = saving(where, later, 30.0, 300.0, OFTEN)
    settings = Settings("ours", saves, OFTEN, 0.3)
    other = make_log(where, compare(where, later, ["ours"], settings, record=True), saves)
    assert other.jobs[0].submit_s == 0
    assert other.policies[0].events[-1].at_s == pytest.approx(log.policies[1].events[-1].at_s)


def test_the_record_is_what_the_simulation_says(told):
    """Starts, ends, failures, work kept and lost add up to what the runs themselves count."""
    found, log, _ = told
    for summary, one in zip(found, log.policies, strict=True):
        for run in summary.outcome.runs:
            own = [e for e in one.events if e.job == run.number]
            reasons = Counter(e.reason for e in own if e.what == "stop")
            assert [e.what for e in own[::2]] == ["start"] * (len(own) // 2)
            assert own[0].at_s == pytest.approx(run.started, abs=0.06)
            assert (own[-1].what, own[-1].at_s) == ("end", pytest.approx(run.ended, abs=0.06))
            assert reasons.pop("preempted", 0) == run.preempted
            assert reasons.pop("slow", 0) == run.moved
            assert sum(reasons.values()) == run.failures
            left = [e for e in own if e.what != "start"]
            assert sum(e.kept_s for e in left) == pytest.approx(run.arrival.seconds, abs=1)
            assert sum(e.lost_s for e in left) == pytest.approx(run.again, abs=1)
        assert all(a.at_s <= b.at_s for a, b in pairwise(one.events))
    assert {e.what for e in log.policies[0].events} == {
        "start", "stop", "end", "out", "back", "slow", "well"
    }  # fmt: skip


def test_a_start_says_why_there(told):
    """What it takes beside what others would, and that ours is no dearer; links up are not full."""
    _, log, _ = told
    best, ours = ([e for e in one.events if e.what == "start" and e.link] for one in log.policies)
    assert all(e.exchange == e.best_fit for e in best)
    assert all(e.exchange <= e.best_fit + 1e-3 for e in ours)
    assert any(e.exchange < e.best_fit for e in ours)
    assert {"leaf up", "NIC out"} <= {e.link for e in best}
    for event in best + ours:
        leaves = {node // 4 for node in event.nodes}
        assert {domain for domain, _ in event.above[0]} <= leaves
        assert bool(event.above[0]) is (len(leaves) > 1)
        assert all(0 < filled < 1 for level in event.above for _, filled in level)


def test_nothing_is_kept_unless_asked(told):
    found, log, jobs = told
    where = found[0].outcome.runs[0].kind.cluster
    settings = Settings("ours", saving(where, jobs, 30.0, 300.0, OFTEN), OFTEN, 0.3)
    (quiet,) = compare(where, jobs, ["ours"], settings)
    assert quiet.outcome.events == []
    assert [r.ended for r in quiet.outcome.runs] == [r.ended for r in found[1].outcome.runs]
    assert read_log(msgspec.json.encode(log)) == log


def test_the_command_writes_it(tmp_path):
    file = tmp_path / "jobs.json"
    options = ["--cluster", "dgx-h100:4", "--jobs", "5", "--policies", "ours"]
    assert cli.run(["cluster-sim", *options, "--events", str(file)]) == 0
    log = read_log(file.read_bytes())
    assert (log.cluster, log.nodes, log.cards, len(log.jobs)) == ("dgx-h100", 4, 8, 5)


def change(log, where, value):
    """A copy with something else at a place."""
    found = json.loads(msgspec.json.encode(log))
    at = found
    for key in where[:-1]:
        at = at[key]
    at[where[-1]] = value
    return json.dumps(found).encode()


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        (["jobs"], [], "length"),
        (["nodes"], 10**9, "<= 1000000"),
        (["cards"], 1, "a node of 1"),
        (["jobs", 0, "cards"], 7, "job 0 has 7 cards"),
        (["jobs", 0, "submit_s"], 1e9, "job 0 starts"),
        (["jobs", 0, "submit_s"], "now", "Expected `float`"),
        (["policies", 1, "policy"], "best_fit", "twice"),
        (["policies", 0, "events", 0, "what"], "<b>", "Invalid enum"),
        (["policies", 0, "events", 0, "what"], "end", "which isn't there"),
        (["policies", 0, "events", 0, "at_s"], 1e14, "after 1e\\+14"),
        (["policies", 0, "events", 0, "job"], 4000, "job 4000 of 40"),
        (["policies", 0, "events", 0, "nodes"], [16], "node 16 of 16"),
        (["policies", 0, "events", 0, "nodes"], [], "0 parts"),
        (["policies", 0, "events", 0, "exchange"], -1, ">= 0"),
        (["policies", 0, "events", 0, "above"], [[[0]]], "Expected `array` of length 2"),
        (["policies", 0, "events", 0, "above"], [[[3, 0.5], [4, 0.5]]], "leaf 4 of 4"),
        (["policies", 0, "events", 0, "above"], [[], [], [], []], "4 levels of switches, of 3"),
    ],
)
def test_what_cannot_have_happened_is_refused(told, where, value, said):
    with pytest.raises(RoundelayError, match=f"no jobs over time: .*({said})"):
        read_log(change(told[1], where, value))


@pytest.mark.parametrize("data", [b"", b"\xff", b"[" * 100_000, b"{}", b"null"])
def test_what_is_no_json_is_refused(data):
    with pytest.raises(RoundelayError, match="no jobs over time"):
        read_log(data)


def test_cards_are_not_taken_twice(told):
    found = json.loads(msgspec.json.encode(told[1]))
    events = found["policies"][0]["events"]
    first = next(e for e in events if e["what"] == "start")
    block, job = found["jobs"][0]["block"], found["jobs"][first.get("job", 0)]
    found["jobs"].append(dict(job, submit_s=0.0))
    events.insert(events.index(first) + 1, dict(first, job=len(found["jobs"]) - 1))
    assert block == 8
    with pytest.raises(RoundelayError, match="more cards are taken"):
        read_log(json.dumps(found).encode())
