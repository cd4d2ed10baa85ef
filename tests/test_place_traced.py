"""Jobs from traces: groups, bytes and calls of a step, from all ranks or by symmetry from one."""

from __future__ import annotations

import json
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kineto_traces import nccl, step, trace

from roundelay import cli
from roundelay.cli.traced import read
from roundelay.errors import RoundelayError
from roundelay.formats.chakra import Attribute, Graph, Node, NodeKind, write_chakra
from roundelay.formats.chrome import write_chrome
from roundelay.formats.flight import Call, Dump
from roundelay.formats.flight_write import write_flight
from roundelay.formats.timeline import write_timeline
from roundelay.place import parallel, read_job
from roundelay.place.chains import chains
from roundelay.place.heard import Call as OneCall
from roundelay.place.heard import Heard
from roundelay.place.reading import write_job
from roundelay.place.traced import traced_job
from roundelay.timeline import COLUMNS, Timeline

T, D, P = 4, 2, 3
"""Degrees of tensor, data and pipeline, in Megatron-LM's order of ranks."""
RANKS = T * D * P
MB = 1 << 20


def own(rank):
    """The groups of a rank."""
    grid = np.arange(RANKS).reshape(P, D, T)
    p, d, t = np.argwhere(grid == rank)[0]
    return grid[p, d, :].tolist(), grid[p, :, t].tolist(), grid[:, d, t].tolist()


def profile(rank, steps=2):
    """What a rank does: per step 6 tensor calls, 1 data call, and 2 messages to each neighbour."""
    tensor, data, pipeline = own(rank)
    events, seq = [], 0
    at = pipeline.index(rank)
    near = [p for p in (at - 1, at + 1) if 0 <= p < P]

    def call(**more):
        nonlocal seq
        seq += 1
        return nccl(100 * seq, 100 * seq + 50, seq, **more)

    for number in range(steps):
        events.append(step(number, 5000 * number, 5000 * number + 4999))
        events += [call(ranks=tensor, group="1", nelems=MB) for _ in range(6)]
        events.append(call(ranks=data, group="2", nelems=8 * MB))
        for p in near:
            both = (("send", "Dst Rank"), ("recv", "Src Rank"))
            events += [call(ranks=pipeline, group="3", nelems=MB // 2, name=name,
                            **{field: pipeline[p]})
                       for name, field in both for _ in range(2)]  # fmt: skip
        events.append(call(ranks=list(range(RANKS)), group="0", nelems=1, name="barrier"))
    return trace(events, rank, RANKS)


def written(folder, ranks=range(RANKS)):
    folder.mkdir(exist_ok=True)
    for rank in ranks:
        (folder / f"rank{rank}.json").write_bytes(profile(rank))
    return folder


def said(job):
    """What a job exchanges, as plain numbers."""
    return {(e.name.split()[0], e.pattern, tuple(map(tuple, e.groups.tolist())), e.size, e.calls)
            for e in job.exchanges}  # fmt: skip


def as_it_is():
    degrees = parallel("job", {"tensor": T, "data": D, "pipeline": P},
                       volumes={"tensor": 1, "data": 1, "pipeline": 1})  # fmt: skip
    groups = {e.name: tuple(map(tuple, e.groups.tolist())) for e in degrees.exchanges}
    return {("all_reduce", "all_reduce", groups["tensor"], 4.0 * MB, 6),
            ("all_reduce", "all_reduce", groups["data"], 32.0 * MB, 1),
            ("send", "chain", groups["pipeline"], 2.0 * MB, 2)}  # fmt: skip


def test_all_ranks_of_a_profiler(tmp_path):
    job = read(str(written(tmp_path / "job")))
    assert (job.name, job.ranks, job.layout) == ("job", RANKS, (T, D, P))
    assert said(job) == as_it_is()
    assert [str(note) for note in job.notes] == [
        "what it exchanges is told by the traces of 24 of 24 ranks",
        "of a step counts the mean of 2",
    ]


@pytest.mark.parametrize("rank", [0, 9, 23])
def test_one_rank_tells_of_all_by_symmetry(tmp_path, rank):
    """Also a rank of the last stage, that only speaks to the stage before it."""
    file = tmp_path / "one.json"
    file.write_bytes(profile(rank))
    job = read(str(file))
    assert said(job) == as_it_is()
    assert "repeat these" in str(job.notes[-1])


