"""Data of the page's curves: the parts add up to the clock's times, and scale as a cluster does."""

from dataclasses import replace

import pytest

from roundelay.clusters import cluster as read_cluster
from roundelay.errors import RoundelayError
from roundelay.simulate import Clock
from roundelay.simulate.candidates import candidates
from roundelay.web import charts
from roundelay.web.data import answer
from roundelay.web.data.curves import SIZES, curves
from roundelay.web.page import page as one_file


def time(data, algorithm, i, latency=1.0, bandwidth=1.0):
    """Microseconds, as the browser reckons them."""
    curve = next(c for c in data.curves if c.algorithm == algorithm)
    return min(
        max(data.launch, part[0] * latency + part[1] / bandwidth + part[2])
        for way in curve.ways
        if (part := way.parts[i])
    )


@pytest.mark.parametrize(("name", "nodes"), [("dgx-h100", 2), ("mi300x", 1), ("v100-pcie", 1)])
def test_parts_add_up_to_the_clocks_times(name, nodes):
    data, where = curves("all_reduce", name, nodes), read_cluster(f"{name}:{nodes}")
    wanted = {}
    for candidate in candidates("all_reduce", where, where.size):
        clock = Clock(candidate.schedule(where.size), where)
        times = wanted.setdefault(candidate.algorithm.name, [float("inf")] * len(SIZES))
        for i, size in enumerate(SIZES):
            each = [clock.time(size, p.name).time * 1e6 for p in _usable(clock, size)]
            times[i] = min(times[i], *each)
    assert {c.algorithm for c in data.curves} == set(wanted)
    for algorithm, times in wanted.items():
        found = [time(data, algorithm, i) for i in range(len(SIZES))]
        assert found == pytest.approx(times, rel=1e-4)


def _usable(clock, size):
    """Protocols by which a schedule can go."""
    adds = clock.schedule.helpers > 0
    return [p for p in clock.protocols if (p.most is None or size <= p.most)
            and (p.switch or not adds)]  # fmt: skip


@pytest.mark.parametrize("times", [0.5, 2, 4])
@pytest.mark.parametrize("algorithm", ["ring", "halving_doubling", "double_tree"])
def test_links_of_another_width_are_another_cluster(algorithm, times):
    """A slider's answer beside the clock's on a cluster with such links, within 15 %."""
    where = read_cluster("dgx-h100")
    wider = replace(where, inside=replace(where.inside, rate=where.inside.rate * times))
    data = curves("all_reduce", "dgx-h100", 1)
    for i in (8, 12, 15):
        wanted = min(
            Clock(c.schedule(8), wider).time(SIZES[i]).time * 1e6
            for c in candidates("all_reduce", wider, 8)
            if c.algorithm.name == algorithm
        )
        assert time(data, algorithm, i, bandwidth=times) == pytest.approx(wanted, rel=0.15)


def test_dear_steps_cost_those_who_take_many():
    data = curves("all_reduce", "dgx-h100", 1)
    for algorithm, steps in (("ring", 14), ("recursive_doubling", 3)):
        more = time(data, algorithm, 0, latency=8) - time(data, algorithm, 0)
        assert more > 7 * steps * 0.3  # microseconds; a step of LL is 0.6
    assert time(data, "ring", 0, 8) > time(data, "recursive_doubling", 0, 8)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"nodes": "3"}, "one of 1, 2, 4"),
        ({"nodes": "0"}, "1 to 32"),
        ({"nodes": "1000000"}, "1 to 32"),
        ({"nodes": "x"}, "1 to 32"),
        ({"cluster": "gb200-nvl72", "nodes": "8"}, "one of 1, 2"),
        ({"cluster": "v100-pcie", "nodes": "2"}, "one of 1"),
        ({"cluster": "../x.toml"}, "unknown cluster"),
        ({"cluster": "dgx-h100:4"}, "without nodes"),
        ({"collective": "nothing"}, "unknown collective"),
        ({"size": "1"}, "unknown parameter"),
    ],
)
def test_bad_questions_are_refused(given, said):
    with pytest.raises(RoundelayError, match=said):
        answer("curves", given)


def test_without_plotly_it_is_said_how_to_get_it(monkeypatch):
    charts.script.cache_clear()
    monkeypatch.setattr(charts, "find_spec", lambda name: None)
    assert charts.charts() == {"there": False, "marks": []}
    with pytest.raises(RoundelayError, match=r"pip install 'roundelay\[web\]'"):
        one_file([("curves", {"nodes": "1"})])
    charts.script.cache_clear()
