"""What a running job shows to others: listening sockets, and shared memory."""

import contextlib
import ipaddress
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from ranks import finish, start

LISTEN = "0A"
NOBODY = 65534


@contextlib.contextmanager
def standing(folder, environ, nodes="abb"):
    """The process ids of the ranks of a job that has exchanged data."""
    processes = start("stands", 3, str(folder), module="wire_programs", nodes=nodes,
                      environ=environ)  # fmt: skip
    try:
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        yield [process.pid for process in processes]
    finally:
        (folder / "stop").touch()
        codes, said = finish(processes)
    assert codes == [0] * 3, said


def listening(pids):
    """Addresses at which these processes listen."""
    inodes = set()
    for pid in pids:
        for fd in Path(f"/proc/{pid}/fd").iterdir():
            inodes.update(re.findall(r"socket:\[(\d+)\]", os.readlink(fd)))
    found = []
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(FileNotFoundError):
            for line in Path("/proc/net", table).read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTEN and fields[9] in inodes:
                    found.append(address(fields[1].split(":")[0]))
    return found


def address(digits):
    """Words of 32 bits, each in the machine's order."""
    words = [bytes.fromhex(digits[i : i + 8]) for i in range(0, len(digits), 8)]
    data = b"".join(w[::-1] if sys.byteorder == "little" else w for w in words)
    return str(ipaddress.ip_address(data))


def outside():
    """An address of this machine by which others might reach it, if there is one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return None
        return sock.getsockname()[0]


@pytest.mark.parametrize(
    ("asked", "expected"), [({}, "127.0.0.1"), ({"ROUNDELAY_INTERFACE": "127.0.0.2"}, "127.0.0.2"),
                            ({"ROUNDELAY_INTERFACE": "lo"}, "127.0.0.1")],
)  # fmt: skip
def test_nothing_listens_beyond_the_interface(tmp_path, asked, expected):
    with standing(tmp_path, asked) as pids:
        found = listening(pids)
    assert found == [expected] * 3


@pytest.mark.skipif(outside() is None, reason="this machine has no other address than loopback")
def test_a_job_at_an_outer_address(tmp_path):
    """It listens there, and nowhere else."""
    with socket.socket() as free:
        free.bind((outside(), 0))
        where = f"{outside()}:{free.getsockname()[1]}"
    with standing(tmp_path, {"ROUNDELAY_ADDRESS": where}) as pids:
        found = listening(pids)
    assert found == [outside()] * 3


def memory(pid):
    """Descriptors of a process that lead to shared memory."""
    folder = Path(f"/proc/{pid}/fd")
    return [fd for fd in folder.iterdir() if os.readlink(fd).startswith("/memfd:roundelay")]


ATTEMPT = """
import os, sys
os.setgroups([])
os.setgid(int(sys.argv[1]))
os.setuid(int(sys.argv[1]))
for path in sys.argv[2:]:
    try:
        os.close(os.open(path, os.O_RDONLY))
        print("opened", path)
    except PermissionError:
        print("refused")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_shared_memory_is_of_one_user(tmp_path):
    with standing(tmp_path, {}) as pids:
        shown = [fd for pid in pids for fd in memory(pid)]
        assert len(shown) >= 3  # the memory of each node, and buffers of `empty`
        for user, expected in ((NOBODY, "refused"), (0, "opened")):
            attempt = [sys.executable, "-c", ATTEMPT, str(user), *map(str, shown)]
            said = subprocess.run(attempt, capture_output=True, text=True, check=True).stdout
            assert [line.split()[0] for line in said.splitlines()] == [expected] * len(shown)


def test_shared_memory_has_no_name(tmp_path):
    with standing(tmp_path, {}) as pids:
        for pid in pids:
            assert "/dev/shm/" not in Path(f"/proc/{pid}/maps").read_text()
            links = [os.readlink(fd) for fd in Path(f"/proc/{pid}/fd").iterdir()]
            assert not [link for link in links if link.startswith("/dev/shm/")]
