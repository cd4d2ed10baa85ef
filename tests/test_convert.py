"""Files in other formats: what is written is read again, plans are proved, other pairs refused."""

import dataclasses
import json
from pathlib import Path

import pytest
from test_timeline import sample

import roundelay as rl
from roundelay import cli
from roundelay.clusters import cluster
from roundelay.convert import FAMILIES, READ, convert
from roundelay.diagnose.given import Given
from roundelay.formats.chrome import read_chrome
from roundelay.formats.flight import read_flight
from roundelay.formats.msccl_xml import read_msccl
from roundelay.formats.schedule import read_schedule, write_schedule
from roundelay.formats.slurm import read_topology_conf
from roundelay.formats.timeline import read_timeline, write_timeline

FILES = Path(__file__).parent / "files"
RING = write_schedule(rl.build("all_reduce/ring", 4))


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)

    def words(*words):
        status = cli.run(["convert", *map(str, words)])
        return status, *capsys.readouterr()

    return words


def test_a_plan_goes_round_and_is_proved_each_time(run, tmp_path):
    Path("a.json").write_bytes(RING)
    for words, says in (
        (
            ("a.json", "b.xml", "--protocol", "LL"),
            "schedule written as msccl; read back and proved",
        ),
        (("b.xml", "c.json", "--to", "mscclpp", "--instances", "2"), "msccl written as mscclpp"),
        (("c.json", "d.json", "--to", "schedule"), "mscclpp written as schedule"),
    ):
        status, out, _ = run(*words)
        assert (status, says in out, "proved" in out) == (0, True, True)
    assert read_msccl(Path("b.xml").read_bytes()).protocol == "LL"
    assert rl.verify(read_schedule(Path("d.json").read_bytes()))


def test_what_rccl_misses_is_put_in(run):
    status, out, _ = run(FILES / "msccl.xml", "whole.xml", "--json")
    assert status == 0
    assert json.loads(out)["proved"] is True
    algo = read_msccl(Path("whole.xml").read_bytes())
    assert algo.missing == ()
    before = read_msccl((FILES / "msccl.xml").read_bytes())
    assert [len(gpu.blocks) for gpu in algo.gpus] == [len(gpu.blocks) for gpu in before.gpus]


def test_a_wrong_plan_is_not_written(run):
    wrong = (FILES / "msccl.xml").read_bytes().replace(b'type="rrs"', b'type="rcs"')
    Path("wrong.xml").write_bytes(wrong)
    status, _, err = run("wrong.xml", "out.xml")
    assert status == 1
    assert "not written, as it is wrong" in err
    assert not Path("out.xml").exists()


def test_timelines():
    timeline = sample()
    data = write_timeline(timeline)
    chrome = convert(Given("x", data=data), "x.json")
    assert chrome.target == "chrome"
    back = convert(Given("x", data=chrome.data), "x.timeline")
    assert (read_timeline(back.data).begin == read_chrome(chrome.data).begin).all()


def test_switches_and_clusters(run):
    assert run("dgx-h100:64", "topology.conf")[0] == 0
    assert len(read_topology_conf(Path("topology.conf").read_bytes()).all_hosts) == 64
    assert run("topology.conf", "t.yaml")[0] == 0
    assert run("t.yaml", "again.conf")[0] == 0
    assert Path("again.conf").read_bytes() == Path("topology.conf").read_bytes()
    assert run(FILES / "topology.yaml", "racks.conf", "--name", "racks")[0] == 0
    assert b"BlockSizes=4,8" in Path("racks.conf").read_bytes()
    assert run("dgx-h100:4", "mine.toml")[0] == 0
    status, out, err = run("mine.toml", "-", "--to", "topology.conf")
    assert (status, out) == (0, "SwitchName=leaf1 Nodes=node[1-4]\n")
    assert "cluster written as topology.conf" in err


def topology(cards, links=18, speed=400000, model=90):
    """NCCL's topology of one host, by hand: each card with a network card beside it."""
    parts = "".join(
        f'<pci busid="0000:{i:02x}:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" '
        f'link_width="16"><pci busid="0001:{i:02x}:00.0" class="0x030200" link_width="16" '
        f'link_speed="32.0 GT/s PCIe"><gpu dev="{i}" sm="{model}" rank="{i}" gdr="1"><nvlink '
        f'target="0000:a0:00.0" count="{links}" tclass="0x068000"/></gpu></pci><pci '
        f'busid="0002:{i:02x}:00.0" class="0x020700"><nic><net name="mlx5_{i}" dev="{i}" '
        f'speed="{speed}" port="1" guid="0x{i + 1}"/></nic></pci></pci>'
        for i in range(cards)
    )
    return f'<system version="1"><cpu numaid="0">{parts}</cpu></system>'


def test_a_topology_becomes_a_cluster(run):
    Path("topo.xml").write_text(topology(4, speed=200000))
    assert run("topo.xml", "mine.toml")[0] == 0
    made = cluster("mine.toml")
    assert (made.cards, made.inside.rate, made.nics.count, made.nics.rate) == (4, 450e9, 4, 25e9)
    assert made.sources["nics.rate"] == "topo.xml"
    assert cluster("mine.toml:3").size == 12


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (topology(4)[:-30], "it is cut off"),
        (topology(1), "expected the cards of one host, two or more"),
        (topology(4, model=75), "cards sm75; expected all of one of sm80"),
        (topology(4).replace('count="18"', 'count="9"', 1), "cards with 9, 18 links"),
        (topology(4).replace('speed="400000"', 'speed="100000"', 1), "whose rates differ"),
    ],
)
def test_a_topology_that_tells_too_little_is_refused(run, text, says):
    Path("topo.xml").write_text(text)
    status, _, err = run("topo.xml", "mine.toml")
    assert (status, says in err) == (2, True)


@pytest.mark.parametrize("name", ["flight1", "flight2.json"])
def test_dumps(name):
    (before,) = read_flight((FILES / name).read_bytes(), name)
    for target in ("flight", "flight-json"):
        done = convert(Given(name, FILES / name), "x", target)
        (after,) = read_flight(done.data, name)
        same = dataclasses.replace(after, notes=before.notes)
        assert same.calls == before.calls
        assert (same.groups, same.completed, same.enqueued) == (
            before.groups, before.completed, before.enqueued,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("a.json", "x.timeline"), "x.timeline does not tell the format"),
        (("a.json", "x", "--to", "chrome"), "is schedule, which cannot become chrome"),
        ((FILES / "topology.yaml", "x.conf", "--name", "no"), "the file has pods, racks"),
        ((FILES / "nccl.log", "x.json"), "it reads as nccl_log"),
        ((FILES / "topology.conf", "x.toml"), "switches alone are no cluster"),
        (("nowhere.json", "x.xml"), "nowhere.json: there is no such file"),
        (("typo", "out.xml"), "typo: there is no such file, and unknown cluster 'typo'"),
        (("dgx-h101:2", "x.conf"), "did you mean"),
    ],
)
def test_pairs_that_have_no_meaning_are_refused(run, words, says):
    Path("a.json").write_bytes(RING)
    status, _, err = run(*words)
    assert status == 2
    assert says in err


def test_every_format_is_in_one_family():
    read = [kind for kinds, _ in FAMILIES.values() for kind in kinds]
    assert len(read) == len(set(read))
    assert set(read) == set(READ)
