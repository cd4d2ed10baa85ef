"""Time in traces: breakdown, lateness on one clock, and replay without stragglers."""

import json
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kineto_traces import gemm, kernel, nccl, step, trace

from roundelay.diagnose.times import time_findings
from roundelay.diagnose.times.breakdown import breakdown
from roundelay.diagnose.times.matched import align, match
from roundelay.diagnose.times.replay import replay
from roundelay.diagnose.times.spans import Spans
from roundelay.formats.kineto import read_kineto

INTERVALS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=12)


def spans(pairs):
    return Spans([b for b, _ in pairs], [b + length for b, length in pairs])


def points(pairs):
    return {t for b, length in pairs for t in range(b, b + length)}


def of(found):
    return {t for b, e in zip(found.begin.tolist(), found.end.tolist(), strict=True)
            for t in range(b, e)}  # fmt: skip


@given(INTERVALS, INTERVALS)
def test_unions_are_sets_of_points(a, b):
    one, two = spans(a), spans(b)
    assert of(one) == points(a)
    assert one.length == len(points(a))
    assert of(one.both(two)) == points(a) & points(b)
    assert of(one.without(two)) == points(a) - points(b)
    times = np.arange(60)
    assert one.before(times).tolist() == [len([p for p in points(a) if p < t]) for t in times]


def read(events, rank=0, **more):
    return read_kineto(trace(events, rank, **more), f"r{rank}.json")


def kinds(findings):
    return {finding.kind: finding for finding in findings}


def test_the_words_of_holistic_trace_analysis():
    part = breakdown(read([gemm(0, 40), nccl(30, 70), kernel("Memcpy DtoD", 60, 80),
                           gemm(100, 110)]))  # fmt: skip
    assert part.span == 110_000
    assert part.idle == 20_000
    assert part.computation.length == 50_000
    assert part.non_compute == 40_000
    assert (part.overlap, part.exposed.length) == (10_000, 30_000)
    assert part.exposed_by_call() == {"all_reduce": 30_000}


def test_communication_of_experts_as_in_a_published_trace():
    """DeepSeek's train.json: 80.45 ms of communication, 124.31 ms of others, 77.50 ms of both."""
    comm = [("deep_ep::intranode::dispatch", 0.0, 40_000.0), ("deep_ep::combine", 88_000.0,
                                                               128_450.0)]  # fmt: skip
    # Three milliseconds of the first are exposed, and all that is left is one kernel's.
    work = [gemm(2950, 40_000), gemm(41_740, 129_000)]
    events = [kernel(name, a, b, 27) for name, a, b in comm] + work
    part = breakdown(read(events))
    assert part.communication.length == 80_450_000
    assert part.computation.length == 124_310_000
    assert part.overlap == 77_500_000
    told = kinds(time_findings([part.trace]))["time_breakdown"]
    assert told.figures["overlap_share"] == 0.9633
    assert "124" not in told.subject


def test_idle_while_the_host_is_late():
    def launch(at, correlation):
        return {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
                "ts": at, "dur": 2, "args": {"correlation": correlation}}  # fmt: skip

    events = []
    for i in range(100):  # in every second gap the kernel had been launched long before
        at = 100 * i
        events += [launch(at - (5 if i % 2 else 90), i + 1), gemm(at, at + 40, correlation=i + 1)]
    found = kinds(time_findings([read(events)]))
    assert found["idle_device"].fault
    assert found["idle_device"].figures["share"] == round(5940 / 9940, 4)
    assert found["idle_device"].figures["host_share"] == round(50 / 99, 4)
    assert "idle_device" not in kinds(time_findings([read(events[:20])]))  # an excerpt


# Several ranks.


def job(work, length=50, clocks=None, hosts=None, beside=0):
    """Traces of ranks that compute [rank, call] us, and then make a call that takes `length`.

    Computation may go on beside the call, for `beside` us.
    """
    ranks, calls = np.shape(work)
    now, events = np.zeros(ranks), [[] for _ in range(ranks)]
    for c in range(calls):
        came = now + [row[c] for row in work]
        end = came.max() + length
        for r in range(ranks):
            at = 0 if clocks is None else clocks[r]
            events[r] += [gemm(now[r] + at, came[r] + at),
                          nccl(came[r] + at, end + at, c + 1, tuple(range(ranks)))]  # fmt: skip
            if beside:
                events[r].append(gemm(came[r] + at, came[r] + beside + at))
        now = np.maximum(np.full(ranks, end), came + beside)
    return [
        read(own, r, world=ranks, host_name="" if hosts is None else hosts[r])
        for r, own in enumerate(events)
    ]  # fmt: skip


def of_job(traces):
    by_rank = {t.rank: breakdown(t) for t in traces}
    groups = match({t.rank: t for t in traces})
    clocks = align(groups, {t.rank: t for t in traces})
    exposed = {rank: clocks.of(rank, part.exposed) for rank, part in by_rank.items()}
    return groups, clocks, exposed


