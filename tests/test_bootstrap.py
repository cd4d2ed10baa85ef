"""Start-up of a job: the environment of every launcher, and ranks that find one another."""

import contextlib
import gc
import logging
import os
import re
import secrets
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from roundelay.errors import RoundelayError
from roundelay.run import Job, join, node_identity
from roundelay.run.environment import job_from_environment, parse_address
from roundelay.run.machine import expand_hosts

SOURCE = str(Path(__file__).resolve().parent.parent / "src")
SOON = 20.0
"""Seconds within which what should come at once has come, however busy the machine is."""


# The environment.

OWN = {"ROUNDELAY_RANK": "1", "ROUNDELAY_RANKS": "3", "ROUNDELAY_ADDRESS": "node1:29400"}
TORCH = {
    "RANK": "1", "WORLD_SIZE": "3", "LOCAL_RANK": "1", "MASTER_ADDR": "node1",
    "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "abc",
}  # fmt: skip
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "3", "PMIX_NAMESPACE": "prterun-vm-12@1", "PMIX_RANK": "1",
}  # fmt: skip
PMI = {"PMI_RANK": "1", "PMI_SIZE": "3", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "3"}
SLURM = {
    "SLURM_PROCID": "1", "SLURM_NTASKS": "3", "SLURM_LOCALID": "1", "SLURM_JOB_ID": "7",
    "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": "node[01-03,7],gpu5",
}  # fmt: skip
PLACE = {"ROUNDELAY_ADDRESS": "[fd00::1]:700"}
MASTER = {"MASTER_ADDR": "10.0.0.9", "MASTER_PORT": "800"}
REMOTE = {"OMPI_COMM_WORLD_LOCAL_SIZE": "1", "MPI_LOCALNRANKS": "1"}


@pytest.mark.parametrize(
    ("environ", "source", "place", "own_port"),
    [
        (OWN, "roundelay launch", ("node1", 29400), True),
        (OWN | TORCH, "roundelay launch", ("node1", 29400), True),
        (TORCH, "torchrun", ("node1", 29500), False),
        (TORCH | OPEN_MPI | SLURM, "torchrun", ("node1", 29500), False),
        (TORCH | PLACE, "torchrun", ("fd00::1", 700), True),
        (OPEN_MPI, "Open MPI", ("127.0.0.1", None), True),
        (OPEN_MPI | REMOTE | PLACE, "Open MPI", ("fd00::1", 700), True),
        (OPEN_MPI | REMOTE | MASTER, "Open MPI", ("10.0.0.9", 800), False),
        (OPEN_MPI | SLURM | {"SLURM_PROCID": "0"}, "Open MPI", ("127.0.0.1", None), True),
        (PMI, "PMI", ("127.0.0.1", None), True),
        (PMI | REMOTE | PLACE, "PMI", ("fd00::1", 700), True),
        (SLURM | {"PMI_RANK": "1", "PMI_SIZE": "3"}, "Slurm", ("node01", None), True),
        (PMI | SLURM | {"SLURM_STEP_NUM_TASKS": "1"}, "PMI", ("127.0.0.1", None), True),
        (SLURM, "Slurm", ("node01", None), True),
        (SLURM | {"SLURM_STEP_NUM_TASKS": "3", "SLURM_NTASKS": "9"}, "Slurm", ("node01", None),
         True),
        (SLURM | MASTER, "Slurm", ("10.0.0.9", 800), False),
        (SLURM | {"MASTER_ADDR": "10.0.0.9"}, "Slurm", ("10.0.0.9", None), True),
        ({"PMIX_RANK": "1", "PMIX_NAMESPACE": "x", "SLURM_NTASKS": "3"} | PLACE, "PMIx",
         ("fd00::1", 700), True),
    ],
)  # fmt: skip
def test_job_of_each_launcher(environ, source, place, own_port):
    job = job_from_environment(environ)
    assert (job.rank, job.ranks, job.source, job.own_port) == (1, 3, source, own_port)
    assert job.local_rank == (None if source == "PMIx" or environ == OWN else 1)
    assert job.host == place[0]
    assert len(job.secret) == 32
    if place[1] is None:
        assert 20000 <= job.port < 30000
    else:
        assert job.port == place[1]


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "7"},  # a batch script
        {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_STEP_ID": "4294967291"},
        {"WORLD_SIZE": "1", "RANK": "0"},
        {"ROUNDELAY_RANK": "0", "ROUNDELAY_RANKS": "1"},
        {"ROUNDELAY_ADDRESS": "node1:29400"},
        {"PMIX_NAMESPACE": "x"},
    ],
)
def test_job_of_one(environ):
    job = job_from_environment(environ)
    assert (job.rank, job.ranks, job.port) == (0, 1, 0)