def test_groups_that_others_do_not_follow_from(tmp_path):
    file = tmp_path / "rank0.json"
    file.write_bytes(trace([nccl(0, 9, ranks=(0, 1, 5), group="1")], 0, 6))
    with pytest.raises(RoundelayError, match=r"all_reduce among 0,1,5, .*expected even steps that "
                                             "fill all 6 ranks, or a folder"):  # fmt: skip
        read(str(file))
    file.write_bytes(trace([nccl(0, 9, ranks=(0, 4), group="1")], 0, 6))
    with pytest.raises(RoundelayError, match="among 0,4"):
        read(str(file))
    for rank in range(6):
        pair = (0, 1, 5) if rank in (0, 1, 5) else (2, 3, 4)
        (tmp_path / f"rank{rank}.json").write_bytes(trace([nccl(0, 9, ranks=pair)], rank, 6))
    assert [e.groups.tolist() for e in read(str(tmp_path)).exchanges] == [[[2, 3, 4], [0, 1, 5]]]


def test_calls_of_like_bytes_are_one_exchange_and_others_their_own(tmp_path):
    """Gradients in buckets, a loss of 4 bytes, and a collective that has no form here."""
    sizes = [MB, MB, MB + 4096, 1]
    events = [nccl(10 * i, 10 * i + 5, i, nelems=n) for i, n in enumerate(sizes)]
    events.append(nccl(90, 95, 9, name="gather"))
    (tmp_path / "rank0.json").write_bytes(trace(events))
    job = read(str(tmp_path / "rank0.json"))
    found = sorted((e.size, e.calls) for e in job.exchanges)
    assert found == [(4.0, 1), (4 * (3 * MB + 4096) / 3, 3)]
    assert str(job.notes[-1]).endswith("no form here: gather")
    assert "no steps are marked" in str(job.notes[1])


def heard(calls, groups, rank=0):
    return Dump(f"{rank}", rank, "2.10", groups, {}, {}, {}, tuple(calls), ())


def recorded(group, sequence, operation, inputs, outputs, between=False):
    return Call(group, sequence, operation, inputs, outputs, "BFloat16", "completed", True,
                between, sequence, "")  # fmt: skip


def test_dumps_of_the_flight_recorder(tmp_path):
    """Peers of messages are places in their group."""
    for rank in range(4):
        pair, at = ((0, 2), (1, 3))[rank % 2], rank // 2
        calls = [
            recorded("w", 1, "_all_gather_base", ((512,),), ((2048,),)),
            recorded("w", 2, "_reduce_scatter_base", ((4096,),), ((1024,),)),
            recorded("p", 1, ("send 0->1", "recv 1<-0")[at], ((700,),), ((700,),), between=True),
        ]
        dump = heard(calls, {"w": (0, 1, 2, 3), "p": pair}, rank)
        (tmp_path / f"dump_{rank}").write_bytes(write_flight(dump, as_json=rank % 2 == 0))
    job = read(str(tmp_path))
    assert said(job) == {("all_gather", "all_gather", ((0, 1, 2, 3),), 4096.0, 1),
                         ("reduce_scatter", "reduce_scatter", ((0, 1, 2, 3),), 8192.0, 1),
                         ("send", "chain", ((0, 2), (1, 3)), 1400.0, 1)}  # fmt: skip


def chakra(*nodes, listed=""):
    found = [Node(0, "## process_group:init ##", NodeKind.METADATA, inputs=(listed, "", ""))]
    for i, (kind, more) in enumerate(nodes, 1):
        attributes = {key: Attribute("string" if isinstance(value, str) else "int64", value)
                      for key, value in more.items()}  # fmt: skip
        found.append(Node(i, "n", kind, attributes=attributes))
    return write_chakra(Graph("chakra", "0.0.4", tuple(found)))


def test_execution_traces(tmp_path):
    """An all-gather's size is a rank's own piece; groups are listed in a node of PyTorch's."""
    listed = '[["[{\\"pg_name\\": \\"7\\", \\"ranks\\": [0, 1], \\"group_size\\": 2}]"]]'
    for rank in range(4):
        text = listed if rank < 2 else listed.replace("0, 1", "2, 3")
        peer = {"comm_dst": rank + 1} if rank % 2 == 0 else {"comm_src": rank - 1}
        kind = NodeKind.SEND if rank % 2 == 0 else NodeKind.RECEIVE
        data = chakra((NodeKind.COLLECTIVE, {"comm_type": 2, "comm_size": 1000, "pg_name": "7"}),
                      (NodeKind.COLLECTIVE, {"comm_type": 0, "comm_size": 4096}),
                      (kind, {"comm_size": 600} | peer), listed=text)  # fmt: skip
        (tmp_path / f"chakra.{rank}.et").write_bytes(data)
    assert said(read(str(tmp_path))) == {
        ("all_gather", "all_gather", ((0, 1), (2, 3)), 2000.0, 1),
        ("all_reduce", "all_reduce", ((0, 1, 2, 3),), 4096.0, 1),
        ("send", "chain", ((0, 1), (2, 3)), 600.0, 1),
    }


