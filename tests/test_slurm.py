"""Slurm's files and what is written for it; the real one is in test_slurm_bed.py."""

import contextlib
import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay import cli
from roundelay.clusters import cluster
from roundelay.errors import RoundelayError
from roundelay.formats.scontrol import read_nodes
from roundelay.place import parallel, place, read_job
from roundelay.place.files import read_site
from roundelay.place.job import Exchange, Job
from roundelay.place.slurm import files
from roundelay.place.submission import Submission

FILES = Path(__file__).parent / "files"
TREE = b"""SwitchName=leaf0 Nodes=n[0-3]
SwitchName=leaf1 Nodes=n[4-7]
SwitchName=spine Switches=leaf[0-1]
"""
BLOCKS = b"""BlockName=b0 Nodes=n[0-3]
BlockName=b1 Nodes=n[4-7]
BlockSizes=4,8
"""


def site(data, machine="dgx-h100", name="topology.conf"):
    return read_site(data, cluster(machine), name)


def submission(job, where, **more):
    return Submission(place(read_job(job), where.room), where, **more)


def script(job, where, **more):
    return next(iter(files(submission(job, where, **more)).values()))


# Reading


def test_leaves_are_filled_up_and_numbered_together():
    found = site(b"SwitchName=a Nodes=x[1-3]\nSwitchName=b Nodes=y1\nSwitchName=s Switches=a,b\n")
    assert [name for (name,) in found.names] == ["x1", "x2", "x3", "y1", "", ""]
    assert found.cluster.fabric.nodes_per_leaf == 3
    assert found.room.free.any(axis=1).tolist() == [True] * 4 + [False] * 2
    assert (found.host(8), found.host(24)) == ("x2", "y1")
    assert found.cards(["y1"])[0].tolist() == list(range(24, 32))


def test_three_levels_and_more():
    text = "".join(f"SwitchName=l{i} Nodes=n{i}\nSwitchName=p{i} Switches=l{i}\n" for i in range(4))
    text += (
        "SwitchName=a Switches=p[0-1]\nSwitchName=b Switches=p[2-3]\nSwitchName=t Switches=a,b\n"
    )
    found = site(text.encode())
    assert (found.cluster.fabric.nodes_per_leaf, found.cluster.fabric.nodes_per_pod) == (1, 1)
    assert any("1 levels above pods" in str(note) for note in found.notes)
    assert found.paths["n3"] == ("t", "b", "p3", "l3")


def test_what_scontrol_prints():
    found = site((FILES / "scontrol.txt").read_bytes(), name="cluster.txt")
    assert found.version == "23.11.10"
    free = {found.names[node][0]: np.flatnonzero(row).tolist()
            for node, row in enumerate(found.room.free) if found.names[node][0]}  # fmt: skip
    assert free == {"gpu1": [*range(8)], "gpu2": [2, 3, 4, 6, 7], "gpu3": [], "gpu4": [],
                    "gpu5": [2, 3, 4, 5, 6, 7]}  # fmt: skip
    assert found.room.sliced.any(axis=1).tolist() == [False] * 3 + [True, False, False]
    assert "gpu3 is IDLE+DRAIN: left out" in [str(note) for note in found.notes]


@pytest.mark.parametrize(
    ("state", "free"),
    [("IDLE", True), ("IDLE*", False), ("IDLE+CLOUD", True), ("MIXED", True), ("DOWN", False),
     ("ALLOCATED", False), ("MIXED+DRAIN", False), ("IDLE+RESERVED", False)],
)  # fmt: skip
def test_states(state, free):
    (node,) = read_nodes(f"NodeName=a Gres=gpu:8 State={state}".encode())
    assert node.free == free
    (node,) = read_nodes(f"NodeName=a Gres=(null) State={state}".encode())
    assert node.free == (free and state != "MIXED")  # nothing says what is left of it


