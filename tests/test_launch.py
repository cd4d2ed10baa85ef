"""`roundelay launch`: exit statuses, and no process left behind; and the launchers of others."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from roundelay import cli
from roundelay.errors import RoundelayError
from roundelay.run.environment import job_from_environment
from roundelay.run.launch import rank_environments

SOURCE = str(Path(__file__).resolve().parent.parent / "src")
SOON = 30.0
"""Seconds within which what should come at once has come, however busy the machine is."""

RANK = "import os, signal, subprocess, sys, time\nrank = int(os.environ['ROUNDELAY_RANK'])\n"


@pytest.fixture
def program(tmp_path):
    """Writes a rank's program."""

    def write(text):
        file = tmp_path / "program.py"
        file.write_text(RANK + text)
        return str(file)

    return write


def plain_environment(**extra):
    """Without what another launcher may have set, and in English."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LD_LIBRARY_PATH")}
    return {**kept, "PYTHONPATH": SOURCE, "LC_ALL": "C.UTF-8", **extra}


def start(*words):
    return subprocess.Popen(
        [sys.executable, "-m", "roundelay", "launch", *words],
        env=plain_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def launch(*words):
    """Exit status, stdout and stderr."""
    with start(*words) as process:
        try:
            out, err = process.communicate(timeout=SOON)
        finally:
            process.kill()
        return process.returncode, out, err


def gone(pid):
    """Whether a process has ended; one that nobody has waited for counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_until(condition, seconds=SOON):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


# What ranks are given.


def srun(task, **more):
    """What Slurm tells the tasks of a step on three hosts."""
    return {
        "SLURM_PROCID": str(task),
        "SLURM_STEP_NUM_TASKS": "3",
        "SLURM_LOCALID": "0",
        "SLURM_JOB_ID": "7",
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NODELIST": "gpu[1-3]",
        **more,
    }


def test_under_srun_each_task_starts_its_part():
    found = [rank for task in range(3) for rank in rank_environments(srun(task), 6)]
    assert [rank["ROUNDELAY_RANK"] for rank in found] == list("012345")
    assert [rank["LOCAL_RANK"] for rank in found] == list("010101")
    assert {(rank["WORLD_SIZE"], rank["LOCAL_WORLD_SIZE"]) for rank in found} == {("6", "2")}
    (address,) = {rank["ROUNDELAY_ADDRESS"] for rank in found}
    assert address.startswith("gpu1:")
    assert {rank["MASTER_ADDR"] for rank in found} == {"gpu1"}
    assert "ROUNDELAY_SECRET" not in found[0]  # made from what all share, unless one is given
    jobs = [job_from_environment(rank) for rank in found]
    assert len({job.secret for job in jobs}) == 1
    assert [job.rank for job in jobs] == list(range(6))
    with pytest.raises(RoundelayError, match="4 ranks over 3 tasks of srun; expected a multiple"):
        rank_environments(srun(0), 4)


@pytest.mark.parametrize(
    "more",
    [{"SLURM_STEP_NUM_TASKS": "1"}, {"SLURM_STEP_ID": "4294967291"}, {"ROUNDELAY_RANK": "0"}],
)
def test_a_lone_task_starts_all(more):
    """One task, a batch script, or a rank that launches a job of its own."""
    assert len(rank_environments(srun(0, **more), 4)) == 4


def test_environment_of_ranks():
    first, second = rank_environments({"X": "1", "RANK": "7", "ROUNDELAY_SECRET": "old"}, 2)
    assert (first["RANK"], first["LOCAL_RANK"], first["ROUNDELAY_RANK"]) == ("0", "0", "0")
    assert (second["RANK"], second["LOCAL_RANK"], second["ROUNDELAY_RANK"]) == ("1", "1", "1")
    names = ("ROUNDELAY_RANK", "RANK", "LOCAL_RANK")
    assert {**second, **dict.fromkeys(names, "0")} == first
    assert {first[k] for k in ("WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROUNDELAY_RANKS")} == {"2"}
    assert (first["X"], first["MASTER_ADDR"], first["OMP_NUM_THREADS"]) == ("1", "127.0.0.1", "1")
    assert first["ROUNDELAY_ADDRESS"].startswith("127.0.0.1:")
    assert first["ROUNDELAY_ADDRESS"] != f"127.0.0.1:{first['MASTER_PORT']}"
    assert len(first["ROUNDELAY_SECRET"]) == 32
    given = {"MASTER_ADDR": "a", "MASTER_PORT": "5", "OMP_NUM_THREADS": "3"}
    (only,) = rank_environments(given, 1)
    assert given.items() <= only.items()


