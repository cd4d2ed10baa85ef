"""A rank that has died is named before those that wait for it, wherever its log says so."""

import gzip
import re

import pytest

from roundelay.diagnose.given import HEAD, Given
from roundelay.diagnose.recognise import kinds_of
from roundelay.diagnose.together import diagnose
from roundelay.formats.ended import read_ended_lines

WAITS = "".join(
    f"[rank{rank}]:[E101 01:02:03 ProcessGroupNCCL.cpp:607] [Rank {rank}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=64, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, "
    "Timeout(ms)=600000) ran for 600051 milliseconds before timing out.\n"
    for rank in (0, 2)
)
TRACEBACK = 'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n    step()\n'
TORCHRUN = """Root Cause (first observed failure):
[0]:
  time      : 2026-01-01_00:00:00
  rank      : 3 (local_rank: 3)
  exitcode  : -9 (pid: 22335)
  traceback : Signal 9 (SIGKILL) received by PID 22335
"""


def look(**files):
    given = [Given(name, data=text.encode()) for name, text in files.items()]
    return diagnose(given, None, None, None)


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
         "out_of_memory", "Rank 1 ran out of the card's memory: torch.OutOfMemoryError"),
        (TRACEBACK + "RuntimeError: HIP out of memory. Tried\n", "out_of_memory", "Rank ? ran"),
        (TORCHRUN, "killed", "Rank 3 was killed from outside (signal 9)"),
        ("mpirun noticed that process rank 5 with PID 7 on node a exited on signal 11\n",
         "crashed", "Rank 5 crashed: signal 11"),
        ("srun: error: a1: task 6: Out Of Memory\n", "killed", "Rank 6 was killed"),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=4.0\n", "killed", "Rank ?"),
        ("[ 12.3] NVRM: Xid (PCI:0000:1a:00): 79, pid=1, GPU has fallen off the bus.\n",
         "card_failed", "0000:1a:00: Xid 79"),
        ("srun: error: a1: task 7: Segmentation fault (core dumped)\n", "crashed", "Rank 7"),
        ("run.sh: line 12: 4711 Killed                  python t.py\n", "killed", "Rank ?"),
        ("Fatal Python error: Bus error\n", "crashed", "signal 7"),
        ("[rank4]: KeyError: 'labels'\n", "raised", "Rank 4 ended with an error of its own"),
        (TRACEBACK + "\x1b[31m[rank4]: AssertionError\x1b[0m\n", "raised", "Rank 4 ended"),
        (TRACEBACK + "RuntimeError: rank 3 sent nothing\n", "raised", "Rank ? ended"),
        (TRACEBACK + "X.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying\n",
         "out_of_memory", "RESOURCE_EXHAUSTED"),
        ("SpawnError: process 1 terminated with signal SIGKILL\n", "killed", "(local rank 1)"),
        ("[launch.py:3] ['p', '--local_rank=5'] exits with return code = -9\n", "killed",
         "(local rank 5)"),
        ("Command '['python']' died with <Signals.SIGSEGV: 11>.\n", "crashed", "signal 11"),
        ("EXIT STRING: Killed (signal 9)\n", "killed", "signal 9"),
        ("srun: error: a1: task 2: Exited with exit code 139\n", "crashed", "Rank 2"),
        ("-- Process 3 terminated with the following error:\n" + TRACEBACK + "KeyError: 'a'\n",
         "raised", "(local rank 3)"),
        (TRACEBACK + "data.BadShard: no such\nValueError: bad shard 7\n", "raised", "bad shard 7"),
    ],
)  # fmt: skip
def test_what_ended_a_rank_comes_first(text, kind, words):
    found = look(log=WAITS + text)
    assert [f.kind for f in found.findings if f.fault] == [kind, "stuck_together"]
    assert words in str(found.findings[0].reason)


@pytest.mark.parametrize(
    "text",
    [
        "[rank1]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank 1.\n",
        "[rank1]: RuntimeError: [../gloo/transport/tcp/pair.cc] Connection closed by peer\n",
        TRACEBACK + "spawn.ProcessRaisedException: \n",
        TRACEBACK + "subprocess.CalledProcessError: Command '['p']' returned exit\n",
        "[rank1]: RuntimeError: Detected mismatch between collectives on ranks. Rank 1 runs\n",
        "  rank      : 3 (local_rank: 3)\n  exitcode  : -6 (pid: 22335)\n",
        "mpirun: process rank 5 with PID 7 on node a exited on signal 15\n",
        "Killed Segmentation fault tests: 0; task 3 of 9 Killed in a game\n",
        "WARNING ImportError: no module fused_kernel, going on without\n",
        "Out of memory is counted in MiB; Error: 0, Exception: none\n",
        TORCHRUN.replace("-9", "1").replace("Signal 9 (SIGKILL)", "To enable, see"),
    ],
)
def test_what_follows_from_another_rank_is_no_end(text):
    ends = read_ended_lines(text.encode().splitlines(keepends=True))
    assert [end for end in ends if end.cause != "left"] == []  # which says nothing of a cause