def test_topologies_in_yaml():
    data = (FILES / "slurm_topology.yaml").read_bytes()
    main = site(data, name="topology.yaml")
    assert (main.source, main.cluster.fabric.nodes_per_leaf, len(main.paths)) == ("tree", 3, 5)
    assert "left out: flat, racks" in str(main.notes[0])
    racks = site(data, name="topology.yaml:racks")
    assert racks.source == "block"
    assert (racks.cluster.fabric.nodes_per_leaf, racks.cluster.fabric.nodes_per_pod) == (2, 4)
    with pytest.raises(RoundelayError, match=r"no topology 'x'; the file has flat, main"):
        site(data, name="topology.yaml:x")
    with pytest.raises(RoundelayError, match="topology flat is flat; expected one of tree"):
        site(data, name="topology.yaml:flat")


def test_hosts_that_share_a_node():
    machine = cluster("gb200-nvl72")
    text = "".join(f"BlockName=rack{i} Nodes=r{i}n[1-{18 - i}]\n" for i in range(3))
    found = read_site(text.encode() + b"BlockSizes=16\n", machine, "topology.conf")
    assert found.cluster.nodes == 3
    assert found.host(72 + 4 * 16) == "r1n17"
    assert found.room.free.sum(axis=1).tolist() == [72, 68, 64]
    with pytest.raises(RoundelayError, match="rack0 has 19 hosts, and a node of gb200-nvl72 18"):
        read_site(b"BlockName=rack0 Nodes=n[1-19]\n", machine, "topology.conf")
    with pytest.raises(RoundelayError, match="nothing says with whom n1 does"):
        read_site(b"NodeName=n1 State=IDLE\n", machine, "nodes.txt")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SwitchName=a Nodes=n[0-3]\nSwitchName=b Nodes=m1\n",
         r"2 trees that nothing joins: a \(4 nodes, such as n0\), b \(1 nodes"),
        ("SwitchName=a Switches=b,c\nSwitchName=b Nodes=n1\n",
         "line 1: a leads to c, which isn't described"),
        ("SwitchName=a Switches=c\nSwitchName=b Switches=c\nSwitchName=c Nodes=n1\n",
         "c hangs on a and on b"),
        ("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1\nSwitchName=c Switches=a,b\n",
         "n1 hangs on a and on b"),
        ("SwitchName=a Nodes=n1\nSwitchName=c Nodes=n2 Switches=a\n",
         "n2 hangs on c, and on no leaf below it"),
        ("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\nSwitchName=c Switches=b\n"
         "SwitchName=d Switches=a,c\n", r"n2 is 3 levels deep \(d > c > b\), and n1 2"),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "no hosts"),
        ("SwitchName=a Nodes=n1\nNodeName=n2 State=IDLE\n", "n2 hangs on no switch"),
        ("SwitchName=a Nodes=n1\nNodeName=n1 Gres=gpu:4 State=IDLE\n",
         "n1 has 4 cards, and a host of dgx-h100 8"),
        ("hello\n", "no SwitchName"),
        ("SwitchName=a Nodes=n$(rm)\n", r"host 'n\$\(rm\)'; expected a name"),
    ],
)  # fmt: skip
def test_bad_topologies(text, said):
    with pytest.raises(RoundelayError, match="topology.conf: .*" + said):
        site(text.encode())


@pytest.mark.parametrize(
    ("entry", "said"),
    [('block: "b\\nrm -rf ~", nodes: n1', r"n1 is in 'b\\nrm -rf ~'"),
     ('block: b, nodes: "n1\\nrm -rf ~"', r"host 'n1\\nrm -rf ~'"),
     ('block: b, nodes: "n1 --wrap=rm"', "host 'n1 --wrap=rm'")],
)  # fmt: skip
def test_names_cannot_add_lines_to_a_script(entry, said):
    pytest.importorskip("yaml")
    text = f"- {{topology: t, block: {{block_sizes: [1], blocks: [{{{entry}}}]}}}}\n"
    with pytest.raises(RoundelayError, match=said):
        site(text.encode(), name="topology.yaml")


