"""Clusters by name and from files: what is read, what is refused, and what is told of them."""

import contextlib
import doctest
import json
import math
import re
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import roundelay
from roundelay import cli
from roundelay.clusters import ClusterFile, cluster, here_path, names, read, schema, write
from roundelay.clusters.files import TABLES, fields, sourced
from roundelay.errors import RoundelayError
from roundelay.topology import Cluster, Fabric, Inside, Nics

MACHINES = Path(roundelay.__file__).parent / "machines"
PAGE = Path(__file__).parent.parent / "docs" / "reference" / "cluster-file.md"
EXAMPLE = """
name = "mine"
title = "Two racks"
generation = "hopper"
nodes = 4
cards = 8
launch = "25 us"

[inside]
kind = "switch"
medium = "nvlink"
rate = "900 GB/s duplex"
links = 18
latency = "3.33 us"
multicast = true

[nics]
count = 8
rate = "400 Gb/s oneway"
medium = "roce"
latency = "3.6 us"
card_pcie = "63 GB/s oneway"
gpudirect = false

[fabric]
kind = "fat_tree"
nodes_per_leaf = 2
nodes_per_pod = 4
oversubscription = [1, 2.5]
hop_latency = "1 us"
flows = 16

[sources]
inside.rate = "data sheet"
cards = "counted"
"""
BUS = """
generation = "cpu"
cards = 16
processor = "amd"
[inside]
kind = "bus"
medium = "memory"
rate = "12 GB/s oneway"
uplink = "80 GB/s oneway"
between_sockets = "40 GB/s oneway"
[nics]
count = 1
rate = "25 Gb/s oneway"
medium = "tcp"
card_pcie = "15.8 GB/s oneway"
"""


def run(capsys, *words):
    status = cli.run(list(words))
    out, err = capsys.readouterr()
    return status, out, err


# The file.


def test_example_is_read():
    c = read(EXAMPLE, "mine.toml")
    assert (c.name, c.title, c.generation, c.nodes, c.cards) == (
        "mine",
        "Two racks",
        "hopper",
        4,
        8,
    )
    assert c.launch == 25e-6
    assert c.inside == Inside("switch", "nvlink", 450e9, 18, 3.33e-6, True)
    assert c.nics == Nics(8, 50e9, "roce", 3.6e-6, False, 63e9)
    assert c.fabric == Fabric("fat_tree", nodes_per_leaf=2, nodes_per_pod=4, flows=16,
                              oversubscription=(1.0, 2.5), hop_latency=1e-6)  # fmt: skip
    assert c.sources == {"inside.rate": "data sheet", "cards": "counted"}


def test_what_is_left_out_is_as_documented():
    c = read(BUS, "/some/where/box.toml")
    assert (c.name, c.title, c.nodes, c.hosts, c.sockets, c.launch) == ("box", "box", 1, 1, 2, 0.0)
    assert c.fabric == Fabric("switch")
    assert c.inside.uplink == 80e9
    alone = read(BUS[: BUS.index("[nics]")], "box.toml")
    assert (alone.nics, alone.fabric) == (Nics(0), Fabric("none"))


def test_bytes_are_read_as_text_is():
    assert read(EXAMPLE.encode(), "mine.toml") == read(EXAMPLE, "mine.toml")


def test_yaml_says_the_same():
    yaml = pytest.importorskip("yaml")
    text = yaml.safe_dump(tomllib.loads(EXAMPLE))
    assert read(text, "mine.yaml") == read(EXAMPLE, "mine.toml")
    with pytest.raises(RoundelayError, match=r"mine.yml: no YAML: .*line 1"):
        read("a: [1", "mine.yml")


def test_yaml_without_the_extra_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(RoundelayError, match=r"pip install 'roundelay\[yaml\]'"):
        read("a: 1", "mine.yaml")


@pytest.mark.parametrize("text", [EXAMPLE, BUS])
def test_written_is_read_again(text):
    c = read(text, "c.toml")
    assert read(write(c), "other.toml") == c


@settings(deadline=None)
@given(
    rate=st.floats(1e3, 1e15),
    latency=st.floats(1e-12, 10.0) | st.just(0.0),
    taper=st.floats(1, 1000),
    title=st.text(),
)
def test_any_figure_is_written_exactly(rate, latency, taper, title):
    c = Cluster(
        "x", title or "x", "volta", 4, 2, Inside("switch", "nvlink", rate, latency=latency),
        Nics(2, rate, latency=latency, card_pcie=rate),
        Fabric("rail", nodes_per_leaf=2, oversubscription=(taper,)),
        sources={"cards": title},
    )  # fmt: skip
    assert read(write(c), "x.toml") == c


