"""What NCCL's RAS and its Inspector write: what is read, and what is said of it."""

import json
import random
import re
from contextlib import suppress
from pathlib import Path

import pytest

from roundelay import RoundelayError
from roundelay.clusters import cluster
from roundelay.diagnose.given import Given
from roundelay.diagnose.hang.ras import ras_findings
from roundelay.diagnose.recognise import kinds_of
from roundelay.diagnose.times import averaged_findings, inspected_findings
from roundelay.diagnose.together import diagnose
from roundelay.formats.inspector import read_inspector
from roundelay.formats.inspector_prom import read_inspector_prom
from roundelay.formats.ras import Member, Part, read_ras
from roundelay.simulate.nccl import predict

FINE = """Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          4            1          8        8

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         4         2         1         2         8   RUNNING      OK
"""
BEHIND = (
    FINE.replace("OK", "MISMATCH")
    + """
Errors
======

Warnings
========

#0-0 (78db921d1c117b4a) MISMATCH
  Communicator ranks have different AllReduce operation counts
  7 ranks have launched up to operation 64
  Rank 7 has launched up to operation 60 -- GPU 3 managed by process 1650 on node node-b
"""
)
OLD = """#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different collective operation counts
  6 ranks have launched up to operation 6650
  2 ranks have launched up to operation 6649
  Rank 0 -- GPU 0 managed by process 4830 on node 192.0.2.1
  Rank 2 -- GPU 2 managed by process 4832 on node 192.0.2.1
  TIMEOUT
"""
LOST = """DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 34879 on node 192.0.2.13 managing GPU 5

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 3 ranks
  The missing ranks: 2, 5-6
"""


def kinds(findings):
    return {finding.kind: finding for finding in findings}


def look(*texts):
    files = [Given(f"f{i}", data=t.encode()) for i, t in enumerate(texts)]
    return kinds(diagnose(files, None, predict, cluster).findings)


def test_text():
    (report,), notes = read_ras(BEHIND.encode())
    assert (report.communicators, report.ranks, notes) == (4, 8, ())
    comm = report.comms["78db921d1c117b4a"]
    (spread,) = comm.spreads
    assert spread.what == "AllReduce operation counts"
    assert spread.parts == (
        Part("64", 7, ()), Part("60", 1, (Member(7, "node-b", 1650, "3"),)))  # fmt: skip
    assert report.hosts == {"node-b"}


def test_text_of_older_versions():
    ((report,), _) = read_ras(OLD.encode())
    (spread,) = report.comms["27a079b828ff1a75"].spreads
    assert [(part.value, part.ranks, len(part.members)) for part in spread.parts] == [
        ("6650", 6, 0), ("6649", 2, 2)]  # fmt: skip


def test_one_report_is_not_sure_and_several_are():
    (found,) = ras_findings([("f", read_ras(BEHIND.encode())[0][0])])
    assert (found.kind, found.confidence) == ("counts_differ", 0.5)
    assert "rank 7 (process 1650 on node-b, GPU 3), at 60, while 7 others are at 64" in str(
        found.reason)  # fmt: skip
    assert found.evidence[0].text.endswith("different AllReduce operation counts")
    hangs = look(BEHIND + BEHIND)["counts_differ"]
    assert hangs.confidence == 0.9
    assert "so it hangs" in str(hangs.reason)
    late = look(BEHIND, BEHIND.replace("64", "99").replace("60", "95"))["counts_differ"]
    assert late.confidence == 0.7
    assert "late again and again" in str(late.reason)


def test_lost_processes_and_missing_ranks():
    found = look(LOST)
    assert found["process_lost"].confidence == 0.95
    assert "process 34879 on 192.0.2.13, GPU 5" in str(found["process_lost"].reason)
    assert "rank 2, rank 5, rank 6" in str(found["ranks_missing"].reason)
    stopped = look(LOST.replace("DEAD", "INCOMPLETE"))
    assert "does not answer RAS" in str(stopped["process_lost"].reason)


def test_nothing_wrong():
    found = look(FINE)
    assert not found["ras_fine"].fault
    assert found["ras_fine"].figures["communicators"] == 4


