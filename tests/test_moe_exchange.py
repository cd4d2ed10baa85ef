"""Dispatch and combine between real processes, and what happens when one of them ends."""

import signal

import pytest
from ranks import finish, run, start
from test_membership import left_behind

PROGRAMS = {"module": "moe_programs"}


@pytest.mark.parametrize(
    ("ranks", "group", "nodes", "limit"),
    [(1, 1, None, None), (3, 1, None, None), (4, 2, None, 1), (4, 2, "aabb", None),
     (6, 2, None, 2), (6, 3, "aaabbb", None)],
    ids=str,
)  # fmt: skip
def test_there_and_back(ranks, group, nodes, limit):
    run("there_and_back", ranks, group, range(4), limit, nodes=nodes, **PROGRAMS)


def test_fp8():
    run("in_fp8", 4, 2, **PROGRAMS)


@pytest.mark.parametrize("nodes", [None, "aabb"], ids=str)
def test_mistakes_of_all(nodes):
    run("mistakes", 4, nodes=nodes, **PROGRAMS)


def test_uneven_nodes_are_refused_with_the_reason():
    code, said = finish(start("there_and_back_by_nodes", 3, nodes="aab", **PROGRAMS))
    assert code == [0, 0, 0], said


@pytest.mark.parametrize("nodes", [None, "aabb"], ids=str)
@pytest.mark.parametrize("phase", ["layout", "dispatch", "combine"])
def test_a_rank_that_is_killed_ends_in_an_error_for_all(phase, nodes):
    before = left_behind()
    codes, said = finish(start("dies", 4, 1, phase, nodes=nodes, **PROGRAMS), 60)
    assert codes == [0, -signal.SIGKILL, 0, 0], said
    assert [s.strip() for s in said] == ["PeerLost", "", "PeerLost", "PeerLost"]
    assert left_behind() == before