def test_domains_too_unequal_to_be_filled_up():
    rows = [f"SwitchName=p{p} Switches=l{p}x[0-{0 if p else 1999}]" for p in range(600)]
    leaves = [(p, leaf) for p in range(600) for leaf in range(1 if p else 2000)]
    rows += [f"SwitchName=l{p}x{leaf} Nodes=n{p}x{leaf}" for p, leaf in leaves]
    rows.append("SwitchName=top Switches=p[0-599]")
    with pytest.raises(RoundelayError, match=r"2,599 nodes in domains so unequal.* 1,200,000"):
        site("\n".join(rows).encode())


@given(st.text(alphabet="SwitchName=Nodesab[]0-3,\n :", max_size=200))
def test_any_file_is_read_or_refused(text):
    for name in ("topology.conf", "topology.yaml"):
        with contextlib.suppress(RoundelayError):
            assert site(text.encode(), name=name).paths


def test_what_is_free_by_name():
    found = site(TREE).narrowed("n[1-2]\nn4 0-3 # half\n", "free.txt")
    assert found.room.free.sum() == 20
    for line, said in (
        ("n9", "no host 'n9'"),
        ("n1 0-9", "cards 0-9"),
        ("n1 1 2", "expected HOSTS"),
    ):
        with pytest.raises(RoundelayError, match=f"free.txt, line 1: .*{said}"):
            site(TREE).narrowed(line, "free.txt")


# Writing


def test_a_script_for_a_tree():
    where = site((FILES / "scontrol.txt").read_bytes())
    text = script("data=8,data_bytes=1G", where, queue="gpu", program="train.py --name 'a b'")
    for line in (
        "#SBATCH --nodelist=gpu1",
        "#SBATCH --switches=1",
        "#SBATCH --exclusive",
        "#SBATCH --gpus-per-node=8",
        "#SBATCH --partition=gpu",
        "# For Slurm 23.11.10.",
    ):
        assert line in text.splitlines()
    assert "python train.py --name 'a b'" in text


def test_segments_where_the_version_has_them():
    nodes = "".join(f"NodeName=n{i} State=IDLE Gres=gpu:8 Version=%s\n" for i in range(8))
    for version, said in (("24.05.1", "#SBATCH --segment=2"), ("23.11.4", "# No --segment=2: ")):
        where = site(BLOCKS + (nodes % ((version,) * 8)).encode())
        free = where.narrowed("n[0-1,4-5]", "free")
        text = script("tensor=8,data=4,data_bytes=1G", free)
        assert any(line.startswith(said) for line in text.splitlines()), text
    assert "distribution=arbitrary)" not in text
    uneven = script("tensor=8,data=3,data_bytes=1G", where.narrowed("n[0-1,4]", "free"))
    assert "# 2 in b0, 1 in b1." in uneven


def submitted(text, folder):
    """What a script prints with the commands of a folder, and no Slurm."""
    for name in ("srun", "python"):
        (folder / name).chmod(0o755)
    env = {"PATH": f"{folder}:/usr/bin:/bin", "SLURM_SUBMIT_DIR": str(folder),
           "SLURM_JOB_ID": "31234"}  # fmt: skip
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, timeout=30, env=env)
    assert done.returncode == 0, done.stderr
    return done


def test_a_program_of_torch_finds_its_variables(tmp_path):
    """Tasks of srun have what init_process_group reads, and the ports of two jobs differ."""
    where = site(TREE)
    found = Submission(place(parallel("j", {"data": 2}, volumes={"data": 1e9}), where.room), where)
    made = files(found)
    (tmp_path / "j.hosts").write_text(made["j.hosts"])
    (tmp_path / "srun").write_text(
        '#!/bin/bash\nshift 3\nfor k in 0 1; do SLURM_PROCID=$k SLURM_LOCALID=$k "$@"; done\n'
    )
    seen = "$RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR $MASTER_PORT $*"
    (tmp_path / "python").write_text(f'#!/bin/bash\necho "{seen}"\n')
    lines = submitted(made["j.sbatch"], tmp_path).stdout.splitlines()
    first = found.hosts[0]
    assert lines == [f"{rank} {rank} 2 {first} 21234 train.py" for rank in range(2)]


