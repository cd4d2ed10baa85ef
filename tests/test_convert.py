"""Files in other formats: what is written is read again, plans are proved, other pairs refused."""

import dataclasses
import json
from pathlib import Path

import pytest
from test_timeline import sample

import roundelay as rl
from roundelay import cli
from roundelay.convert import FAMILIES, convert
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
        (("nowhere.json", "x.xml"), "nowhere.json"),
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
    written = [kind for _, kinds in FAMILIES.values() for kind in kinds]
    assert len(read) == len(set(read))
    assert len(written) == len(set(written))
