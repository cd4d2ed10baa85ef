"""Data of the page's cluster: loads against a count of every move, bad questions, files."""

import json
import time
from itertools import pairwise

import numpy as np
import pytest

from roundelay.algorithms import find
from roundelay.clusters import cluster as read_cluster
from roundelay.clusters import names
from roundelay.errors import RoundelayError
from roundelay.show.frames import walk
from roundelay.simulate import Clock
from roundelay.web.data import answer
from roundelay.web.data.cluster import cluster
from roundelay.web.data.crossing import crossing
from roundelay.web.data.machines import named
from roundelay.web.data.wires import picture
from roundelay.web.known import known

MINE = """
name = "mine"
generation = "hopper"
nodes = 6
cards = 4
[inside]
{inside}
[nics]
count = 4
medium = "ib"
rate = "100 Gb/s"
card_pcie = "32 GB/s oneway"
{nics}
[fabric]
{fabric}
"""
SWITCH = 'kind = "switch"\nmedium = "nvlink"\nrate = "100 GB/s oneway"'
BUS = ('kind = "bus"\nmedium = "pcie"\nrate = "25 GB/s oneway"\nuplink = "50 GB/s oneway"\n'
       'between_sockets = "20 GB/s oneway"')  # fmt: skip
MESH = 'kind = "mesh"\nmedium = "xgmi"\nrate = "150 GB/s oneway"\nlinks = 3'
TREE = 'kind = "fat_tree"\nnodes_per_leaf = 2\nnodes_per_pod = 4\noversubscription = [2, 1]'
FABRICS = {
    "tree": TREE,
    "rail": 'kind = "rail"\nnodes_per_leaf = 3',
    "planes": 'kind = "switch"\nplanes = 2',
    "dragonfly": 'kind = "dragonfly"\nnodes_per_group = 2',
    "torus": 'kind = "torus"\ndims = [3, 2]',
}


@pytest.fixture
def give(tmp_path):
    """A function that gives what may be asked for where the page has a file."""

    def given(text, name="mine.toml"):
        (tmp_path / name).write_text(text)
        return known(machines=[tmp_path / name])

    return given


def mine(inside=SWITCH, fabric="tree", nics=""):
    return MINE.format(inside=inside, fabric=FABRICS[fabric], nics=nics)


def carried(schedule, where):
    """[link] chunks, counted move by move, and the moves over every link."""
    found, over = np.zeros(len(where.rates)), {}
    for frame in walk(schedule):
        for move in frame.moves:
            for link in where.path([move.src], [move.dst]).links.ravel():
                if link >= 0:
                    found[link] += len(move.chunks)
                    rows = over.setdefault(int(link), [])
                    rows += [(frame.step, move.src, move.dst, chunk) for chunk in move.chunks]
    return found, over


@pytest.mark.parametrize(("text", "name"), [
    ("dgx-h100:2", "ring"), ("dgx-h100:2", "rails"), ("mi300x", "halving_doubling"),
    ("v100-pcie", "double_tree"), ("aws-p4d:2", "one_shot"), ("gb200-nvl72", "ring"),
])  # fmt: skip
def test_loads_are_those_of_every_move(text, name):
    where, chosen = read_cluster(text), find("all_reduce", name)
    group = {"group": where.cards} if "group" in chosen.parameters else {}
    schedule = chosen(where.size, 0, **group)
    chunks, _ = carried(schedule, where)
    found = cluster("all_reduce", name, size=1 << 24, cluster=text)
    each = (1 << 24) / schedule.chunks
    assert sum(load.total for load in found.kinds) == pytest.approx(chunks.sum() * each)
    for load in found.kinds:
        if load.time:
            assert load.bytes == pytest.approx(chunks[load.link] * each)
            assert load.rate == pytest.approx(load.bytes / load.time)
            assert load.rate <= load.line
    timing = Clock(schedule, where).time(1 << 24)
    assert where.link_name(found.busiest.link) == timing.binding_link
    assert found.busiest.time == pytest.approx(timing.link_time)
    assert found.time == timing.time >= found.busiest.time


