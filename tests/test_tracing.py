"""Traces of real processes: what is recorded, in which order, and how clocks are compared."""

import numpy as np
import pytest

pytest.importorskip("roundelay._native", reason="the native core is not built")

from ranks import finish, run, start

import roundelay as rl
from roundelay.formats.chrome import read_chrome
from roundelay.timeline import Timeline, What
from roundelay.tracing import Clocks, adjusted, differences, pack, unpack


def traced(name, ranks, *arguments, **options):
    return run(name, ranks, *arguments, module="trace_programs", **options)


@pytest.mark.parametrize("nodes", [None, "aab"], ids=["one_node", "two_nodes"])
@pytest.mark.parametrize("algorithm", ["two_shot", "ring"])
def test_events_of_an_all_reduce(tmp_path, nodes, algorithm):
    file, elements, n = tmp_path / "trace.json", 30_000, 3
    traced("traced", n, algorithm, elements, str(file), nodes=nodes)
    timeline = read_chrome(file.read_bytes())
    assert list(timeline.names) == ["rank 0", "rank 1", "rank 2"]
    assert list(timeline.nodes) == ([0, 0, 1] if nodes else [0, 0, 0])
    assert list(timeline.calls.values()) == [f"all_reduce of {elements} float32, sum ({algorithm})"]
    check_inside_calls(timeline)
    check_messages(timeline)
    check_bytes(timeline, rl.build(f"all_reduce/{algorithm}", n), 4 * elements)


def check_inside_calls(timeline):
    calls = timeline.take(timeline.what == What.CALL)
    assert sorted(calls.rank.tolist()) == [0, 1, 2]
    for rank in range(3):
        own, call = timeline.of(rank), calls.of(rank)
        assert (own.begin >= call.begin[0]).all()
        assert (own.end <= call.end[0]).all()
        moves = own.take(own.what != What.CALL)
        assert (moves.begin <= moves.ready).all()
        assert (moves.ready <= moves.end).all()
        assert (moves.begin[1:] >= moves.end[:-1]).all()


def check_messages(timeline):
    send, reception = timeline.messages()
    others = [sum(p >= 0 for p in timeline.acts[a].peers) if a >= 0 else 0 for a in timeline.act]
    sent = np.where(timeline.what == What.SEND, others, 0).sum()
    taken = np.where(timeline.what == What.SEND, 0, others).sum()
    assert len(send) == sent == taken > 0
    assert (timeline.begin[send] < timeline.end[reception]).all()
    assert (timeline.ready[send] <= timeline.end[reception]).all()
    # A send that was there only after the reception began: that waited, or was just looking.
    late = timeline.begin[send] > timeline.begin[reception]
    assert (timeline.ready[reception][late] >= timeline.ready[send][late]).all()
    assert (timeline.bytes[send] == timeline.bytes[reception]).all()
    assert (timeline.rank[send] != timeline.rank[reception]).all()


def check_bytes(timeline, schedule, size):
    loads = timeline.loads()
    for rank in range(3):
        halves = schedule.part(rank)
        chunk = size // schedule.chunks
        wanted = {"sent": 0, "copied": 0, "reduced": 0}
        for h in halves:
            what = "sent" if not h.write else "copied" if h.op == rl.COPY else "reduced"
            wanted[what] += h.count * h.unit * h.times * chunk
        found = {name: getattr(loads[rank], name) for name in wanted}
        assert found == wanted


@pytest.mark.parametrize(
    "program", ["overflow", "helpers", "asynchronous", "quick_then_late", "kept"]
)
def test_programs(program):
    traced(program, 3)


def test_helpers_between_nodes():
    traced("helpers", 4, nodes="abab")


def test_traces_within_traces(tmp_path):
    traced("nested", 2, str(tmp_path), environ={"ROUNDELAY_TRACE": str(tmp_path)})


def test_an_error_leaves_a_trace(tmp_path):
    processes = start(
        "failing", 3, str(tmp_path), module="trace_programs",
        environ={"ROUNDELAY_TRACE": str(tmp_path)},
    )  # fmt: skip
    codes, said = finish(processes)
    assert codes == [0, -9, 0], "\n".join(said)
    assert {f.name for f in tmp_path.iterdir()} == {"rank-0.json", "rank-2.json"}


def test_traces_are_written_at_exit(tmp_path):
    folder = tmp_path / "new" / "folder"
    traced("forgotten", 4, environ={"ROUNDELAY_TRACE": str(folder)})
    names = {f.name for f in folder.iterdir()}
    groups = {f"rank-{r}.1.{r % 2}.json" for r in range(4)}
    assert names == {f"rank-{r}.json" for r in range(4)} | groups
    for file in folder.iterdir():
        timeline = read_chrome(file.read_bytes())
        assert any("all_reduce of 10" in text for text in timeline.calls.values())


def test_clocks_are_compared_within_the_error():
    rng = np.random.default_rng(0)
    ahead = np.array([0, 0, 5_000_000, 5_000_000, -70_000])
    names = [b"a", b"a", b"b", b"b", b"c"]
    shown = np.cumsum(rng.integers(10**6, 2 * 10**6, 12))[:, None] + rng.integers(0, 9000, (12, 5))
    arrived = shown.max(axis=1, keepdims=True) + rng.integers(10_000, 40_000, (12, 5))
    found = differences(names, shown + ahead, arrived + ahead)
    assert (found.ahead[:2] == 0).all()
    assert found.ahead[2] == found.ahead[3]
    assert (np.abs(found.ahead - ahead) <= found.error).all()
    assert (found.error < 50_000).all()
    assert found.error[0] == 0


def test_clocks_that_drift():
    row = np.array([1000, 1500, 2000])
    zero = np.zeros(3, np.int64)
    columns = [zero, zero, zero, zero, zero, zero, zero, zero, row, row, row + 10, zero - 1]
    timeline = Timeline(*columns, names=["rank 0"], nodes=[0])
    before = Clocks(900, np.array([100]), np.array([1]))
    after = Clocks(1880, np.array([120]), np.array([1]))
    found = adjusted(timeline, 0, before, after)
    assert found.begin.tolist() == [900, 1390, 1880]
    same = adjusted(timeline, 0, before, before)
    assert same.begin.tolist() == [900, 1400, 1900]


def test_packed_and_unpacked():
    timeline = Timeline.empty(["rank 0"], [0])
    assert unpack(pack(timeline)).names == ["rank 0"]
