"""Machines as NCCL's XML, nvidia-smi and rocm-smi describe them."""

import gzip
import os
from pathlib import Path

import pytest

from roundelay import RoundelayError
from roundelay.formats.nccl_graph import read_nccl_graph
from roundelay.formats.nccl_topology import read_nccl_topology
from roundelay.formats.pcie import pcie_rate
from roundelay.formats.rocm_topo import read_rocm_topo
from roundelay.formats.topo_matrix import read_topo_matrix
from roundelay.formats.xml import DEPTH, ELEMENTS, LENGTH, read_xml

FILES = Path(__file__).parent / "files"
XML = (FILES / "topology.xml").read_bytes()


def card(machine, name):
    return next(c for c in machine.cards if c.name == name)


def nearest(machine):
    """Of each card the class of its way to a network card, and which ones it reaches so."""
    found = {c.name: machine.nearest(c) for c in machine.cards}
    return {name: (w[0], [nic.name for nic in w[1]]) for name, w in found.items() if w}


def told(notes):
    return [f"{note.line}: {note.what}" for note in notes]


# NCCL's topology.


def test_a_topology():
    machine = read_nccl_topology(XML)
    assert [(c.name, c.numa, c.device, c.link_count, c.model) for c in machine.cards] == [
        ("GPU0", 0, 0, 18, "sm90"), ("GPU1", 0, 1, 18, "sm90"), ("GPU2", 1, 2, 18, "sm90"),
        ("GPU3", 1, 3, 0, "sm90"),
    ]  # fmt: skip
    assert [(n.device, n.ports) for n in machine.nics] == [
        ("mlx5_0", (50.0,)), ("mlx5_1/mlx5_2", (25.0, 25.0))
    ]  # fmt: skip
    assert nearest(machine) == {"GPU0": ("PIX", ["NIC0"]), "GPU1": ("PHB", ["NIC0"]),
                                "GPU2": ("PXB", ["NIC1"]), "GPU3": ("PHB", ["NIC1"])}  # fmt: skip
    assert machine.between["GPU0", "GPU2"] == "NVL"
    assert machine.between["GPU0", "GPU3"] == "SYS"
    assert machine.usual_links() == 18
    (slow,) = machine.slow
    assert (slow.bus, slow.rate, slow.below, slow.line) == ("0000:20:00.0", 0.1875, 48.0, 18)
    assert not machine.notes
    assert not machine.cut


def test_a_packed_topology_is_the_same():
    assert read_nccl_topology(gzip.compress(XML)) == read_nccl_topology(XML)


@pytest.mark.parametrize("at", range(200, len(XML), 97))
def test_a_topology_that_is_cut_off_says_so(at):
    if b"</system>" in XML[:at]:
        return
    machine = read_nccl_topology(XML[:at])
    assert machine.cut
    assert any("cut off" in str(note.what) for note in machine.notes)
    assert len(machine.cards) <= 4


def test_a_part_of_a_topology():
    start, end = XML.index(b'<pci busid="0000:11'), XML.index(b'<pci busid="0000:20')
    machine = read_nccl_topology(XML[start:end])
    assert (len(machine.cards), len(machine.nics)) == (1, 1)
    assert not machine.between  # which bridge is above is not in the part
    assert told(machine.notes) == ["12: </pci> closes what is not open: a part of a file"]


def test_an_element_that_is_not_closed():
    machine = read_nccl_topology(XML.replace(b"        </gpu>\n      </pci>", b"      </pci>", 1))
    assert "<gpu> is not closed" in " ".join(told(machine.notes))
    assert len(machine.cards) == 4


def test_parts_of_a_card_are_no_more_cards():
    parts = b"""<pci busid="1:0:0.0" class="0x030200"><gpu dev="0" rank="0" mlopart="0">
      <nvlink target="fffffff:ff:ff.0" count="36" tclass="0x068000"/></gpu>
      <gpu dev="0" rank="1" mlopart="1"/></pci>"""
    machine = read_nccl_topology(parts)
    assert [(c.name, c.part, c.link_count) for c in machine.cards] == [("GPU0", 0, 36),
                                                                       ("GPU1", 1, 0)]  # fmt: skip
    assert machine.between["GPU0", "GPU1"] == "LOC"


