"""Steps of training: streams, groups, slow ranks, shares of the card, models, the command."""

import contextlib
import json
import math
from dataclasses import replace
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundelay import RoundelayError, build, cli, on
from roundelay.clusters import cluster
from roundelay.formats.chrome import read_chrome, write_chrome
from roundelay.simulate import Clock, Jitter
from roundelay.simulate.nccl import bus_factor, predict
from roundelay.simulate.overlap import (
    CARDS,
    Card,
    Exchange,
    Group,
    Model,
    Share,
    Step,
    StepClock,
    Task,
    data_parallel,
    fsdp,
    tensor_parallel,
)
from roundelay.simulate.overlap.files import read
from roundelay.simulate.overlap.kinds import kinds
from roundelay.simulate.overlap.prices import part_of

PS = 10**12
H100 = CARDS["h100"]
NODE = cluster("dgx-h100")


def exchange(size=1 << 20, group=None, collective="all_reduce"):
    return Exchange(collective, size, group)


# A step worked out by hand.


def test_a_step_of_three_tasks():
    """Backwards goes on beside the first exchange; the second is exposed."""
    step = Step(
        [
            Task("top", "compute", 1.0),
            Task("bottom", "compute", 0.001),
            Task("top's gradients", "comm", exchange(1 << 30), ["top"]),
            Task("bottom's gradients", "comm", exchange(1 << 30), ["bottom"]),
        ]
    )
    each = predict(NODE, "all_reduce", 1 << 30, 8).time_s
    assert each > 0.001
    found = StepClock(step, NODE).time()
    assert found.time == pytest.approx(1.0 + 2 * each)
    compute, exposed, wait, hidden = found.mean
    assert (compute, wait, hidden) == (1.001, 0.0, pytest.approx(0.001))
    assert exposed == pytest.approx(2 * each - 0.001)
    assert list(StepClock(step, NODE).prices) == [exchange(1 << 30)]


def test_one_rank_exchanges_nothing():
    found = StepClock(Step([Task("a", "comm", exchange(), [])]), NODE, ranks=1).time()
    assert found.time == 0
    assert found.mean == (0, 0, 0, 0)


# Against an obvious interpreter, with and without kinds.


def obvious(step, clock, slower):
    """Rank by rank: ready, begin and end of each task, in ps."""
    n = clock.ranks
    free = [dict.fromkeys(step.streams, 0) for _ in range(n)]
    ends = [{} for _ in range(n)]
    rows = []
    for task in step:
        ready = [max([free[r][task.stream], *(ends[r][a] for a in task.after)]) for r in range(n)]
        begin = list(ready)
        if task.exchange:
            group = task.exchange.group or Group(n)
            for r in range(n):
                first = r // group.block * group.block + r % group.stride
                begin[r] = max(ready[first + k * group.stride] for k in range(group.size))
            took = [round(clock.prices[task.exchange].seconds() * PS)] * n
        else:
            took = [round(float(task.work * slower[r]) * PS) for r in range(n)]
        end = [b + t for b, t in zip(begin, took, strict=True)]
        for r in range(n):
            free[r][task.stream] = ends[r][task.name] = end[r]
        rows.append((ready, begin, end))
    return rows


def measured(tasks, rows, rank, whole):
    """What one rank does between any two moments at which something changes, in ps."""
    cuts = sorted({0, whole, *(t for row in rows for t in (row[1][rank], row[2][rank]))})
    parts = [0, 0, 0, 0]
    for low, high in pairwise(cuts):
        spans = [(task, row[1][rank], row[2][rank]) for task, row in zip(tasks, rows, strict=True)]
        under_way = [task for task, begin, end in spans if begin <= low and high <= end]
        computing = any(not t.exchange for t in under_way)
        exchanging = any(t.exchange for t in under_way)
        parts[0 if computing else 1 if exchanging else 2] += high - low
        parts[3] += (high - low) if computing and exchanging else 0
    return parts


GROUPS = [None, Group(2), Group(4), Group(2, 4), Group(4, 2), Group(8), Group(2, 8)]


