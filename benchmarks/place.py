"""Measure placing: how long it takes, how far it is from the optimum, and what it saves over time.

    ROUNDELAY_DATA=FOLDER python benchmarks/place.py [--write]

FOLDER has traces/gavel-philly-0e4a51.csv. Needs the extra `place`. A run takes a quarter of an
hour. With --write the table goes to benchmarks/place.md.
"""

import itertools
import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from report import report

from roundelay.clusters import cluster
from roundelay.place import Model, Placing, Room, parallel, place
from roundelay.place.sim import (
    KINDS,
    POLICIES,
    Arrival,
    Rates,
    Settings,
    by_chance,
    checkpoints,
    compare,
    larger,
    loaded,
    read_trace,
    saving,
)

SMALL = 200
SHAPES = [(4, 1), (6, 1), (8, 1), (2, 2), (3, 2), (2, 3), (4, 2), (2, 4)]
"""Degrees of data and pipeline of small cases, each cell a node of 8 cards."""
MODEL = Model(layers=64, hidden=8192, sequence=4096, micro_batches=8, top_k=4)
LARGE = {
    "dense": {"tensor": 8, "pipeline": 8, "data": 16},
    "experts": {"tensor": 8, "data": 128, "expert": 16},
    "sharded": {"data": 1024},
}

TRACE = Path("traces", "gavel-philly-0e4a51.csv")
CASES = [(64, 4, 64, (4.0, 4.0)), (64, 4, 32, (2.0, 4.0)), (64, 8, 64, (2.0, 7.0)),
         (32, 4, 64, (4.0, 4.0)), (8, 4, 64, (4.0, 4.0))]  # fmt: skip
"""Cards for one of the trace; nodes under a leaf and a pod; how much less is above."""
NEVER = Rates(**dict.fromkeys(KINDS, 0.0))
STOPS = {(30, 300): 0.100, (30, 900): 0.154, (60, 300): 0.131, (60, 900): 0.185}
"""Seconds of a save and a restart, and the published waste."""
MANY = 10_000
YEARS = 3


def fabric(nodes, leaf, pod, tapers):
    """Nodes of 8 H100 under leaves and pods, each with so many times less above than below."""
    base = cluster("dgx-h100")
    wired = replace(base.fabric, nodes_per_leaf=leaf, nodes_per_pod=pod, oversubscription=tapers,
                    radix=None)  # fmt: skip
    return replace(base, fabric=wired, nodes=nodes)