def test_two_hosts_in_a_file():
    cpu = b'<cpu numaid="0" host_hash="0x%x"><pci busid="0:1:0.0" class="0x030000"/></cpu>'
    machine = read_nccl_topology(b"<system version='1'>" + cpu % 1 + cpu % 2 + b"</system>")
    assert [c.host for c in machine.cards] == [0, 1]
    assert machine.between["GPU0", "GPU1"] == "NET"


def test_devices_of_no_kind_are_not_guessed():
    machine = read_nccl_topology(
        b'<system version="3"><cpu numaid="0"><pci busid="0:1:0.0"/><odd/></cpu></system>'
    )
    assert (machine.cards, machine.nics, machine.unknown) == ((), (), (("0:1:0.0", 1),))
    assert told(machine.notes) == ["1: version 3; known are 1 and 2", "1: <odd> is not known"]


def test_a_network_card_without_speed_and_a_rank_that_comes_twice():
    gpu = '<pci busid="0:{}:0.0" class="0x030000"><gpu dev="0" rank="7"/></pci>'
    nic = '<nic><net name="a" dev="0" speed="0"/><net name="b"/></nic>'
    text = f"<cpu numaid='-1'>{gpu.format(1)}{gpu.format(2)}{nic}</cpu>"
    machine = read_nccl_topology(text.encode())
    assert [c.name for c in machine.cards] == ["GPU7"]
    assert machine.nics[0].ports == (1.25,)
    assert machine.cards[0].numa is None
    assert "GPU7 stands there twice; the first one counts" in " ".join(told(machine.notes))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "line 1: <!DOCTYPE"),
        (b"<x/>", "expected NCCL's topology"),
        (b"", "no element of XML"),
        (b"\x00\x01\x02", "no element of XML"),
        (b"<pci>" * (DEPTH + 2), f"more than {DEPTH} elements inside"),
        (b"<a>" + b"<b/>" * (ELEMENTS + 1), f"or {ELEMENTS:,} in all"),
        (b'<a b="' + b"c" * (LENGTH + 1) + b'"/>', "attributes, or one of more"),
        (gzip.compress(b"<a>" + b" " * 2**25), "grows beyond"),
        (gzip.compress(b"<a>")[:-9] + b"\xff" * 9, "no sound gzip file"),
    ],
)
def test_hostile_xml_is_refused(text, words):
    with pytest.raises(RoundelayError, match=words):
        read_nccl_topology(text)


def test_closing_tags_without_end():
    tree = read_xml(b"<a/>" + b"</b>" * 1000)
    assert tree.cut
    assert "too many closing tags" in str(tree.notes[-1].what)


@pytest.mark.parametrize(
    ("speed", "width", "rate"),
    [("2.5 GT/s PCIe", "1", 0.1875), ("8 GT/s", "16", 12.0), ("16.0 GT/s PCIe", "8", 12.0),
     ("32.0 GT/s PCIe", "0", 48.0), ("64.0 GT/s", "16", 96.0), ("3 GT/s", "16", 12.0),
     ("Unknown speed", "16", None), ("5.0 GT/s", "x", 6.0)],
)  # fmt: skip
def test_rates_of_pcie(speed, width, rate):
    assert pcie_rate(speed, width) == rate


# NCCL's graphs.