@st.composite
def steps(draw):
    tasks = []
    for i in range(draw(st.integers(1, 8))):
        after = draw(st.lists(st.sampled_from(tasks), unique=True, max_size=2)) if tasks else []
        work = draw(st.sampled_from([0.0, 1e-4, 2e-4, 3e-4]))
        if draw(st.booleans()):
            work = exchange(
                draw(st.sampled_from([1 << 20, 1 << 26])), draw(st.sampled_from(GROUPS))
            )
        stream = draw(st.sampled_from(["compute", "comm", "copy"]))
        tasks.append(Task(f"t{i}", stream, work, tuple(t.name for t in after)))
    return Step(tasks)


@settings(max_examples=60, deadline=None)
@given(steps(), st.dictionaries(st.integers(0, 15), st.sampled_from([1.1, 1.5]), max_size=3))
def test_any_step_equals_the_obvious_interpreter(step, slow):
    where = cluster("dgx-h100:2")
    clock = StepClock(step, where, slow_ranks=slow.items())
    found = clock.time()
    full = StepClock(step, where, slow_ranks=slow.items(), shortcuts=False).time()
    rows = obvious(step, clock, [slow.get(r, 1.0) for r in range(16)])
    for k, column in enumerate(found.moments):
        assert column[:, found.kinds.of].tolist() == [row[k] for row in rows]
        assert full.moments[k].tolist() == [row[k] for row in rows]
    whole = max(t for row in rows for t in row[2])
    assert found.time == whole / PS
    for rank in range(16):
        parts = [round(float(p[rank]) * PS) for p in found.by_rank]
        assert parts == measured(step.tasks, rows, rank, whole)
        assert sum(parts[:3]) == whole
    assert sum(found.mean[:3]) == pytest.approx(found.time)


def test_ranks_alike_are_one_and_a_slow_one_parts_few():
    step = fsdp(Model(100, 8192, 4096), H100, group=Group(64))
    where = cluster("dgx-h100:2048")
    assert len(StepClock(step, where).time().kinds.first) == 1
    found = StepClock(step, where, slow_ranks=[(5000, 1.1)]).time()
    # The slow one, those that share a group with it, and all others.
    assert sorted(found.kinds.counts) == [1, 63, 16384 - 64]
    assert found.kinds.of[5000] != found.kinds.of[4999] != found.kinds.of[0]


def test_kinds_part_by_what_their_groups_hold():
    of = kinds([Group(2), Group(2, 2)], np.array([2.0, 1, 1, 1, 1, 1, 1, 1])).of
    assert len(set(of[:4])) == 4  # the slow one, its two peers, the peer of these
    assert len(set(of[4:])) == 1
    assert not set(of[:4]) & set(of[4:])


# The bucket effect, and its formulas.


def test_one_card_in_ten_thousand_holds_up_all():
    step = Step([Task("compute", "compute", 1.0), Task("add", "comm", exchange(), ["compute"])])
    clock = StepClock(step, cluster("dgx-h100:1250"), slow_ranks=[(37, 1.10)])
    slow, even = clock.time(), clock.time(evenly=True)
    add = clock.prices[exchange()].seconds()
    assert (even.time, slow.time) == (pytest.approx(1.0 + add), pytest.approx(1.1 + add))
    wait = slow.by_rank.wait
    assert wait[37] == 0
    assert np.delete(wait, 37) == pytest.approx(0.1)
    assert slow.mean.wait == pytest.approx(0.1 * 9999 / 10000)


