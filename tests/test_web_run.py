"""A real run, as the page gets it: the figures are those of the timeline."""

import json

import numpy as np
import pytest

from roundelay.errors import RoundelayError
from roundelay.formats.chrome import write_chrome
from roundelay.formats.timeline import write_timeline
from roundelay.timeline import COLUMNS, What
from roundelay.web.data import answer
from roundelay.web.data.run import drawn, run
from roundelay.web.known import known as known_of
from roundelay.web.runs import EXAMPLES, examples, open_runs
from roundelay.web.states import asked


@pytest.fixture(params=EXAMPLES)
def name(request):
    return request.param


def column(run, key, kind):
    return np.frombuffer(run.columns[key], kind)


def test_events_are_the_timelines(name):
    t, found = examples()[name], run(examples(), name)
    begin, wait = column(found, "begin", "<f8"), column(found, "wait", "<f4")
    assert found.first[-1] == len(t) == len(begin)
    for rank in range(4):
        mine = slice(found.first[rank], found.first[rank + 1])
        own = t.of(rank)
        assert sorted(begin[mine]) == sorted(own.begin - t.span[0])
        assert (np.diff(begin[mine]) >= 0).all()
        moves = column(found, "kind", "<u1")[mine] != What.CALL
        assert wait[mine][moves].sum() == pytest.approx(t.waits[rank], rel=1e-5)


def test_waits_add_up(name):
    t, found = examples()[name], run(examples(), name)
    for rank in range(4):
        assert sum(w.ns for w in found.waits if w.rank == rank) == t.waits[rank]
    assert [w.ns for w in found.waits] == sorted((w.ns for w in found.waits), reverse=True)
    assert all(w.rank != w.peer for w in found.waits)


def test_causes_are_sends_of_others(name):
    found = run(examples(), name)
    cause, kind = column(found, "cause", "<i4"), column(found, "kind", "<u1")
    at = np.flatnonzero(cause >= 0)
    rank = np.searchsorted(found.first, np.arange(len(cause)), "right") - 1
    assert len(at) > 100
    assert (kind[cause[at]] == What.SEND).all()
    assert (rank[cause[at]] != rank[at]).all()


def test_calls(name):
    t, found = examples()[name], run(examples(), name)
    begin, end = column(found, "call_begin", "<f8"), column(found, "call_end", "<f8")
    last = column(found, "call_last", "<i2")
    assert len(begin) == 8
    assert found.calls == [
        "all_reduce of 262144 float32, sum (ring)", "all_gather of 65536 float32 (direct)"
    ]  # fmt: skip
    for k, number in enumerate(column(found, "call_number", "<i4")):
        mine = t.take((t.call == number) & (t.what == What.CALL))
        assert begin[k] == mine.begin.min() - t.span[0]
        assert end[k] == mine.end.max() - t.span[0]
        assert last[k] == mine.rank[mine.begin.argmax()]
    if name == "late":
        assert (last[column(found, "call_kind", "<i4") == 0] == 2).all()


def test_a_part_of_a_run_without_calls(name):
    t = examples()[name]
    moves = drawn("moves", t.take(t.what != What.CALL))
    assert moves.calls == []
    assert len(column(moves, "call_begin", "<f8")) == 0
    empty = drawn("empty", t.take(np.zeros(len(t), bool)))
    assert empty.first == [0, 0, 0, 0, 0]
    assert empty.span == 0


def test_files_and_folders_are_read(tmp_path):
    t = examples()["late"]
    (tmp_path / "a.timeline").write_bytes(write_timeline(t))
    (tmp_path / "b.json").write_bytes(write_chrome(t))
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(4):
        (folder / f"rank-{rank}.json").write_bytes(write_chrome(t.of(rank)))
    given = known_of([tmp_path / "a.timeline", tmp_path / "b.json", folder])
    known = given.runs
    assert list(known) == [*EXAMPLES, "a", "b", "job"]
    for name in ("a", "b", "job"):
        assert len(known[name]) == len(t)
        assert [w[:3] for w in run(known, name).waits] == [w[:3] for w in run(known, "late").waits]
    assert all(
        np.array_equal(getattr(known["a"], key), getattr(t, key)) for key in COLUMNS
    )  # fmt: skip
    listed = json.loads(answer("runs", {}, given))
    assert [row["name"] for row in listed] == list(known)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda d: d, "without rank-N.json"),
        (lambda d: d / "missing.timeline", "No such file"),
        (lambda d: _written(d / "even.timeline", write_timeline(examples()["even"])), "already"),
        (lambda d: _written(d / "x.json", b"{}"), "no trace file"),
        (lambda d: _written(d / "x.json", b"\x00\xff"), "no trace file"),
    ],
)
def test_files_that_are_none(tmp_path, make, said):
    with pytest.raises(RoundelayError, match=said):
        open_runs([make(tmp_path)])


def _written(path, data):
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("given", ["", "../even", "nobody", "x" * 300])
def test_only_known_runs_are_given(given):
    with pytest.raises(RoundelayError):
        answer("run", {"name": given})


def test_what_one_file_holds():
    assert asked("run", {}) == [("runs", {}), ("run", {"name": "even"})]
    both = asked("run", {"run": "late", "against": "even"})
    assert both[1:] == [("run", {"name": "late"}), ("run", {"name": "even"})]


def test_no_job_of_this_name():
    assert json.loads(answer("live", {"job": "nobody"}))["status"] is None