def test_execution_traces_of_pytorch(tmp_path):
    """The observer's nodes say where a group begins, its steps and its size."""
    about = {"collective_name": "allreduce", "dtype": "Float", "in_msg_nelems": 100,
             "out_msg_nelems": 100, "global_rank_start": 0, "global_rank_stride": 2,
             "pg_size": 2, "pg_name": "1"}  # fmt: skip
    attrs = [{"name": k, "type": "", "value": v} for k, v in about.items()]
    world = [a | {"value": {"global_rank_stride": 1, "pg_size": 4}.get(a["name"], a["value"])}
             for a in attrs]  # fmt: skip
    nodes = [{"id": i, "name": "record_param_comms", "ctrl_deps": 1, "attrs": a}
             for i, a in enumerate((attrs, world), 2)]  # fmt: skip
    file = tmp_path / "trace_0.json"
    file.write_text(json.dumps({"schema": "1.1.1-chakra.0.0.4", "nodes": nodes}))
    assert said(read(str(file))) == {
        ("all_reduce", "all_reduce", ((0, 2), (1, 3)), 400.0, 1),
        ("all_reduce", "all_reduce", ((0, 1, 2, 3),), 400.0, 1),
    }


def ours():
    """A timeline of 3 ranks that call twice, beside a switch that helps."""
    columns = {name: np.zeros(6, np.int64) for name in COLUMNS}
    columns |= {"rank": [0, 1, 2] * 2, "call": [5] * 3 + [6] * 3, "what": [3] * 6,
                "peer": [-1] * 6, "stage": [-1] * 6, "act": [-1] * 6, "end": [9] * 6}  # fmt: skip
    calls = {5: "all_reduce of 1024 float32, sum (two_shot)", 6: "broadcast of 300 uint8, root 1"}
    return Timeline(**columns, calls=calls, names=[*(f"rank {r}" for r in range(3)), "switch 0"],
                    nodes=[0] * 4)  # fmt: skip


@pytest.mark.parametrize("write", [write_timeline, write_chrome])
def test_our_own_timelines(tmp_path, write):
    file = tmp_path / "t"
    file.write_bytes(write(ours()))
    assert said(read(str(file))) == {
        ("all_reduce", "all_reduce", ((0, 1, 2),), 4096.0, 1),
        ("broadcast", "all_gather", ((0, 1, 2),), 300.0, 1),
    }


def test_circles_and_branches_are_lots_of_pairs():
    ring = [(0, 1), (1, 2), (2, 3), (0, 3)]
    lots = chains(ring)
    assert sorted(pair for lot in lots for pair in lot) == sorted(ring)
    assert len(lots) == 2
    star = [(0, 1), (0, 2), (0, 3)]
    assert sorted(map(len, chains(star))) == [1, 1, 1]


@given(st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda p: p[0] < p[1])))
def test_every_pair_is_in_one_chain(pairs):
    lots = chains(sorted(pairs))
    found = [tuple(sorted(p)) for lot in lots for chain in lot for p in pairwise(chain)]
    assert sorted(found) == sorted(pairs)
    for lot in lots:
        ranks = [rank for chain in lot for rank in chain]
        assert len(ranks) == len(set(ranks))


# What is no job

groups = st.lists(st.integers(0, 9), max_size=5).map(sorted).map(tuple)
names = st.sampled_from(["all_reduce", "broadcast", "send", "recv", "gather", ""])
calls = st.builds(OneCall, names, groups,
                  st.sampled_from([-1, 0, 1, 5, 4096]), st.integers(-1, 9))  # fmt: skip
files = st.builds(Heard, st.integers(-1, 7), st.sampled_from([0, 4, 8]), st.integers(0, 3),
                  st.dictionaries(calls, st.integers(1, 5), max_size=6).map(Counter))  # fmt: skip