@pytest.mark.parametrize("n", [8, 64, 512, 1024, 4096, 16384])
@pytest.mark.parametrize("distribution", ["normal:0.05", "exponential:0.05"])
def test_the_slowest_of_n_cards_is_as_slow_as_the_formulas_say(n, distribution):
    """E[max]: mu + sigma z_N (z_N by Blom), and mu H_N; within four standard errors."""
    step = Step([Task("compute", "compute", 1.0), Task("add", "comm", exchange(), ["compute"])])
    clock = StepClock(step, cluster(f"dgx-h100:{n // 8}"))
    jitter = Jitter.parse(f"card={distribution}")
    times = clock.samples(jitter, 400) - clock.prices[exchange()].seconds()
    if "normal" in distribution:
        z = {8: 1.4236}.get(n, NormalDist().inv_cdf((n - 0.375) / (n + 0.25)))
        expected, slack = 1 + 0.05 * z, 0.005 * 0.05 * z
    else:
        expected, slack = 1 + 0.05 * sum(1 / i for i in range(1, n + 1)), 0.0
    error = times.std() / math.sqrt(len(times))
    assert times.mean() == pytest.approx(expected, abs=4 * error + slack)


def test_many_exchanges_make_jitter_worse():
    """The sum of the maxima of parts is more than the maximum of their sums."""
    tasks = []
    for i in range(8):
        tasks.append(Task(f"compute {i}", "compute", 1.0, [f"add {i - 1}"] if i else []))
        tasks.append(Task(f"add {i}", "comm", exchange(), [f"compute {i}"]))
    often = Step(tasks)
    once = Step([*(Task(f"compute {i}", "compute", 1.0) for i in range(8)),
                 Task("add", "comm", exchange(), ["compute 7"])])  # fmt: skip
    where = cluster("dgx-h100:16")
    jitter = Jitter.parse("step=normal:0.05")
    means = [StepClock(step, where).samples(jitter, 200).mean() for step in (often, once)]
    z = NormalDist().inv_cdf((128 - 0.375) / (128 + 0.25))
    assert means[0] == pytest.approx(8 * (1 + 0.05 * z), rel=0.005)
    assert means[1] == pytest.approx(8 + 0.05 * math.sqrt(8) * z, rel=0.005)


def test_samples_are_the_same_again_and_those_of_a_slow_rank_are_slower():
    step = data_parallel(Model(4, 1024, 1024), H100)
    where = cluster("dgx-h100:2")
    jitter = Jitter.parse("step=normal:0.03,card=lognormal:0.02")
    first, again = (StepClock(step, where).samples(jitter, 50, seed=7) for _ in range(2))
    assert (first == again).all()
    slow = StepClock(step, where, slow_ranks=[(3, 2.0)])
    assert (slow.samples(jitter, 50, seed=7) > first).all()
    assert slow.samples(Jitter(), 3) == pytest.approx([slow.time().time] * 3)
    share = Share(40, H100)
    assert slow.samples(Jitter(), 1, share) == pytest.approx([slow.time(share).time])


# What exchanges take.


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("dgx-h100:8", Group(4)),
        ("dgx-h100:8", Group(8, 8)),
        ("dgx-h100:16", Group(16, 4)),
        ("dgx-h100:64", Group(8, 64)),
        ("mi300x:2", Group(4, 2)),
        ("aws-p5:4", Group(4, 8)),
        ("aws-p4d:4", Group(8, 4)),
        ("aws-p4d:4", Group(8, 2)),
        ("h800:16", Group(16, 8)),
        ("gb200-nvl72:2", Group(4, 36)),
    ],
)
@pytest.mark.parametrize("algorithm", ["all_gather/ring", "all_to_all/direct"])
def test_a_groups_part_of_a_cluster_is_as_fast_as_all_groups_at_once(name, group, algorithm):
    where = cluster(name)
    n = where.size
    rows = np.arange(n).reshape(-1, group.size, group.stride).transpose(0, 2, 1)
    schedule = build(algorithm, group.size)
    every = replace(
        on(rows.reshape(-1, group.size), schedule), groups=None, collective="all_reduce"
    )
    clocks = Clock(schedule, part_of(where, group, n)), Clock(every, where)
    for chunk in (0.0, 1e5, 1e7):
        one, all_of_them = (c.usual.end(c.protocols[-1], chunk) for c in clocks)
        assert one == all_of_them