def without(text, line):
    assert line in text
    return text.replace(line, "")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("900 GB/s duplex", "900 GB/s", "inside.rate: '900 GB/s' has no direction; write "
         "'900 GB/s duplex' if it counts both directions together"),
        ("900 GB/s duplex", "900 GiB/s duplex", "inside.rate: '900 GiB/s duplex' counts in powers "
         "of 1024; rates of links are in powers of 1000: write '900 GB/s duplex' if that was "
         "meant, or else '966.4 GB/s duplex'"),
        ("400 Gb/s oneway", "400 gb/s", "nics.rate: '400 gb/s' is an ambiguous rate"),
        ("400 Gb/s oneway", "400 GB", "nics.rate: '400 GB' is a size; a rate was expected"),
        ("400 Gb/s oneway", "0 Gb/s", "nics.rate: '0 Gb/s' is zero"),
        ("400 Gb/s oneway", "-400 Gb/s", "nics.rate: '-400 Gb/s' is negative"),
        ("400 Gb/s oneway", "800 Gb/s", "nics.rate: a network card of a card would take 100 GB/s"),
        ("400 Gb/s oneway", "4 bit/s", "nics.rate: 0.5 bytes a second; expected 1 kB/s oneway to"),
        ("3.6 us", "3.6", "nics.latency: '3.6' has no unit; a time was expected"),
        ("3.6 us", "3.6 min", "nics.latency: 216 s; expected 0 s, or 1 ps to 10 s"),
        ("25 us", "-25 us", "launch: '-25 us' is negative"),
        ('"900 GB/s duplex"', "900", "inside.rate: Expected `str`, got `int`, in quotes with its"),
        ('"3.33 us"', "3.33", "inside.latency: Expected `str`, got `float`, in quotes"),
        ("cards = 8", 'cards = "8"', "cards: Expected `int`, got `str`"),
        ("cards = 8", "cards = 0", "cards: Expected `int` >= 1"),
        ("cards = 8\n", "", "Object missing required field `cards`"),
        ("nodes = 4", "nodes = true", "nodes: Expected `int`, got `bool`"),
        ('"switch"', '"swich"', "inside.kind: Invalid enum value 'swich'"),
        ("links = 18", "link = 18", "unknown field of [inside] 'link'; did you mean links"),
        ("nodes = 4", "node = 4", "unknown field of the cluster 'node'; did you mean nodes"),
        ("[fabric]", "[fabrics]", "unknown field of the cluster 'fabrics'; did you mean fabric"),
        ("inside.rate =", "inside.rates =", "unknown field of [sources] 'inside.rates'; did you "
         "mean inside.rate"),
        ("[1, 2.5]", "[1, 0.5]", "fabric.oversubscription: 0.5; expected 1 (as much above as"),
        ("[1, 2.5]", "[1, nan]", "fabric.oversubscription: nan"),
        ("[1, 2.5]", "3", "fabric.oversubscription: 3; expected 2 of them"),
        ("count = 8", "count = 6", "fabric.planes"),
        ("count = 8", "count = 12", "nics.count: 12; expected at most 8"),
        ("[inside]", "[inside", "no TOML: "),
        ('kind = "fat_tree"', 'kind = "none"', "fabric.nodes_per_leaf is for rail and fat_tree"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_file_and_field(old, new, says):
    text = EXAMPLE.replace('kind = "fat_tree"', 'kind = "fat_tree"\nplanes = 4') if (
        says == "fabric.planes") else EXAMPLE  # fmt: skip
    assert old in text
    with pytest.raises(RoundelayError) as error:
        read(text.replace(old, new, 1), "mine.toml")
    assert str(error.value).startswith("mine.toml: ")
    assert says in str(error.value)


def test_unconnected_parts_are_refused():
    with pytest.raises(RoundelayError, match=r"nics.count is 0, so the 4 nodes are not connected"):
        read(EXAMPLE[: EXAMPLE.index("[nics]")], "mine.toml")
    alone = 'generation = "cdna3"\ncards = 8\n[inside]\nmedium = "xgmi"\nrate = "448 GB/s oneway"\n'
    with pytest.raises(RoundelayError, match="a mesh of 8 cards needs at least 7"):
        read(alone + 'kind = "mesh"\nlinks = 6', "m.toml")
    with pytest.raises(
        RoundelayError, match="between_sockets is missing: without it the 2 sockets"
    ):
        read(without(BUS, 'between_sockets = "40 GB/s oneway"'), "b.toml")


@pytest.mark.parametrize(
    "data",
    [b"\xff\xfe", b"\x00", "x = " + "[" * 3000, "a = " + "9" * 5000, "x" * (2**20 + 1), "", "[]"],
    ids=["bytes", "zero", "deep", "digits", "long", "empty", "list"],
)
@pytest.mark.parametrize("name", ["x.toml", "x.yaml"])
def test_what_is_no_cluster_file_is_refused(data, name):
    with pytest.raises(RoundelayError, match=name):
        read(data, name)


VALUES = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(), st.booleans(), st.text(max_size=12),
    st.lists(st.integers(-1, 9), max_size=3), st.dictionaries(st.text(max_size=3), st.integers()),
    st.sampled_from(["switch", "mesh", "bus", "rail", "fat_tree", "dragonfly", "torus", "none",
                     "1 GB/s", "1 GB/s duplex", "1e99 GB/s", "inf GB/s", "nan s", "0 us"]),
)  # fmt: skip


