"""Jobs and where they stand: volumes, the price beside the clock, baselines, search, optimum."""

from __future__ import annotations

import itertools
import json
import os
import tracemalloc
from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundelay import cli
from roundelay.algorithms import find
from roundelay.clusters import cluster, write
from roundelay.errors import RoundelayError
from roundelay.place import Placing, Room, order, parallel, place, read_job, read_room
from roundelay.place.baselines import best_fit, first_fit, packed
from roundelay.place.cost import price
from roundelay.place.exact import optimum
from roundelay.place.job import Model
from roundelay.place.search import block_layout, orders
from roundelay.place.traffic import traffic

native = pytest.mark.skipif(find_spec("roundelay._native") is None, reason="not built")
solver = pytest.mark.skipif(find_spec("highspy") is None, reason="no HiGHS")


def fabric(nodes, leaf=2, pod=4, tapers=(2.0, 4.0), **changes):
    """DGX H100 nodes under small leaves and pods, with less above than below."""
    base = cluster("dgx-h100")
    wired = replace(base.fabric, nodes_per_leaf=leaf, nodes_per_pod=pod, oversubscription=tapers,
                    radix=None, **changes)  # fmt: skip
    return replace(base, fabric=wired, nodes=nodes)


def data_job(n, size, **more):
    return parallel("data", {"data": n}, volumes={"data": size}, **more)


# Jobs


def test_volumes_by_formula():
    model = Model(layers=8, hidden=1024, sequence=2048, micro_batches=4, top_k=2)
    degrees = {"tensor": 4, "pipeline": 2, "data": 6, "expert": 3}
    job = parallel("job", degrees, model)
    act = 2048 * 1024 * 2
    got = {e.name: (e.pattern, e.groups.shape, e.size, e.calls) for e in job.exchanges}
    assert got == {
        "tensor": ("all_reduce", (12, 4), act, 4 * 4 * 4),
        "pipeline": ("chain", (24, 2), act / 4, 4),
        "data": ("all_reduce", (8, 6), 12 * 8 * 1024**2 * 2 / 8, 1),
        "expert": ("all_to_all", (16, 3), act * 2 / 4, 4 * 4 * 4),
    }


def test_sent_bytes_are_those_of_the_papers():
    """Megatron-LM: 8 B s h (t-1)/t elements a layer and micro-batch; ZeRO: 2 and 3 times P."""
    model = Model(layers=1, hidden=64, sequence=32, parameters=10**6)
    (t,) = traffic(parallel("t", {"tensor": 4}, model), 4)
    (stage,) = t.stages
    assert stage.bytes[0] * t.calls == pytest.approx(8 * 32 * 64 * 3 / 4 * 2)
    whole = 10**6 * 2 * 3 / 4
    for sharded, times in ((False, 2), (True, 3)):
        job = parallel("d", {"data": 4}, replace(model, sharded=sharded))
        sent = sum(t.stages[0].bytes[0] * t.calls for t in traffic(job, 1))
        assert sent == pytest.approx(times * whole)


def test_groups_follow_the_order():
    volumes = {"tensor": 1, "pipeline": 1, "data": 1}
    degrees = {"tensor": 2, "pipeline": 2, "data": 2}
    inner = parallel("a", degrees, volumes=volumes)
    outer = parallel("b", degrees, volumes=volumes, order=("tensor", "pipeline", "data"))
    by = [{e.name: e.groups.tolist() for e in job.exchanges} for job in (inner, outer)]
    assert by[0]["data"] == by[1]["pipeline"] == [[0, 2], [1, 3], [4, 6], [5, 7]]
    assert by[0]["pipeline"] == by[1]["data"] == [[0, 4], [1, 5], [2, 6], [3, 7]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tensor=8,data=2", "nothing says what it exchanges"),
        ("tensor=3,data=2,data_bytes=1G,ranks=8", "tensor 3 x pipeline 1 x data 2 = 6"),
        ("data=6,expert=4,data_bytes=1G", "expert 4 doesn't divide data 6"),
        ("data=6,order=data,data_bytes=1G", "order data; expected"),
        ("data=0,data_bytes=1G", "expected 1 or more"),
        ("data=2,date_bytes=1G", "volume of 'date'"),
        ("data=2,data_bytes=1,expert_bytes=1G", "a volume of expert, whose degree isn't said"),
        ("data=2,heads=4", "heads"),
        ("data=2,data_bytes=1GBps", "data: '1GBps'"),
        ("data=2,data_bytes", "expected key=value"),
        ("data=2,layers=0,hidden=1,sequence=1", "expected 1 or more of each figure"),
        ("data=2,layers=1", "missing required field `hidden`"),
        ("data=4000000,data_bytes=1", "expected 1 to 1,048,576"),
        ("tensor=2,tensor=4,tensor_bytes=1", "tensor stands there twice"),
        ("nowhere.toml", "cannot be read"),
    ],
)
def test_bad_jobs(text, said):
    with pytest.raises(RoundelayError, match=said):
        read_job(text)