def test_each_rank_is_told_by_what_met_it_first():
    text = TRACEBACK + "[rank2]: ValueError: first\n" + TRACEBACK + "[rank2]: KeyError: second\n"
    found = look(log=text).findings
    assert [f.kind for f in found] == ["raised"]
    assert "first" in str(found[0].reason)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_what_stands_behind_a_long_run_is_read(pack):
    start = b"a1:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n"
    steps = b"step 100 loss 2.31\n"
    for words in (WAITS.encode(), b"x\n" * 9 + TORCHRUN.encode()):
        data = start + steps * (2 * HEAD // len(steps)) + words
        assert len(kinds_of(Given("f", data=pack(data)))) == 2
    cut = start + b"." * (HEAD - len(start) - 4) + WAITS.encode()[90:]
    assert kinds_of(Given("f", data=pack(cut))) == ("nccl_log", "watchdog")
    assert kinds_of(Given("f", data=pack(start + steps * HEAD))) == ("nccl_log",)


def test_a_cards_memory_is_told_once_by_the_rank_that_ended_of_it():
    warned = "h:1:2 [3] include/alloc.h:1 NCCL WARN Failed to CUDA calloc 1048576 bytes\n"
    assert [f.kind for f in look(log=warned).findings if f.fault] == ["out_of_memory"]
    ended = "[rank1]: torch.OutOfMemoryError: CUDA out of memory.\n"
    found = [f for f in look(log=warned + ended).findings if f.kind == "out_of_memory"]
    assert len(found) == 1
    assert "Rank 1 ran out" in str(found[0].reason)


LEFT = [
    ("Process name: [[7,1],2]\n  Exit code:    3\n", "Rank 2 ended with exit code 3"),
    ("srun: error: a1: task 5: Exited with exit code 1\nsrun: error: a1: task 6: Terminated\n",
     "Rank 5 ended with exit code 1"),
    ("[rank: 1] Child process with PID 7 terminated with code 1. Forcefully\n", "Rank 1"),
    (TORCHRUN.replace("-9", "-6").replace("Signal 9 (SIGKILL)", "Signal 6 (SIGABRT)"),
     "Rank 3 ended with signal 6 (SIGABRT).* So a process ends itself"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), LEFT)
def test_an_exit_code_alone_tells_who_was_first(text, words):
    found = look(log=text).findings
    assert [f.kind for f in found] == ["ended_first"]
    assert re.search(words.replace("(", r"\(").replace(")", r"\)"), str(found[0].reason))


def test_what_a_launcher_kills_later_is_no_cause():
    killed = "run.sh: line 12: 4711 Killed                  python t.py\n"
    assert [f.kind for f in look(log=TRACEBACK + "KeyError: 'a'\n" + killed).findings] == ["raised"]
    assert [f.kind for f in look(log=LEFT[2][0] + killed).findings] == ["ended_first"]
    oom = "slurmstepd: error: Detected 1 oom_kill event in StepId=4.0\n"
    assert "killed" in [f.kind for f in look(log=LEFT[2][0] + oom).findings]


def test_an_exception_that_was_caught_is_no_end():
    steps = "".join(f"step {i} loss {3 / (i + 1):.2f}\n" for i in range(5))
    caught = TRACEBACK + "OSError: [Errno 5] Input/output error\n"
    found = look(log=steps + caught + steps).findings
    assert [(f.kind, f.fault) for f in found] == [("handled", False)]
    assert "OSError: [Errno 5] Input/output error" in str(found[0].reason)
    for text in (steps + caught, caught + steps, steps + caught + "step 7 loss 2.00\n"):
        assert [f.kind for f in look(log=text).findings] == ["raised"]
    prefixed = caught.replace("OSError", "[rank0]: OSError")
    assert [f.kind for f in look(log=steps + prefixed + steps).findings] == ["raised"]
    later = look(log=steps + caught + steps + "[rank1]: KeyError: 'a'\n").findings
    assert [(f.kind, f.fault) for f in later] == [("raised", True), ("handled", False)]