def test_prices_are_the_clocks():
    where = cluster("dgx-h100:4")
    step = Step([Task("a", "comm", exchange(1 << 26)), Task("b", "comm", exchange(1, Group(1)))])
    nccl, ours = (StepClock(step, where, algorithm=a).prices for a in ("nccl", "auto"))
    assert nccl[exchange(1 << 26)].seconds() == predict(where, "all_reduce", 1 << 26).time_s
    assert ours[exchange(1 << 26)].algorithm.endswith("Simple")
    assert nccl[exchange(1, Group(1))].seconds() == 0
    slow_host = replace(where, launch=0.5)
    assert StepClock(step, slow_host).prices[exchange(1 << 26)].seconds() == 0.5


# The share of the card that communicates.


def test_computing_slows_by_the_share_and_bytes_wait_for_multiprocessors():
    step = Step([Task("compute", "compute", 1.0), Task("add", "comm", exchange(1 << 30))])
    clock = StepClock(step, cluster("h800:4"))
    price = clock.prices[exchange(1 << 30)]
    full = 50e9 * 0.95  # what InfiniBand gives
    for sms in (1, 4, 10, 20, 40):
        found = clock.time(Share(sms, CARDS["h800"])).moments.end[:, 0] / PS
        slower = max(1.0, full / (sms * 2.5e9))
        assert found == pytest.approx([132 / (132 - sms), price.latency + price.wire * slower])
    assert Share(20, CARDS["h800"]).stretch(cluster("h800:4")) == 1
    assert Share(20, CARDS["h800"]).stretch(cluster("h800")) == pytest.approx(200 * 0.825 / 160)


def test_the_best_share_where_computing_and_communication_take_equally_long():
    """DeepSeek-V3's ratio before overlap, about 1 : 1; it gives 20 of 132 multiprocessors."""
    where = cluster("h800:8")
    group = Group(64)
    add = Exchange("all_to_all", 1 << 28, group)
    price = StepClock(Step([Task("x", "comm", add)]), where).prices[add]
    step = Step([Task("compute", "compute", price.seconds()), Task("x", "comm", add)])
    clock = StepClock(step, where)
    found = clock.best_share(CARDS["h800"])
    assert found.best.sms == 17
    assert found.times[16] == found.times.min()
    assert found.times[19] / found.times.min() == pytest.approx(1.03, abs=0.01)
    for sms in (1, 17, 20, 131):
        assert clock.time(Share(sms, CARDS["h800"])).time == found.times[sms - 1]
    only = StepClock(Step([Task("compute", "compute", 1.0)]), where).best_share(CARDS["h800"])
    assert only.best.sms == 1


# Ready-made steps.

MODEL = Model(6, 1024, 2048, 3)


def sent(step, ranks):
    """Bytes that a rank sends in a step, on a ring."""
    return sum(
        bus_factor(t.exchange.collective, t.exchange.group.size if t.exchange.group else ranks)
        * t.exchange.size
        for t in step
        if t.exchange
    )


@pytest.mark.parametrize("d", [2, 8, 64])
def test_volumes_are_those_of_the_papers(d):
    """ZeRO (arXiv 1910.02054), section 7; Megatron-LM (arXiv 2104.04473), section 3."""
    m, part = MODEL, (d - 1) / d
    parameters = m.layers * 12 * m.hidden**2 * 2
    for bucket in (1, 25 << 20, 1 << 40):
        assert sent(data_parallel(m, H100, bucket), d) == pytest.approx(2 * part * parameters)
    assert sent(fsdp(m, H100), d) == pytest.approx(3 * part * parameters)
    assert sent(fsdp(m, H100, reshard=False), d) == pytest.approx(2 * part * parameters)
    elements = 8 * m.batch * m.sequence * m.hidden * part * m.layers
    assert sent(tensor_parallel(m, H100, d), d) == pytest.approx(2 * elements)


