"""The longest path: what it is made of, and that it is a chain."""

import numpy as np
import pytest

from roundelay.longest_path import Part, last_messages, longest_path
from roundelay.timeline import Act, Timeline, What
from roundelay.web.runs import examples


def timeline(rows, acts, n=2):
    """Of rows (rank, call, what, begin, ready, end, act), with their times as one counts."""
    rank, call, what, begin, ready, end, act = np.array(rows, np.int64).T
    zero = np.zeros(len(rows), np.int64)
    peer = np.array([acts[a].peers[0] if a >= 0 else -1 for a in act.tolist()], np.int64)
    return Timeline(
        rank=rank, call=call, what=what, peer=peer, peers=zero + 1, stage=zero, slice=zero,
        bytes=zero + 8, begin=begin, ready=ready, end=end, act=act, calls={1: "a call"},
        names=[f"rank {r}" for r in range(n)], nodes=[0] * n, acts=acts,
    )  # fmt: skip


ACTS = [Act(0, (1,), ((0, 1),)), Act(0, (0,), ((0, 1),))]


def test_a_late_send_is_on_the_path():
    run = timeline(
        [(1, 1, What.COPY, 0, 70, 90, 1), (0, 1, What.SEND, 50, 50, 60, 0)], ACTS
    )  # fmt: skip
    path = longest_path(run)
    assert path.part.tolist() == [Part.PROGRAM, Part.WORK, Part.MESSAGE, Part.WORK]
    assert path.rank.tolist() == [0, 0, 1, 1]
    assert path.source.tolist() == [0, 0, 0, 1]
    assert path.begin.tolist() == [0, 50, 60, 70]
    assert path.end.tolist() == [50, 60, 70, 90]


def test_a_message_that_was_there_is_not():
    run = timeline(
        [(0, 1, What.SEND, 0, 0, 10, 0), (1, 1, What.SEND, 0, 0, 55, 1),
         (1, 2, What.COPY, 60, 60, 90, 1)], ACTS,
    )  # fmt: skip
    path = longest_path(run)
    assert path.rank.tolist() == [1, 1, 1]
    assert path.part.tolist() == [Part.WORK, Part.PROGRAM, Part.WORK]
    assert path.share(2).tolist() == [[0, 0, 0, 0], [85, 0, 0, 5]]


def test_nothing():
    assert len(longest_path(Timeline.empty()).event) == 0


@pytest.mark.parametrize("name", ["even", "late"])
def test_it_is_a_chain_through_the_whole_run(name):
    run = examples()[name]
    path = longest_path(run)
    moves = run.what != What.CALL
    assert path.begin[0] == run.span[0]
    assert path.end[-1] == run.end[moves].max()
    assert (path.begin[1:] == path.end[:-1]).all()
    assert (path.end > path.begin).all()
    assert path.share(4).sum() == path.end[-1] - path.begin[0]
    works = path.part == Part.WORK
    assert (run.ready[path.event[works]] <= path.begin[works]).all()
    assert (path.end[works] <= run.end[path.event[works]]).all()
    hops = np.flatnonzero(path.part == Part.MESSAGE)
    assert (path.rank[hops - 1] == path.source[hops]).all()
    assert len(hops)


def test_the_rank_that_slept_is_most_of_it():
    share = longest_path(examples()["late"]).share(4)
    assert share[2, Part.PROGRAM] > 4 * 2_000_000  # slept for 2 ms, four times
    assert share[2, Part.PROGRAM] > share.sum() / 2


def test_last_messages_by_search():
    run = examples()["even"]
    found = last_messages(run)
    send, reception = run.messages()
    assert (found >= 0).sum() == len(np.unique(reception))
    for event in np.unique(reception).tolist()[:40]:
        mine = send[reception == event]
        assert run.end[found[event]] == run.end[mine].max()
        assert found[event] in mine