@given(st.lists(files, min_size=1, max_size=5))
@settings(max_examples=300, deadline=None)
def test_whatever_is_heard_is_a_job_or_an_error(heard):
    try:
        job = traced_job("x", heard)
    except RoundelayError:
        return
    assert job.exchanges
    assert int(np.prod(job.layout)) == job.ranks
    assert "[[exchange]]" in write_job(job)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"rank0.json": trace([nccl(0, 9)], 0, 2), "rank1.json": trace([nccl(0, 9)], 1, 4)},
         "jobs of 2, 4 ranks"),
        ({"rank0.json": trace([nccl(0, 9, ranks=(0, 5))], 0, 2)}, "rank 5 in a job of 2 ranks"),
        ({"rank0.json": trace([nccl(0, 9, name="barrier")], 0, 2)}, "no call in it whose ranks"),
        ({"rank0.json": trace([nccl(0, 9, name="gather")], 0, 2)}, r"known \(gather\)"),
        ({"rank0.json": trace([nccl(0, 9, dtype="?")], 0, 2)}, r"known \(all_reduce\)"),
        ({"trace.et": chakra((NodeKind.COLLECTIVE, {"comm_type": 0, "comm_size": 1}))},
         "a file doesn't say which rank it is of"),
        ({"notes.txt": b"hello"}, "nothing that tells of calls"),
        ({"rank0.json": trace([nccl(0, 9)], 0, 2), "chakra.1.et": chakra()},
         "execution_trace, trace; expected files of one of these kinds"),
        ({"rank0.json": trace([nccl(0, 9, ranks=(0, 1), name="send", **{"Dst Rank": 3})], 0, 4)},
         "rank 0 and rank 3: send in a group of 0,1"),
    ],
)  # fmt: skip
def test_what_is_no_job(tmp_path, files, said):
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(RoundelayError, match=said):
        read(str(tmp_path))


def test_a_long_text_of_numbers_is_no_file():
    with pytest.raises(RoundelayError, match="expected key=value"):
        read("tensor=2," + "x" * 5000)


# The commands


def run(capsys, *words):
    status = cli.run(list(words))
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize(
    ("lang", "told"),
    [("en", "taken to repeat these: 0-3; 0,4; 0,8,16"), ("zh", "视为与这些组相同的重复：0-3")],
)
def test_a_trace_is_placed_and_kept_as_a_job(tmp_path, capsys, lang, told):
    file, kept = tmp_path / "rank0.json", tmp_path / "kept.toml"
    file.write_bytes(profile(0))
    words = ("place", str(file), "--cluster", "dgx-h100:4", "--lang", lang)
    status, out, _ = run(capsys, *words, "--write-job", str(kept))
    assert status == 0
    assert told in out
    again = read_job(str(kept))
    assert (said(again), again.layout) == (as_it_is(), (T, D, P))
    status, json_out, _ = run(capsys, "order", str(kept), "--cluster", "dgx-h100:4", "--nodes",
                              "0-2", "--json")  # fmt: skip
    assert status == 0
    assert len(json.loads(json_out)["ranks"]) == RANKS


def test_any_job_can_be_kept(tmp_path):
    job = parallel(
        'a "b"\n', {"tensor": 2, "data": 2}, volumes={"tensor": 5, "data": 7}, sliced=True
    )
    file = tmp_path / "job.toml"
    file.write_text(write_job(job))
    again = read_job(str(file))
    assert (again.name, again.sliced, said(again)) == (job.name, True, said(job))


if DATA := os.environ.get("ROUNDELAY_DATA"):
    CASES = Path(DATA, "cases")

    def test_real_traces():
        job = read(str(CASES / "trace/01-kineto-gloo-cpu-rank34-of-300.json"))
        assert job.ranks == 300
        assert {e.pattern for e in job.exchanges} == {"all_reduce"}
        assert {e.size for e in job.exchanges} >= {4 * 321271.0}
        for name in ("03-kineto-rank-only-info", "07-chakra-json-small", "09-pytorch-et-pt2"):
            with pytest.raises(RoundelayError):
                read(str(CASES / f"trace/{name}.json"))
        job = read(str(CASES / "hang/17-fr-gloo-real-ok"))
        assert (job.ranks, {(e.pattern, e.size, e.calls) for e in job.exchanges}) == (
            3, {("all_reduce", 64.0, 1), ("all_gather", 36.0, 1), ("all_gather", 64.0, 1),
                ("reduce_scatter", 64.0, 1)})  # fmt: skip