def test_job_files(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text('tensor = 2\ndata = 2\n[volumes]\ndata = "1 MiB"\n')
    job = read_job(str(file))
    assert (job.name, job.ranks, job.exchanges[0].size) == ("job", 4, 1 << 20)
    explicit = {"exchange": [{"name": "x", "pattern": "all_reduce", "groups": [[0, 3], [1, 2]],
                              "size": "1 MiB"}]}  # fmt: skip
    file = tmp_path / "job.json"
    file.write_text(json.dumps(explicit))
    assert read_job(str(file)).ranks == 4
    for groups, said in (([[0, 1], [2]], "groups of one size"), ([[0, 1], [1, 2]], "two groups"),
                         ([[0, -1]], "expected 0 to")):  # fmt: skip
        explicit["exchange"][0]["groups"] = groups
        file.write_text(json.dumps(explicit))
        with pytest.raises(RoundelayError, match=said):
            read_job(str(file))
    file.write_text("{")
    with pytest.raises(RoundelayError, match="no JSON"):
        read_job(str(file))


def test_job_files_that_do_not_end_or_have_huge_numbers(tmp_path):
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    with pytest.raises(RoundelayError, match=r"pipe\.toml is no regular file"):
        read_job(str(pipe))
    file = tmp_path / "job.toml"
    for huge in (9**30, -(9**30)):
        file.write_text(f'[[exchange]]\nname="a"\npattern="chain"\ngroups=[[0,{huge}]]\nsize=1\n')
        with pytest.raises(RoundelayError, match=r"exchange\[0\]\.groups.*Expected `int`"):
            read_job(str(file))


# What is free


def test_free_nodes_from_a_file():
    where = fabric(8)
    room = read_room("0-1\n# none\n4 0-3\n6 0-7 sliced 4-7\n7 sliced 0\n", where, "f")
    assert room.free.sum(axis=1).tolist() == [8, 8, 0, 0, 4, 0, 4, 7]
    assert room.sliced.sum(axis=1).tolist() == [0, 0, 0, 0, 0, 0, 4, 1]


@pytest.mark.parametrize(
    "line", ["8", "x", "0 9", "0 0-7 shared 1", "0 sliced", "3-1", "0 0 sliced 9"]
)
def test_bad_lines_are_named(line):
    with pytest.raises(RoundelayError, match="f, line 2: "):
        read_room(f"0\n{line}\n", fabric(8), "f")


def test_sliced_cards_are_kept_out_unless_asked_for():
    where = fabric(2)
    room = read_room("0\n1 sliced 0-7", where, "f")
    with pytest.raises(RoundelayError, match="8 more are sliced"):
        place(data_job(16, 1e9), room)
    assert len(place(data_job(16, 1e9, sliced=True), room).cards) == 16
    found = place(data_job(8, 1e9), room)
    assert any("sliced cards are left out" in str(one) for one in found.because)


def test_no_room_is_said():
    with pytest.raises(RoundelayError, match="24 ranks, and 16 cards are free"):
        place(data_job(24, 1e9), Room.all_of(fabric(2)))
    with pytest.raises(RoundelayError, match="8 cards are free"):
        place(data_job(16, 1e9), read_room("0", fabric(2), "f"))
    with pytest.raises(RoundelayError, match="node 9"):
        Room.of_nodes(fabric(2), np.array([9]))


# The price


@native
@pytest.mark.parametrize("nodes", [[0, 1], [0, 2, 4, 5], [9, 3, 0, 12, 7, 6, 1, 15]])
@pytest.mark.parametrize(
    ("what", "block", "within"),
    [("all_reduce/rails", 8, 0.04), ("all_reduce/ring", 1, 0.03), ("all_to_all/direct", 1, 0.02),
     ("all_to_all/hierarchical", 8, 0.04)],
)  # fmt: skip
def test_the_price_is_the_clocks(nodes, what, block, within):
    """Large calls of one group, on nodes that are apart: the same time, the same busiest link."""
    from roundelay.simulate import Clock

    where = fabric(16)
    cards = (np.array(nodes)[:, None] * 8 + np.arange(8)).ravel()
    n, size = len(cards), 1 << 30
    params = {"group": 8} if block == 8 else {}
    timing = Clock(find(what)(n, **params), where, cards).time(size)
    key = "expert" if "all_to_all" in what else "data"
    job = parallel("job", {"data": n, "expert": n}, volumes={key: size})
    (part,) = price(traffic(job, block), where, cards).parts
    assert part.seconds == pytest.approx(timing.time, rel=within)
    assert part.link.rpartition(" of ")[0].split()[0] == timing.binding_link.split()[0]


degrees = st.fixed_dictionaries({"pipeline": st.integers(1, 4), "data": st.integers(1, 6)})


@settings(max_examples=25, deadline=None)
@given(degrees, st.integers(0, 2**32 - 1), st.sampled_from(["rail", "fat_tree", "dragonfly"]))
def test_the_closed_form_is_the_price_link_by_link(job_degrees, seed, kind):
    if kind == "dragonfly":
        base = cluster("dgx-h100")
        wired = replace(base.fabric, kind=kind, nodes_per_leaf=None, nodes_per_pod=None, radix=None,
                        nodes_per_group=4, oversubscription=(4.0,))  # fmt: skip
        where = replace(base, fabric=wired, nodes=32)
    else:
        where = fabric(32, 2, 8, (4.0, 8.0), kind=kind)
    volumes = {"data": 1e9, "pipeline": 3e8, "expert": 5e8, "tensor": 1e8}
    each = {"tensor": 8, "expert": job_degrees["data"], **job_degrees}
    placing = Placing(parallel("job", each, volumes=volumes), Room.all_of(where))
    rng = np.random.default_rng(seed)
    nodes = rng.choice(32, placing.blocks, replace=False)
    assert placing.objective is not None
    assert placing.objective.exact(nodes)[0] == pytest.approx(
        placing.price(nodes).seconds, rel=1e-9
    )


# Choices


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.data())
def test_every_choice_takes_what_there_is(rooms, data):
    room = np.array(rooms)
    blocks = data.draw(st.integers(0, int(room.sum())))
    sizes = sorted({1, 2, 8, len(rooms)} & {*range(1, len(rooms) + 1)})
    for nodes in (first_fit(room, blocks), best_fit(room, blocks, sizes)):
        assert len(nodes) == blocks
        assert (np.bincount(nodes, minlength=len(room)) <= room).all()
    unit = data.draw(st.integers(1, 5))
    given_ = packed(room, blocks, unit)
    assert given_.sum() == blocks
    assert (given_ <= room).all()


