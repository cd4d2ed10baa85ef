"""Data of the page's bucket, roads and stack: figures found in other ways, bad questions."""

import json
import math

import numpy as np
import pytest
import trees

from roundelay.clusters import cluster, names
from roundelay.doctor import examine
from roundelay.doctor.host import Host
from roundelay.errors import RoundelayError
from roundelay.web.data import answer
from roundelay.web.data.bucket import COUNTS, bucket
from roundelay.web.data.roads import CORE, hops, roads, seconds
from roundelay.web.data.stack import LAYERS, stack

MACHINES = {m.name: m for m in roads()["machines"]}


# The bucket.


@pytest.mark.parametrize("n", [4, 7, 64, 1000])
def test_bucket_against_trials(n):
    given = {"slow": 1.2, "noise": 0.05, "stall": 2e-3, "pause": 150.0, "compute": 100.0,
             "exchange": 30.0, "update": 5.0}  # fmt: skip
    random = np.random.default_rng(n)
    factors = random.normal(1, given["noise"], (40_000, n)).astype(np.float32)
    factors[:, 0] *= given["slow"]
    stalls = (random.random(factors.shape, np.float32) < given["stall"]).any(axis=1)
    steps = 100 * factors.max(axis=1) + 35 + 150 * stalls
    found = bucket(n, **given)
    assert found["mean"] == pytest.approx(steps.mean(), rel=0.01)
    assert found["p50"] == pytest.approx(np.quantile(steps, 0.5), rel=0.01)
    assert found["p99"] == pytest.approx(np.quantile(steps, 0.99), rel=0.02)
    assert found["well"] == pytest.approx(1 - stalls.mean(), abs=0.01)
    busy = 100 * factors.mean() + 35
    assert found["lost"] == pytest.approx(1 - busy / steps.mean(), abs=0.01)


@pytest.mark.parametrize(("n", "z"), [(8, 1.4236), (64, 2.3436), (512, 3.0440), (4096, 3.6260)])
def test_greatest_of_normal_times(n, z):
    """Means of the greatest of n standard normal values, as tables have them."""
    found = bucket(n, 1, 0.05, 0, 0, 200, 0, 0)
    assert found["mean"] == pytest.approx(200 * (1 + 0.05 * z), rel=1e-3)


def test_one_slow_card_alone():
    found = bucket(8, 2, 0, 0, 0, 100, 0, 0)
    assert found["mean"] == found["ideal"] * 2 == 200
    assert found["lost"] == pytest.approx(7 / 16)  # seven of eight wait half of the time
    assert found["hours"] == pytest.approx(8 * 7 / 16)
    assert found["p999"] == pytest.approx(200, abs=1e-3)


def test_nobody_late_loses_nothing():
    found = bucket(100, 1, 0, 0, 0, 100, 40, 10)
    assert (found["mean"], found["lost"], found["well"]) == (150, 0, 1)


def test_more_cards_lose_more():
    rows = bucket()["rows"]
    assert [row["n"] for row in rows] == list(COUNTS)
    for key in ("mean", "p50", "p99", "p999", "lost"):
        assert sorted(row[key] for row in rows) == [row[key] for row in rows]


@pytest.mark.parametrize(
    ("key", "text"),
    [("n", "3"), ("n", "10001"), ("n", "1e3"), ("n", "٨"), ("n", ""), ("n", "9" * 100),
     ("slow", "nan"), ("slow", "0.5"), ("slow", "inf"), ("noise", "-1"), ("noise", "x"),
     ("stall", "2"), ("pause", "1e9"), ("compute", "0"), ("words", "1")],
)  # fmt: skip
def test_a_bad_bucket_is_refused(key, text):
    with pytest.raises(RoundelayError, match=r"expected|known"):
        answer("bucket", {key: text})


# The roads.


def test_900_against_50_is_9():
    machine = MACHINES["dgx-h100"]
    assert (machine.inside.rate, machine.between.rate) == (450e9, 50e9)
    assert (machine.inside.printed, machine.inside.bits) == ("duplex", False)
    assert (machine.between.printed, machine.between.bits) == ("oneway", True)


