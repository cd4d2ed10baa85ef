"""Figures that cannot be: they are told as such, and nothing else is said of them."""

import json
from pathlib import Path

import pytest

from roundelay.clusters import cluster, names, write
from roundelay.diagnose.given import Given
from roundelay.diagnose.speed.possible import CARD, NIC
from roundelay.diagnose.together import diagnose
from roundelay.simulate.nccl import predict

FILES = Path(__file__).parent / "files"
HEAD = "# all_reduce, n = 8\n# size count type redop root time algbw busbw #wrong\n"
GOOD = "1073741824 268435456 float sum -1 8200.0 130.94 229.15 0\n"


def look(data, where=None):
    given = Given("f", data=data if isinstance(data, bytes) else data.encode())
    found = diagnose([given], where and cluster(where), predict, cluster)
    return {f.kind: f for f in found.findings}, found


def test_no_named_machine_has_more_than_the_most_that_is_known():
    machines = [cluster(name) for name in names()]
    assert max(m.inside.rate for m in machines) / 1e9 == CARD
    assert max(m.nics.rate for m in machines) / 1e9 <= NIC


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("2147483648 536870912 float sum -1 100.0 21474.84 37580.96 0",
         "busbw, found 37581 GB/s, at most 3600 GB/s"),
        ("2147483648 536870912 float sum -1 -5.0 130.9 229.1 0", "a time, found -5 us"),
        ("2147483648 536870912 float sum -1 0.0 130.9 229.1 0", "a time, found 0 us"),
        ("2147483648 536870912 float sum -1 16400.0 130.9 -229.1 0", "busbw, found -229.1 GB/s"),
        ("2147483648 536870912 float sum -1 16400.0 999.9 1749.8 0",
         "algbw, found 999.9 GB/s, while size over time of the same row is 130.9 GB/s"),
    ],
)  # fmt: skip
def test_rows_of_a_table(row, words):
    found, whole = look(HEAD + GOOD + row + "\n")
    assert words in str(found["impossible"].reason)
    assert found["impossible"].evidence[0].line == 4
    assert found["impossible"].fault
    assert found["measured"].figures["peak_GBps"] == 229.15
    assert not any("0.9" in str(f.figures) and f.kind not in ("impossible", "measured")
                   for f in whole.findings)  # fmt: skip
    alone, _ = look(HEAD + row + "\n")
    assert set(alone) == {"impossible"}


def test_the_machine_bounds_what_can_be():
    row = "1073741824 268435456 float sum -1 1700.0 631.6 1105.3 0\n"
    assert "impossible" not in look(HEAD + row)[0]
    found, _ = look(HEAD + row, "dgx-h100:1")
    assert "at most 900 GB/s" in str(found["impossible"].reason)
    assert set(found) == {"impossible"}
    high = GOOD.replace("130.94 229.15", "270.0 472.5").replace("8200.0", "3976.8")
    assert "impossible" not in look(HEAD + high, "dgx-h100:1")[0]  # NVLS adds in the switch
    assert "impossible" in look(HEAD + high, "dgx-a100:1")[0]


def test_one_rank_moves_nothing_and_may_be_as_fast_as_it_likes():
    text = HEAD.replace("n = 8", "n = 1") + "1073741824 268435456 float sum -1 0.1 10737418 0 0\n"
    assert "impossible" not in look(text)[0]


def test_figures_that_are_no_numbers_are_noted():
    _, found = look(HEAD + GOOD + GOOD.replace("8200.0", "nan"))
    assert any("this cannot be: nan" in str(note.what) for _, note in found.notes)


def test_facts():
    facts = {"op": "all_reduce", "gpu": "H100", "gpus": 8, "busbw_GBps": 99999, "nic_GBps": 400}
    found, whole = look(json.dumps(facts))
    assert set(found) == {"impossible"}
    told = " ".join(str(f.reason) for f in whole.findings)
    assert "busbw, found 99999 GB/s, at most 900 GB/s" in told
    assert "nic, found 400 GB/s, at most 200 GB/s" in told


def test_facts_that_contradict_each_other():
    facts = {"op": "all_reduce", "gpus": 8, "message_bytes": 10**9, "call_us": 10000,
             "algbw_GBps": 400}  # fmt: skip
    found, _ = look(json.dumps(facts))
    assert "algbw, found 400 GB/s, while size over time" in str(found["impossible"].reason)
    assert "impossible" not in look(json.dumps(facts | {"algbw_GBps": 100}))[0]


def test_a_machine():
    data = (FILES / "topology.xml").read_bytes()
    found, whole = look(
        data.replace(b'count="9"', b'count="900"')
        .replace(b'speed="200000"', b'speed="200000000"')
        .replace(b'speed="400000"', b'speed="400000000"')
    )
    reasons = [str(f.reason) for f in whole.findings if f.kind == "impossible"]
    assert "GPU0 nvlink, found 45000 GB/s, at most 1800 GB/s" in reasons[0]
    assert "NIC0, found 50000 GB/s, at most 200 GB/s" in reasons[1]
    connected = found.get("connected")
    assert connected is None or "22500" not in str(connected.reason)
    assert "GB/s, all of the node" not in str(found.get("nic_layout", ""))


def test_nccl_s_log_and_graph():
    log = (b"h:1:2 [0] NCCL INFO === System : maxBw 24.0 totalBw 24.0 ===\n"
           b"h:1:2 [0] NCCL INFO CPU/0 (1/2/-1)\n"
           b"h:1:2 [0] NCCL INFO + PCI[24000.0] - GPU/1000 (0)\n")  # fmt: skip
    found, _ = look(log)
    assert "PCI, found 24000 GB/s, at most 128 GB/s" in str(found["impossible"].reason)
    assert found["impossible"].evidence[0].line == 3
    graph = (FILES / "graph.xml").read_bytes().replace(b'speedintra="', b'speedintra="99999')
    found, _ = look(graph)
    assert "impossible" in found
    assert "99999" not in str(found["graphs"].reason)


def test_a_cluster_file():
    text = (
        write(cluster("dgx-h100"))
        .replace("450 GB/s oneway", "9000 GB/s oneway")
        .replace("900 GB/s duplex", "90000 GB/s duplex")
    )
    found, _ = look(text)
    assert "at most 1800 GB/s" in str(found["impossible"].reason)
