"""The watchdog's sentences, and what `roundelay status` tells of a job."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest
from ranks import environment, finish, free_address, start

import roundelay as rl
from roundelay.run import status, watch
from roundelay.run.findings import Doing, findings

PROGRAMS = {"module": "elastic_programs"}


def doing(call, active=False, seconds=0.0, group="dp", ranks=range(8), collective="all_reduce"):
    return Doing(group, group, list(ranks), call, collective, 4 << 20, active, seconds)


def test_who_is_in_another_call():
    states = {r: [doing(1042, True, 5.0)] for r in (0, 1, 2, 3, 4, 6, 7)}
    states[5] = [doing(1041, True, 3.2, collective="all_gather")]
    [found] = findings(states, {}, 2.0)
    assert found.text == (
        "rank 5 has not arrived at all_reduce #1042 (4 MiB, group dp); rank 5 is in "
        "all_gather #1041 (4 MiB, group dp) since 3.2 s; waiting: 0-4, 6, 7"
    )
    assert (found.late, found.waiting, found.call) == ([5], [0, 1, 2, 3, 4, 6, 7], 1042)


@pytest.mark.parametrize(
    ("state", "gone", "says"),
    [
        (None, {}, "rank 1 does not answer: its process is stopped"),
        (None, {1: "closed by the other end"}, "rank 1 has gone: closed by the other end"),
        ([], {}, "rank 1 has made no call yet"),
        ([doing(6, ranks=[0, 1], seconds=4.0)], {},
         "rank 1 is in no call; its last, all_reduce #6 (4 MiB, group dp), ended 4.0 s ago"),
        ([doing(2, True, 9.0, group="tp")], {},
         "rank 1 is in all_reduce #2 (4 MiB, group tp) since 9.0 s"),
    ],
)  # fmt: skip
def test_where_a_rank_is_instead(state, gone, says):
    found = findings({0: [doing(7, True, 3.0, ranks=[0, 1])], 1: state}, gone, 2.0)
    assert says in found[0].text
    assert found[0].late == [1]


def test_nobody_is_missing():
    states = {r: [doing(7, True, 3.0 + r, ranks=[0, 1])] for r in (0, 1)}
    [found] = findings(states, {}, 2.0)
    assert found.late == []
    assert "all of group dp have arrived at all_reduce #7" in found.text
    assert "since 4.0 s" in found.text


def test_the_cause_comes_first():
    """Rank 1 is late in the group of all for it waits in another, for rank 3."""
    world, pair = {"group": "world", "ranks": [0, 1, 2, 3]}, {"group": "dp", "ranks": [1, 3]}
    states = {
        0: [doing(9, True, 3.0, **world)],
        1: [doing(8, False, 3.0, **world), doing(4, True, 3.0, **pair)],
        2: [doing(9, True, 3.0, **world)],
        3: [doing(8, False, 3.0, **world), doing(3, False, 3.0, **pair)],
    }
    assert [f.tag for f in findings(states, {}, 2.0)] == ["dp", "world"]


def test_nothing_is_said_before_its_time():
    assert findings({0: [doing(7, True, 1.9, ranks=[0, 1])], 1: []}, {}, 2.0) == []
    assert findings({0: [doing(7, False, 9.0, ranks=[0, 1])], 1: []}, {}, 2.0) == []


@pytest.mark.parametrize("text", ["x", "-1", "inf", "nan"])
def test_watchdogs_variable(text):
    with pytest.raises(rl.RoundelayError, match="ROUNDELAY_WATCHDOG is"):
        watch.seconds_asked({"ROUNDELAY_WATCHDOG": text})
    assert watch.seconds_asked({}) == watch.AFTER
    assert watch.seconds_asked({"ROUNDELAY_WATCHDOG": "0"}) == 0


@pytest.mark.parametrize("nodes", [None, "abcd"], ids=str)
def test_every_rank_tells_who_is_late(nodes):
    codes, said = finish(start("kept_waiting", 4, 2.5, nodes=nodes,
                               environ={"ROUNDELAY_WATCHDOG": "0.5"}, **PROGRAMS))  # fmt: skip
    assert codes == [0] * 4, said
    for text in said:
        first, *_ = [line for line in text.splitlines() if "has not arrived" in line]
        assert re.search(
            r"rank 2 has not arrived at all_reduce #\d+ \(4 MiB, group dp0\); rank 2 is in no "
            r"call; its last, .*, ended [\d.]+ s ago; waiting: 0$", first), text  # fmt: skip
        # At 0.5, 1 and 2 s, each time once.
        assert 1 <= text.count("rank 2 has not arrived at all_reduce") <= 3


def test_a_stopped_rank_0_is_told_of():
    processes = start("kept_waiting", 4, 60, environ={"ROUNDELAY_WATCHDOG": "0.3"}, **PROGRAMS)
    for p in processes:
        assert p.stdout.readline() == "ready\n"
    processes[0].send_signal(signal.SIGSTOP)
    try:
        line = processes[3].stdout.readline()
        assert "rank 0, which asks the others what they do, does not answer" in line
    finally:
        for p in processes:
            p.kill()
        finish(processes)


def ask(*words):
    done = subprocess.run(
        [sys.executable, "-m", "roundelay", "status", *words], capture_output=True, text=True,
        timeout=30, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_status_of_a_job_from_outside():
    name = f"waiting {os.getpid()}"
    processes = start("kept_waiting", 4, 5, environ={"ROUNDELAY_NAME": name}, nodes="abab",
                      **PROGRAMS)  # fmt: skip
    try:
        for p in processes:
            assert p.stdout.readline() == "ready\n"
        time.sleep(1.5)
        code, out, err = ask(name, "--json")
        assert (code, err) == (1, "")
        told = json.loads(out)
        assert told["job"] == name
        assert [(r["rank"], r["node"]) for r in told["ranks"]] == [(0, 0), (1, 1), (2, 0), (3, 1)]
        assert [r["state"] for r in told["ranks"]] == ["waiting", "waiting", "running", "waiting"]
        assert told["ranks"][0]["operation"].endswith("(4 MiB, group dp0)")
        assert told["ranks"][0]["waiting_for"] == [2]
        assert told["ranks"][1]["waiting_for"] == [0, 2]
        assert 1 < told["ranks"][0]["since_s"] < 20
        assert told["findings"][0]["late"] == [2]
        _, out, _ = ask(name)
        assert "rank 2 has not arrived at all_reduce" in out
        _, out, _ = ask(name, "--lang", "zh")
        assert "等待" in out
        code, _, err = ask("nothing")
        assert code == 2
        assert "no job 'nothing'" in err
        assert name.replace(" ", "_") in err
        processes[0].send_signal(signal.SIGSTOP)  # then the next one answers, for itself
        told = status.status_of(name)
        processes[0].send_signal(signal.SIGCONT)
        assert [r.state for r in told.ranks].count("unknown") == 3
    finally:
        for p in processes:
            p.send_signal(signal.SIGCONT)
        codes, said = finish(processes)
    assert codes == [0] * 4, said
    assert ask(name)[0] == 2  # it has ended, and left nothing


def test_a_forked_child_does_not_answer_for_its_parent():
    name = f"outlived {os.getpid()}"
    processes = start("outlived", 2, environ={"ROUNDELAY_NAME": name}, **PROGRAMS)
    try:
        assert processes[1].stdout.readline() == "ready\n"
        processes[0].wait(20)
        [names] = [
            names for job, names in status.running().items() if job == name.replace(" ", "_")
        ]
        assert [n.split("/")[-2] for n in names] == ["1"]
    finally:
        finish(processes)


def test_a_job_of_one_is_not_watched():
    with rl.init(), pytest.raises(rl.RoundelayError, match="no job"):
        status.status_of("of nobody")


def test_other_users_are_not_answered():
    if os.getuid() != 0:
        pytest.skip("only root can become another user")
    address = free_address()
    processes = start("kept_waiting", 3, 3, environ={"ROUNDELAY_NAME": address}, **PROGRAMS)
    try:
        for p in processes:
            assert p.stdout.readline() == "ready\n"
        [names] = [names for job, names in status.running().items() if job == address]
        code = (
            "import os, socket, sys; os.setuid(65534); s = socket.socket(socket.AF_UNIX); "
            "s.connect('\\0' + sys.argv[1][1:]); sys.exit(len(s.recv(9)))"
        )
        done = subprocess.run([sys.executable, "-c", code, names[0]], timeout=30, check=False,
                              env=environment(0, 1, address, ""))  # fmt: skip
        assert done.returncode == 0
    finally:
        finish(processes)