def test_ranks_meet_and_get_their_arguments(program):
    text = """
from roundelay.run import join
with join() as session:
    words = session.exchange(b"%d" % rank)
print(rank, words, sys.argv[1:], flush=True)
"""
    status, out, err = launch("-n", "3", program(text), "--lang", "zh", "--", "-n")
    assert (status, err) == (0, "")
    arguments = ["--lang", "zh", "--", "-n"]
    wanted = [f"{r} {[b'0', b'1', b'2']} {arguments}" for r in range(3)]
    assert sorted(out.splitlines()) == wanted


def test_a_module_is_run_as_python_does_it():
    status, out, _ = launch("-n", "2", "-m", "--", "this")
    assert status == 0
    assert out.count("Beautiful is better than ugly.") == 2


# Exit statuses.


@pytest.mark.parametrize(
    ("text", "status", "says"),
    [
        ("sys.exit(7 * rank)", 7, "rank 1 ended with status 7"),
        ("sys.exit(rank and 'no')", 1, "rank 1 ended with status 1"),
        ("os.kill(os.getpid(), 9 * rank)", 137, "rank 1 was killed by signal SIGKILL"),
        ("rank and os.abort()", 134, "rank 1 was killed by signal SIGABRT"),
    ],
)
def test_the_status_is_that_of_the_rank_that_fails(program, text, status, says):
    found, _, err = launch("-n", "2", program(text))
    assert found == status
    assert f"roundelay launch: {says}" in err


def test_the_others_get_time_then_sigterm_then_sigkill(program):
    """Rank 0 fails, 1 ends on its own, 2 at SIGTERM, 3 only by SIGKILL."""
    text = """
import pathlib
if rank == 0:
    sys.exit(5)
if rank == 1:
    time.sleep(0.5); print("1 ended"); sys.exit(6)
def term(number, frame):
    os.write(1, b"%d got SIGTERM\\n" % rank)
    if rank == 2:
        sys.exit(0)
signal.signal(signal.SIGTERM, term)
while True:
    time.sleep(1)
"""
    begun = time.monotonic()
    status, out, err = launch("-n", "4", program(text))
    assert time.monotonic() - begun >= 2 + 3
    assert status == 5
    assert sorted(out.splitlines()) == ["1 ended", "2 got SIGTERM", "3 got SIGTERM"]
    assert err == "roundelay launch: rank 0 ended with status 5\n"


def test_the_time_is_up(program):
    status, _, err = launch("-n", "2", "--timeout", "0.5", program("time.sleep(100 * rank)"))
    assert status == 124
    assert "the time is up; still running: ranks 1" in err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("x.py",), "no -n"),
        (("-n", "0", "x.py"), "-n 0"),
        (("-n", "2", "--timeout", "0", "x.py"), "--timeout 0"),
        (("-n", "2", "no-such.py"), "no-such.py: no such file"),
        (("-n", "2"), "PROGRAM"),
    ],
)
def test_bad_input(capsys, words, says):
    assert cli.run(["launch", *words]) == 2
    assert says in capsys.readouterr().err


def test_lines_with_their_ranks(program):
    text = """
for k in range(3):
    print("line", k); time.sleep(0.05)
print("wrong", file=sys.stderr)
sys.stdout.write("x" * 100_000 + "\\nend"); sys.stdout.flush()
"""
    status, out, err = launch("-n", "2", "--tag", program(text))
    assert status == 0
    for rank in (0, 1):
        mine = [line[4:] for line in out.splitlines() if line.startswith(f"[{rank}] ")]
        assert mine[:3] == ["line 0", "line 1", "line 2"]
        assert "".join(mine[3:]) == "x" * 100_000 + "end"
        assert f"[{rank}] wrong" in err.splitlines()


def test_help_in_chinese(capsys):
    assert cli.run(["launch", "--lang", "zh", "--help"]) == 0
    assert "以一个作业的各个 rank" in capsys.readouterr().out


# No process is left behind.

FAMILY = """
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
print(os.getpid(), child.pid, flush=True)
time.sleep(1000)
"""


def family(process, ranks):
    """The processes of all ranks, and their children."""
    return [int(word) for _ in range(ranks) for word in process.stdout.readline().split()]


@pytest.fixture
def running(program):
    """Two ranks with a child each, and their launcher."""
    with start("-n", "2", program(FAMILY)) as process:
        pids = family(process, 2)
        assert len(pids) == 4
        try:
            yield process, pids
        finally:
            process.kill()
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def test_nothing_is_left_when_a_rank_is_killed(running):
    process, pids = running
    os.kill(pids[2], signal.SIGKILL)
    assert process.wait(SOON) == 137
    assert all(gone(pid) for pid in pids)


