"""Jobs that lose ranks and go on, or take new ones in."""

import os
import random
import signal
import subprocess
import sys
import time

import pytest
from ranks import HERE, finish, start

import roundelay as rl

PROGRAMS = {"module": "elastic_programs"}


def left_behind():
    return set(os.listdir("/dev/shm"))


@pytest.mark.parametrize("nodes", [None, "aabb", "abab"], ids=str)
@pytest.mark.parametrize("dying", [(0,), (1,), (3,), (0, 2)], ids=str)
def test_those_that_live_go_on(dying, nodes):
    before = left_behind()
    check_survivors(start("go_on", 4, dying, nodes=nodes, **PROGRAMS), dying)
    assert left_behind() == before


def check_survivors(processes, dying):
    codes, said = finish(processes, 60)
    living = [r for r in range(len(codes)) if r not in dying]
    assert codes == [-signal.SIGKILL if r in dying else 0 for r in range(len(codes))], said
    for new, rank in enumerate(living):
        kind, lost, _, *place = said[rank].splitlines()[1].split(" ")
        assert (kind, " ".join(place)) == ("PeerLost", f"{new} of {len(living)}")
        assert int(lost) in dying


def test_one_dies_while_the_others_shrink():
    codes, said = finish(start("go_on", 5, (1,), "again", nodes="aabbb", **PROGRAMS), 60)
    assert codes == [0, -signal.SIGKILL, 0, 0, 0], said
    assert [said[r].splitlines()[1].split(" ", 3)[3] for r in (0, 2, 3)] == [
        "0 of 3", "1 of 3", "2 of 3",
    ]  # fmt: skip


@pytest.mark.parametrize("nodes", [None, "aabb"], ids=str)
def test_all_go_on_after_a_mistake(nodes):
    codes, said = finish(start("after_a_mistake", 4, nodes=nodes, **PROGRAMS), 60)
    assert codes == [0] * 4, said
    assert [s.strip() for s in said] == [f"{r} of 4" for r in range(4)]


@pytest.mark.parametrize("nodes", [None, "abcd"], ids=str)
def test_one_after_another_goes(nodes):
    codes, said = finish(start("one_by_one", 4, nodes=nodes, **PROGRAMS), 60)
    assert codes == [0] + [-signal.SIGKILL] * 3, said
    assert said[0].strip() == "0 of 1"


def test_newcomers_that_die():
    codes, said = finish(start("dying_newcomers", 3, **PROGRAMS), 60)
    assert codes == [0] * 3, said


def test_a_newcomer_that_dies_on_its_way_in():
    codes, said = finish(start("half_a_newcomer", 3, **PROGRAMS), 60)
    assert codes == [0] * 3, said


def test_a_rank_that_fails_ends_with_a_call_under_way():
    processes = start("failing", 2, **PROGRAMS)
    try:
        assert processes[0].wait(20) == 1
    finally:
        processes[1].kill()
        _, said = finish(processes)
    assert "a mistake" in said[0]


@pytest.mark.parametrize("nodes", [None, "abcd"], ids=str)
def test_a_rank_that_is_silent_is_left_out_by_most(nodes):
    processes = start("stopped", 4, (0,), 2.0, nodes=nodes, environ={"PATIENCE": "2"}, **PROGRAMS)
    pid = int(processes[0].stdout.readline())
    os.kill(pid, signal.SIGSTOP)
    try:
        assert [p.stdout.readline().strip() for p in processes[1:]] == [
            "0 of 3",
            "1 of 3",
            "2 of 3",
        ]
    finally:
        os.kill(pid, signal.SIGCONT)
    codes, said = finish(processes)
    assert codes == [0] * 4, said
    assert "1 of 4 ranks have come" in said[0]
    assert "expected more than half" in said[0]


def test_half_of_the_ranks_may_not_leave_the_other_half_out():
    processes = start("stopped", 4, (2, 3), 1.5, environ={"PATIENCE": "1.5"}, **PROGRAMS)
    pids = [int(p.stdout.readline()) for p in processes[2:]]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        said = [p.communicate(timeout=60)[0].strip() for p in processes[:2]]
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        finish(processes[2:])
    for text in said:
        assert "2 of 4 ranks have come within 1.5 s to go on; ranks 2, 3 did not" in text


