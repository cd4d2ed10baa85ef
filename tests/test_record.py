"""Programs run without data, and what is said of their order, of dumps' and of traces'."""

import json
import time
from types import MappingProxyType

import numpy as np
import pytest
from kineto_traces import gemm, nccl, trace

import roundelay
from roundelay import RoundelayError, cli
from roundelay.diagnose.hang.order import Use, Wait
from roundelay.diagnose.hang.orders import dump_findings, program_findings, trace_findings
from roundelay.diagnose.hang.record import record, record_script
from roundelay.formats.flight import read_flight
from roundelay.formats.kineto import read_kineto


def kinds(findings):
    return {finding.kind: finding for finding in findings}


def said(program, ranks=2):
    return kinds(program_findings(record(program, ranks).programs, "p.py"))


def ones(n=4):
    return np.ones(n, np.float32)


def test_results_have_the_shapes_of_a_real_communicator():
    def program(comm):
        assert (comm.ranks, comm.nodes, comm.name) == (3, ((0, 1, 2),), "world")
        x = ones(6)
        assert comm.all_reduce(x) is x
        assert comm.all_gather(x).shape == (18,)
        assert comm.reduce_scatter(x).shape == (2,)
        assert comm.all_to_all(x).shape == (6,)
        assert (comm.gather(x) is None) == (comm.rank != 0)
        out = ones(2)
        assert comm.scatter(x if comm.rank == 1 else None, out, root=1) is out
        assert comm.broadcast(x, root=2) is x
        comm.barrier()
        handle = comm.all_gather(x, counts=[6, 6, 6], async_op=True)
        assert handle.done()
        assert handle.wait(1).shape == (18,)
        with comm.split(0) as inner:
            assert inner.ranks == 3
        assert comm.split(-1) is None

    (found,) = program_findings(record(program, 3).programs, "p.py")
    assert found.kind == "no_deadlock"
    assert found.figures == {"calls": 9, "groups": 1, "ranks": 3}


def test_the_record_of_a_rank():
    def program(comm):
        handle = comm.split(0, key=-comm.rank).reduce(ones(), root=1, async_op=True)
        comm.barrier()
        handle.wait()

    notes = record(program, 2).programs[0]
    group = "world.1.0", (1, 0)
    assert [note[:3] if isinstance(note, Use) else note for note in notes] == [
        (group, 1, False), (("world", (0, 1)), 1, True), Wait(group, 1)]  # fmt: skip
    assert notes[0].what == "reduce sum root 1 float32 x 4"
    assert "test_record.py:" in notes[0].where


def two_orders(comm, wait):
    a, b = comm.split(0), comm.split(0)
    groups = (a, b) if comm.rank else (b, a)
    handles = [group.all_reduce(ones(), async_op=not wait) for group in groups]
    if not wait:
        for handle in handles:
            handle.wait()


def test_two_groups_in_two_orders():
    found = said(lambda comm: two_orders(comm, True))["deadlock"]
    assert found.fault
    assert found.figures["length"] == 2
    assert "world.1.0#1 -> world.2.0#1" in found.figures["circle"]
    assert "test_record.py:" in found.evidence[0].text
    assert set(said(lambda comm: two_orders(comm, False))) == {"may_deadlock"}


def test_calls_that_differ_or_are_missing():
    found = said(lambda comm: comm.all_reduce(ones(4 + comm.rank)))["calls_differ"]
    assert "all_reduce sum float32 x 5 (rank 1)" in found.figures["parts"]
    assert "calls_differ" in said(lambda comm: comm.broadcast(ones(), root=comm.rank))
    found = said(lambda comm: comm.rank or comm.barrier())["unmatched_call"]
    assert "rank 1 ends without it" in str(found.reason)


def test_what_cannot_be_recorded():
    with pytest.raises(RoundelayError, match="rank 1 ended by ZeroDivisionError"):
        record(lambda comm: 1 // (1 - comm.rank), 2)
    with pytest.raises(RoundelayError, match="calls split in world, and rank 1 has ended without"):
        record(lambda comm: comm.rank or comm.split(0), 2)
    with pytest.raises(RoundelayError, match=r"not ended within 0\.1 s"):
        record(lambda comm: time.sleep(2 * comm.rank), 2, timeout=0.1)
    with pytest.raises(RoundelayError, match="0 ranks; expected 1 to"):
        record(lambda comm: None, 0)
    with pytest.raises(RoundelayError, match="elements over 2 ranks"):
        record(lambda comm: comm.reduce_scatter(ones(3)), 2)


SCRIPT = """
import sys
import numpy as np
import roundelay
comm = roundelay.init(timeout=5)
a, b = comm.split(0), comm.split(0)
for group in (a, b) if comm.rank else (b, a):
    group.all_reduce(np.ones(3))
print("done", comm.rank)
sys.exit(0)
"""


def test_a_script_and_the_command(tmp_path, capsys):
    path = tmp_path / "p.py"
    path.write_text(SCRIPT)
    init = roundelay.init
    assert len(record_script(path, 3).programs) == 3
    assert roundelay.init is init
    assert capsys.readouterr().out.count("done") == 3
    words = ["diagnose", "--program", str(path), "--lang", "en"]
    assert cli.run([*words, "-n", "2", "--json"]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["findings"][0]["kind"] == "deadlock"
    assert "done 1" in err
    assert cli.run(words) == 2
    assert cli.run(["diagnose"]) == 2
    assert cli.run(["diagnose", str(path), "-n", "2"]) == 2
    path.write_text("def")
    assert cli.run([*words, "-n", "2"]) == 2
    assert "no Python program" in capsys.readouterr().err


# Files.


def dump(rank, order, done):
    config = {name: {"ranks": "[0, 1]"} for name in "ab"}
    entries = [
        {"process_group": [name, name], "collective_seq_id": 5, "profiling_name": "nccl:all_reduce",
         "state": "completed" if done else "started", "record_id": i}
        for i, name in enumerate(order)
    ]  # fmt: skip
    value = {"version": "2.10", "pg_config": config, "entries": entries}
    return read_flight(json.dumps(value).encode(), f"rank{rank}")[0]


@pytest.mark.parametrize("done", [True, False])
def test_dumps_in_two_orders(done):
    assert dump_findings([dump(0, "ab", done), dump(1, "ab", done)]) == []
    (found,) = dump_findings([dump(0, "ab", done), dump(1, "ba", done)])
    assert (found.kind, found.area, found.confidence) == ("may_deadlock", "hang",
                                                          0.6 if done else 0.9)  # fmt: skip
    assert ("likeliest reason" in str(found.reason)) != done
    assert {e.file for e in found.evidence} == {"rank0", "rank1"}
    # A call that is coalesced of several has one number, again and again.
    assert dump_findings([dump(0, "aba", done), dump(1, "ab", done)]) == []


def test_traces_in_two_orders():
    def of(rank, order):
        calls = [nccl(i, 90, 3, group=name, stream=ord(name)) for i, name in enumerate(order)]
        return read_kineto(trace([gemm(0, 5), *calls], rank), f"t{rank}")

    assert trace_findings([of(0, "ab"), of(1, "ab")]) == []
    (found,) = trace_findings([of(0, "ab"), of(1, "ba")])
    assert not found.fault
    assert "did not happen here" in str(found.reason)
    assert found.figures == MappingProxyType(
        {"circle": "rank 0: a#3 -> b#3; rank 1: b#3 -> a#3", "length": 2}
    )
