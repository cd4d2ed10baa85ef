"""A machine as a picture: what is in the file is in it, and what it does not tell is not."""

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from roundelay import cli
from roundelay.diagnose.fabric.drawing import fabric_drawing
from roundelay.diagnose.fabric.picture import fabric_picture
from roundelay.diagnose.machine.drawing import MOST, drawing
from roundelay.formats.iblink import read_iblinkinfo
from roundelay.formats.nccl_topology import read_nccl_topology
from roundelay.formats.slurm import read_topology_conf
from roundelay.formats.topo_matrix import read_topo_matrix
from roundelay.i18n import translator

FILES = Path(__file__).parent / "files"
HEAD = "GPU0 GPU1 NIC0 CPU Affinity NUMA Affinity\n"
BRIDGED = HEAD + "GPU0 X NV4 PIX 0-7 0\nGPU1 NV4 X SYS 8-15 1\nNIC0 PIX SYS X\n"


def drawn(machine, lang="en"):
    text = drawing(machine, translator(lang), lang)
    ElementTree.fromstring(text)
    return text


def test_cards_links_and_network_cards_are_in_it():
    text = drawn(read_topo_matrix(BRIDGED.encode()))
    assert {"GPU0", "GPU1", "NIC0", "NUMA 0", "NUMA 1"} <= set(re.findall(r">([^<]+)</text>", text))
    assert "NVSwitch" not in text
    assert {"GPU0 - GPU1: NVLink x4", "GPU0 - NIC0: PIX", "GPU1 - NIC0: SYS"} <= set(
        re.findall(r"<title>([^<]+)</title>", text)
    )
    assert text.count("NVLink") == 1  # a way is drawn once, though both ends tell of it


def test_a_switch_is_one_bar_above_all():
    text = drawn(read_nccl_topology((FILES / "topology.xml").read_bytes()))
    assert text.count(">NVSwitch</text>") == 1
    assert ">x18</text>" in text


def test_a_network_card_stands_with_the_card_that_it_is_near():
    text = drawn(read_topo_matrix(BRIDGED.encode()))
    assert "NUMA node not known" not in text
    apart = BRIDGED.replace("PIX", "SYS")
    assert "NUMA node not known" in drawn(read_topo_matrix(apart.encode()))
    assert "NUMA 节点" in drawn(read_topo_matrix(apart.encode()), "zh")


@pytest.mark.parametrize("count", [1, 2, MOST + 50])
def test_machines_of_any_size(count):
    names = " ".join(f"GPU{i}" for i in range(count))
    rows = "".join(
        f"GPU{i} " + " ".join("X" if i == j else "NV2" for j in range(count)) + " 0-7 0\n"
        for i in range(count)
    )
    text = drawn(read_topo_matrix(f"{names} CPU Affinity NUMA Affinity\n{rows}".encode()))
    assert len(re.findall(r">GPU\d+</text>", text)) == min(count, MOST)


def test_the_command_writes_it(tmp_path, capsys):
    file = tmp_path / "m.svg"
    assert cli.run(["topology", str(FILES / "topo_m.txt"), "--svg", str(file)]) == 0
    assert file.read_text().startswith("<svg")
    assert "GPU0" in capsys.readouterr().out


SPINES = """
Switch: 0x1 leaf1:
  1  1[  ] ==( 4X  53.125 Gbps Active/  LinkUp)==>  11  1[  ] "a1" ( )
  1  9[  ] ==( 4X  53.125 Gbps Active/  LinkUp)==>   8  1[  ] "spine" ( )
  1 10[  ] ==( 4X  53.125 Gbps Active/  LinkUp)==>   8  2[  ] "spine" ( )
Switch: 0x2 leaf2:
  2  1[  ] ==( 4X  53.125 Gbps Active/  LinkUp)==>  12  1[  ] "a2" ( )
  2  9[  ] ==( 4X  53.125 Gbps Active/  LinkUp)==>   8  3[  ] "spine" ( )
Switch: 0x3 spine:
  8  1[  ] ==( 4X  53.125 Gbps Active/  LinkUp)==>   1  9[  ] "leaf1" ( )
"""


def pictured(fabric, lang="en"):
    ElementTree.fromstring(fabric_drawing(fabric, translator(lang), lang))
    return fabric_picture(fabric, translator(lang)).split("\n")


def test_a_tree_of_switches():
    text = "SwitchName=s[0-1]\nSwitchName=s2 Nodes=a[0-2]\nSwitchName=top Switches=s2,gone\n"
    assert pictured(read_topology_conf(text.encode())) == [
        "tree: 4 switches, 3 hosts", "  s0", "  s1", "  top", "    s2  a[0-2] (3)", "    gone",
        "  ? gone",
    ]  # fmt: skip


def test_switches_in_a_circle_are_drawn_once():
    text = "SwitchName=a Nodes=n1 Switches=b\nSwitchName=b Switches=a\n"
    assert pictured(read_topology_conf(text.encode())) == [
        "tree: 2 switches, 1 host", "  a  n1 (1)", "    b", "      a ...",
    ]  # fmt: skip


def test_a_network_is_drawn_level_by_level():
    fabric = read_iblinkinfo(SPINES.encode())
    assert pictured(fabric) == [
        "network: 3 switches, 2 hosts", "  level 2", "    spine", "  level 1",
        "    leaf1  a1 (1)  ^ spine x2", "    leaf2  a2 (1)  ^ spine",
    ]  # fmt: skip
    assert pictured(fabric, "zh")[:2] == ["network：3 台交换机，2 台主机", "  第 2 层"]
    text = fabric_drawing(fabric, translator("en"), "en")
    assert {"leaf1 - spine: x2", "leaf2 - spine: x1", "a1"} <= set(
        re.findall(r"<title>([^<]+)</title>", text)
    )
    heights = dict(re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>(spine|leaf1|a1)<', text))
    assert [heights[y] for y in sorted(heights, key=float)] == ["spine", "leaf1", "a1"]


def test_switches_by_the_command(capsys, tmp_path):
    file, svg = tmp_path / "topology.yaml", tmp_path / "x.svg"
    file.write_text(
        "- topology: one\n  flat: true\n- topology: two\n  cluster_default: true\n  block:\n"
        "    block_sizes: [2]\n    blocks:\n      - {block: b1, nodes: 'a[1-2]'}\n"
    )
    assert cli.run(["topology", str(file), "--svg", str(svg), "--lang", "en"]) == 0
    assert "b1  a[1-2] (2)" in capsys.readouterr().out
    assert ">b1</text>" in svg.read_text()
    assert cli.run(["topology", str(file), "--name", "one", "--lang", "en"]) == 0
    assert capsys.readouterr().out == "flat one: 0 switches, 0 hosts\n"
    assert cli.run(["topology", str(file), "--name", "three", "--lang", "en"]) == 2
    assert "the file has one, two" in capsys.readouterr().err
    assert cli.run(["topology", str(file), "--json"]) == 0
    assert [f["kind"] for f in json.loads(capsys.readouterr().out)["fabrics"]] == ["flat", "block"]