def test_graphs():
    found = read_nccl_graph((FILES / "graph.xml").read_bytes())
    ring, nvls = found.graphs
    assert (ring.kind, ring.pattern, ring.rate_inside, ring.way_inside) == ("ring", 4, 40.0, "NVL")
    assert ring.channels == (((0, 10), (0, 11)), ((10, 0), ()))  # devices are in base 16
    assert (nvls.kind, nvls.same_channels, nvls.crosses, ring.crosses) == (
        "nvls",
        True,
        True,
        False,
    )
    assert told(found.notes) == ["14: 2 channels are promised, 1 are there"]
    with pytest.raises(RoundelayError, match="no <graph>"):
        read_nccl_graph(XML)
    with pytest.raises(RoundelayError, match="expected NCCL's topology"):
        read_nccl_topology((FILES / "graph.xml").read_bytes())


# nvidia-smi.

TABLE = (FILES / "topo_m.txt").read_text()


def test_a_table():
    machine = read_topo_matrix(TABLE.encode())
    assert [(c.name, c.numa, dict(c.links)) for c in machine.cards] == [
        ("GPU0", 0, {"GPU1": 4, "GPU2": 4}), ("GPU1", 0, {"GPU0": 4, "GPU2": 4}),
        ("GPU2", 1, {"GPU0": 4, "GPU1": 4}),
    ]  # fmt: skip
    assert [(n.name, n.device) for n in machine.nics] == [("NIC0", "mlx5_0"), ("NIC1", "bnxt_re1")]
    assert nearest(machine) == {"GPU0": ("PIX", ["NIC0"]), "GPU1": ("NODE", ["NIC0"]),
                                "GPU2": ("PXB", ["NIC1"])}  # fmt: skip
    assert not machine.notes


def markdown(text):
    rows = [line.split("\t") for line in text.replace("\x1b[4m", "").split("\n") if "\t" in line]
    lines = [" | ".join(cell.strip() for cell in row) for row in rows]
    return "\n".join([lines[0], "|".join(["--"] * 8), *lines[1:]])


@pytest.mark.parametrize(
    "change",
    [
        markdown,
        lambda text: "".join(f"# {line}\n" for line in text.split("\n")),
        lambda text: "".join(f"> {line}\n" for line in text.split("\n")),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "$ nvidia-smi topo -m\n" + text.expandtabs(),
        lambda text: text.replace("\tNIC1\tCPU", "\nNIC1\tCPU").replace(
            "PIX\tSYS\t0", "PIX\nSYS 0"
        ),
        lambda text: text.encode("utf-16").decode("latin-1"),
    ],
)
def test_a_table_that_went_through_something(change):
    data = change(TABLE)
    machine = read_topo_matrix(data.encode("latin-1"))
    whole = read_topo_matrix(TABLE.encode())
    assert machine.between == whole.between
    assert [dict(c.links) for c in machine.cards] == [dict(c.links) for c in whole.cards]
    assert [c.numa for c in machine.cards] == [c.numa for c in whole.cards]


@pytest.mark.parametrize("at", range(120, 220, 7))
def test_a_table_that_is_cut_off_names_what_is_missing(at):
    machine = read_topo_matrix(TABLE.encode()[:at])
    assert machine.cut
    assert "NIC1" in machine.missing
    assert any("NIC1 has no row" in line for line in told(machine.notes))


def test_a_table_that_contradicts_itself():
    text = TABLE.replace("GPU1\tNV4", "GPU1\tSYS", 1)
    assert "GPU1 to GPU0 is SYS here, and NVL elsewhere" in " ".join(
        told(read_topo_matrix(text.encode()).notes)
    )


def test_the_table_that_shows_no_nvlink():
    text = "# nvidia-smi topo -mp\n" + TABLE.replace("NV4", "SYS")
    assert not read_topo_matrix(text.encode()).links_shown
    assert read_topo_matrix(TABLE.encode()).links_shown


def test_a_second_table_and_a_row_of_no_column():
    notes = told(read_topo_matrix((TABLE + TABLE.replace("NIC0", "NIC7")).encode()).notes)
    assert any("a second table" in line for line in notes)
    notes = told(read_topo_matrix(TABLE.replace("GPU2\tNV4", "GPU5\tNV4", 1).encode()).notes)
    assert any("GPU5 is no column" in line for line in notes)
    assert any("GPU2 has no row" in line for line in notes)