def without(environ, name):
    return {k: v for k, v in environ.items() if k != name}


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        (TORCH | {"RANK": "3"}, "RANK=3 with WORLD_SIZE=3"),
        (TORCH | {"RANK": "-1"}, "RANK='-1'"),
        (TORCH | {"RANK": "1.5"}, "RANK='1.5'"),
        (TORCH | {"WORLD_SIZE": "²"}, "WORLD_SIZE='²'"),
        (TORCH | {"LOCAL_RANK": "x"}, "LOCAL_RANK='x'"),
        (TORCH | {"MASTER_PORT": "0"}, "MASTER_PORT=0"),
        (TORCH | {"MASTER_PORT": "65536"}, "MASTER_PORT=65536"),
        (TORCH | {"ROUNDELAY_SECRET": ""}, "ROUNDELAY_SECRET is empty"),
        (without(TORCH, "MASTER_ADDR"), "MASTER_ADDR is not set"),
        (without(TORCH, "MASTER_PORT"), "MASTER_PORT is not set"),
        (without(TORCH, "WORLD_SIZE"), "WORLD_SIZE is not set"),
        (without(TORCH, "RANK"), "RANK is not set"),
        (without(OWN, "ROUNDELAY_RANK"), "ROUNDELAY_RANK is not set"),
        (without(OWN, "ROUNDELAY_RANKS"), "ROUNDELAY_RANKS is not set"),
        (without(OWN, "ROUNDELAY_ADDRESS"), "ROUNDELAY_ADDRESS=host:port"),
        (OWN | {"ROUNDELAY_ADDRESS": "node1"}, "ROUNDELAY_ADDRESS='node1'"),
        (OPEN_MPI | REMOTE, "ROUNDELAY_ADDRESS=host:port"),
        (without(OPEN_MPI, "OMPI_COMM_WORLD_SIZE") | {"OMPI_COMM_WORLD_LOCAL_SIZE": ""},
         "OMPI_COMM_WORLD_SIZE is not set"),
        (without(OPEN_MPI, "OMPI_COMM_WORLD_RANK") | {"PMIX_RANK": ""},
         "OMPI_COMM_WORLD_RANK is not set"),
        (PMI | REMOTE, "ROUNDELAY_ADDRESS=host:port"),
        (without(PMI, "PMI_RANK"), "PMI_RANK is not set"),
        (SLURM | {"SLURM_STEP_NODELIST": "node[1-"}, "node[1-"),
        (SLURM | {"SLURM_DISTRIBUTION": "arbitrary"}, "SLURM_HOSTFILE=None cannot be read here"),
        (without(SLURM, "SLURM_STEP_NODELIST"), "ROUNDELAY_ADDRESS=host:port"),
        ({"PMIX_RANK": "1", "PMIX_NAMESPACE": "x"}, "PMIX_RANK=1"),
    ],
)  # fmt: skip
def test_half_set_variables_are_named(environ, says):
    with pytest.raises(RoundelayError, match=re.escape(says)):
        job_from_environment(environ)