def half_free(where, seed):
    """Half of the nodes, here and there."""
    nodes = np.random.default_rng(seed).choice(where.nodes, where.nodes // 2, replace=False)
    return Room.of_nodes(where, np.sort(nodes))


def large():
    """Seconds to place 1,024 ranks on 16,384 cards."""
    where = fabric(2048, 8, 128, (2.0, 4.0))
    yield from (
        "",
        "1,024 ranks on 16,384 cards: 2,048 nodes, 8 under a leaf (2:1), 128 under a pod (4:1).",
        "",
        "| job | free | s | exchange against best fit | target |",
        "|---|---|---|---|---|",
    )
    for name, degrees in LARGE.items():
        job = parallel(name, degrees, replace(MODEL, sharded=name == "sharded"))
        for free, room in (("all", Room.all_of(where)), ("half", half_free(where, 1))):
            begin = time.perf_counter()
            found = place(job, room)
            seconds = time.perf_counter() - begin
            less = found.price.seconds / found.against["best_fit"] - 1
            yield f"| {name} | {free} | {seconds:.2f} | {100 * less:+.1f} % | < 2 s |"


def small_case(seed):
    """A job of up to 8 nodes among few that are free."""
    rng = np.random.default_rng(seed)
    where = fabric(16, int(rng.choice([2, 4])), 8, (float(rng.choice([1, 2, 4])),
                                                    float(rng.choice([2, 4, 8]))))  # fmt: skip
    data, pipeline = SHAPES[rng.integers(len(SHAPES))]
    volumes = {key: 10 ** rng.uniform(7, 10) for key in ("data", "pipeline", "expert")}
    degrees = {"tensor": 8, "data": data, "pipeline": pipeline, "expert": data}
    job = parallel("small", degrees, volumes=volumes)
    count = data * pipeline + int(rng.integers(0, 4))
    return job, Room.of_nodes(where, np.sort(rng.choice(16, count, replace=False)))


def small():
    """The distance from the optimum."""
    off = []
    begin = time.perf_counter()
    for seed in range(SMALL):
        placing = Placing(*small_case(seed))
        off.append(placing.price(placing.ours()).seconds / placing.optimum() - 1)
    took = time.perf_counter() - begin
    yield from (
        "",
        f"{SMALL} random jobs of 4 to 8 nodes, up to 3 more free, on 16 nodes under leaves and",
        f"pods; volumes from 10 MB to 10 GB. The optimum is HiGHS's; {took:.0f} s in all.",
        "",
        "| further from the optimum | % | target |",
        "|---|---|---|",
        f"| median | {100 * np.median(off):.2f} | 0 |",
        f"| 95th of 100 | {100 * np.percentile(off, 95):.2f} |  |",
        f"| worst | {100 * max(off):.2f} | 5 |",
    )


def arrivals():
    """Real arrivals: what exchange takes, beside best fit."""
    trace = Path(os.environ["ROUNDELAY_DATA"], TRACE)
    jobs = read_trace(trace.read_text(), TRACE.name)
    yield from (
        "",
        f"The {len(jobs):,} jobs of {TRACE.name} on 512 nodes, closer together until they ask for",
        "90 % of the cards. A card of 2017 stands for as many as the first column says. Each",
        "policy lives with what it took before; lengths don't depend on places, so every job meets",
        "the same jobs under each. The figures are a job's exchange, also what stays in a node,",
        "over that of the same job under best fit; jobs on one node are left out. `order` has best",
        "fit's nodes, and so the same free ones at every moment; only its ranks are in our order.",
        "",
        "| cards for one | leaf, pod, nodes | oversubscribed | jobs | best fit over the cheapest | "
        "order, mean | worst | ours, mean | worst | more than 2 % worse | target |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    )
    for times, leaf, pod, tapers in CASES:
        where = fabric(512, leaf, pod, tapers)
        offered = loaded(larger(jobs, times), where.size, 0.9)
        yield f"| {times} | {leaf}, {pod} | {tapers[0]:g}, {tapers[1]:g} | {beside(where, offered)}"


def beside(where, jobs):
    """The columns of a case."""
    settings = Settings("", saving(where, jobs, 30, 300, NEVER), NEVER, 0.0)
    found = compare(where, jobs, ["best_fit", "order", "ours"], settings)
    each = [[r for r in one.outcome.runs if r.kind.blocks > 1] for one in found]
    best, order, ours = (np.array([r.exchanged / r.held for r in runs]) for runs in each)
    cells = [f"{len(best):,}", f"{100 * (best.mean() - 1):+.1f} %"]
    for one in (order / best, ours / best):
        cells += [f"{100 * (value - 1):+.1f} %" for value in (one.mean(), one.max())]
    worse = 100 * np.mean(ours / best > 1.02)
    return " | ".join([*cells, f"{worse:.1f} %", "-10 %, worst +2 % |"])


def crowded():
    """The same arrivals where jobs take from one another what they share of links."""
    trace = Path(os.environ["ROUNDELAY_DATA"], TRACE)
    jobs = read_trace(trace.read_text(), TRACE.name)
    yield from (
        "",
        "The same arrivals where jobs slow one another on links that they share; exchange takes",
        "20 % of a step where it is cheapest. Jobs that are slowed stay longer, so they meet",
        "others under each policy, and one job may be three times as dear as under best fit, by",
        "chance. So all are taken together, by the cards and the time that they hold.",
        "",
        "| cards for one | leaf, pod | oversubscribed | policy | exchange over the cheapest "
        "| shared links | both, against best fit | work |",
        "|---|---|---|---|---|---|---|---|",
    )
    for times, leaf, pod, tapers in (CASES[0], CASES[-1]):
        where = fabric(512, leaf, pod, tapers)
        offered = loaded(larger(jobs, times), where.size, 0.9)
        settings = Settings("", saving(where, offered, 30, 300, NEVER), NEVER, 0.2, contention=True)
        found = compare(where, offered, POLICIES, settings)
        each = [one.exchange_slowdown * one.crowding for one in found]
        best = each[POLICIES.index("best_fit")]
        for one, both in zip(found, each, strict=True):
            yield (f"| {times} | {leaf}, {pod} | {tapers[0]:g}, {tapers[1]:g} | {one.policy} "
                   f"| {100 * (one.exchange_slowdown - 1):+.1f} % "
                   f"| {100 * (one.crowding - 1):+.1f} % | {100 * (both / best - 1):+.1f} % "
                   f"| {100 * one.effective:.2f} % |")  # fmt: skip


def many():
    """Seconds of 10,000 jobs."""
    where, rates = fabric(2048, 8, 128, (2.0, 4.0)), Rates()
    jobs = loaded(by_chance(MANY, 1, 1024, 6 * 3600.0), where.size, 0.85)
    settings = Settings("", saving(where, jobs, 30, 300, rates), rates, 0.2)
    yield from (
        "",
        f"{MANY:,} jobs by chance, of 8 to 1,024 cards, on 16,384, which fail as Llama 3's did.",
        "",
        "| policy | jobs slow one another | s of processor | exchange over the cheapest "
        "| shared links | work | target |",
        "|---|---|---|---|---|---|---|",
    )
    for policy, contention in itertools.product(POLICIES, (False, True)):
        begin = time.process_time()
        given = replace(settings, contention=contention)
        (found,) = compare(where, jobs, [policy], given)
        seconds = time.process_time() - begin
        over, more = (100 * (x - 1) for x in (found.exchange_slowdown, found.crowding or 1.0))
        yield (f"| {policy} | {'yes' if contention else 'no'} | {seconds:.1f} | {over:+.1f} % "
               f"| {more:+.1f} % | {100 * found.effective:.2f} % | < 60 s |")  # fmt: skip


def failing():
    """One job on 16,384 cards for years, beside what was published."""
    where, rates = fabric(2048, 2, 384, (1.0, 7.0)), replace(Rates(), repair=0.0)
    jobs = [Arrival(0, where.size, YEARS * 365 * 86400.0)]
    yield from (
        "",
        f"One job on 16,384 cards for {YEARS} years, with spare nodes. Published: 419 failures in",
        "54 days, one in 3.09 h; and the time that is work to first order with Young's interval.",
        "Daly's complete cost is what the simulation should find. Target: within 2 %.",
        "",
        "| save, s | restart, s | h between failures | off | work | Daly | published | off |",
        "|---|---|---|---|---|---|---|---|",
    )
    for (save, restart), part in STOPS.items():
        settings = Settings("", saving(where, jobs, save, restart, rates), rates, 0.0)
        (found,) = compare(where, jobs, ["best_fit"], settings)
        (run,), (best,) = found.outcome.runs, checkpoints(where, [where.size], save, restart, rates)
        hours = run.held / run.failures / 3600
        work = found.effective
        yield (f"| {save} | {restart} | {hours:.3f} | {100 * (hours / 3.09 - 1):+.1f} % "
               f"| {100 * work:.1f} % | {100 * best.effective:.1f} % | {100 * (1 - part):.1f} % "
               f"| {100 * (work / (1 - part) - 1):+.1f} % |")  # fmt: skip


def figures():
    """All tables."""
    return [*large(), *small(), *arrivals(), *crowded(), *many(), *failing()]


if __name__ == "__main__":
    report(__file__, "Placing jobs", "", figures)
