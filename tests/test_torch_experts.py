"""The layer of experts between real processes, compared with the uncut one."""

import signal

import pytest

pytest.importorskip("roundelay._native", reason="the native core is not built")

from ranks import finish, run, start

pytestmark = pytest.mark.timeout(150)
PROGRAMS = {"module": "torch_experts"}


def test_as_uncut():
    run("as_uncut", 4, timeout=140, **PROGRAMS)


@pytest.mark.parametrize("nodes", [None, "ab"], ids=str)
def test_two_ranks(nodes):
    run("one_gate in_fp8 learns hides mistakes", 2, nodes=nodes, timeout=140, **PROGRAMS)


def test_a_rank_that_is_killed_ends_in_an_error_for_all():
    codes, said = finish(start("dies", 4, 2, **PROGRAMS), 140)
    assert codes == [0, 0, -signal.SIGKILL, 0], said
    # What else they say is of objects that the error has kept alive.
    assert [s.split("\n")[0] for s in said] == ["PeerLost", "PeerLost", "", "PeerLost"]


def test_hidden_by_hand():
    import numpy as np

    from roundelay.timeline import Timeline, What
    from roundelay.workloads.experts import hidden

    spans = [(0, 10, 0), (8, 20, 0), (30, 40, 0), (0, 100, 1)]
    zeros = np.zeros(4, np.int64)
    columns = dict.fromkeys(("call", "peer", "peers", "stage", "slice", "bytes"), zeros)
    timeline = Timeline(
        rank=[s[2] for s in spans], what=[What.CALL] * 4, begin=[s[0] for s in spans],
        ready=zeros, end=[s[1] for s in spans], act=zeros - 1, names=["0", "1"], nodes=[0, 0],
        **columns,
    )  # fmt: skip
    found = hidden(timeline, 0, [(15, 25), (18, 35)])
    assert found.exchange == pytest.approx(30e-9)
    assert found.waited == pytest.approx(10e-9)
    assert found.share == pytest.approx(2 / 3)
    assert hidden(timeline.of(1).take(np.zeros(1, bool)), 1, []).share == 0
