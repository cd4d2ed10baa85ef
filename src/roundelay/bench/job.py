"""One side of a benchmark: a job of processes that obey commands over Unix sockets.

Nothing of a job outlives its controller: see `worker.link`.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ..errors import RoundelayError
from .machine import cores, priority
from .worker.gate import page_bytes

START_SECONDS: Final = 60.0
QUIT_SECONDS: Final = 10.0


class SideLost(RoundelayError):
    """A side that failed, fell silent or ended; the message says how, and what it printed last."""


class Command(NamedTuple):
    """How a side is started.

    Attributes:
        lines: command lines, one a process to start.
        env: the environment of each process.
    """

    lines: Sequence[Sequence[str]]
    env: Sequence[Mapping[str, str]]


class _Link:
    """The controller's end of the connection to one worker."""

    def __init__(self, connection: socket.socket, lifeline: int) -> None:
        self.socket, self.lifeline = connection, lifeline
        self._left = b""

    def send(self, **command: Any) -> None:
        """Send one command."""
        self.socket.sendall(json.dumps(command).encode() + b"\n")

    def read(self) -> dict[str, Any] | None:
        """What has come since: a whole reply, or None if there is none yet.

        Raises:
            EOFError: the worker is gone.
        """
        data = self.socket.recv(1 << 20)
        if not data:
            raise EOFError
        line, end, rest = (self._left + data).partition(b"\n")
        self._left = rest if end else line
        reply: dict[str, Any] | None = json.loads(line) if end else None
        return reply

    def close(self) -> None:
        """Hang up; if the worker still runs, this kills it."""
        self.socket.close()
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1


