"""Trace files: what a viewer finds in them, and that what was written can be read."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_timeline import sample

from roundelay import RoundelayError
from roundelay.formats.chrome import read_chrome, write_chrome
from roundelay.timeline import COLUMNS, OWN, Act, Timeline, What


def events(timeline):
    return json.loads(write_chrome(timeline))["traceEvents"]


def same(a, b):
    for name in COLUMNS[:-1]:
        assert getattr(a, name).tolist() == getattr(b, name).tolist(), name
    assert [_act(a, i) for i in a.act] == [_act(b, i) for i in b.act]
    assert (dict(a.calls), list(a.names), list(a.nodes), a.lost) == (
        dict(b.calls), list(b.names), list(b.nodes), b.lost,
    )  # fmt: skip


def _act(timeline, index):
    return None if index < 0 else timeline.acts[index]


def test_a_viewer_finds_processes_threads_slices_and_arrows():
    found = events(sample())
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in found if e["name"] == "thread_name"}
    assert threads == {(0, 0): "rank 0", (0, 1): "rank 1", (1, 2): "rank 2",
                       (0, 3): "switch 0 (in rank 0)"}  # fmt: skip
    assert {e["args"]["name"] for e in found if e["name"] == "process_name"} == {"node 0", "node 1"}
    slices = [e for e in found if e["ph"] == "X"]
    assert [e["name"] for e in slices] == [
        "all_reduce of 10 uint8, sum (x)", "send chunk 3 to 1, 2",
        "all_reduce of 10 uint8, sum (x)", "copy chunks 3-4 from 0", "wait",
        "reduce 3 chunks from 0", "wait",
    ]  # fmt: skip
    copy, wait = slices[3], slices[4]
    assert (copy["ts"], copy["dur"], wait["ts"], wait["dur"]) == (0.003, 0.006, 0.003, 0.005)
    assert copy["args"]["bytes"] == 10
    arrows = [e for e in found if e["ph"] in "sf"]
    assert [(e["ph"], e["tid"], e["id"]) for e in arrows] == [
        ("s", 0, 0), ("f", 1, 0), ("s", 0, 1), ("f", 2, 1)
    ]  # fmt: skip
    for e in arrows:  # an arrow begins and ends inside the slice it belongs to
        inside = [s for s in slices if s["tid"] == e["tid"] and s["cat"] not in ("call", "wait")
                  and s["ts"] <= e["ts"] <= s["ts"] + s["dur"]]  # fmt: skip
        assert inside, e


def test_it_can_be_read_again():
    timeline = sample()
    same(read_chrome(write_chrome(timeline)), timeline)
    late = timeline.shifted(3_000_000_000_000_007)  # a machine that has been up for 35 days
    same(read_chrome(write_chrome(late)), late)
    same(
        read_chrome(write_chrome(Timeline.empty(["rank 0"], [0]))), Timeline.empty(["rank 0"], [0])
    )


@st.composite
def timelines(draw):
    n = draw(st.integers(1, 4))
    who = st.integers(0, n - 1)
    acts = draw(st.lists(st.builds(
        Act, st.integers(0, 5), st.lists(st.one_of(st.just(OWN), who), min_size=1).map(tuple),
        st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1).map(tuple)),
        min_size=1, max_size=4))  # fmt: skip
    rows = []
    for _ in range(draw(st.integers(0, 8))):
        begin = draw(st.integers(0, 10**15))
        ready, end = sorted(begin + draw(st.integers(0, 10**10)) for _ in range(2))
        what = draw(st.sampled_from(What))
        if what == What.CALL:
            rows.append((draw(who), draw(st.integers(1, 9)), what, -1, 0, -1, 0, 0, begin, begin,
                         end, -1))  # fmt: skip
        else:
            rows.append((draw(who), draw(st.integers(1, 9)), what, draw(who), 2,
                         draw(st.integers(0, 9)), draw(st.integers(0, 9)),
                         draw(st.integers(0, 10**12)), begin, ready, end,
                         draw(st.integers(-1, len(acts) - 1))))  # fmt: skip
    columns = np.array(rows, np.int64).reshape(-1, 12).T
    calls = {int(r[1]): f"call {r[1]}" for r in rows if r[2] == What.CALL}
    names = [f"rank {r}" for r in range(n)]
    nodes = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    return Timeline(*columns, calls=calls, names=names, nodes=nodes, acts=acts,
                    lost=draw(st.integers(0, 9)))  # fmt: skip


@given(timelines())
def test_any_timeline_can_be_read_again(timeline):
    same(read_chrome(write_chrome(timeline)), timeline)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"{", b"\xff", b"[]", b"{}", b'{"traceEvents":[]}',
        b'{"traceEvents":[{"name":"x","ph":"X","cat":"send","args":{}}],"otherData":{"roundelay":1}}',
        b'{"traceEvents":[],"otherData":{"roundelay":2}}',
        b'{"traceEvents":[{"name":"thread_name","ph":"M"}],"otherData":{"roundelay":1}}',
        b'{"traceEvents":[{"name":"x","ph":"X","cat":"call","tid":4,"args":{"call":1}}],'
        b'"otherData":{"roundelay":1}}',
    ],
)  # fmt: skip
def test_other_files_are_refused(data):
    with pytest.raises(RoundelayError, match=r"trace file|name and a node"):
        read_chrome(data)
