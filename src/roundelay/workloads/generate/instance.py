"""An instance of the model as the front sees it: its processes, and the requests it has."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import msgspec

from ...errors import RoundelayError
from .messages import Ask, Cancel, Down, End, Fault, Options, Piece, Ready, Up

START: Final = 120.0
"""Seconds that an instance has to start."""
GRACE: Final = 10.0
"""Seconds that it has to end, once its requests are done or nobody waits for them."""
_LONGEST: Final = 1 << 24


class InstanceDown(RoundelayError):
    """The instance ended before the request did."""


class Instance:
    """One instance; `start` it, and start it again when it is down.

    Attributes:
        ready: what it said when it was ready; None while it is not.
        gone: is set when it has ended.
    """

    def __init__(self, options: Options) -> None:
        """An instance that is not started yet."""
        self.options = options
        self.ready: Ready | None = None
        self.gone = asyncio.Event()
        self._asked: dict[int, asyncio.Queue[Piece]] = {}
        self._number = 0
        self._process: asyncio.subprocess.Process | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._why = ""
        self._write = msgspec.json.Encoder()

    @property
    def load(self) -> int:
        """Requests that it has."""
        return len(self._asked)

    async def start(self) -> Ready:
        """Start its ranks, and wait until they are ready.

        Raises:
            InstanceDown: it could not be started.
        """
        self.gone.clear()
        self._why = ""
        name = f"roundelay-{os.getpid()}-{secrets.token_hex(8)}"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind("\0" + name)
        listener.listen(1)
        listener.setblocking(False)
        words = [sys.executable, "-m", "roundelay", "launch", "-n", str(self.options.ranks)]
        words += ["-m", f"{__package__}.rank", name, self._write.encode(self.options).decode()]
        try:
            # A session of its own: Ctrl-C in the terminal is for the front alone.
            self._process = await asyncio.create_subprocess_exec(
                *words, stdin=asyncio.subprocess.DEVNULL, start_new_session=True
            )
            async with asyncio.timeout(START):
                reader = await self._met(listener)
                first = await self._next(reader)
        except TimeoutError:
            await self._end(0)
            raise InstanceDown(f"the instance was not ready after {START:g} s") from None
        except BaseException:
            await self._end(0)
            raise
        finally:
            listener.close()
        if not isinstance(first, Ready):
            await self._end()
            why = first.text if isinstance(first, Fault) else "it ended while it started"
            raise InstanceDown(f"the instance could not start: {why}")
        self.ready = first
        self._reading = asyncio.create_task(self._read(reader))
        return first

    async def _met(self, listener: socket.socket) -> asyncio.StreamReader:
        """The line to rank 0, once it calls."""
        assert self._process is not None
        loop = asyncio.get_running_loop()
        calling = asyncio.create_task(loop.sock_accept(listener))
        ending = asyncio.create_task(self._process.wait())
        try:
            await asyncio.wait({calling, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not calling.done():
                raise InstanceDown("the instance ended before it was ready")
            sock, _ = calling.result()
            if _user(sock) != os.getuid():
                sock.close()
                raise InstanceDown("another user's process called instead of the instance")
            reader, self._writer = await asyncio.open_unix_connection(sock=sock, limit=_LONGEST)
            return reader
        finally:
            for task in (calling, ending):
                task.cancel()

    async def _next(self, reader: asyncio.StreamReader) -> Up | None:
        """The next message; None at the end."""
        try:
            line = await reader.readline()
        except OSError:
            return None
        return msgspec.json.decode(line, type=Up) if line.endswith(b"\n") else None

    async def _read(self, reader: asyncio.StreamReader) -> None:
        """Pass on what it says, until it ends."""
        while message := await self._next(reader):
            if isinstance(message, Piece):
                if queue := self._asked.get(message.id):
                    queue.put_nowait(message)
            elif isinstance(message, Fault):
                self._why = message.text
        self.ready = None
        self.give_up(f"the instance ended: {self._why or 'a rank died'}")
        await self._end()
        self.gone.set()

    def give_up(self, why: str) -> None:
        """End every request that it has by an error."""
        for number, queue in self._asked.items():
            queue.put_nowait(Piece(number, why, 0, "error"))

    async def ask(self, ask: Ask) -> AsyncIterator[Piece]:
        """A request's pieces, as they come; leaving early cancels it.

        Args:
            ask: whose `id` is set here.

        Raises:
            InstanceDown: it ended before the request did.
        """
        if self.ready is None:
            raise InstanceDown("the instance is not ready")
        self._number += 1
        number = ask.id = self._number
        queue = self._asked[number] = asyncio.Queue()
        done = False
        try:
            self._send(ask)
            while not done:
                piece = await queue.get()
                if piece.finish == "error":
                    raise InstanceDown(piece.text)
                done = piece.finish is not None
                yield piece
        finally:
            del self._asked[number]
            if not done:
                self._send(Cancel(number))

    def _send(self, message: Down) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(self._write.encode(message) + b"\n")

    async def stop(self) -> None:
        """Let it finish what it has, and end."""
        self._send(End())
        if self._reading is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self._reading), GRACE)
        await self._end()

    async def _end(self, grace: float = GRACE) -> None:
        """No process of it is left when this returns; it has so many seconds to end by itself."""
        if self._writer is not None:
            self._writer.close()  # which rank 0 notices
            self._writer = None
        process = self._process
        if process is None:
            return
        for number, seconds in ((0, grace), (signal.SIGTERM, GRACE), (signal.SIGKILL, GRACE)):
            with suppress(ProcessLookupError):
                process.send_signal(number)
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), seconds)
                break
        self._process = None


def _user(sock: socket.socket) -> int:
    """Who is at the other end of a Unix socket."""
    size = struct.calcsize("3i")
    found: int = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[
        1
    ]
    return found
