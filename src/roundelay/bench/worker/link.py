"""A worker's end of its connection to the controller.

Lines of JSON over a Unix socket. With the first one come two file descriptors: a page of memory
that all workers of the side share, and a pipe that only the controller holds the other end of.
When that end closes, for whatever reason, the kernel ends this process, even if it spins in a
library that waits for a rank that is gone.
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import select
import signal
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

Handler = Callable[..., "dict[str, Any]"]


class Link:
    """The connection, from the moment it is made."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(address)
        line, files, _, _ = socket.recv_fds(self._socket, 4096, 2)
        page, lifeline = files
        self.settings: dict[str, Any] = json.loads(line)
        self.page = mmap.mmap(page, 0)
        _die_with(lifeline)
        _take_priority(self.settings["priority"])

    def ready(self, rank: int, version: str) -> None:
        """Say who this is, once the library is up."""
        self._send({"rank": rank, "version": version, "pid": os.getpid()})

    def serve(self, handlers: Mapping[str, Handler]) -> None:
        """Obey commands until told to quit; sleep in between.

        A handler takes what the command says as keywords and gives the reply. What it raises is
        told to the controller, and ends the service.
        """
        for command in self._commands():
            name = command.pop("do")
            if name == "quit":
                return
            try:
                reply = handlers[name](**command)
            except Exception as error:
                self._send({"error": f"{type(error).__name__}: {error}"[:500]})
                raise
            self._send(reply)

    def _commands(self) -> Iterator[dict[str, Any]]:
        with self._socket.makefile("rb") as lines:
            for line in lines:
                yield json.loads(line)

    def _send(self, reply: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(reply).encode() + b"\n")


def _die_with(lifeline: int) -> None:
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:  # it closed before we asked to be told
        os._exit(1)


def _take_priority(nice: int | None) -> None:
    """Give this process's session the controller's priority: some launchers open sessions."""
    if nice is not None:
        with suppress(OSError):
            Path("/proc/self/autogroup").write_text(str(nice))
