"""Measure placing: how long it takes, and how far it is from the optimum.

    python benchmarks/place.py [--write]

Needs the extra `place`. A run takes some minutes. With --write the table goes to
benchmarks/place.md.
"""

import time
from dataclasses import replace

import numpy as np
from report import report

from roundelay.clusters import cluster
from roundelay.place import Model, Placing, Room, parallel, place

SMALL = 200
SHAPES = [(4, 1), (6, 1), (8, 1), (2, 2), (3, 2), (2, 3), (4, 2), (2, 4)]
"""Degrees of data and pipeline of small cases, each cell a node of 8 cards."""
MODEL = Model(layers=64, hidden=8192, sequence=4096, micro_batches=8, top_k=4)
LARGE = {
    "dense": {"tensor": 8, "pipeline": 8, "data": 16},
    "experts": {"tensor": 8, "data": 128, "expert": 16},
    "sharded": {"data": 1024},
}


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


def figures():
    """All tables."""
    return [*large(), *small()]


if __name__ == "__main__":
    report(__file__, "Placing jobs", "", figures)