class Job:
    """A running side.

    Attributes:
        name: such as "gloo".
        ranks: how many workers it has.
        version: what the library says of itself.
    """

    def __init__(
        self, name: str, ranks: int, command: Command, folder: Path, address: Path
    ) -> None:
        """Start the processes; `wait` for them before anything else.

        Args:
            name: of the side.
            ranks: how many workers will connect.
            command: how to start them, with the address in their command lines.
            folder: where to write what they print.
            address: of the socket to make.
        """
        self.name, self.ranks, self.version = name, ranks, ""
        self._links: list[_Link] = []
        self._broken = self._ended = False
        self._pids: list[int] = []
        self._segments_before = _segments()
        self._log = folder / f"{name}.log"
        page = os.memfd_create(f"roundelay-bench-{name}")
        os.truncate(page, page_bytes(max(2, ranks)))
        self._page, self.page = page, mmap.mmap(page, 0)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(address))
        self._listener.listen(ranks)
        with self._log.open("wb") as log:
            self._processes = [
                # A group of its own, so that Ctrl-C is ours alone; but no session of its own,
                # which would have a scheduling priority of its own.
                subprocess.Popen(line, env=env, stdin=subprocess.DEVNULL, stdout=log,
                                 stderr=subprocess.STDOUT, process_group=0)
                for line, env in zip(command.lines, command.env, strict=True)
            ]  # fmt: skip

    def wait(self) -> None:
        """Wait until all workers have started their library.

        Raises:
            SideLost: they did not.
        """
        deadline = time.monotonic() + START_SECONDS
        while len(self._links) < self.ranks:
            self._accept(deadline)
        self._listener.close()
        hellos = self._replies(deadline - time.monotonic())
        found = sorted(hello["rank"] for hello in hellos)
        if found != list(range(self.ranks)):
            raise SideLost(f"{self.name}: ranks {found} came; expected 0 to {self.ranks - 1}")
        self._links = [link for _, link in sorted(
            zip((h["rank"] for h in hellos), self._links, strict=True), key=lambda pair: pair[0]
        )]  # fmt: skip
        self.version = hellos[0]["version"]
        self._pids = [hello["pid"] for hello in hellos]

    def _accept(self, deadline: float) -> None:
        self._listener.settimeout(0.1)
        try:
            connection, _ = self._listener.accept()
        except TimeoutError:
            if any(p.poll() not in (None, 0) for p in self._processes):
                raise self._lost("ended while starting") from None
            if time.monotonic() > deadline:
                raise self._lost(f"did not start in {START_SECONDS:.0f} s") from None
            return
        theirs, ours = os.pipe()
        self._links.append(_Link(connection, ours))
        settings = {"priority": priority(), "cores": cores()}
        line = json.dumps(settings).encode()
        socket.send_fds(connection, [line], [self._page, theirs])
        os.close(theirs)

    def ask(self, seconds: float, do: str, **command: Any) -> list[dict[str, Any]]:
        """Give all workers one command; their replies, by rank.

        Raises:
            SideLost: a worker failed, or a reply is missing after `seconds`.
        """
        for link in self._links:
            with contextlib.suppress(OSError):  # who is gone is noticed when reading
                link.send(do=do, **command)
        return self._replies(seconds)

    def _replies(self, seconds: float) -> list[dict[str, Any]]:
        deadline = time.monotonic() + seconds
        replies: dict[int, dict[str, Any]] = {}
        with selectors.DefaultSelector() as selector:
            for i, link in enumerate(self._links):
                selector.register(link.socket, selectors.EVENT_READ, (i, link))
            while len(replies) < len(self._links):
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    missing = [str(i) for i in range(len(self._links)) if i not in replies]
                    raise self._lost(
                        f"no reply in {seconds:.0f} s from worker {', '.join(missing)}"
                    )
                for key, _ in ready:
                    i, link = key.data
                    reply = self._read(i, link)
                    if reply is not None:
                        replies[i] = reply
                        selector.unregister(link.socket)
        return [replies[i] for i in range(len(self._links))]

    def _read(self, i: int, link: _Link) -> dict[str, Any] | None:
        try:
            reply = link.read()
        except (EOFError, OSError):
            raise self._lost(f"worker {i} ended") from None
        if reply is not None and "error" in reply:
            self._broken = True
            raise SideLost(f"{self.name}: worker {i}: {reply['error']}")
        return reply

    def _lost(self, how: str) -> SideLost:
        self._broken = True
        time.sleep(0.2)  # for its last words
        printed = self._log.read_text("utf-8", "replace").split("\n")
        last = " | ".join([line.strip() for line in printed if line.strip()][-4:])
        return SideLost(f"{self.name} {how}" + (f"; it printed last: {last[:600]}" if last else ""))

    def close(self) -> None:
        """End: in good order if the side is sound, so that its library cleans up after itself."""
        if self._ended:
            return
        left = set[Path]()
        for link in self._links:
            with contextlib.suppress(OSError):
                link.send(do="quit")
        if self._broken or len(self._links) < self.ranks or not self._pids:
            left = self._segments()
            self._hang_up()
        if not self._finished(QUIT_SECONDS):
            left = self._segments()
            self._hang_up()
        self._end()
        for path in left:
            path.unlink(missing_ok=True)

    def _hang_up(self) -> None:
        """Kill the workers, and ask what started them to end."""
        for link in self._links:
            link.close()
        for process in self._processes:
            if process.poll() is None:
                process.terminate()

    def _finished(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while any(process.poll() is None for process in self._processes):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def _segments(self) -> set[Path]:
        """Shared memory that the workers made: a library that is killed leaves it behind."""
        found = set[Path]()
        for pid in self._pids:
            with contextlib.suppress(OSError):
                maps = Path(f"/proc/{pid}/maps").read_text("utf-8", "replace")
                found |= {p for p in _segments() if str(p) in maps}
        return found - self._segments_before

    def _end(self) -> None:
        self._ended = True
        if not self._finished(3.0):
            for process in self._processes:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        for link in self._links:
            link.close()
        self._listener.close()
        self.page.close()
        os.close(self._page)


def _segments() -> set[Path]:
    """Files in the folder of shared memory."""
    with contextlib.suppress(OSError):
        return set(Path("/dev/shm").iterdir())
    return set()
