"""Where processes stand that do not go on, and who of them is behind."""

import pytest

from roundelay.diagnose.given import Given
from roundelay.diagnose.together import diagnose
from roundelay.formats.stacks import read_stacks_lines

IN = "    {name} (torch/distributed/distributed_c10d.py:{line})\n    wrapper (torch/c10d.py:7)\n"


def py_spy(process, *frames):
    head = f"Process {process}: python t.py --local_rank={process % 10}\nPython v3.11\n\n"
    return head + f'Thread {process} (active): "MainThread"\n' + "".join(frames) + "\n"


def called(name, place):
    file, line = place.split(":")
    return IN.format(name=name, line=9), f"    step ({file}:{line})\n", "    <module> (t.py:1)\n"


def look(**files):
    given = [Given(name, data=text.encode()) for name, text in files.items()]
    return diagnose(given, None, None, None).findings


SAVES = py_spy(40, "    save (torch/serialization.py:4)\n", "    keep (ck.py:7)\n")
WAITS = py_spy(41, *called("barrier", "ck.py:9"))
REDUCES = py_spy(42, *called("all_reduce", "t.py:5"))
ELSEWHERE = py_spy(43, *called("all_reduce", "e.py:8"))
FAULT = (
    "Timeout (0:05:00)!\nThread 0x00007f0000000001 (most recent call first):\n"
    '  File "/usr/lib/python3.11/threading.py", line 3 in wait\n\n'
    "Thread 0x00007f0000000002 (most recent call first):\n"
    '  File "/x/torch/distributed/distributed_c10d.py", line 2 in all_gather\n'
    '  File "/x/torch/distributed/c10d_logger.py", line 7 in wrapper\n'
    '  File "/app/m.py", line 14 in mean\n'
)
GDB = (
    'Thread 1 (Thread 0x7f0 (LWP 71) "python"):\n#0  0x00007f in poll () from /lib/libc.so.6\n'
    "#1  0x00007e in socketProgress (op=0) at misc/socket.cc:1\n"
    "#2  0x00007d in ncclCommInitRankFunc (job_=0x5) at init.cc:2\n"
)
CARD = py_spy(44, "    synchronize (torch/cuda/__init__.py:3)\n", "    step (t.py:11)\n")


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (SAVES + WAITS, "never_called", "local rank 0 in save, ck.py:7 (keep)"),
        (WAITS + REDUCES, "calls_differ", "rank 1 in barrier, ck.py:9 (step); local rank 2 in"),
        (REDUCES + ELSEWHERE, "calls_differ", "at different places"),
        (REDUCES + REDUCES.replace("42", "52"), "stuck_together", "All 2 processes"),
        (REDUCES + CARD, "stuck_together", "local rank 4 in synchronize"),
        (CARD, "waits_in_call", "waits for its card in synchronize, called at t.py:11"),
        (FAULT, "waits_in_call", "waits in all_gather, called at /app/m.py:14 (mean)"),
        (GDB, "waits_in_call", "process 71 is at the start of NCCL"),
    ],
)
def test_stacks_tell_who_waits_for_whom(text, kind, words):
    found = look(f=text)
    assert [(f.kind, f.fault) for f in found] == [(kind, True)]
    assert words in str(found[0].reason)


def test_a_file_a_rank_is_one_picture():
    found = look(rank0=SAVES, rank1=WAITS)
    assert [f.kind for f in found] == ["never_called"]
    assert {e.file for e in found[0].evidence} == {"rank0", "rank1"}


def test_a_stack_of_a_crash_is_none_of_a_wait():
    crash = "Fatal Python error: Segmentation fault\n\n" + FAULT
    assert read_stacks_lines(crash.encode().splitlines(keepends=True)) == []
    assert [f.kind for f in look(f=crash)] == ["crashed"]


def test_processes_that_all_work_are_blamed_for_nothing():
    works = py_spy(45, "    matmul (model.py:3)\n", "    step (t.py:11)\n")
    assert look(f=SAVES + works) == []