@pytest.mark.parametrize("name", names())
def test_roads_are_those_of_the_cluster(name):
    """The narrowest of the clock's own links on a way, less what other cards take of it."""
    one, machine = cluster(name), MACHINES[name]
    assert machine.cards == one.cards
    assert _narrowest(one, 1) == machine.inside.rate / _shared(one)
    if not one.nics.count:
        assert machine.between is None
        return
    two = cluster(f"{name}:2")
    share = min(1, one.nics.count / one.cards)
    assert _narrowest(two, one.cards) * share == machine.between.rate < machine.inside.rate


def _narrowest(where, to):
    """Bytes a second from card 0 to another."""
    links = where.path([0], [to]).links.ravel()
    return where.rates[links[links >= 0]].min()


def _shared(where):
    """In a mesh a card's links are divided among the other cards."""
    return where.cards - 1 if where.inside.kind == "mesh" else 1


def test_cards_that_share_a_network_card_share_its_rate():
    assert MACHINES["aws-p4d"].between.rate == 6.25e9
    assert MACHINES["aws-p4d"].between.links == 0.5
    assert MACHINES["aws-p5"].between.links == 4


def test_ways_out_of_a_node():
    machine = MACHINES["dgx-h100"]
    direct, detour, kernel = (hops(machine, way) for way in ("gpudirect", "rdma", "kernel"))
    assert seconds(direct, 10**9) == pytest.approx(0.02)
    assert seconds(detour, 10**9) == pytest.approx(0.02)
    assert seconds(kernel, 10**9) == pytest.approx(1e9 / CORE)
    assert [hop.ends for hop in direct] == [2, 1]
    assert [hop.ends for hop in detour] == [4, 1]
    assert {hop.name for hop in kernel} == {"pcie", "copy", "wire"}
    assert seconds(hops(machine, "kernel", 16), 10**9) == pytest.approx(0.02)


# The stack.


@pytest.mark.parametrize("tree", [trees.dgx, trees.container, trees.grace, trees.mi300x, dict])
def test_every_check_has_its_layer(tmp_path, tree):
    host = Host(trees.make(tmp_path, tree()), {"PATH": "/usr/bin"}, [str(tmp_path / "site")])
    found = stack(examine(host))
    owned = [check["name"]["en"] for layer in found["layers"] for check in layer["checks"]]
    assert len(owned) == len(set(owned))
    assert all(name["name"]["en"].startswith("extra ") for name in found["rest"])
    layers = {layer["name"]: [c["name"]["en"] for c in layer["checks"]]
              for layer in found["layers"]}  # fmt: skip
    assert set(layers) == {layer.name for layer in LAYERS}
    assert "NVIDIA GPUs" in layers["links"]
    assert "NCCL" in layers["library"]
    assert "memory" in layers["links"]
    assert "shared memory (memfd)" in layers["kernel"]
    assert "limit of memory" in layers["scheduler"]


def test_this_machine_in_both_languages():
    found = json.loads(answer("stack", {}))
    for layer in found["layers"]:
        assert set(layer["title"]) == {"en", "zh"}
        assert layer["title"]["zh"] != layer["title"]["en"]
        for check in layer["checks"]:
            assert check["state"] in ("present", "absent", "wrong")
            assert check["meaning"]["zh"] != check["meaning"]["en"]


@pytest.mark.parametrize("view", ["roads", "stack"])
def test_views_without_parameters_refuse_them(view):
    with pytest.raises(RoundelayError):
        answer(view, {"n": "4"})


def test_figures_are_finite_at_the_borders():
    for n in (4, 10_000):
        for noise in (0, 1e-3, 0.3):
            for stall in (0, 0.1):
                found = bucket(n, 10, noise, stall, 10_000, 10_000, 0, 0)
                assert all(math.isfinite(found[key]) for key in ("mean", "p50", "p999", "lost"))
                assert 0 <= found["lost"] < 1
