"""Switches: Slurm's files, InfiniBand's tools, lists of hosts."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundelay import RoundelayError
from roundelay.diagnose.fabrics import fabric_findings
from roundelay.diagnose.given import Given
from roundelay.diagnose.placed import order_findings
from roundelay.diagnose.recognise import kinds_of
from roundelay.formats.hostlist import hosts
from roundelay.formats.ibnet import read_ibnetdiscover
from roundelay.formats.ibnet_ports import read_ibnetdiscover_ports
from roundelay.formats.nodelists import read_nodelists
from roundelay.formats.slurm import read_topology_conf

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


PORTS = (FILES / "ibnetdiscover_p.txt").read_bytes()


def test_a_network_by_its_ports():
    fabric = read_ibnetdiscover_ports(PORTS)
    leaf = "0xa000000000000002"
    assert fabric.hosts[leaf] == ("w20 mlx5_3", "w21 mlx5_3")
    assert [cable.rate for cable in fabric.host_cables] == [50.0, 25.0]
    assert (fabric.levels, len(fabric.cables)) == ((1, 1), 1)
    assert len(fabric.left_out) == 1
    assert fabric.switches["0xa000000000000004"] == "spine1"
    assert [str(note.what)[-3:] for note in fabric.notes] == [": 7", ": 1"]
    (finding,) = fabric_findings("f", fabric)
    assert finding.evidence[0].text == "leaf1"
    assert kinds_of(Given("x", data=PORTS)) == ("ibnet_ports",)
    with pytest.raises(RoundelayError, match="no port; expected the output of ibnetdiscover -p"):
        read_ibnetdiscover_ports(b"hello\n")


def said(*lines):
    text = "\n".join(f"SLURM_JOB_NODELIST={line}" for line in lines).encode()
    assert kinds_of(Given("x", data=text)) == ("nodelists",)
    (finding,) = order_findings("f", read_nodelists(text))
    return finding


def test_orders_of_nodes():
    found = said("n[1-4]", "n[2,1,3-4]")
    assert (found.kind, found.figures["moved"], found.figures["by_name"]) == ("node_order", 2, "1")
    assert "number 0, which is n1 in one and n2 in the other" in str(found.reason)
    assert said("n[2,1,3]", "n[3,2,1]").figures["by_name"] == "-"
    assert said("n[1-3]", "n[1-2,7]").figures["gone"] == "n3"
    assert "in the order of names: n9, n10" in str(said("n[9-11]").reason)
    assert "in the order of names: n9, n10" in str(said("n[9-11]", "n[9-11]").reason)
    assert "not in the order of names: n11, n9" in str(said("n[11,9]").reason)
    with pytest.raises(RoundelayError, match="no list of nodes"):
        read_nodelists(b"NODES=3")