def test_task_0_is_where_a_host_file_says(tmp_path):
    """Slurm's list of hosts is sorted, and says nothing of an order that a user gives."""
    (tmp_path / "hosts").write_text("gpu5*2\nnode01\n")
    given = SLURM | {"SLURM_DISTRIBUTION": "arbitrary"}
    file = {"SLURM_HOSTFILE": str(tmp_path / "hosts")}
    assert job_from_environment(given | file).host == "gpu5"
    assert job_from_environment(given | {"MASTER_ADDR": "node02"}).host == "node02"


@pytest.mark.parametrize("base", [OWN, TORCH, OPEN_MPI, PMI, SLURM])
def test_ranks_of_a_job_agree_on_place_and_secret(base):
    names = {"ROUNDELAY_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"}
    first = job_from_environment(base)
    other = job_from_environment(base | dict.fromkeys(names & set(base), "2"))
    assert other == replace(first, rank=2)
    given = job_from_environment(base | {"ROUNDELAY_SECRET": "s"})
    assert given.secret != first.secret
    assert given.secret == job_from_environment(OWN | {"ROUNDELAY_SECRET": "s"}).secret


@pytest.mark.parametrize(
    ("base", "change"),
    [
        (TORCH, {"TORCHELASTIC_RUN_ID": "abd"}),
        (TORCH, {"MASTER_PORT": "29501"}),
        (OWN, {"ROUNDELAY_ADDRESS": "node2:29400"}),
        (OPEN_MPI, {"PMIX_NAMESPACE": "prterun-vm-13@1"}),
        (PMI, {"I_MPI_HYDRA_UUID": "1"}),
        (SLURM, {"SLURM_JOB_ID": "8"}),
        (SLURM, {"SLURM_STEP_ID": "1"}),
    ],
)
def test_other_jobs_have_other_secrets(base, change):
    assert job_from_environment(base).secret != job_from_environment(base | change).secret


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a", ["a"]),
        ("node[01-03,7],gpu5", ["node01", "node02", "node03", "node7", "gpu5"]),
        ("r[1-2]n[09-10]-ib", ["r1n09-ib", "r1n10-ib", "r2n09-ib", "r2n10-ib"]),
    ],
)
def test_host_lists_of_slurm(text, hosts):
    assert expand_hosts(text) == hosts


@pytest.mark.parametrize(
    "text", ["", "a,", "a[", "a[]", "a[1", "a]1", "a[3-1]", "a[x]", "a[1-9999999]"]
)
def test_what_is_no_host_list(text):
    with pytest.raises(RoundelayError, match="host"):
        expand_hosts(text)


@pytest.mark.parametrize("text", ["", "a", "a:", ":1", "a:0", "a:65536", "a:x", "::1:5", "[]:5"])
def test_what_is_no_address(text):
    with pytest.raises(RoundelayError, match=re.escape(repr(text))):
        parse_address(text)


def test_identity_of_a_node():
    code = "from roundelay.run import node_identity; print(node_identity())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == node_identity({})
    assert socket.gethostname() in node_identity({})
    assert node_identity({"ROUNDELAY_NODE": "x"}) == "x"


# Ranks that find one another. Most of them are threads here; see `test_patterns` for processes.


def free_port():
    """A port below those that the kernel gives to connections, with 17 free ones after it."""
    while True:
        base = 21000 + secrets.randbelow(8000)
        with contextlib.ExitStack() as held:
            try:
                for port in range(base, base + 18):
                    held.enter_context(socket.create_server(("127.0.0.1", port)))
            except OSError:
                continue
        return base


def jobs(ranks, port=None, secret=b"s" * 32, host="127.0.0.1", own_port=True):
    port = port or free_port()
    return [Job(r, ranks, r, host, port, secret, "test", own_port) for r in range(ranks)]


def outcome(work, *args):
    """What it returns, or its RoundelayError."""
    try:
        return work(*args)
    except RoundelayError as error:
        return error


def all_at_once(work, items):
    with ThreadPoolExecutor(len(items)) as pool:
        return [f.result() for f in [pool.submit(outcome, work, item) for item in items]]


@contextlib.contextmanager
def joined(these, timeout=SOON):
    sessions = all_at_once(lambda job: join(job, timeout), these)
    try:
        for session in sessions:
            if isinstance(session, Exception):
                raise session
        yield sessions
    finally:
        for session in sessions:
            if not isinstance(session, Exception):
                session.close()