@st.composite
def mutated(draw):
    """One of the machines' files with some fields changed, taken away or added."""
    tree = tomllib.loads((MACHINES / f"{draw(st.sampled_from(names()))}.toml").read_text("utf-8"))
    for _ in range(draw(st.integers(1, 4))):
        table = draw(st.sampled_from([tree, *(t for t in tree.values() if isinstance(t, dict))]))
        kind = next((TABLES[name] for name in TABLES if tree.get(name) is table), ClusterFile)
        field = draw(st.sampled_from(fields(kind)) | st.text(max_size=4))
        if draw(st.booleans()):
            table.pop(field, None)
        else:
            table[field] = draw(VALUES)
    return tree


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(mutated())
def test_hostile_files_are_read_or_refused(tree):
    yaml = pytest.importorskip("yaml")
    c = read_or_refused(yaml.safe_dump(tree), "x.yaml")
    if c is None:
        return
    assert read(write(c), "x.toml") == c
    assert math.isfinite(c.bisection())
    if c.size < 10_000:
        path = c.path([0, 0], [c.size - 1, c.size // 2])
        assert (path.links < len(c.rates)).all()
        assert (path.latency >= 0).all()


@settings(deadline=None)
@given(st.text(max_size=60) | st.binary(max_size=60), st.sampled_from(["x.toml", "x.yaml"]))
def test_any_text_is_read_or_refused(data, name):
    read_or_refused(data, name)


def read_or_refused(data, name):
    with contextlib.suppress(RoundelayError):
        return read(data, name)
    with pytest.raises(RoundelayError, match=f"^{name}: "):
        read(data, name)
    return None


def test_schema_fits_every_machine_and_refuses_others():
    found = schema()
    for name in names():
        jsonschema.validate(tomllib.loads((MACHINES / f"{name}.toml").read_text("utf-8")), found)
    for wrong in ({}, {"generation": "hopper", "cards": 8, "inside": {}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, found)


def test_every_field_is_documented():
    page = PAGE.read_text("utf-8")
    for table in (ClusterFile, *TABLES.values()):
        for field in fields(table):
            assert f"`{field}`" in page, field


def test_example_of_the_page_is_read():
    page = PAGE.read_text("utf-8")
    example = re.search(r"```toml\n(.*?)```", page, re.S)[1]
    c = read(example, "example.toml")
    assert c.size == 256
    assert set(c.sources) <= set(sourced())


# Names.


@pytest.mark.parametrize("name", names())
def test_machine_agrees_with_itself(name):
    c = cluster(name)
    assert c.name == name
    assert c.nodes == 1
    assert read(write(c), "x.toml") == c
    assert {"cards", "inside.rate"} <= set(c.sources)
    if c.nics.count:
        assert {"nics.count", "nics.rate", "nics.latency", "nics.card_pcie"} <= set(c.sources)
        assert c.network_rate < c.inside.rate
        four = cluster(f"{name}:4")
        assert four.path(0, four.size - 1).between.all()
    if c.inside.kind == "switch":
        each = c.inside.rate / c.inside.links
        assert each in (25e9, 50e9)  # a link of NVLink 3 and 4, of NVLink 5 and 6, one way
        assert (each == 50e9) == (c.generation in ("blackwell", "rubin"))
        assert c.inside.multicast == (c.generation != "ampere")


@pytest.mark.parametrize(
    ("name", "cards", "duplex_GBps", "network_Gbps"),
    [
        ("dgx-a100", 8, 600, 1600), ("dgx-h100", 8, 900, 3200), ("hgx-h200", 8, 900, 3200),
        ("dgx-b200", 8, 1800, 3200), ("dgx-b300", 8, 1800, 6400), ("h800", 8, 400, 3200),
        ("aws-p4d", 8, 600, 400), ("aws-p4de", 8, 600, 400), ("aws-p5", 8, 900, 3200),
        ("aws-p5en", 8, 900, 3200), ("aws-p6-b200", 8, 1800, 3200), ("mi300x", 8, 896, 3200),
        ("azure-nd-a100-v4", 8, 600, 1600), ("azure-nd-h100-v5", 8, 900, 3200),
        ("azure-nd-h200-v5", 8, 900, 3200), ("gb200-nvl72", 72, 1800, 28_800),
        ("gb300-nvl72", 72, 1800, 57_600), ("vr200-nvl144", 72, 3600, 115_200),
        ("l40s-pcie", 8, 63, 0), ("v100-pcie", 8, 31.6, 0),
    ],
)  # fmt: skip
def test_machine_has_the_figures_of_its_data_sheet(name, cards, duplex_GBps, network_Gbps):
    c = cluster(name)
    assert c.cards == cards
    assert 2 * c.inside.rate == pytest.approx(duplex_GBps * 1e9)
    assert c.nics.count * c.nics.rate * 8 == pytest.approx(network_Gbps * 1e9)


def test_what_is_announced_says_so():
    c = cluster("vr200-nvl144")
    figures = ("inside.rate", "inside.links", "nics.count", "nics.rate", "nics.card_pcie")
    assert all("announced, not measured" in c.sources[f] for f in figures)


def test_numbers_of_nodes():
    assert doctest.testmod(roundelay.clusters) == (0, 1)
    assert cluster("dgx-h100:16").size == 128
    assert cluster("gb200-nvl72:2").size == 144
    assert cluster("h800:256").fabric.planes == 8


def test_a_file_that_is_there_under_the_whole_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(EXAMPLE)
    Path("dgx-h100:2").write_text(EXAMPLE)
    assert cluster("mine.toml:2").nodes == 2
    Path("mine.toml:2").write_text(EXAMPLE)
    assert cluster("mine.toml:2").nodes == cluster("mine.toml").nodes == 4
    assert cluster("dgx-h100:2").name == "dgx-h100"  # no path, so it can't be a file


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("dgx-h10", "unknown cluster 'dgx-h10'; did you mean dgx-h100"),
        ("dgx-h100:0", "dgx-h100:0: nodes: 0; expected 1 to"),
        ("dgx-h100:x", "unknown cluster 'dgx-h100:x'; did you mean dgx-h100"),
        ("v100-pcie:2", "v100-pcie:2: nics.count is 0, so the 2 nodes are not connected"),
        ("dgx-h100:999999999", "nodes: 999999999"),
        ("no/such.toml", "such.toml is not there; expected a cluster file, or one of aws-p4d"),
        ("/", "is no regular file"),
        ("\0.toml", "expected a cluster file"),
        ("", "unknown cluster ''"),
    ],
)
def test_names_that_there_are_not(text, says):
    with pytest.raises(RoundelayError, match=re.escape(says)):
        cluster(text)


def test_cluster_of_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(EXAMPLE, "utf-8")
    assert cluster(str(file)) == read(EXAMPLE, "mine.toml")
    assert cluster(f"{file}:12").nodes == 12
    file.write_bytes(b"\xff")
    with pytest.raises(RoundelayError, match=r"mine.toml: no TOML"):
        cluster(str(file))


def test_here_is_the_file_that_probe_writes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(RoundelayError, match="run `roundelay probe`"):
        cluster("here")
    assert here_path() == tmp_path / "roundelay" / "here.toml"
    here_path().parent.mkdir()
    here_path().write_text(BUS, "utf-8")
    assert cluster("here:3").size == 48
    assert cluster("here").name == "here"
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert here_path() == tmp_path / ".config" / "roundelay" / "here.toml"


# The command.


def test_list_has_every_machine_and_one_convention(capsys):
    status, out, err = run(capsys, "cluster")
    assert (status, err) == (0, "")
    rows = {line.split()[0]: line for line in out.splitlines() if " : 1" in line or "pcie" in line}
    assert set(rows) == set(names())
    assert rows["dgx-h100"].split()[1:] == ["8", "450", "8", "x", "400", "50", "9", ":", "1"]
    assert rows["aws-p4d"].endswith("48 : 1")
    status, out, _ = run(capsys, "cluster", "--json")
    entries = {e["name"]: e for e in json.loads(out)}
    assert entries["h800"]["inside_GBps_oneway_per_card"] == 200
    assert entries["h800"]["inside_over_between"] == 4
    assert entries["l40s-pcie"]["inside_over_between"] is None


def test_rack_prints_its_aggregate(capsys):
    _, out, _ = run(capsys, "cluster", "gb200-nvl72")
    assert "130 TB/s duplex" in out
    assert "900 GB/s oneway = 1.8 TB/s duplex" in out
    _, out, _ = run(capsys, "cluster", "gb200-nvl72:2", "--json")
    entry = json.loads(out)
    assert (entry["cards"], entry["hosts_per_node"]) == (144, 18)
    assert entry["inside"]["GBps_duplex_per_node"] == 129_600


@pytest.mark.parametrize(
    ("nodes", "leaves", "spines", "cores"),
    [(64, 16, 8, None), (128, 32, 16, None), (256, 64, 32, None), (512, 128, 128, 64),
     (1024, 256, 256, 128), (2048, 512, 512, 256)],
)  # fmt: skip
def test_switches_are_those_of_the_reference_architecture(capsys, nodes, leaves, spines, cores):
    """NVIDIA DGX SuperPOD B200 reference architecture, table of sizes."""
    _, out, _ = run(capsys, "cluster", f"dgx-b200:{nodes}", "--json")
    levels = json.loads(out)["fabric"]["levels"]
    found = {level["level"]: level["boxes"] for level in levels}
    assert found == {"leaf": leaves, "spine": spines} | ({"core": cores} if cores else {})
    cables = [level["bundles_up"] * level["cables_of_each"] for level in levels[:-1]]
    assert cables == [8 * nodes] * len(cables)  # as much above as below


def test_description_names_every_figure_with_its_source(capsys):
    for name in names():
        status, out, _ = run(capsys, "cluster", name)
        assert status == 0
        c = cluster(name)
        told = set(c.sources.values())
        assert all(source in out for source in told), name


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("text", [EXAMPLE, BUS, EXAMPLE.replace(
    'kind = "fat_tree"\nnodes_per_leaf = 2\nnodes_per_pod = 4\noversubscription = [1, 2.5]',
    'kind = "dragonfly"\nnodes_per_group = 2\nplanes = 2')])  # fmt: skip
def test_files_are_described_in_both_languages(capsys, tmp_path, text, lang):
    file = tmp_path / "mine.toml"
    file.write_text(text, "utf-8")
    status, out, err = run(capsys, "cluster", str(file), "--lang", lang)
    assert (status, err) == (0, "")
    assert ("from one half to the other" in out) == (lang == "en")
    assert "{" not in out


def test_torus_and_mesh_are_described(capsys, tmp_path):
    c = replace(cluster("mi300x"), nodes=8, nics=Nics(12, 25e9, "tcp", card_pcie=63e9),
                fabric=Fabric("torus", dims=(2, 2, 2)))  # fmt: skip
    file = tmp_path / "torus.toml"
    file.write_text(write(c), "utf-8")
    _, out, _ = run(capsys, "cluster", str(file))
    assert "2 x 2 x 2" in out
    assert re.search(r"rate between two cards +64 GB/s oneway", out)
    assert re.search(r"torus +48 +2 +50 GB/s oneway", out)


def test_schema_is_printed(capsys):
    _, out, _ = run(capsys, "cluster", "--schema")
    assert json.loads(out) == schema()


def test_bad_names_exit_2(capsys):
    status, out, err = run(capsys, "cluster", "dgx-h10")
    assert (status, out) == (2, "")
    assert "did you mean dgx-h100" in err
