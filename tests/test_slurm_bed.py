"""A real Slurm: eight hosts, namespaces of this machine, under two leaves of one spine.

What is written is submitted; ranks stand where they were placed, find one another, and what they
exchange crosses the links that were planned.
"""

import json
import re
import sys
import time
from pathlib import Path

import pytest
import slurm_bed
from slurm_bed import SlurmBed, environment, machine

from roundelay import cli
from roundelay.run.machine import expand_hosts

WORKER = Path(slurm_bed.__file__).with_name("slurm_worker.py")
GROUPS = ("0,2,4,6", "1,3,5,7")
NUMBERS = 1_000_000
SIZE = 4 * NUMBERS
"""Bytes that every rank brings."""


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """A folder with the commands python and roundelay, of this Python."""
    folder = tmp_path_factory.mktemp("bin")
    for name, more in (("python", ""), ("roundelay", "-m roundelay ")):
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} {more}"$@"\n')
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture(scope="module")
def slurm():
    with SlurmBed() as made:
        yield made


@pytest.fixture
def folder(slurm, tmp_path):
    (tmp_path / "machine.toml").write_text(machine("1 GB/s"))
    (tmp_path / "cluster.txt").write_text(slurm.topology())
    groups = [list(map(int, text.split(","))) for text in GROUPS]
    exchange = {"name": "pairs", "pattern": "all_reduce", "groups": groups, "size": SIZE}
    (tmp_path / "job.json").write_text(json.dumps({"name": "apart", "exchange": [exchange]}))
    return tmp_path


def run(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        cli.main([*map(str, words)])
    assert ended.value.code == 0
    return capsys.readouterr()


def write(capsys, folder, job, *words, command="place", groups=GROUPS):
    """What the command says in JSON, having written its files."""
    program = " ".join([str(WORKER), str(NUMBERS), "1", *groups])
    return json.loads(run(capsys, command, job, "--cluster", folder / "machine.toml", "--topology",
                          folder / "cluster.txt", "--for", "slurm", "--write", folder,
                          "--program", program, "--json", *words).out)  # fmt: skip


def submit(slurm, folder, commands, *words, **more):
    """What a batch job printed, once it has ended."""
    done = slurm.run("sbatch", "--wait", "--output=said.txt", *words, cwd=folder,
                     env=environment(commands, **more), timeout=90)  # fmt: skip
    said = folder / "said.txt"
    text = said.read_text() if said.exists() else ""
    assert done.returncode == 0, done.stdout + done.stderr + text
    return text


def stood(text):
    """[rank] the host it says it is on."""
    found = dict(re.findall(r"^rank (\d+) on (\w+): right,", text, re.M))
    return [found[str(rank)] for rank in range(len(found))]


@pytest.mark.parametrize("launcher", ["srun", "launch"])
def test_a_job_is_placed_as_planned(slurm, folder, commands, capsys, launcher):
    found = write(capsys, folder, folder / "job.json")
    assert found["cost_us"] < 0.52 * found["against"]["first_fit"]
    before = slurm.bed.crossed(0)
    said = submit(slurm, folder, commands, "apart.sbatch", LAUNCHER=launcher)
    assert stood(said) == found["hosts"] == (folder / "apart.hosts").read_text().split()
    crossed = slurm.bed.crossed(0) - before
    assert crossed < SIZE / 10  # the groups stay below their leaves: what is left is the start-up


def test_hosts_with_different_numbers_of_ranks(slurm, folder, commands, capsys):
    """Three places under one leaf, two under the other, for groups of three and two."""
    (folder / "machine.toml").write_text(machine("1 GB/s").replace("cards = 1", "cards = 2"))
    (folder / "free").write_text("n0\nn1 0\nn4\n")
    groups = ("0,3", "1,2,4")
    exchange = [{"name": name, "pattern": "all_reduce", "size": SIZE,
                 "groups": [list(map(int, name.split(",")))]} for name in groups]  # fmt: skip
    (folder / "job.json").write_text(json.dumps({"name": "uneven", "exchange": exchange}))
    found = write(capsys, folder, folder / "job.json", "--free", folder / "free", groups=groups)
    assert found["hosts"] == ["n4", "n0", "n0", "n4", "n1"]
    before = slurm.bed.crossed(0)
    assert stood(submit(slurm, folder, commands, "uneven.sbatch")) == found["hosts"]
    assert slurm.bed.crossed(0) - before < SIZE / 10


def test_the_order_of_slurm_crosses_the_spine(slurm, commands):
    """Ranks in the order of hosts, as Slurm has it: two rings cross the leaf, as the cost says."""
    program = [str(WORKER), str(NUMBERS), "1", *GROUPS]
    before = slurm.bed.crossed(0)
    done = slurm.run(
        "srun", "-N8", "-n8", "python", *program, env=environment(commands), timeout=90
    )
    assert stood(done.stdout) == [f"n{i}" for i in range(8)], done.stdout + done.stderr
    crossed = slurm.bed.crossed(0) - before
    planned = 2 * 2 * 3 / 4 * SIZE  # two groups of four, each with one link upwards in its ring
    assert planned < crossed < 1.3 * planned


def test_no_more_switches_than_slurm_takes(slurm, folder, capsys):
    """With hosts in use: of both leaves some are free, and one has room for all."""
    words = ("--parsable", "-w", "n1,n2", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 60")
    held = slurm.run("sbatch", *words).stdout.strip()
    try:
        until(lambda: slurm.run("squeue", "-h", "-o", "%T").stdout.split() == ["RUNNING"])
        (folder / "cluster.txt").write_text(slurm.topology())
        found = write(capsys, folder, "data=4,data_bytes=1M")
        said = slurm.run("sbatch", "--test-only", "-N4", "-n4", "--wrap", "true")
        own = expand_hosts(re.search(r"on nodes (\S+)", said.stderr)[1])
        assert leaves(slurm, found["hosts"]) <= leaves(slurm, own)
        assert not {*found["hosts"]} & {"n1", "n2"}
        refused = slurm.run("sbatch", "--test-only", "-N3", "--switches=1", "-w", "n0,n3,n4",
                            "--wrap", "true")  # fmt: skip
        assert leaves(slurm, ["n0", "n3", "n4"]) == 2
        assert refused.returncode, refused.stderr
    finally:
        slurm.run("scancel", held)
        until(lambda: not slurm.run("squeue", "-h").stdout.strip())


def test_order_for_the_nodes_that_slurm_gave(slurm, folder, capsys):
    """Inside an allocation of Slurm's own choice."""
    found = write(capsys, folder, folder / "job.json", "--nodes", "n[0-7]", command="order")
    assert {*found["hosts"]} == {*slurm.names}
    assert leaves(slurm, found["hosts"][0::2]) == 1


def test_what_slurm_says_of_itself_is_read(slurm, folder):
    from roundelay.clusters import cluster
    from roundelay.place.files import read_site

    data = (folder / "cluster.txt").read_bytes()
    site = read_site(data, cluster(str(folder / "machine.toml")), "cluster.txt")
    version = slurm.run("scontrol", "--version").stdout.split()[1]
    assert site.version == version
    assert [name for (name,) in site.names] == slurm.names
    assert site.paths["n5"] == ("spine", "leaf1")
    assert site.room.free.all()
    assert site.cluster.fabric.oversubscription == (4.0,)


def leaves(slurm, hosts):
    return len({slurm.leaves[slurm.names.index(host)] for host in hosts})


def until(ready):
    end = time.monotonic() + 20
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.2)