def sockets():
    """Sockets and pipes of this process."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            link = os.readlink(f"/proc/self/fd/{name}")
            if "socket" in link:
                found.add(link)
    return found


def test_a_job_comes_together_and_leaves_nothing():
    before, threads = sockets(), threading.active_count()
    with joined(jobs(4)) as sessions:
        assert len({s.nonce for s in sessions}) == 1
        assert len(sessions[0].nonce) == 16
        assert {s.members for s in sessions} == {sessions[3].members}
        assert [m.rank for m in sessions[0].members] == [0, 1, 2, 3]
        assert {m.pid for m in sessions[0].members} == {os.getpid()}
        assert sessions[2].local == (0, 1, 2, 3)
        for k in range(3):
            brought = [f"{s.rank} {k}".encode() * 50_000 * k for s in sessions]
            assert (
                all_at_once(lambda s, b=brought: s.exchange(b[s.rank]), sessions) == [brought] * 4
            )
    assert sockets() == before
    assert threading.active_count() == threads


def test_a_session_that_nobody_holds_ends():
    before, threads = sockets(), set(threading.enumerate())
    sessions = all_at_once(join, jobs(2))
    assert len(set(threading.enumerate()) - threads) == 2
    del sessions
    gc.collect()
    assert set(threading.enumerate()) == threads
    assert sockets() == before


def test_a_closed_session_says_so():
    with joined(jobs(2)) as sessions:
        sessions[1].close()
        sessions[1].close()
        with pytest.raises(RoundelayError, match="closed"):
            sessions[1].exchange(b"")
        with pytest.raises(RoundelayError, match=r"rank 1 .* has gone"):
            sessions[0].exchange(b"")


def test_a_job_of_one_needs_nobody():
    before = sockets()
    with join(job_from_environment({})) as session:
        assert sockets() == before
        assert session.exchange(b"x") == [b"x"]
        assert session.connect([], "x") == {}
        assert session.nodes == ((0,),)


def test_nodes_are_grouped_by_identity():
    code = """
from roundelay.run import join
with join(timeout=30) as s: print(s.rank, s.local, s.nodes)
"""
    names = ["b", "a", "b", "a"]
    processes = [start(code, r, 4, ROUNDELAY_NODE=name) for r, name in enumerate(names)]
    for rank, (_, out, err) in enumerate(results(processes)):
        assert out == f"{rank} {(rank % 2, rank % 2 + 2)} ((0, 2), (1, 3))\n", err


PORT = free_port()


def start(code, rank, ranks, **extra):
    environ = {
        "PYTHONPATH": SOURCE, "ROUNDELAY_RANK": str(rank), "ROUNDELAY_RANKS": str(ranks),
        "ROUNDELAY_ADDRESS": f"127.0.0.1:{PORT}", "OMP_NUM_THREADS": "1", **extra,
    }  # fmt: skip
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def results(processes, timeout=100):
    """Exit status, stdout and stderr of each; none is left behind."""
    try:
        ends = [(process.communicate(timeout=timeout), process) for process in processes]
        return [(process.returncode, *said) for said, process in ends]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


# Who else may be at the port.


@contextlib.contextmanager
def server(port, says):
    """Somebody else's service: None keeps silent, text is sent to whoever comes."""
    with socket.create_server(("127.0.0.1", port)) as listening:
        kept = []
        stop = threading.Event()

        def serve():
            listening.settimeout(0.02)
            while not stop.is_set():
                with contextlib.suppress(TimeoutError):
                    kept.append(listening.accept()[0])
                    if says:
                        kept[-1].sendall(says)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            for sock in kept:
                sock.close()