@pytest.mark.parametrize(
    "text", [*names(), *(f"{name}:5" for name in names() if "pcie" not in name)]
)
def test_every_link_is_in_one_bundle_of_the_whole(text):
    check_bundles(read_cluster(text))


@pytest.mark.parametrize("inside", [SWITCH, BUS, MESH], ids=["switch", "bus", "mesh"])
@pytest.mark.parametrize("fabric", FABRICS)
@pytest.mark.parametrize("direct", [True, False])
def test_every_link_of_a_file_is_in_one_bundle(give, inside, fabric, direct):
    given = give(mine(inside, fabric, "" if direct else "gpudirect = false"))
    check_bundles(named("mine", given.clusters))


def check_bundles(where):
    """Each link is drawn once each way, or not at all where a level joins nothing."""
    whole = picture(where, 0, where.size - 1)
    seen = {}
    for gap in whole.gaps:
        for links, unit in ((gap.out, gap.out_of), (gap.into, gap.into_of)):
            assert len(unit) == links.count
            assert unit.min() >= 0
            assert unit.max() == len(gap.bundles) - 1
            seen.setdefault(links.name, []).append(unit)
    counts = [level.count for level in where.levels]
    idle = {f"{low.name} {way}" for low, high in zip(where.levels, where.levels[1:], strict=False)
            for way in ("up", "down") if counts.count(low.count) > 1 and high.count >= low.count
            }  # fmt: skip
    assert {links.name for links in where.links} - set(seen) <= idle
    for node in {0, where.nodes - 1}:
        first = node * where.cards
        inner = picture(where, first, first + where.cards - 1)
        for gap in inner.gaps:
            assert gap.out_of.max() == gap.into_of.max() == len(gap.bundles) - 1
        for card in (first, first + where.cards - 1):
            assert len(picture(where, card, card).gaps) == len(inner.gaps)


def test_rows_of_2048_nodes_lead_to_a_card():
    where, first, last, depth = read_cluster("dgx-h100:2048"), 0, 16383, 0
    while first < last:
        seen = picture(where, first, last)
        rows = seen.columns[seen.middle].boxes
        assert 1 < len(rows) <= 8
        spans = [box.cards for box in rows]
        assert spans[0][0] <= first <= last <= spans[-1][1]
        assert all(a[1] + 1 == b[0] for a, b in pairwise(spans))
        first, last = spans[-1]
        depth += 1
    assert depth == 5


@pytest.mark.parametrize(("text", "name"), [
    ("dgx-h100:2", "ring"), ("dgx-h100:2", "rails"), ("mi300x", "double_tree"),
    ("dgx-h100", "switch"), ("dgx-a100:2", "halving_doubling"),
])  # fmt: skip
def test_what_crosses_a_link_is_every_move_over_it(text, name):
    where, chosen = read_cluster(text), find("all_reduce", name)
    schedule = chosen(where.size, 0, **({"group": 8} if "group" in chosen.parameters else {}))
    if schedule.helpers:  # the only switch is that of the node
        assert schedule.helpers == 1
    _, over = carried(schedule, where)
    assert over
    for link in (min(over), max(over), sorted(over)[len(over) // 2]):
        found = crossing("all_reduce", name, size=schedule.chunks << 10, cluster=text, link=link)
        wanted = sorted(over[link])
        rows = sorted((step, src, dst, piece + k) for step, src, dst, piece, pieces, *_ in
                      found.moves for k in range(pieces))  # fmt: skip
        assert found.count == len(found.moves)
        assert rows == wanted
        assert found.bytes == pytest.approx(len(wanted) * 1024)
        assert found.pairs == len({row[1:3] for row in wanted})
        assert found.steps == (wanted[0][0], wanted[-1][0])


def test_many_moves_are_counted_and_the_first_listed():
    found = crossing("all_reduce", "ring", cluster="dgx-h100:64", size=1 << 20, link=0)
    assert (found.count, len(found.moves), found.pairs) == (1022, 200, 1)
    assert [row[0] for row in found.moves] == list(range(1, 201))
    assert found.steps == (1, 1022)


def test_a_slow_way_out_binds():
    found = cluster(cluster="dgx-h100:4")
    assert (found.busiest.kind, found.busiest.alike) == ("NIC out", 4)
    inside = cluster(cluster="dgx-h100")
    assert inside.busiest.kind == "card out"


@pytest.mark.parametrize("question", ["cluster", "crossing"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"cluster": "/etc/passwd"}, "unknown cluster"),
        ({"cluster": "mine.toml"}, "unknown cluster"),
        ({"cluster": "here"}, "unknown cluster"),
        ({"cluster": ""}, "unknown cluster"),
        ({"cluster": "dgx-h100:"}, "1 to 2,048"),
        ({"cluster": "dgx-h100:2049"}, "1 to 2,048"),
        ({"cluster": "dgx-h100:1e3"}, "1 to 2,048"),
        ({"cluster": "dgx-h100:4:4"}, "1 to 2,048"),
        ({"cluster": "v100-pcie:2"}, "not connected"),
        ({"n": "33"}, "2 to 32"),
        ({"n": "1"}, "2 to 16,384"),
        ({"n": "1000000"}, "2 to 16,384"),
        ({"collective": "x"}, "unknown collective"),
        ({"algorithm": "one_shot", "cluster": "dgx-h100:64"}, "at most 256"),
        ({"algorithm": "switch", "cluster": "v100-pcie"}, "adds?|switch"),
        ({"algorithm": "double_tree", "params": "pieces=999999999999999"}, "piece|moves|expected"),
        ({"size": "1e99"}, "expected|size"),
        ({"root": "3"}, "root"),
        ({"more": "1"}, "unknown parameter"),
    ],
)
def test_bad_questions_are_refused(question, given, said):
    with pytest.raises(RoundelayError, match=said):
        answer(question, given)