@pytest.mark.parametrize("text", ["", "GPU0 GPU1\n", "hello\n", "\x00\x01"])
def test_no_table(text):
    with pytest.raises(RoundelayError, match="no table of `nvidia-smi topo -m`"):
        read_topo_matrix(text.encode())


# rocm-smi.


def test_matrices_of_rocm():
    machine = read_rocm_topo((FILES / "showtopo.txt").read_bytes())
    assert [(c.numa, dict(c.links), c.kind) for c in machine.cards] == [
        (0, {"GPU1": 1}, "xgmi"), (0, {"GPU0": 1}, "xgmi"), (1, {}, "xgmi"),
    ]  # fmt: skip
    assert machine.between["GPU0", "GPU1"] == "NVL"
    assert machine.between["GPU0", "GPU2"] == "SYS"  # 72: another socket
    assert machine.between["GPU1", "GPU2"] == "PHB"


def test_matrices_that_lack_something():
    text = (FILES / "showtopo.txt").read_text()
    machine = read_rocm_topo(text.replace("GPU2   PCIE         PCIE         0\n", "").encode())
    assert machine.missing == ("GPU2",)
    machine = read_rocm_topo(text.split("====== Link")[0].encode())
    assert "no matrix of link types" in told(machine.notes)[0]
    machine = read_rocm_topo(text.replace("XGMI         0            PCIE", "XGMI").encode())
    assert any("the row of GPU1 ends after 1 of 3 columns" in line for line in told(machine.notes))
    with pytest.raises(RoundelayError, match="no matrix of `rocm-smi"):
        read_rocm_topo(b"GPU0 GPU1\n")