def test_ranks_look_themselves_up_under_blocks(tmp_path):
    """What the script runs in each task of topology/block, with no Slurm."""
    where = site(BLOCKS)
    groups = np.array([[0, 2], [1, 3]])
    job = Job("apart", 4, (Exchange("x", "all_reduce", groups, 1e9),), (4,))
    found = Submission(place(job, where.narrowed("n[0,4] 0-1", "free").room), where)
    text = files(found)["apart.sbatch"]
    (tmp_path / "apart.hosts").write_text(files(found)["apart.hosts"])
    (tmp_path / "srun").write_text(
        "#!/bin/bash\nshift 2\nfor h in n4 n0; do for k in 0 1; do\n"
        'SLURMD_NODENAME=$h SLURM_LOCALID=$k "$@"; done; done\n'
    )
    (tmp_path / "python").write_text('#!/bin/bash\necho "$ROUNDELAY_RANK $SLURMD_NODENAME"\n')
    done = submitted(text, tmp_path)
    assert sorted(done.stdout.split("\n")[:4]) == [f"{r} {h}" for r, h in enumerate(found.hosts)]


@given(st.integers(1, 8), st.integers(1, 8), st.booleans(), st.text(max_size=30))
def test_any_script_is_sound_bash(tensor, data, blocks, name):
    job = parallel(name, {"tensor": tensor, "data": data}, volumes={"tensor": 1e9, "data": 1e8})
    where = site(BLOCKS if blocks else TREE)
    found = Submission(place(job, where.room), where)
    texts = files(found)
    hosts = texts[f"{found.name}.hosts"].split()
    assert len(hosts) == job.ranks
    bash = shutil.which("bash")
    done = subprocess.run([bash, "-n"], input=texts[f"{found.name}.sbatch"], text=True,
                          capture_output=True, timeout=30)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_ranks_apart_have_no_launcher_by_host():
    """Two groups whose members alternate on two hosts: only a task a rank can have that."""
    where = site(TREE)
    found = submission("data=16,data_bytes=1G", where)
    apart = replace(
        found, placed=replace(found.placed, cards=np.arange(16).reshape(2, 8).T.ravel())
    )
    assert apart.each is None
    text = files(apart)["the-job.sbatch"]
    assert "torchrun)" not in text
    assert "# No torchrun" in text


@pytest.mark.parametrize("where", [TREE, BLOCKS])
def test_hosts_with_different_numbers_of_ranks_are_parts_of_a_job(where):
    free = site(where).narrowed("n[1,5]\nn2 0-3\nn3 4-7", "free")
    text = script("tensor=4,data=6,data_bytes=1G", free, queue="gpu")
    head, parts = text.partition("#SBATCH hetjob\n")[::2]
    for part, hosts, each in ((head, "n1,n5", 8), (parts, "n2,n3", 4)):
        lines = part.splitlines()
        asked = ["nodes=2", f"ntasks-per-node={each}", f"gpus-per-node={each}",
                 f"nodelist={hosts}", "partition=gpu"]  # fmt: skip
        assert all(f"#SBATCH --{one}" in lines for one in asked), part
    assert "srun -K --het-group=0-1 bash" in text
    assert "--distribution=arbitrary)" not in text
    assert "hetjob" not in script("tensor=8,data=2,data_bytes=1G", site(where))


def test_names_of_exchanges_stay_in_comments():
    pairs = Exchange("x\nrm -rf ~", "all_reduce", np.array([[0, 1]]), 1e9)
    where = site(TREE)
    found = Submission(place(Job("a\nb", 2, (pairs,), (2,)), where.room), where)
    assert found.name == "a-b"
    lines = files(found)["a-b.sbatch"].splitlines()
    assert next(line for line in lines if "rm -rf" in line).startswith("# - x rm -rf ~")