def test_newcomers_join_and_stay():
    codes, said = finish(start("growing", 2, 2, **PROGRAMS), 60)
    assert codes == [0, -signal.SIGKILL], said
    assert said[0].strip() == "0 of 3"


@pytest.mark.parametrize("program", ["nobody_joins", "refusals", "aborted"])
def test_what_cannot_be(program):
    codes, said = finish(start(program, 2, **PROGRAMS), 60)
    assert codes == [0, 0], said


@pytest.mark.parametrize(
    ("invitation", "says"),
    [
        ("127.0.0.1:1/" + "0" * 64, "has not taken this process in within 0.3 s"),
        ("127.0.0.1:1/00", "with a key of 2 digits"),
        ("127.0.0.1:1", "with a key of 0 digits"),
        ("x/" + "0" * 64, "host:port"),
    ],
)
def test_invitations_that_lead_nowhere(monkeypatch, invitation, says):
    monkeypatch.setenv("ROUNDELAY_INVITATION", invitation)
    with pytest.raises(rl.RoundelayError, match=says):
        rl.init(timeout=0.3)


def test_a_job_of_one_cannot_shrink(monkeypatch):
    monkeypatch.delenv("ROUNDELAY_INVITATION", raising=False)
    with rl.init() as comm, pytest.raises(rl.RoundelayError, match="a job of one process"):
        comm.shrink()


def test_kills_at_random_moments(request):
    """Every survivor raises within a second, goes on with right results, and leaves nothing."""
    before = left_behind()
    draw = random.Random(5)
    took = []
    for turn in range(200 if request.config.getoption("--soak") else 4):
        nodes = draw.choice([None, "aabb", "abcd"])
        processes = start("go_on", 4, (), nodes=nodes, **PROGRAMS)
        if any(p.stdout.readline() != "ready\n" for p in processes):
            raise AssertionError((turn, finish(processes)))
        time.sleep(draw.random())
        victim, killed = draw.randrange(4), time.time()
        processes[victim].kill()
        codes, said = finish(processes, 60)
        assert sorted(codes) == [-signal.SIGKILL, 0, 0, 0], (turn, said)
        told = [s.strip().split(" ") for r, s in enumerate(said) if r != victim]
        assert [(t[0], int(t[1])) for t in told] == [("PeerLost", victim)] * 3, (turn, said)
        assert [t[3:] for t in told] == [[str(r), "of", "3"] for r in range(3)]
        took.append(max(float(t[2]) for t in told) - killed)
    assert left_behind() == before
    took.sort()
    print(f"{len(took)} kills; the last survivor raised after {took[len(took) // 2]:.3f} s in the "
          f"median, {took[-1]:.3f} s at most")  # fmt: skip
    assert took[len(took) // 2] < 1
    assert took[-1] < 5  # other programs may keep the processors from it


def test_example():
    """A training that loses a rank, under `roundelay launch --elastic`."""
    example = HERE.parent / "examples" / "elastic" / "train.py"
    done = launch("-n", "4", "--elastic", str(example))
    assert (done.returncode, done.stdout) == (0, example.with_suffix(".out").read_text())
    assert "rank 2 was killed by signal SIGKILL" in done.stderr
    done = launch("-n", "4", str(example))
    assert done.returncode == 128 + signal.SIGKILL


def launch(*words):
    return subprocess.run([sys.executable, "-m", "roundelay", "launch", *words], check=False,
                          capture_output=True, text=True, timeout=60)  # fmt: skip


@pytest.mark.parametrize(("codes", "status"), [("0 7", 0), ("7 7", 7), ("0 0", 0)])
def test_status_of_an_elastic_launch(tmp_path, codes, status):
    program = tmp_path / "ends.py"
    program.write_text(f"import os; os._exit(int({codes!r}.split()[int(os.environ['RANK'])]))")
    assert launch("-n", "2", "--elastic", str(program)).returncode == status