def test_operations_are_those_of_the_paper():
    """72 B s l h^2 (1 + s / 6h), arXiv 2104.04473, less recomputation and vocabulary."""
    b, s, layers, h = 3, 2048, 6, 1024
    expected = 72 * b * s * layers * h**2 * (1 + s / (6 * h))
    assert MODEL.operations == pytest.approx(expected)
    whole = data_parallel(MODEL, H100), fsdp(MODEL, H100)
    for step, cut in ((whole[0], 1), (whole[1], 1), (tensor_parallel(MODEL, H100, 4), 4)):
        seconds = sum(t.work for t in step if not t.exchange)
        assert seconds * cut == pytest.approx(expected / (989e12 * 0.5))


def test_data_parallel_exposes_the_last_bucket_where_computing_is_slow():
    step = data_parallel(Model(8, 4096, 4096, 8), H100)
    clock = StepClock(step, cluster("dgx-h100:4"))
    (each,) = (p.seconds() for p in clock.prices.values())
    found = clock.time().mean
    assert found.exposed == pytest.approx(each)
    assert found.hidden == pytest.approx(7 * each)


def test_fsdp_without_prefetch_exposes_all_that_it_gathers():
    model = Model(8, 4096, 4096, 8)
    where = cluster("dgx-h100:4")
    clocks = [StepClock(fsdp(model, H100, prefetch=p), where) for p in (0, 1, 2)]
    gather, scatter = (p.seconds() for p in clocks[0].prices.values())
    exposed = [c.time().mean.exposed for c in clocks]
    assert exposed[0] == pytest.approx(16 * gather + 8 * scatter)
    assert exposed[1] == exposed[2] == pytest.approx(gather + scatter)
    names = [t.name for t in fsdp(Model(2, 64, 64), H100)]
    assert names == [
        "gather for forward 0", "gather for forward 1", "forward 0",
        "gather for backward 1", "forward 1", "gather for backward 0",
        "backward 1", "scatter of backward 1", "backward 0", "scatter of backward 0",
    ]  # fmt: skip


def test_tensor_parallel_exposes_everything():
    clock = StepClock(tensor_parallel(MODEL, H100, 8), cluster("dgx-h100:2"))
    (each,) = (p.seconds() for p in clock.prices.values())
    assert clock.time().mean.exposed == pytest.approx(4 * 6 * each)
    assert clock.time().mean.hidden == 0


# Published: MegaScale (arXiv 2402.15627), table 2, 175B on A100 with 8 x 200 Gb/s a node, tensor
# parallel 8, pipeline 8 with 6 interleaved stages, micro-batches of one sequence: seconds a step.

MEGASCALE = {
    "Megatron-LM": ((256, 768, 40.0), (512, 768, 21.2), (768, 768, 15.2), (1024, 768, 11.9),
                    (3072, 6144, 29.02), (6144, 6144, 14.78), (8192, 6144, 12.24),
                    (12288, 6144, 8.57)),
    "MegaScale": ((256, 768, 32.0), (512, 768, 16.5), (768, 768, 11.5), (1024, 768, 8.9),
                  (3072, 6144, 23.66), (6144, 6144, 12.21), (8192, 6144, 9.56),
                  (12288, 6144, 6.34)),
}  # fmt: skip


def megascale_step(cards, batch, seconds):
    """A rank's step: parameters gathered, micro-batches with their bubble, gradients scattered."""
    replicas = cards // 64
    group, parameters = Group(replicas, 8), 175 * 10**9 // 64
    batches = batch / replicas + (8 - 1) / 6
    return Step(
        [
            Task("gather", "comm", Exchange("all_gather", 2 * parameters, group)),
            Task("micro-batches", "compute", seconds * batches, ["gather"]),
            Task("scatter", "comm", Exchange("reduce_scatter", 4 * parameters, group),
                 ["micro-batches"]),
        ]
    )  # fmt: skip


@pytest.mark.parametrize(("system", "median", "worst"), [("Megatron-LM", 0.02, 0.06),
                                                         ("MegaScale", 0.06, 0.10)])  # fmt: skip