@pytest.mark.parametrize(
    ("question", "given"),
    [("cluster", {"first": "5", "last": "4"}), ("cluster", {"last": "32"}),
     ("cluster", {"first": "-1"}), ("cluster", {"first": "999999999999"}),
     ("crossing", {"link": "999"}), ("crossing", {"link": "1.5"}), ("crossing", {"link": ""})],
)  # fmt: skip
def test_no_such_card_or_link(question, given):
    with pytest.raises(RoundelayError, match="expected"):
        answer(question, given)


def test_a_file_is_asked_for_by_its_name_only(give, tmp_path):
    given = give(mine())

    def asked(question, cluster, **more):
        return json.loads(answer(question, {"cluster": cluster} | more, given))

    assert json.loads(answer("catalogue", {}, given))["clusters"][0] == "mine"
    assert asked("cluster", "mine")["nodes"] == 6
    assert asked("cluster", "mine:2")["nodes"] == 2
    assert asked("crossing", "mine", link="0")["count"]
    assert asked("curves", "mine", nodes="2")["nodes"] == 2
    assert asked("player", "mine:2", n="4")["cluster"] == "mine"
    with pytest.raises(RoundelayError, match="unknown cluster"):
        asked("cluster", str(tmp_path / "mine.toml"))
    with pytest.raises(RoundelayError, match="unknown cluster"):
        answer("cluster", {"cluster": "mine"})


def test_a_file_may_not_take_a_known_name(give, tmp_path):
    give(mine())
    with pytest.raises(RoundelayError, match="no known machine"):
        give(mine().replace('"mine"', '"dgx-h100"'))
    with pytest.raises(RoundelayError, match="no other file"):
        known(machines=[tmp_path / "mine.toml"] * 2)


def test_16384_cards_are_grouped():
    found = json.loads(answer("cluster", {"cluster": "dgx-h100:2048", "algorithm": "rails"}))
    assert found["rows"] == 8
    assert len(json.dumps(found)) < 50_000


def test_parameters_that_make_a_schedule_too_long_are_refused_before_it_is_made():
    begun = time.process_time()
    for view, given in (
        ("cluster", {"cluster": "dgx-h100:2048", "algorithm": "double_tree"}),
        ("grouped", {"n": "16384", "algorithm": "double_tree"}),
    ):
        with pytest.raises(RoundelayError, match="pieces = 4,096 over 16,384 ranks; expected 16"):
            answer(view, {**given, "params": "pieces=4096"})
    assert time.process_time() - begun < 5