def test_a_late_rank_is_named_with_what_it_costs():
    work = [[1000.0] * 30 for _ in range(4)]
    work[2] = [1200.0] * 30
    traces = job(work, clocks=[0, 5_000_000, 0, 5_000_000], hosts=["a", "b", "a", "b"])
    late = kinds(time_findings(traces))["late_rank"]
    assert late.fault
    assert late.subject == "rank 2, group 0"
    assert late.figures["last"] == 30
    assert late.figures["late_ms"] == 0.2
    assert late.figures["delayed"] == "0, 1, 3"
    assert late.figures["waited_ms"] == pytest.approx(30 * 3 * 0.2)
    assert late.figures["compute_times"] == 1.2
    assert late.figures["shift_ms"] == 5000
    assert late.figures["error_us"] == 0
    assert late.figures["measured_ms"] == pytest.approx(1.25 * 29 + 0.25)
    # The first call's work is before it: only what lies between calls is replayed.
    assert late.figures["without_ms"] == pytest.approx(1.05 * 29 + 0.25)


def test_a_late_host_is_told_from_long_computation():
    traces = job([[1000.0] * 30 for _ in range(3)])
    lines = json.loads(trace([]))["distributedInfo"]
    assert lines["rank"] == 0
    events = []
    at = 0.0
    for c in range(30):
        events += [gemm(at + 300, at + 1300), nccl(at + 1300, at + 1350, c + 1, (0, 1, 2))]
        at += 1350
    others = []
    for rank in (0, 1):
        own = []
        for c in range(30):
            at = 1350 * c
            own += [gemm(at, at + 1000), nccl(at + 1000, at + 1350, c + 1, (0, 1, 2))]
        others.append(read(own, rank, world=3))
    late = kinds(time_findings([*others, read(events, 2, world=3)]))["late_rank"]
    assert "points to its host" in str(late.reason)
    assert late.figures["compute_times"] == 1
    assert kinds(time_findings(traces))["nobody_late"].figures["calls"] == 30


def test_nobody_is_blamed_for_few_calls_or_for_chance():
    rng = np.random.default_rng(1)
    assert "too few" in str(kinds(time_findings(job([[10.0] * 3, [900.0] * 3])))
                            ["nobody_late"].reason)  # fmt: skip
    found = kinds(time_findings(job((1000 + rng.normal(0, 100, (4, 50))).tolist())))
    assert "nobody_late" in found
    assert not found["nobody_late"].fault


def test_ranks_in_several_groups_share_a_clock_by_the_others():
    def pair(rank, group, ranks, clock):
        return [nccl(100 * i + clock, 100 * i + 50 + clock, i, ranks, group=group)
                for i in range(5)]  # fmt: skip

    traces = {
        0: read(pair(0, "a", (0, 1), 0), 0, world=3),
        1: read(pair(1, "a", (0, 1), 7000) + pair(1, "b", (1, 2), 7000), 1, world=3),
        2: read(pair(2, "b", (1, 2), -300), 2, world=3),
    }
    clocks = align(match(traces), traces)
    assert clocks.shift == {0: 0, 1: 7_000_000, 2: -300_000}
    assert clocks.apart == ()


def test_calls_without_numbers_are_matched_by_turn_where_counts_agree():
    def gloo(rank, times):
        own = [{"ph": "X", "cat": "user_annotation", "name": "gloo:all_reduce", "pid": 1, "tid": 2,
                "ts": t, "dur": 10, "args": {"Input Dims": [[4]], "Input type": ["float"]}}
               for t in times]  # fmt: skip
        return read(own, rank)

    one, two = gloo(0, range(0, 500, 100)), gloo(1, range(20, 520, 100))
    (m,) = match({0: one, 1: two})
    assert (m.begin[1] - m.begin[0]).tolist() == [20_000] * 5
    assert match({0: one, 1: gloo(1, [0, 100])}) == []


def test_launches_of_the_host_are_no_calls_that_ran():
    events = [step(1, 0, 500), gemm(0, 10)] + [
        {"ph": "X", "cat": "user_annotation", "name": "nccl:all_reduce", "pid": 1, "tid": 2,
         "ts": 100 * i, "dur": 10} for i in range(5)
    ]  # fmt: skip
    found = kinds(time_findings([read(events, 0), read(events, 1)]))
    assert set(found) == {"time_breakdown", "traced"}
    assert re.search("when they were begun.*Steps: 2, of 0.5 ms", str(found["traced"].reason))


WORK = st.integers(2, 4).flatmap(
    lambda n: st.lists(st.lists(st.integers(1, 400), min_size=n, max_size=n), min_size=2,
                       max_size=8)
)  # fmt: skip


@settings(deadline=None, max_examples=60)
@given(WORK, st.integers(0, 80), st.integers(1, 200))
def test_a_replay_of_what_was_is_what_was(work, beside, length):
    groups, _, exposed = of_job(job(np.transpose(work).tolist(), length, beside=beside))
    found = replay(groups, exposed, set())
    assert found.measured == found.replayed


@settings(deadline=None, max_examples=60)
@given(WORK, st.integers(1, 200))
def test_a_replay_without_a_straggler_is_the_run_without_it(work, length):
    """Against the job itself, run again with the mean of the others' work on rank 0."""
    rows = np.transpose(work).astype(float)
    changed = rows.copy()
    changed[0, 1:] = rows[1:, 1:].mean(axis=0)
    groups, _, exposed = of_job(job(rows.tolist(), length))
    found = replay(groups, exposed, {0})
    again, _, _ = of_job(job(changed.tolist(), length))
    begin, end = groups[0].begin.min(), again[0].end.max()
    assert found.replayed == pytest.approx(end - begin, abs=2 * len(work))
