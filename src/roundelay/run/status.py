"""A job's status from outside: each rank answers its user at a socket that has no file.

The socket's name, in Linux's abstract space, is ``roundelay/USER/JOB/RANK/PID``. It vanishes with
the process. The kernel tells who connects; others than the job's user, and root, get no answer.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from ..errors import RoundelayError
from .door import log
from .loop import READ, Loop, Task, ready
from .watch import Status
from .wire import MEMBER_LIMIT, Channel, ClosedError, DroppedError

PATIENCE: Final = 5.0
"""Seconds that a job may take to answer."""
_NAME: Final = 60
"""Bytes of a job's name in that of a socket, which holds 107."""
_CREDENTIALS: Final = struct.Struct("3i")


class Answering:
    """One rank's socket, and who asks at it."""

    def __init__(
        self, loop: Loop, job: str, rank: int, status: Callable[[], Awaitable[bytes]]
    ) -> None:
        self._loop, self._status = loop, status
        self.tasks: list[Task] = []
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sock.setblocking(False)
        try:
            self._sock.bind(f"\0roundelay/{os.getuid()}/{_short(job)}/{rank}/{os.getpid()}")
            self._sock.listen(8)
        except OSError as error:  # without it the job works as well
            log.info("roundelay status will not see rank %d: %s", rank, error.strerror)
            self.close()
            return
        self.tasks.append(loop.start(self._serve(self._sock)))

    def close(self) -> None:
        """Answers no more."""
        self._sock.close()

    async def _serve(self, sock: socket.socket) -> None:
        while True:
            await ready(sock, READ)
            with suppress(OSError):
                guest, _ = sock.accept()
                self._loop.start(self._tell(guest))

    async def _tell(self, guest: socket.socket) -> None:
        try:
            size = _CREDENTIALS.size
            said = guest.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
            if _CREDENTIALS.unpack(said)[1] in (os.getuid(), 0):
                self._loop.limit(PATIENCE)
                await Channel(guest).send(await self._status())
        except (ClosedError, OSError):  # TimeoutError, too
            pass
        finally:
            guest.close()


def running() -> dict[str, list[str]]:
    """The jobs of this user with ranks on this machine, and the names of their sockets."""
    found: dict[str, list[str]] = {}
    with suppress(OSError):
        for line in Path("/proc/net/unix").read_text("utf-8", "replace").splitlines()[1:]:
            name = line.split(" ")[-1]
            parts = name.split("/")
            if parts[0] == "@roundelay" and len(parts) >= 5 and parts[1] == str(os.getuid()):
                names = found.setdefault("/".join(parts[2:-2]), [])
                if name not in names:  # connections have the name as well
                    names.append(name)
    for names in found.values():
        names.sort(key=lambda name: int(name.split("/")[-2]))
    return found


def status_of(job: str | None) -> Status:
    """What the ranks of a job do.

    Args:
        job: its name, or the address at which its ranks met; None: the one that runs here.

    Raises:
        RoundelayError: there is no such job, or several, or it does not answer.
    """
    jobs = running()
    names = ", ".join(sorted(jobs)) or "none"
    if job is None and len(jobs) != 1:
        raise RoundelayError(
            f"{len(jobs)} jobs of this user run on this machine ({names}); expected the name of "
            "one, or exactly one that runs. A job has ranks to see when it has two or more"
        )
    chosen = next(iter(jobs)) if job is None else _short(job)
    if chosen not in jobs:
        raise RoundelayError(
            f"no job {chosen!r} of this user has a rank on this machine; running here: {names}. "
            "Ask on a machine where it has ranks"
        )
    for name in jobs[chosen]:  # of the ranks of this machine, the first that lives
        with suppress(OSError, DroppedError):
            return msgspec.json.decode(_ask(name), type=Status)
    raise RoundelayError(
        f"job {chosen!r} does not answer within {PATIENCE:g} s; expected one of its ranks here to. "
        "Are their processes stopped?"
    )


def _ask(name: str) -> bytes:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(PATIENCE)
        sock.connect("\0" + name[1:])
        length = int.from_bytes(_exactly(sock, 4), "big")
        if length > MEMBER_LIMIT:
            raise DroppedError("not a frame")
        return _exactly(sock, length)


def _exactly(sock: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise ClosedError("closed by the other end")
        data += part
    return data


def _short(job: str) -> str:
    return job.encode()[:_NAME].decode("utf-8", "ignore").replace(" ", "_")