def test_nothing_is_left_when_the_launcher_is_killed(running):
    process, pids = running
    process.kill()
    process.wait(SOON)
    wait_until(lambda: all(gone(pid) for pid in pids))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_when_the_launcher_gets_a_signal(running, number):
    process, pids = running
    process.send_signal(number)
    assert process.wait(SOON) == 128 + number
    assert all(gone(pid) for pid in pids)


def test_a_second_interrupt_ends_it_at_once(program):
    text = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGINT, lambda *_: os.write(1, b"got it\\n"))
print("here", flush=True)
while True:
    time.sleep(1)
"""
    with start("-n", "1", program(text)) as process:
        assert process.stdout.readline() == "here\n"
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "got it\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(SOON) == 130
        assert time.monotonic() - begun < 4.9  # without the second one, 5 s


def test_children_that_outlive_their_rank_are_ended(program):
    text = """
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
print(child.pid)
"""
    status, out, _ = launch("-n", "2", program(text))
    assert status == 0
    assert all(gone(int(pid)) for pid in out.split())


def test_shared_memory_of_a_killed_rank_is_cleaned_up(program):
    """Python's resource tracker, a child of the rank, must have time to do it."""
    text = """
from multiprocessing.shared_memory import SharedMemory
memory = SharedMemory(create=True, size=4096)
print(memory.name, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    status, out, _ = launch("-n", "1", program(text))
    assert status == 137
    assert not Path("/dev/shm", out.strip().lstrip("/")).exists()


# The launchers of others, where they are installed.

MEETS = """
import json, os
from roundelay.run import job_from_environment, join
job = job_from_environment()
with join(job, timeout=60) as session:
    found = [int(data) for data in session.exchange(b"%d" % session.rank)]
    peers = [p for p in range(session.ranks) if p != session.rank]
    for socks in session.connect(peers, "x", 2).values():
        for sock in socks:
            sock.close()
print(json.dumps([session.rank, job.source, job.local_rank, found]), flush=True)
"""
MPIEXEC = shutil.which("mpiexec")
TORCHRUN = find_spec("torch") is not None


def meetings(command, **extra):
    environ = plain_environment(OMP_NUM_THREADS="1", **extra)
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return sorted(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.skipif(not MPIEXEC, reason="left out: there is no mpiexec on the PATH")
@pytest.mark.parametrize("shell", [False, True])
def test_mpiexec(tmp_path, shell):
    file = tmp_path / "meets.py"
    file.write_text(MEETS)
    kind = subprocess.run([MPIEXEC, "--version"], capture_output=True, text=True).stdout
    source = "Open MPI" if "Open MPI" in kind or "Open RTE" in kind else "PMI"
    allowed = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }  # fmt: skip
    words = [sys.executable, str(file)]
    if shell:
        words = ["sh", "-c", f"{sys.executable} {file}; exit $?"]
    found = meetings([MPIEXEC, "-n", "3", *words], **allowed)
    assert sorted(local for _, _, local, _ in found) == [0, 1, 2]  # they need not be the ranks
    assert [[r, s, words] for r, s, _, words in found] == [[r, source, [0, 1, 2]] for r in range(3)]


@pytest.mark.skipif(not TORCHRUN, reason="left out: torch is not installed")
@pytest.mark.parametrize("standalone", [False, True])
def test_torchrun(tmp_path, standalone):
    file = tmp_path / "meets.py"
    file.write_text(
        MEETS + "import torch.distributed as dist\n"
        "dist.init_process_group('gloo')\n"  # torch's own port is still torch's
        "dist.barrier()\n"
        "dist.destroy_process_group()\n"
    )
    options = ["--standalone"] if standalone else ["--master-port", "29617"]
    command = [sys.executable, "-m", "torch.distributed.run", *options, "--nproc-per-node", "3"]
    found = meetings([*command, str(file)])
    assert found == [[r, "torchrun", r, [0, 1, 2]] for r in range(3)]


LINGER = """
from roundelay.run.launch import launch, rank_environments
import os, sys, time
begun = time.monotonic()
status = launch([sys.executable, sys.argv[1]], rank_environments(os.environ, 3), print,
                elastic=True, linger=1)
print("status", status, time.monotonic() - begun < 25)
"""


def test_a_stopped_rank_does_not_hold_a_job_that_is_done(program, tmp_path):
    """Where the others have ended, what stands still is ended, too."""
    stopped = program("if rank == 1: os.kill(os.getpid(), signal.SIGSTOP)")
    starter = tmp_path / "starter.py"
    starter.write_text(LINGER)
    done = subprocess.run([sys.executable, str(starter), stopped], env=plain_environment(),
                          capture_output=True, text=True, timeout=SOON)  # fmt: skip
    assert done.stdout.splitlines() == ["rank 1 was killed by signal SIGKILL", "status 0 True"]