def of_json(counts=(4, 4), missing=(), time="2026-01-01 00:00:00"):
    ranks = [
        {"rank": r, "host": "192.0.2.1", "pid": 100 + r, "cuda_dev": r, "nvml_dev": r,
         "status": {"init_state": 0}, "collective_counts": {"AllReduce": n, "Reduce": 0}}
        for r, n in enumerate(counts)
    ]  # fmt: skip
    comm = {"hash": "0xab", "size": len(counts) + len(missing), "ranks": ranks,
            "missing_ranks": list(missing)}  # fmt: skip
    report = {"nccl_version": "2.28.9", "timestamp": time, "communicators_count": 1,
              "communicators": [comm], "ras": {"timeouts_count": 1}}  # fmt: skip
    return json.dumps(report, indent=1)


def test_json():
    found = look(of_json())
    assert set(found) == {"ras_fine"}
    assert "1 process was slow" in str(found["ras_fine"].reason)
    again = of_json((10, 3), time="2026-01-01 00:00:09")
    found = look(again, of_json((10, 3)))["counts_differ"]
    assert found.confidence == 0.9
    assert "rank 1 (process 101 on 192.0.2.1, GPU 1), at 3" in str(found.reason)


def test_json_without_the_comma_that_nccl_forgets():
    gone = {"rank": 2, "host": "192.0.2.1", "pid": 9, "cuda_dev": 2, "nvml_dev": 2,
            "status": {"unresponsive": True, "considered_dead": False}}  # fmt: skip
    text = re.sub(r'("nvml_dev": 2),(\s*"status")', r"\1\2", of_json(missing=[gone]))
    with pytest.raises(ValueError, match="delimiter"):
        json.loads(text)
    event = {"event": "PEER_DEAD", "peer": {"host": "192.0.2.1", "pid": 9, "cuda_devs": [2]}}
    found = look(text + json.dumps(event) + "{")
    assert "rank 2" in str(found["ranks_missing"].reason)
    assert "process 9 on 192.0.2.1, GPU 2" in str(found["process_lost"].reason)


@pytest.mark.parametrize("data", [b"", b"hello", b"{", b'{"a": 1}', b"{" * 10**5])
def test_what_is_no_report(data):
    with pytest.raises(RoundelayError):
        read_ras(data)


# Inspector.


def line(rank, number, time_us, form="v4.0", ranks=4, operation="AllReduce"):
    head = {"id": "0x7f", "rank": rank, "n_ranks": ranks, "nnodes": 1}
    perf = {"coll": operation, "coll_sn": number, "coll_msg_size_bytes": 1 << 27,
            "coll_exec_time_us": time_us, "coll_timing_source": "kernel_gpu",
            "coll_algobw_gbs": (1 << 27) / time_us / 1e3,
            "coll_busbw_gbs": 350.0 + number}  # fmt: skip
    meta = {"hostname": f"host{rank}", "inspector_output_format_version": form}
    if form == "v4.3":
        stats = {"coll_records": 1, "coll_dropped_total": 3 * number}
        marker = {"header": head, "metadata": meta, "dump_stats": stats}
        return "\n".join(map(json.dumps, (marker, {"coll_perf": perf})))
    if form == "flat":
        return json.dumps(head | {"hostname": f"host{rank}", "coll_perf": perf})
    return "0: " + json.dumps({"header": head, "metadata": meta, "coll_perf": perf})


@pytest.mark.parametrize("form", ["v4.0", "v4.3", "flat"])
def test_calls_of_every_format(form):
    data = "\n".join(line(r, n, 500.5, form) for r in range(2) for n in (1, 2)).encode()
    assert kinds_of(Given("x", data=data[data.find(b"{") :])) == ("inspector",)
    found = read_inspector(data)
    assert [call[:3] for call in found.calls] == [("0x7f", r, 4) for r in (0, 0, 1, 1)]
    assert found.calls[0][4:10] == ("host0", "all_reduce", 1, 1 << 27, 500.5, 351)
    assert found.calls[0].algbw == pytest.approx((1 << 27) / 500.5 / 1e3)
    assert found.dropped == (12 if form == "v4.3" else 0)
    told = kinds(inspected_findings([("f", found)]))["inspected"]
    assert "all_reduce 352 GB/s (128 MiB, 4 calls)" in str(told.reason)
    assert ("overwritten" in str(told.reason)) == (form == "v4.3")


