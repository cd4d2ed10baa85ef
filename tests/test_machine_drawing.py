"""A machine as a picture: what is in the file is in it, and what it does not tell is not."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from roundelay import cli
from roundelay.diagnose.drawing import MOST, drawing
from roundelay.formats.nccl_topology import read_nccl_topology
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