def test_strong_scaling_of_megascale(system, median, worst):
    """Seconds a micro-batch and seconds a step from the two smallest counts; the others follow."""

    def step(cards, batch, seconds):
        where = cluster(f"azure-nd-a100-v4:{cards // 8}")
        return StepClock(megascale_step(cards, batch, seconds), where).time().time

    rows = MEGASCALE[system]
    (n0, b0, t0), (n1, b1, t1) = rows[:2]
    moved = [step(n, b, 0.0) for n, b in ((n0, b0), (n1, b1))]
    per = [step(n, b, 1.0) - m for (n, b), m in zip(((n0, b0), (n1, b1)), moved, strict=True)]
    seconds = ((t0 - moved[0]) - (t1 - moved[1])) / (per[0] - per[1])
    rest = t0 - step(n0, b0, seconds)
    assert 0 < rest < 2
    errors = [abs((step(n, b, seconds) + rest) / t - 1) for n, b, t in rows[2:]]
    assert np.median(errors) < median
    assert max(errors) < worst


# Files.

LISTED = """
[card]
tflops = 100
sms = 10
efficiency = 1.0

[[task]]
name = "a"
flops = 2e12

[[task]]
name = "b"
stream = "other"
seconds = "12 ms"

[[task]]
name = "c"
collective = "all_gather"
bytes = "64 MiB"
group = 4
stride = 2
after = ["a", "b"]
"""
CUT = "[model]\nlayers = 3\nhidden = 64\nsequence = 128\n"


def test_a_file_of_tasks():
    plan = read(LISTED, "step.toml")
    assert plan.card == Card(100e12, 1.0, 10)
    assert list(plan.step) == [
        Task("a", "compute", 0.02),
        Task("b", "other", 0.012),
        Task("c", "comm", Exchange("all_gather", 64 << 20, Group(4, 2)), ("a", "b")),
    ]


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ('[data_parallel]\nbucket = "1 MiB"\ngroup = 8', data_parallel(
            Model(3, 64, 128), H100, 1 << 20, Group(8))),
        ("[fsdp]\nprefetch = 2\nreshard = false", fsdp(Model(3, 64, 128), H100, 2, reshard=False)),
        ("[tensor_parallel]\ncards = 4", tensor_parallel(Model(3, 64, 128), H100, 4)),
    ],
)  # fmt: skip
def test_a_file_of_a_model(text, step):
    assert list(read((CUT + text).encode(), "step.toml").step) == list(step)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "nothing to do; expected one of [data_parallel]"),
        ("[", "no TOML"),
        (b"\xff", "no TOML"),
        ("x" * (1 << 21), "at most 1,048,576"),
        ("[modle]", "unknown table of a step 'modle'; did you mean model"),
        ("[fsdp]\nprefech = 1", "unknown field of [fsdp] 'prefech'; did you mean prefetch"),
        ("[fsdp]\nprefetch = 1", "[fsdp] without [model]"),
        (CUT + "[fsdp]\nstride = 2", "stride = 2 without group"),
        (CUT + "[fsdp]\nprefetch = -1", "prefetch = -1; expected 0"),
        (CUT + "[fsdp]\n[tensor_parallel]\ncards = 2", "fsdp and tensor_parallel; expected one"),
        (CUT + "[data_parallel]\nbucket = '0'", "bucket = 0"),
        (CUT + "[data_parallel]\nbucket = '3 gigs'", "'3 gigs'"),
        (CUT + "[tensor_parallel]\ncards = 0", "size = 0; expected 1 or more"),
        (CUT.replace("3", "-3") + "[fsdp]", "layers = -3; expected 1 to 10,000"),
        (CUT.replace("3", "'3'") + "[fsdp]", "model.layers: Expected `int`"),
        (CUT + "[card]\nname = 'h10'\n[fsdp]", "unknown card 'h10'; did you mean h100"),
        (CUT + "[card]\ntflops = 1.0\n[fsdp]", "tflops without sms"),
        (CUT + "[card]\nefficiency = 1.5\n[fsdp]", "efficiency = 1.5; expected above 0"),
        (CUT + "[[task]]\nname = 'a'\nflops = 1.0", "[model] beside [[task]]"),
        ("[[task]]\nname = 'a'", "task 'a': has no work"),
        ("[[task]]\nname = 'a'\nflops = 1.0\nseconds = '1 s'", "has seconds and flops"),
        ("[[task]]\nname = 'a'\nseconds = 5", 'task[0].seconds: Expected `str | null`, got `int`, '
         "in quotes"),
        ("[[task]]\nname = 'a'\nseconds = '5'", "task 'a': '5' has no unit"),
        ("[[task]]\nname = 'a'\nseconds = '5 s'\nbytes = 4", "bytes is for a collective"),
        ("[[task]]\nname = 'a'\ncollective = 'all_reduce'", "without bytes"),
        ("[[task]]\nname = 'a'\ncollective = 'all_reduced'\nbytes = 4", "did you mean all_reduce"),
        ("[[task]]\nname = 'a'\nflops = -1.0", "expected 0 or more"),
        ("[[task]]\nname = 'a'\nflops = nan", "expected 0 or more"),
        ("[[task]]\nname = 'a'\nflops = 1.0\n[[task]]\nname = 'a'\nflops = 1.0", "two tasks 'a'"),
        ("[[task]]\nname = 'a'\nflops = 1.0\nafter = ['b']", "that 'a' waits for, 'b'"),
        ("[[task]]\nname = 'a'\nflops = 1.0\nafter = ['a']", "not listed before it"),
    ],
)  # fmt: skip
def test_a_file_that_is_none_is_refused(text, message):
    with pytest.raises(RoundelayError) as caught:
        read(text, "step.toml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("step.toml: ")


@settings(max_examples=200, deadline=None)
@given(st.text("[]abcdefmodelsktaname='\"\n=.1 -", max_size=80))
def test_no_text_crashes_the_reader(text):
    for body in (text, LISTED + text, CUT + "[fsdp]\n" + text):
        with contextlib.suppress(RoundelayError):
            read(body, "step.toml")


# Bad input to the clock.


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"ranks": 0}, "0 ranks; expected 1 to 8"),
        ({"ranks": 9}, "9 ranks; expected 1 to 8"),
        ({"slow_ranks": [(8, 1.1)]}, "slow rank 8; expected 0 to 7"),
        ({"slow_ranks": [(0, 0.9)]}, "0.9 times slower; expected 1"),
        ({"slow_ranks": [(0, float("nan"))]}, "nan times slower"),
        ({"algorithm": "ring"}, "algorithm 'ring'; expected nccl or auto"),
    ],
)
def test_what_no_clock_can_time_is_refused(how, message):
    with pytest.raises(RoundelayError, match=message):
        StepClock(Step([Task("a", "comm", exchange())]), NODE, **how)