if DATA := os.environ.get("ROUNDELAY_DATA"):
    CASES = Path(DATA, "cases")

    def case(kind, start, read):
        (path,) = (CASES / kind).glob(f"{start}*")
        return read(path.read_bytes())

    ONE_EACH = {f"GPU{i}": ("PIX", [f"NIC{i}"]) for i in range(8)}
    # file: cards, network cards, links of most, way of each card to a network card
    XMLS = {
        "01-": (8, 1, 0, {**{f"GPU{i}": ("PHB", ["NIC0"]) for i in range(4)},
                          **{f"GPU{i}": ("SYS", ["NIC0"]) for i in range(4, 8)}}),
        "03-": (8, 8, 0, ONE_EACH),
        "07-": (0, 0, 0, {}),
        "09-": (8, 8, 18, ONE_EACH),
        "11-": (8, 8, 7, {f"GPU{i}": ("PXB", [f"NIC{i}"]) for i in range(8)}),
        "13-": (8, 1, 0, {**{f"GPU{i}": ("PXB", ["NIC0"]) for i in range(4)},
                          **{f"GPU{i}": ("PHB", ["NIC0"]) for i in range(4, 8)}}),
        "15-": (8, 8, 18, ONE_EACH),
        "17-": (1, 1, 18, {"GPU0": ("PIX", ["NIC0"])}),
        "19-": (8, 0, 18, {}),
        "21-": (2, 0, 36, {}),
        "23-": (1, 1, 12, {}),
    }  # fmt: skip

    @pytest.mark.parametrize("start", XMLS)
    def test_case_xml(start):
        machine = case("topo-xml", start, read_nccl_topology)
        found = (len(machine.cards), len(machine.nics), machine.usual_links(), nearest(machine))
        assert found == XMLS[start]

    def test_case_xml_figures():
        dual = case("topo-xml", "09-", read_nccl_topology)
        assert {n.ports for n in dual.nics} == {(22.5, 22.5)}
        assert {slow.rate for slow in dual.slow} == {6.0}
        virtual = case("topo-xml", "15-", read_nccl_topology)
        assert [(s.rate, s.below) for s in virtual.slow] == [(0.1875, 48.0)] * 8
        assert {n.rate for n in virtual.nics} == {25.0}
        mesh = case("topo-xml", "11-", read_nccl_topology)
        assert sum(len(c.links) for c in mesh.cards) == 56
        assert {c.model for c in mesh.cards} == {"gfx942"}
        trays = case("topo-xml", "19-", read_nccl_topology)
        assert [c.name for c in trays.cards if not c.links] == ["GPU5"]
        assert {c.host for c in trays.cards} == {0, 1}
        assert len(case("topo-xml", "07-", read_nccl_topology).unknown) == 9
        assert case("topo-xml", "17-", read_nccl_topology).cut
        assert case("topo-xml", "23-", read_nccl_topology).cut

    def test_case_graph():
        graphs = case("topo-xml", "05-", read_nccl_graph).graphs
        assert [(g.id, g.pattern, len(g.channels), g.rate_inside, g.way_inside, g.way_between)
                for g in graphs] == [(0, 4, 2, 12, "SYS", "PIX"), (1, 1, 4, 12, "SYS", "PIX"),
                                     (2, 3, 4, 12, "SYS", "PIX")]  # fmt: skip

    def pixes(pairs):
        return {f"GPU{card}": ("PIX", [f"NIC{nic}"]) for card, nic in pairs.items()}

    # file: cards, network cards, links of most, missing rows, ways
    TABLES = {
        "01-": (8, 8, 18, 0, pixes({i: 7 - i for i in range(8)})),
        "03-": (8, 0, 0, 0, {}),
        "05-": (6, 0, 0, 0, {}),
        "07-": (4, 2, 0, 0, {"GPU1": ("PIX", ["mlx5_0"]), "GPU2": ("PIX", ["mlx5_1"])}),
        "09-": (4, 2, 0, 0, {f"GPU{i}": ("SYS", ["NIC0", "NIC1"]) for i in range(4)}),
        "11-": (4, 2, 12, 0, {f"GPU{i}": ("PXB", [f"NIC{i // 2}"]) for i in range(4)}),
        "13-": (8, 9, 18, 3, pixes({i: 8 - i for i in range(8)})),
        "15-": (4, 2, 12, 3, {}),
        "17-": (8, 6, 18, 7, pixes({0: 0, 2: 1, 4: 2, 6: 3})),
        "19-": (8, 9, 8, 10, pixes({0: 2, 1: 4, 2: 6, 3: 8, 4: 1, 5: 3, 6: 5})),
    }

    @pytest.mark.parametrize("start", TABLES)
    def test_case_table(start):
        machine = case("topo-m", start, read_topo_matrix)
        cards, nics, links, missing, ways = TABLES[start]
        assert (len(machine.cards), len(machine.nics), len(machine.missing)) == (
            cards, nics, missing)  # fmt: skip
        assert machine.usual_links() == links
        assert ways.items() <= nearest(machine).items()

    def test_case_table_details():
        assert not case("topo-m", "07-", read_topo_matrix).links_shown
        assert [c.numa for c in case("topo-m", "07-", read_topo_matrix).cards] == [3, 1, 7, 5]
        near = case("topo-m", "05-", read_topo_matrix).pairs()
        assert [a.name + b.name for a, b, way in near if way == "PHB"] == ["GPU0GPU1", "GPU3GPU4"]
        near = case("topo-m", "03-", read_topo_matrix).pairs()
        assert [a.name + b.name for a, b, way in near if way == "PIX"] == [
            "GPU0GPU1", "GPU2GPU3", "GPU4GPU5", "GPU6GPU7"]  # fmt: skip
        assert case("topo-m", "15-", read_topo_matrix).missing == ("GPU2", "GPU3", "NIC1")
        rocm = case("topo-m", "21-", read_rocm_topo)
        assert len(rocm.cards) == 4
        assert {way for _, _, way in rocm.pairs()} == {"PHB"}
