"""Switches: Slurm's files, InfiniBand's tools, lists of hosts."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay import RoundelayError
from roundelay.clusters import cluster
from roundelay.diagnose.fabric.fabrics import fabric_findings
from roundelay.formats.hostlist import compressed, hosts
from roundelay.formats.iblink import read_iblinkinfo, read_ibnet_flat
from roundelay.formats.ibnet import read_ibnetdiscover
from roundelay.formats.kueue import read_kueue
from roundelay.formats.slurm import read_topology_conf
from roundelay.formats.slurm_write import tree_of, write_topology_conf, write_topology_yaml
from roundelay.formats.topograph import read_topograph
from roundelay.formats.topology_yaml import read_topology_yaml

FILES = Path(__file__).parent / "files"


@pytest.mark.parametrize(
    ("text", "names"),
    [("a", ["a"]), ("a,b-1", ["a", "b-1"]), ("n[08-10,2]", ["n08", "n09", "n10", "n2"]),
     ("r[1-2]n[1-2].x", ["r1n1.x", "r1n2.x", "r2n1.x", "r2n2.x"]), ("a[3],b", ["a3", "b"])],
)  # fmt: skip
def test_lists_of_hosts(text, names):
    assert list(hosts(text)) == names


@pytest.mark.parametrize("text", ["n[1-", "n[2-1]", "n[x]", "n[1-9999999]", "]", ",", "n[]",
                                  "n[1-2000]m[1-2000]"])  # fmt: skip
def test_lists_of_hosts_that_are_not_sound(text):
    with pytest.raises(RoundelayError):
        hosts(text)


@given(st.text("n[]-,01 ", max_size=20))
def test_any_list_is_read_or_refused(text):
    with contextlib.suppress(RoundelayError):
        assert all(name.strip() for name in hosts(text))


def test_a_tree_of_slurm():
    fabric = read_topology_conf((FILES / "topology.conf").read_bytes())
    assert fabric.all_hosts == ("node01", "node02", "node03", "node05", "gpu-8x", "gpu-9x",
                                "gpu-10x", "login")  # fmt: skip
    assert (fabric.kind, fabric.levels, fabric.unlisted) == ("tree", (2, 1), ())
    fabric = read_topology_conf(b"SwitchName=a Switches=b\nSwitchName=a Nodes=c\nodd\n")
    assert fabric.unlisted == ("b",)
    assert [note.line for note in fabric.notes] == [2, 3]
    with pytest.raises(RoundelayError, match=r"line 2: .* is no range"):
        read_topology_conf(b"\nSwitchName=a Nodes=c[x]\n")
    with pytest.raises(RoundelayError, match="no SwitchName"):
        read_topology_conf(b"hello\n")


def test_blocks():
    fabric = read_topology_conf(b"BlockName=a Nodes=n[1-4]\nBlockName=b Nodes=n[5-8]\n"
                                b"BlockSizes=4,8,16\n")  # fmt: skip
    (finding,) = fabric_findings("f", fabric)
    assert (finding.figures["hosts"], finding.figures["never"]) == (8, "16")


def test_a_network():
    fabric = read_ibnetdiscover((FILES / "ibnetdiscover.txt").read_bytes())
    assert fabric.hosts["S-0000000000000001"] == ("a mlx5_0", "b mlx5_0")
    assert [cable.rate for cable in fabric.host_cables] == [25.0, 25.0]
    assert (fabric.levels, len(fabric.cables)) == ((1, 1), 1)
    assert fabric.unlisted == ("S-0000000000000009",)
    assert fabric.left_out == ("Mellanox Technologies Aggregation Node",)
    assert [note.line for note in fabric.notes] == [15]
    kinds = {f.kind: f for f in fabric_findings("f", fabric)}
    assert kinds["incomplete"].fault
    assert kinds["fabric"].figures["worst"] == 2.0
    with pytest.raises(RoundelayError, match="no node; expected the output of ibnetdiscover"):
        read_ibnetdiscover(b"hello\n")


def test_links_as_iblinkinfo_lists_them():
    fabric = read_iblinkinfo((FILES / "iblinkinfo.txt").read_bytes())
    assert fabric.switches == {"3": "leaf one", "9": "spine"}
    assert fabric.hosts == {"3": ("alpha mlx5_0", "beta mlx5_0"), "9": ()}
    assert [c.label for c in fabric.host_cables] == ["4xEDR", "4xHDR"]
    assert (len(fabric.cables), fabric.left_out) == (1, ("Mellanox Technologies Aggregation Node",))
    assert [note.line for note in fabric.notes] == [11]
    slower = {f.kind: f for f in fabric_findings("f", fabric)}["slower_links"]
    assert (slower.figures["slow"], slower.figures["fast_GBps"]) == ("4xEDR", 25.0)
    with pytest.raises(RoundelayError, match="no link"):
        read_iblinkinfo(b"hello\n")


def test_links_as_ibnetdiscover_p_lists_them():
    fabric = read_ibnet_flat((FILES / "ibnet_flat.txt").read_bytes())
    assert sorted(fabric.switches.values()) == ["leaf one", "spine"]
    assert fabric.all_hosts == ("alpha mlx5_0",)
    assert [c.label for c in (*fabric.host_cables, *fabric.cables)] == ["4xEDR", "4xHDR"]
    with pytest.raises(RoundelayError, match="no link"):
        read_ibnet_flat(b"SW 1\n")


def test_topologies_in_yaml():
    pods, racks, cube, flat = read_topology_yaml((FILES / "topology.yaml").read_bytes())
    assert (pods.name, pods.kind, pods.levels, pods.unlisted) == ("pods", "tree", (2, 1), ())
    assert pods.all_hosts[-1] == "login"
    assert (racks.kind, racks.block_sizes, len(racks.all_hosts)) == ("block", (4, 8), 8)
    assert [(note.line, str(note.what)) for note in racks.notes] == [
        (19, "b2 stands there twice; the first one counts")
    ]
    assert [str(note.what) for note in cube.notes] == ["a torus of 4 places with 3 nodes"]
    assert (flat.kind, flat.all_hosts) == ("flat", ())


def test_lists_of_hosts_that_are_cut_off():
    said = "# Number of Nodes in block1: 2\nBlockName={} Nodes={}\n"
    text = said.format("a", "n1,n2") + said.format("b", "n3") + said.format("c", "n4,n5,n6")
    assert read_topology_conf((text + "BlockName=d Nodes=n7,\n").encode()).short == {"b": 2, "d": 0}


def test_models_of_topograph():
    fabric = read_topograph((FILES / "topograph.yaml").read_bytes())
    assert fabric.hosts["leaf-b"] == ("extra1", "gpu03", "gpu04")
    assert (fabric.block_sizes, fabric.unlisted, fabric.levels) == ((2, 4), ("leaf-gone",), (2, 1))


def test_topologies_and_workloads_of_kueue():
    found = read_kueue((FILES / "kueue.yaml").read_bytes())
    (levels,) = found.topologies
    assert levels.labels == ("example.com/block", "kubernetes.io/hostname")
    (work,) = found.workloads
    assert (work.kind, work.name, work.how, work.pods, work.cards) == (
        "JobSet", "train", "preferred", 4, 8,
    )  # fmt: skip


@pytest.mark.parametrize("read", [read_topology_yaml, read_topograph, read_kueue])
@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"a: &x [1]\nb: *x\n", "an alias"),
        (b"a: &x [*x]\n", "alias"),
        (b"[" * 60 + b"]" * 60, "more than 40 levels"),
        (b"[" * 10**5, "no sound YAML"),
        (b"? [1]\n: 2\n", "a key that is no word"),
        (b"a: b: c\n", "no sound YAML"),
        (b"!!python/object/apply:os.system ['true']\n", "expected|no Topology"),
        (b"x" * 3 * 2**20, "expected at most"),
        (b"- topology: t\n  tree: {switches: [{switch: s, nodes: 'n[2-1]'}]}\n",
         "line 2: .*runs backwards|no switches|no Topology"),
    ],
)  # fmt: skip
def test_yaml_that_would_do_harm_is_refused(read, data, says):
    with pytest.raises(RoundelayError, match=says):
        read(data)


@given(st.sets(st.from_regex(r"[a-z-]{0,3}[0-9]{0,4}[a-z]{0,2}", fullmatch=True).filter(bool)))
def test_shortened_lists_give_the_same_hosts(names):
    assert sorted(hosts(compressed(names))) == sorted(names)


@pytest.mark.parametrize(
    "read", [lambda: read_topology_conf((FILES / "topology.conf").read_bytes()),
             lambda: read_topology_yaml((FILES / "topology.yaml").read_bytes())[1],
             lambda: read_topograph((FILES / "topograph.yaml").read_bytes()),
             lambda: read_ibnetdiscover((FILES / "ibnetdiscover.txt").read_bytes()),
             lambda: read_iblinkinfo((FILES / "iblinkinfo.txt").read_bytes())],
)  # fmt: skip
def test_written_for_slurm_and_read_back(read):
    fabric = read()
    back = read_topology_conf(write_topology_conf(fabric))
    (again,) = read_topology_yaml(write_topology_yaml(fabric))
    assert again.hosts == back.hosts
    assert set(again.cables) == set(back.cables)
    assert (
        again.block_sizes
        == back.block_sizes
        == (fabric.block_sizes if fabric.kind == "block" else ())
    )
    wanted = {host.split()[0] for host in fabric.all_hosts}
    assert set(back.all_hosts) == wanted


def test_a_fat_tree_and_rails_become_a_tree():
    """Two pods of two leaves each, two spines a pod, two rails a host."""
    text = ""
    for pod in range(2):
        for rail in range(2):
            leaf = f"S-{pod}{rail}"
            text += f'Switch\t8 "{leaf}"\t# "leaf {pod}{rail}"\n'
            text += "".join(f'[{p}]\t"H-{pod}{p}{rail}"[1]\t# "host{pod}{p} mlx5_{rail}" 4xNDR\n'
                            for p in range(1, 3))  # fmt: skip
            text += f'[7]\t"S-spine{pod}"[{rail + 1}]\t# "spine{pod}" 4xNDR\n'
        text += f'Switch\t8 "S-spine{pod}"\t# "spine{pod}"\n[9]\t"S-core"[{pod + 1}]\t# "core"\n'
    text += 'Switch\t8 "S-core"\t# "core"\n'
    tree = read_topology_conf(write_topology_conf(read_ibnetdiscover(text.encode())))
    assert tree.hosts["leaf_00"] == ("host01", "host02")
    assert tree.hosts["leaf_10"] == ("host11", "host12")
    assert [(c.a, c.b) for c in tree.cables] == [("core", "leaf_00"), ("core", "leaf_10")]


def test_a_cluster_s_switches():
    tree = read_topology_conf(write_topology_conf(tree_of(cluster("dgx-h100:64"))))
    assert (tree.levels, len(tree.all_hosts)) == ((2, 1), 64)
    big = read_topology_conf(write_topology_conf(tree_of(cluster("dgx-h100:512"), "gpu")))
    assert big.levels == (16, 2, 1)
    assert big.all_hosts[0] == "gpu1"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"SwitchName=a Switches=b\nSwitchName=b\n", "no host hangs on any switch"),
        (b"SwitchName=a Nodes=n\nSwitchName=b Nodes=n\n", "n hangs on a and on b"),
        (b"SwitchName=a! Nodes=n\nSwitchName=a? Nodes=m\n", "the same name"),
    ],
)
def test_what_slurm_would_not_take_is_not_written(text, says):
    with pytest.raises(RoundelayError, match=says):
        write_topology_conf(read_topology_conf(text))


def test_a_torus_stands_in_yaml_only():
    cube = read_topology_yaml((FILES / "topology.yaml").read_bytes())[2]
    with pytest.raises(RoundelayError, match="no place in topology"):
        write_topology_conf(cube)
    with pytest.raises(RoundelayError, match="a torus cannot be written"):
        write_topology_yaml(cube)