@pytest.mark.parametrize(
    ("name", "group", "message"),
    [
        ("dgx-h100:3", Group(3), "groups of 3: they fall on nodes of 8 cards unevenly"),
        ("dgx-h100:3", Group(2, 3), "unevenly"),
        ("dgx-h100:3", Group(2, 12), "unevenly"),
        ("l40s-pcie", Group(4), "expected groups of whole nodes"),
        ("v100-pcie", None, "all ranks: 8 cards of v100-pcie share PCIe"),
    ],
)
def test_groups_that_cannot_be_timed_are_refused(name, group, message):
    with pytest.raises(RoundelayError, match=message):
        StepClock(Step([Task("a", "comm", exchange(8, group))]), cluster(name))


def test_other_bad_input_is_refused():
    clock = StepClock(Step([Task("a", "compute", 1.0)]), NODE)
    for call, message in (
        (lambda: Step([]), "without tasks"),
        (lambda: Share(132, H100), "expected 1 to 131 of 132"),
        (lambda: clock.samples(Jitter(), 0), "0 samples"),
        (lambda: clock.samples(Jitter.parse("link=normal:0.1"), 1), "jitter of links"),
        (lambda: clock.time().timeline([8]), "expected 0 to 7"),
        (lambda: StepClock(Step([Task("a", "compute", 1e7)]), NODE).time(), "takes 1e"),
        (
            lambda: StepClock(Step([Task("a", "comm", exchange(8, Group(4, 4)))]), NODE),
            "8 ranks do not fall into such",
        ),
        (lambda: Exchange("all_reduce", -1), "size = -1"),
        (lambda: Card(0.0), "peak = 0"),
    ):
        with pytest.raises(RoundelayError, match=message):
            call()