def test_best_fit_takes_the_tightest_domain():
    sizes = [1, 4, 8, 16]
    room = np.array([1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1])
    assert best_fit(room, 2, sizes).tolist() == [4, 5]
    assert best_fit(room, 3, sizes).tolist() == [0, 1, 2]
    assert best_fit(room, 5, sizes).tolist() == [0, 1, 2, 4, 5]
    assert best_fit(room, 6, sizes).tolist() == [8, 9, 10, 11, 12, 13]


def test_every_order_has_every_block_once():
    for layout in ((6,), (4, 8), (2, 3, 4)):
        for one in orders(layout):
            assert sorted(one) == list(range(len(one)))
    assert block_layout(parallel("x", {"tensor": 4, "data": 4, "pipeline": 3}, volumes={}), 8) == (
        2,
        3,
    )


@settings(max_examples=20, deadline=None)
@given(degrees, st.integers(0, 2**32 - 1), st.sampled_from(["tensor-data-pipeline",
                                                            "tensor-pipeline-data"]))  # fmt: skip
def test_ours_is_never_dearer_than_the_baselines(job_degrees, seed, ranks_order):
    where = fabric(32, 4, 8, (2.0, 8.0))
    rng = np.random.default_rng(seed)
    need = job_degrees["data"] * job_degrees["pipeline"]
    nodes = np.sort(rng.choice(32, need + int(rng.integers(0, 32 - need + 1)), replace=False))
    job = parallel("job", {"tensor": 8, **job_degrees}, volumes={"data": 2e9, "pipeline": 5e8},
                   order=tuple(ranks_order.split("-")))  # fmt: skip
    found = place(job, Room.of_nodes(where, nodes))
    assert len(set(found.cards.tolist())) == job.ranks
    assert set((found.cards // 8).tolist()) <= set(nodes.tolist())
    for name in ("first_fit", "best_fit"):
        assert found.price.seconds <= found.against[name]


def test_groups_that_talk_most_stay_under_one_leaf():
    """Two data groups over two pods: each gets a pod of its own, whatever the ranks' order."""
    where = fabric(8, 2, 4, (2.0, 8.0))
    for ranks_order in (("tensor", "data", "pipeline"), ("tensor", "pipeline", "data")):
        job = parallel("job", {"tensor": 8, "pipeline": 2, "data": 4}, order=ranks_order,
                       volumes={"data": 8e9, "pipeline": 1e8})  # fmt: skip
        found = place(job, Room.all_of(where))
        data = next(e for e in job.exchanges if e.name == "data")
        for group in data.groups:
            assert len(set((found.cards[group] // 8 // 4).tolist())) == 1


@solver
@pytest.mark.parametrize("seed", range(6))
def test_the_optimum_is_reached(seed):
    """By HiGHS, and on the smallest by trying all."""
    rng = np.random.default_rng(seed)
    where = fabric(12, int(rng.choice([2, 3])), 6, (4.0, 8.0))
    d, p = [(4, 1), (2, 2), (2, 3), (3, 2), (6, 1), (2, 2)][seed]
    job = parallel("job", {"tensor": 8, "data": d, "pipeline": p, "expert": d},
                   volumes={"data": 1e9, "pipeline": 1e9, "expert": 3e9})  # fmt: skip
    nodes = rng.choice(12, d * p + 1 + seed % 2, replace=False)
    placing = Placing(job, Room.of_nodes(where, np.sort(nodes)))
    best = placing.price(optimum(placing.objective, placing.capacity, placing.blocks)).seconds
    ours = placing.price(placing.ours()).seconds
    assert best * (1 - 1e-5) <= ours <= best * 1.05
    if d * p <= 4:
        every = np.array([*itertools.permutations(np.sort(nodes), d * p)])
        assert placing.objective.exact(every).min() == pytest.approx(best, rel=1e-5)


@solver
def test_the_optimum_where_nodes_hold_two_blocks():
    where = fabric(6, 2, 4, (4.0, 8.0))
    job = parallel("job", {"tensor": 4, "data": 3, "pipeline": 2},
                   volumes={"data": 4e9, "pipeline": 1e8})  # fmt: skip
    room = Room.all_of(where)
    room.free[1::2, 4:] = False
    placing = Placing(job, room)
    assert placing.block == 8
    job = parallel("job", {"tensor": 4, "data": 3}, volumes={"data": 4e9})
    placing = Placing(job, room)
    assert (placing.block, placing.capacity.max()) == (4, 2)
    best = optimum(placing.objective, placing.capacity, placing.blocks)
    assert placing.objective.exact(placing.ours())[0] <= placing.objective.exact(best)[0] * 1.0001


@pytest.mark.parametrize("nodes", [8192, 16384])
def test_a_job_of_all_cards_takes_little_memory(nodes):
    """65,536 cards, of as many or of twice as many: pairs of nodes alone are 33 million."""
    room = Room.all_of(cluster(f"dgx-h100:{nodes}"))
    tracemalloc.start()
    found = place(parallel("large", {"data": 65536}, volumes={"data": 1e9}), room)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6
    assert len(np.unique(found.cards)) == 65536


def test_a_torus_is_priced_link_by_link():
    base = cluster("dgx-h100")
    nics = replace(base.nics, count=8)
    wired = replace(base.fabric, kind="torus", nodes_per_leaf=None, nodes_per_pod=None, radix=None,
                    dims=(4, 4))  # fmt: skip
    where = replace(base, nics=nics, fabric=wired, nodes=16)
    job = parallel("job", {"tensor": 8, "data": 4}, volumes={"data": 1e9})
    found = place(job, Room.all_of(where))
    assert found.price.seconds <= found.against["best_fit"]
    with pytest.raises(RoundelayError, match="has a torus"):
        place(job, Room.all_of(where), exact=True)


def test_order_takes_the_nodes_as_they_are():
    where = fabric(16, 2, 4, (2.0, 8.0))
    nodes = np.array([0, 1, 4, 5, 8, 9, 12, 13])
    job = parallel("job", {"tensor": 8, "pipeline": 2, "data": 4},
                   order=("tensor", "pipeline", "data"),
                   volumes={"data": 8e9, "pipeline": 1e6})  # fmt: skip
    found = order(job, Room.of_nodes(where, nodes))
    assert sorted(set((found.cards // 8).tolist())) == nodes.tolist()
    assert found.price.seconds <= found.against["as_given"]
    with pytest.raises(RoundelayError, match="expected the nodes that it has"):
        order(job, Room.of_nodes(where, np.arange(9)))


# The commands


def run(capsys, *words):
    status = cli.run(list(words))
    out, err = capsys.readouterr()
    return status, out, err


def test_a_cluster_that_is_too_small_says_how_many_nodes_are_enough(capsys):
    status, out, err = run(capsys, "place", "data=65,data_bytes=1G", "--cluster", "dgx-h100:4")
    assert (status, out) == (2, "")
    assert "65 ranks, and dgx-h100 has 32 cards; expected 9 nodes at least" in err


def test_a_group_that_no_leaf_holds_is_spread_over_many():
    """It sends up whatever is done, and a leaf of its own has more to send up by."""
    job = parallel("experts", {"data": 64, "expert": 64}, volumes={"expert": 1e9})
    room = Room.all_of(fabric(32, leaf=4, pod=16))
    kept, found = place(job, room), place(job, room, spread=True)
    assert len(np.unique(kept.cards // 8 // 4)) == 2
    assert kept.against["spread"] == found.price.seconds
    assert len(np.unique(found.cards // 8 // 4)) > 2  # which would be enough
    assert found.price.seconds < 0.95 * found.against["best_fit"]
    assert found.price.seconds < found.against["random"]


def test_place_as_json(capsys, tmp_path):
    file = tmp_path / "small.toml"
    file.write_text(write(fabric(8)))
    free = tmp_path / "free.txt"
    free.write_text("0-5\n")
    words = ("tensor=8,data=4,data_bytes=1GiB", "--cluster", str(file), "--free", str(free))
    status, out, _ = run(capsys, "place", *words, "--json")
    value = json.loads(out)
    assert status == 0
    assert value["nodes"] == [0, 1, 2, 3]
    assert value["ranks"][9] == {"rank": 9, "node": 1, "card": 1}
    assert set(value["against"]) == {"first_fit", "best_fit", "random", "optimum"}
    assert value["against"]["optimum"] is None
    assert value["cost_us"] <= value["against"]["best_fit"]
    assert value["binding_link"]
    assert value["because"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_commands_for_people(capsys, lang):
    job = "tensor=8,data=2,data_bytes=1GiB"
    status, out, _ = run(capsys, "place", job, "--cluster", "dgx-h100:4", "--lang", lang)
    assert status == 0
    assert "8-15" in out
    status, out, _ = run(capsys, "order", job, "--cluster", "dgx-h100:4", "--nodes", "1,3",
                         "--lang", lang)  # fmt: skip
    assert status == 0
    assert ("in the order of the nodes" in out) == (lang == "en")


@pytest.mark.parametrize(
    "words",
    [("place", "data=64,data_bytes=1G", "--cluster", "dgx-h100:4"),
     ("place", "data=6,expert=4,data_bytes=1G", "--cluster", "dgx-h100:4"),
     ("order", "data=16,data_bytes=1G", "--cluster", "dgx-h100:4", "--nodes", "7"),
     ("order", "data=16,data_bytes=1G", "--cluster", "dgx-h100:4", "--nodes", "0-2"),
     ("place", "data=8,data_bytes=1G", "--cluster", "dgx-h100:4", "--free", "/nowhere")],
)  # fmt: skip
def test_bad_input_is_status_two(capsys, words):
    status, out, err = run(capsys, *words)
    assert status == 2
    assert out == ""
    assert "rror" in err