@pytest.mark.parametrize("says", [None, b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\x07rubbish"])
def test_a_port_that_is_anothers_is_passed_by(says):
    these = jobs(3)
    with server(these[0].port, says):
        begun = time.monotonic()
        with joined(these):
            assert time.monotonic() - begun < 2.5  # where it is waited for, it takes 5 s


def test_a_port_that_is_torchs_is_left_free():
    these = jobs(3, own_port=False)
    rank0 = threading.Thread(target=lambda: outcome(join, these[0], 1.0))
    rank0.start()
    wait_until(lambda: listens(these[0].port + 1))
    assert not listens(these[0].port)
    rank0.join()
    with joined(these):
        pass


def listens(port):
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def wait_until(condition):
    end = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_all_ports_taken():
    (job, *_) = jobs(2)
    with contextlib.ExitStack() as held:
        for port in range(job.port, job.port + 17):
            held.enter_context(socket.create_server(("127.0.0.1", port)))
        with pytest.raises(RoundelayError, match=f"from {job.port} to {job.port + 16}"):
            join(job, 1)


def test_two_jobs_with_one_address_do_not_mix():
    port = free_port()
    these = jobs(3, port, b"a" * 32) + jobs(3, port, b"b" * 32)
    with joined(these) as sessions:
        assert len({s.nonce for s in sessions[:3]}) == len({s.nonce for s in sessions[3:]}) == 1
        assert sessions[0].nonce != sessions[3].nonce


def frame(data):
    return struct.pack(">I", len(data)) + data


def hello(magic=b"rounde\r\n", version=1):
    return magic + struct.pack(">H32sIIII", version, b"n" * 32, 1, 0, 0, 1) + b"roundelay:join"


STRANGERS = {
    "garbage": (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "not a frame"),
    "too long": (b"\0\x10\0\0", "not a frame of at most 4096"),
    "short": (frame(b"x"), "not a hello"),
    "another protocol": (frame(hello(magic=b"gopher\r\n") + b"m" * 32), "not a hello"),
    "another version": (frame(hello(version=9) + b"m" * 32), "version 9"),
    "another secret": (frame(hello() + b"m" * 32), "another secret"),
    "silence": (b"", "nothing for 2 s"),
    "half a frame": (b"\0\0\0\x99abc", "nothing for 2 s"),
}


def test_strangers_are_dropped_and_keep_nobody_waiting(caplog):
    """At rank 0's port while it waits, and at a data port while a rank waits for another."""
    caplog.set_level(logging.WARNING, "roundelay")
    these = jobs(3)
    with ThreadPoolExecutor(4) as pool, contextlib.ExitStack() as held:
        first = [pool.submit(outcome, join, job, SOON) for job in these[:2]]
        wait_until(lambda: listens(these[0].port))
        talk(held, these[0].port)
        begun = time.monotonic()
        wait_until(lambda: len(caplog.records) == len(STRANGERS))
        assert time.monotonic() - begun < 2 + 3  # all at once, not one after the other
        third = pool.submit(outcome, join, these[2], SOON)
        sessions = [f.result() for f in (*first, third)]
        check_log(caplog)
        waiting = pool.submit(outcome, sessions[2].connect, [1], "x")
        talk(held, sessions[2].members[2].port)
        wait_until(lambda: len(caplog.records) == len(STRANGERS))
        assert not waiting.done()
        pool.submit(sessions[1].connect, [2], "x").result()[2][0].close()
        waiting.result()[1][0].close()
        check_log(caplog)
        for session in sessions:
            session.close()


def talk(held, port):
    for words, _ in STRANGERS.values():
        sock = held.enter_context(socket.create_connection(("127.0.0.1", port)))
        sock.sendall(words)


def check_log(caplog):
    messages = sorted(record.getMessage() for record in caplog.records)
    assert all(re.search(r"connection from 127\.0\.0\.1:\d+ dropped", m) for m in messages)
    for _, reason in STRANGERS.values():
        assert any(reason in m for m in messages), reason
    caplog.clear()


# Ranks that do not come, come twice, or go.


def test_missing_ranks_are_named_to_all():
    these = jobs(5)
    found = all_at_once(lambda job: join(job, 1.0), [these[0], these[1], these[3]])
    for error in found:
        assert "ranks 2, 4 have not come within 1 s" in str(error)
        assert f"expected 5 ranks at 127.0.0.1:{these[0].port}" in str(error)


def test_the_first_to_lose_patience_ends_it_for_all():
    these = jobs(3)
    begun = time.monotonic()
    found = all_at_once(lambda job: join(job, 60.0 if job.rank == 0 else 0.5), these[:2])
    assert time.monotonic() - begun < SOON
    assert all("rank 2 has not come" in str(error) for error in found)


def test_rank_0_that_is_missing():
    these = jobs(3)
    with server(these[0].port, b"\0\0\0\x07rubbish"):
        error = outcome(join, these[1], 1.0)
    said = str(error)
    assert "rank 1 has not found rank 0 within 1 s" in said
    assert f"another program answers at {these[0].port}" in said
    assert f"refused at {these[0].port + 1} to {these[0].port + 16}" in said


def has_come(caplog, rank):
    return any(record.getMessage().startswith(f"rank {rank} has come") for record in caplog.records)


def together(caplog, these, late):
    """What all of them get, where one comes after the others."""
    caplog.set_level(logging.DEBUG, "roundelay")
    with ThreadPoolExecutor(len(these) + 1) as pool:
        found = [pool.submit(outcome, join, job, 60.0) for job in these]
        wait_until(lambda: all(has_come(caplog, job.rank) for job in these if job.rank))
        found.append(pool.submit(outcome, join, late, 60.0))
        return [future.result() for future in found]


def test_a_rank_that_comes_twice(caplog):
    these = jobs(4)
    found = together(caplog, these[:3], these[2])
    assert all("rank 2 came twice" in str(error) for error in found)


def test_ranks_that_count_differently(caplog):
    these = jobs(4)
    found = together(caplog, these[:2], replace(these[2], ranks=3))
    assert all("rank 2 at 127.0.0.1 counts 3 ranks, rank 0 counts 4" in str(e) for e in found)


def test_a_host_that_has_no_address():
    (job, *_) = jobs(2, host="no-such-host.invalid")
    for rank in (0, 1):
        with pytest.raises(RoundelayError, match=r"'no-such-host\.invalid', has no address"):
            join(replace(job, rank=rank), 0.5)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_rank_that_is_killed_in_start_up(caplog, number):
    """Rank 2 has come, rank 3 has not; then rank 2 is killed."""
    caplog.set_level(logging.DEBUG, "roundelay")
    these = [
        replace(job, secret=job_from_environment(OWN | {"ROUNDELAY_SECRET": "k"}).secret)
        for job in jobs(4)
    ]
    code = "from roundelay.run import join; join(timeout=60)"
    address = f"127.0.0.1:{these[0].port}"
    process = start(code, 2, 4, ROUNDELAY_ADDRESS=address, ROUNDELAY_SECRET="k")
    with process, ThreadPoolExecutor(2) as pool:
        found = [pool.submit(outcome, join, job, 60.0) for job in these[:2]]
        wait_until(lambda: has_come(caplog, 1) and has_come(caplog, 2))
        process.send_signal(number)
        begun = time.monotonic()
        for future in found:
            assert f"rank 2 (process {process.pid} at 127.0.0.1) has gone" in str(future.result())
        assert time.monotonic() - begun < 5


def test_a_rank_that_goes_is_named_to_all():
    with joined(jobs(4)) as sessions:
        sessions[2].close()
        found = all_at_once(lambda s: s.exchange(b""), [sessions[r] for r in (0, 1, 3)])
        assert all("rank 2 (process" in str(error) for error in found)
    with joined(jobs(3)) as sessions:
        sessions[0].close()
        found = all_at_once(lambda s: s.exchange(b""), sessions[1:])
        assert all("rank 0 (process" in str(error) for error in found)


def test_an_exchange_that_a_rank_does_not_come_to():
    with joined(jobs(3)) as sessions:
        found = all_at_once(lambda s: s.exchange(b"", 0.5), sessions[:2])
        assert all("rank 2 has not come to the exchange within 0.5 s" in str(e) for e in found)
    with joined(jobs(2)) as sessions, pytest.raises(RoundelayError, match="at most 67,108,800"):
        sessions[1].exchange(bytes(2**26))


def test_an_interrupt_leaves_nothing():
    before, threads = sockets(), threading.active_count()
    these = jobs(3)
    for rank in (0, 1):
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            join(these[rank], 30)
        timer.join()
        assert (sockets(), threading.active_count()) == (before, threads)
    with joined(jobs(2)) as sessions:
        there = sockets()
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            sessions[1].connect([0], "x")
        timer.join()
        assert sockets() == there
    assert sockets() == before


# Connections.


def connect_error(session, *args):
    return str(outcome(session.connect, *args))


def test_connections_that_cannot_be():
    with joined(jobs(3)) as sessions:
        assert "other ranks than 1" in connect_error(sessions[1], [1], "x")
        assert "connect to 3" in connect_error(sessions[1], [3], "x")
        assert "each once" in connect_error(sessions[1], [0, 0], "x")
        assert "count = 0" in connect_error(sessions[1], [0], "x", 0)
        assert "2000 bytes" in connect_error(sessions[1], [0], "x" * 2000)
        said = connect_error(sessions[2], [0, 1], "x", 1, 0.3)
        assert "ranks 0, 1 have not connected for 'x' within 0.3 s" in said
        assert f"rank 0 is at 127.0.0.1:{sessions[0].members[0].port}" in said
        said = connect_error(sessions[1], [0], "x", 1, 0.3)
        assert "rank 0 has not connected" in said


def test_a_peer_that_has_gone_is_refused_at_once():
    with joined(jobs(3)) as sessions:
        sessions[2].close()
        said = connect_error(sessions[1], [2], "x", 1, 60.0)
        assert "rank 2 (process" in said or "rank 2 at 127.0.0.1" in said  # whichever is noticed
    with joined(jobs(3)) as sessions, ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(connect_error, sessions[2], [1], "x", 1, 60.0)
        watching = pool.submit(outcome, sessions[0].exchange, b"")
        time.sleep(0.2)
        begun = time.monotonic()
        sessions[1].close()
        assert "rank 1 (process" in waiting.result()  # rank 0 noticed, and told
        assert time.monotonic() - begun < 2.5
        assert "rank 1 (process" in str(watching.result())


def test_counts_that_differ():
    with joined(jobs(2)) as sessions, ThreadPoolExecutor(2) as pool:
        higher = pool.submit(connect_error, sessions[1], [0], "x", 1)
        lower = pool.submit(outcome, sessions[0].connect, [1], "x", 3)
        assert "rank 0 opens 3 connections for 'x', this rank expects 1" in higher.result()
        sessions[1].close()
        found = lower.result()  # an error, or connections that are closed at the other end
        if isinstance(found, RoundelayError):
            assert "rank 1" in str(found)
            return
        for sock in found[1]:
            with contextlib.suppress(ConnectionResetError):
                assert sock.recv(1) == b""
            sock.close()


def test_early_connections_are_kept():
    with joined(jobs(3)) as sessions, ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(sessions[2].connect, [0], "b")
        early = [sessions[1].connect([2], purpose)[2][0] for purpose in ("a", "c", "a")]
        for k, sock in enumerate(early):
            assert sock.gettimeout() is None
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert not os.get_inheritable(sock.fileno())
            sock.sendall(b"%d" % k)
        kept = [sessions[0].connect([2], "b")[2][0], waiting.result()[0][0]]
        for purpose, k in (("c", b"1"), ("a", b"0"), ("a", b"2")):
            kept.append(sessions[2].connect([1], purpose)[1][0])
            assert kept[-1].recv(1) == k
        for sock in early + kept:
            sock.close()


PATTERNS = """
import sys
from dataclasses import replace
from roundelay.run import Job, job_from_environment, join

me = job_from_environment()

def check(session, peers, purpose, count):
    opened = session.connect(peers, purpose, count)
    assert sorted(opened) == sorted(peers)
    for peer, socks in opened.items():
        assert len(socks) == count
        for i, sock in enumerate(socks):
            sock.sendall(f"{purpose} {session.rank:3} {peer:3} {i}".encode())
    for peer, socks in opened.items():
        for i, sock in enumerate(socks):
            wanted = f"{purpose} {peer:3} {session.rank:3} {i}".encode()
            got = b""
            while len(got) < len(wanted):
                part = sock.recv(len(wanted) - len(got))
                assert part, (got, wanted)
                got += part
            assert got == wanted, (got, wanted)
            sock.close()

for n in range(1, me.ranks + 1):
    if me.rank >= n:
        continue
    with join(replace(me, ranks=n, secret=bytes(31) + bytes([n])), 45) as session:
        r = session.rank
        check(session, {(r + 1) % n, (r - 1) % n} - {r}, "ring", 1)
        check(session, [p for p in reversed(range(n)) if p != r], "pairs", 3)
        check(session, [p for p in range(n) if p != r and (p + r) % 3 == 0], "some", 2)
        assert session.exchange(b"%d" % r) == [b"%d" % k for k in range(n)]
print("ok")
"""


def test_patterns_of_connections_of_1_to_9_processes():
    port = free_port()
    address = f"127.0.0.1:{port}"
    processes = [start(PATTERNS, r, 9, ROUNDELAY_ADDRESS=address) for r in range(9)]
    assert results(processes) == [(0, "ok\n", "")] * 9


# Addresses.

IPV6 = Path("/proc/net/if_inet6")


@pytest.mark.skipif(not IPV6.exists() or "lo" not in IPV6.read_text(), reason="no IPv6 here")
def test_ipv6():
    with joined(jobs(3, host="::1")) as sessions, ThreadPoolExecutor(2) as pool:
        assert {m.host for m in sessions[0].members} == {"::1"}
        other = pool.submit(sessions[2].connect, [1], "x")
        mine = sessions[1].connect([2], "x")[2][0]
        assert mine.family == socket.AF_INET6
        for sock in (mine, other.result()[1][0]):
            sock.close()


def test_names():
    with joined(jobs(3, host="localhost")) as sessions:
        assert {m.host for m in sessions[0].members} <= {"127.0.0.1", "::1"}


@pytest.mark.parametrize("asked", ["lo", "127.0.0.1"])
def test_an_interface_that_is_asked_for(monkeypatch, asked):
    monkeypatch.setenv("ROUNDELAY_INTERFACE", asked)
    with joined(jobs(3, host="localhost")) as sessions:
        assert {m.host for m in sessions[0].members} == {"127.0.0.1"}


@pytest.mark.parametrize(
    ("asked", "says"),
    [("lo1", "interfaces of this machine: .*lo"), ("203.0.113.9", "cannot listen on 203.0.113.9")],
)
def test_an_interface_that_is_not_there(monkeypatch, asked, says):
    monkeypatch.setenv("ROUNDELAY_INTERFACE", asked)
    found = all_at_once(lambda job: join(job, 1.0), jobs(2))
    assert any(re.search(says, str(error)) for error in found)


# Forked children.

FORK = """
import os, sys
from roundelay.run import join
session = join()
pid = os.fork()
if pid == 0:
    said = []
    for work in (lambda: session.exchange(b""), lambda: session.connect([1], "x"), session.close):
        try:
            work()
        except Exception as error:
            said.append(f"{type(error).__name__} {error}")
    right = all(s.startswith("RoundelayError this session belongs to process") for s in said)
    del session
    os._exit(0 if right and len(said) == 3 else 1)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert session.exchange(b"x") == [b"x"] * session.ranks  # what the child did does no harm
session.close()
sys.exit(status)
"""


def test_a_forked_child_has_no_session():
    port = free_port()
    processes = [start(FORK, r, 2, ROUNDELAY_ADDRESS=f"127.0.0.1:{port}") for r in range(2)]
    assert results(processes) == [(0, "", "")] * 2