# Timeline, and the command.


def test_a_timeline_shows_tasks_and_waits():
    step = Step([Task("compute", "compute", 1e-3), Task("add", "comm", exchange(), ["compute"])])
    found = StepClock(step, NODE, slow_ranks=[(2, 1.5)]).time()
    line = found.timeline([0, 2])
    assert list(line.names) == [
        "rank 0, compute",
        "rank 0, comm",
        "rank 2, compute",
        "rank 2, comm",
    ]
    texts = [(line.names[line.rank[i]], line.text(i), int(line.begin[i])) for i in range(len(line))]
    assert ("rank 0, comm", "add: waiting for others", 1_000_000) in texts
    assert ("rank 2, comm", "add", 1_500_000) in texts
    assert len(line) == 5
    assert line.span == (0, int(found.time * 1e9))
    assert read_chrome(write_chrome(line)).span == line.span
    assert len(found.timeline()) == 5  # one of each kind


@pytest.fixture
def step_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "step.toml").write_text(CUT.replace("64", "4096") + "batch = 64\n[fsdp]\n", "utf-8")
    return ["overlap", "step.toml", "--cluster", "dgx-h100:2"]


def test_command_prints_parts_that_add_up(step_file, capsys):
    options = ["--straggler", "rank=3:1.2", "--sms", "20", "--jitter", "card=normal:0.05"]
    assert cli.run([*step_file, *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["ranks"], found["cluster"]) == (16, "dgx-h100")
    for entry in (found, *found["by_rank"]):
        parts = entry["compute_us"] + entry["exposed_us"] + entry["wait_us"]
        assert parts == pytest.approx(found["step_us"])
    assert sum(entry["alike"] for entry in found["by_rank"]) == 16
    assert found["even_step_us"] < found["step_us"]
    assert len(found["share"]["curve"]) == 131
    assert found["samples"]["p50_us"] <= found["samples"]["p99_us"] <= found["samples"]["max_us"]
    assert {t["name"] for t in found["tasks"]} >= {"forward 0", "scatter of backward 2"}
    assert {e["collective"]: e["tasks"] for e in found["exchanges"]} == {
        "all_gather": 6, "reduce_scatter": 3,
    }  # fmt: skip
    assert cli.run([*step_file, *options]) == 0
    out = capsys.readouterr().out
    for text in ("A step over 16 cards of dgx-h100", "rank 3", "rank 0 and 14 alike", "If no rank",
                 "The best share:", "Of 100 steps"):  # fmt: skip
        assert text in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--straggler", "link=0:2"], "link=0; a step has ranks that compute slower"),
        (["--straggler", "rank=16:2"], "slow rank 16; expected 0 to 15"),
        (["--sms", "0"], "expected 1 to 131"),
        (["-n", "12"], "12 cards are no whole nodes"),
        (["--jitter", "link=normal:0.1"], "jitter of links"),
    ],
)
def test_command_refuses_bad_input(step_file, capsys, options, message):
    assert cli.run([*step_file, *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_command_prints_a_step_that_takes_no_time(tmp_path, capsys):
    file = tmp_path / "step.toml"
    file.write_text('[[task]]\nname = "a"\ncollective = "all_reduce"\nbytes = 8\n', "utf-8")
    assert cli.run(["overlap", str(file), "--cluster", "dgx-h100", "-n", "1"]) == 0
    assert "0 s (0.0%)" in capsys.readouterr().out


def test_command_names_a_file_that_is_not_there(step_file, capsys):
    assert cli.run(["overlap", "none.toml", "--cluster", "dgx-h100"]) == 2
    assert "none.toml" in capsys.readouterr().err