def test_bad_submissions():
    where = site(TREE)
    for more, said in (
        ({"program": "'x"}, "No closing quotation"),
        ({"program": ""}, "no program"),
        ({"program": "a.py \udcff"}, "surrogates not allowed"),
        ({"queue": "A b"}, "queue 'A b'"),
        ({"image": "a b"}, "image 'a b'"),
    ):
        with pytest.raises(RoundelayError, match=said):
            files(submission("data=2,data_bytes=1", where, **more))


# The commands


def run(capsys, *words):
    status = cli.run([*map(str, words)])
    return status, *capsys.readouterr()


def test_place_writes_for_slurm(capsys, tmp_path):
    (tmp_path / "t.conf").write_bytes(TREE)
    words = ("tensor=8,data=2,data_bytes=1G", "--cluster", "dgx-h100", "--topology",
             tmp_path / "t.conf")  # fmt: skip
    status, out, err = run(capsys, "place", *words, "--for", "slurm", "--write", tmp_path / "job")
    assert status == 0
    assert "n0    0-7" in out
    assert "its busiest link is NIC 0 of n0, out" in out
    assert {p.name for p in (tmp_path / "job").iterdir()} == {"the-job.sbatch", "the-job.hosts"}
    assert "wrote " in err
    status, out, _ = run(capsys, "place", *words, "--for", "slurm", "--json")
    said = json.loads(out)
    assert said["files"]["the-job.hosts"].split() == said["hosts"] == ["n0"] * 8 + ["n1"] * 8
    status, out, _ = run(capsys, "order", *words, "--nodes", "n[3-4]", "--json")
    assert {*json.loads(out)["hosts"]} == {"n3", "n4"}


def test_too_large_a_job_is_told_of_hosts_that_are_there(capsys, tmp_path):
    (tmp_path / "t.conf").write_bytes(TREE.replace(b"n[4-7]", b"n[4-5]"))
    words = ("--cluster", "dgx-h100", "--topology", tmp_path / "t.conf")
    for ranks in (56, 65):  # more than hosts have, and more than there are places for hosts
        status, _, err = run(capsys, "place", f"data={ranks},data_bytes=1G", *words)
        assert (status, f"{ranks} ranks, and 48 cards are free" in err) == (2, True), err


def test_a_file_whose_name_has_a_colon(capsys, tmp_path):
    pytest.importorskip("yaml")
    folder = tmp_path / "run:2"
    folder.mkdir()
    data = (FILES / "slurm_topology.yaml").read_bytes()
    (folder / "t.yaml").write_bytes(data)
    (folder / "t.yaml:racks").write_bytes(data)
    words = ("place", "data=8,data_bytes=1G", "--cluster", "dgx-h100", "--topology")
    for name, said in (
        ("t.yaml", "main is taken"),
        ("t.yaml:flat", "flat is flat"),
        ("t.yaml:racks", "main is taken"),
        ("none.yaml:racks", "none.yaml: No such file"),
    ):
        assert said in run(capsys, *words, folder / name)[2]


def test_options_that_need_others(capsys, tmp_path):
    words = ("place", "data=2,data_bytes=1", "--cluster", "dgx-h100:2")
    assert run(capsys, *words, "--for", "slurm")[0] == 2
    for option in ("--write", "--program", "--image", "--queue", "--crds"):
        status, _, err = run(capsys, *words, option, tmp_path)
        assert (status, f"{option} changes nothing without --for" in err) == (2, True)
    for kind, option in (("slurm", "--image"), ("slurm", "--crds"), ("core", "--queue")):
        status, _, err = run(capsys, *words, "--for", kind, option, tmp_path)
        assert (status, f"{option} changes nothing with --for {kind}" in err) == (2, True)
    (tmp_path / "t.conf").write_bytes(TREE)
    status, _, err = run(capsys, *words, "--topology", tmp_path / "t.conf", "--for", "kai")
    assert (status, "labels of nodes" in err) == (2, True)