def test_who_comes_last_has_the_shortest_kernel():
    data = "\n".join(
        line(r, n, 500 if r == 2 else 900) for r in range(4) for n in range(30)
    ).encode()  # fmt: skip
    found = kinds(inspected_findings([("f", read_inspector(data))]))["late_rank"]
    assert found.fault
    assert found.subject == "rank 2, group 0x7f"
    assert found.figures["last"] == 30
    assert found.figures["late_ms"] == 0.4
    assert found.figures["waited_ms"] == pytest.approx(30 * 3 * 0.4)
    assert found.figures["host"] == "host2"
    few = "\n".join(line(r, n, 500 + r) for r in range(2) for n in range(5)).encode()
    assert set(kinds(inspected_findings([("f", read_inspector(few))]))) == {"inspected"}


def test_figures_of_calls_that_cannot_be():
    head = {"id": "1", "rank": 0, "n_ranks": 2, "nnodes": 1}

    def call(number, size, time_us, algbw, busbw):
        perf = {
            "coll": "AllReduce",
            "coll_sn": number,
            "coll_msg_size_bytes": size,
            "coll_exec_time_us": time_us,
            "coll_algobw_gbs": algbw,
            "coll_busbw_gbs": busbw,
        }
        return json.dumps({"header": head, "coll_perf": perf})

    rows = [(1, 1000, 10, 0.1, 0.1), (2, 1000, -5, 0.1, 0.1), (3, 10**9, 1, 10**6, 10**6),
            (4, 10**6, 100, 99.0, 99.0), (5, 10**6, 100, 10.0, -10.0)]  # fmt: skip
    data = "\n".join(call(*row) for row in rows).encode()
    found = inspected_findings([("f", read_inspector(data))])
    odd = [f for f in found if f.kind == "impossible"]
    assert [f.evidence[0].line for f in odd] == [3, 2, 5, 4]
    assert "found 1000000 GB/s, at most 3600 GB/s" in str(odd[0].reason)
    assert "found -5 us" in str(odd[1].reason)
    assert "found 99 GB/s, while size over time of the same row is 10 GB/s" in str(odd[3].reason)
    assert kinds(found)["inspected"].figures["calls"] == 1


# Inspector, for Prometheus.

PROM = (Path(__file__).parent / "files" / "inspector.prom").read_bytes()


def test_series():
    series, notes = read_inspector_prom(PROM.splitlines())
    assert (len(series), notes) == (5, ())
    first, mean = next(iter(series.items()))
    assert first == ("node-a", "GPU0", "0xab", "7", 4, 1, "all_reduce", "1-2GB", "Ring_simple")
    assert mean == (340.5, 9100.0, 3)
    assert list(series)[4].operation == "send"
    found = kinds(diagnose([Given("x", data=PROM)], None, predict, cluster).findings)
    assert "all_reduce 640 GB/s (1-2GB, Ring_simple)" in str(found["inspected"].reason)
    assert "5 series of 4 cards and 1 communicator" in str(found["inspected"].reason)
    assert found["late_rank"].subject == "node-a GPU3, group 0xab"


def test_series_that_cannot_be():
    data = PROM.replace(b"} 341", b"} 99999").replace(b"} 9200", b"} nan")
    series, notes = read_inspector_prom(data.splitlines())
    assert [note.line for note in notes] == [8]
    found = kinds(averaged_findings([("f", series)]))
    assert "found 99999 GB/s, at most 3600" in str(found["impossible"].reason)
    with pytest.raises(RoundelayError, match="no series of NCCL Inspector"):
        read_inspector_prom([b"nccl_other 1\n"])


def test_odd_lines_are_named():
    data = f"{line(0, 1, 5)}\n{{broken\nhello\n{line(0, 2, 5)}".encode()
    found = read_inspector(data)
    assert len(found.calls) == 2
    assert found.notes[0].line == 2
    with pytest.raises(RoundelayError, match="no call of NCCL Inspector"):
        read_inspector(b'{"header": {}}\n')


def test_changed_bytes_are_read_or_refused():
    chance = random.Random(5)
    seeds = [BEHIND, OLD, LOST, of_json((1, 2)), line(0, 1, 5, "v4.3")]
    for _ in range(1500):
        data = bytearray(chance.choice(seeds).encode())
        for _ in range(chance.randint(1, 5)):
            at = chance.randrange(len(data))
            data[at : at + chance.choice((0, 1, 9))] = chance.choice(
                (b"", b"9" * 30, b"{", b"\xff", b"-1", b'"', data[:40]))  # fmt: skip
        for read in (read_ras, read_inspector):
            with suppress(RoundelayError):
                read(bytes(data))
        with suppress(RoundelayError):
            look(data.decode("utf-8", "replace"))
