"""The part of all ranks but rank 0 in start-up: find rank 0, and tell it of oneself."""

from __future__ import annotations

import os
import time

from ..errors import RoundelayError
from .door import call
from .environment import Job
from .interfaces import asked_address, is_address, plain, resolve
from .loop import FOREVER, Loop, Task, pause
from .machine import node_identity
from .members import (
    GRACE,
    JOIN,
    Arrival,
    Member,
    Star,
    Table,
    address_text,
    candidates,
    decode_table,
    encode_arrival,
    open_door,
)
from .wire import MEMBER_LIMIT, Channel, DroppedError, Hello, connect_handshake

ATTEMPT = 5.0
"""Seconds until a connection that says nothing is given up, and tried again."""
STAGGER = 0.1
"""Seconds that the first port is tried alone, in which rank 0 is nearly always found."""


class Seeking:
    """A rank other than 0 in `join`."""

    def __init__(self, loop: Loop, job: Job, timeout: float) -> None:
        self._loop = loop
        self._job = job
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._found: Channel | None = None
        self._met: dict[int, str] = {}

    def run(self) -> Star:
        """Finds rank 0, and waits until it sends the table.

        Raises:
            RoundelayError: rank 0 is not there, has gone, or gave up.
        """
        asked = asked_address(os.environ)
        channel = self._seek()
        try:
            mine = asked or plain(channel.sock.getsockname()[0])
            door = open_door(self._job, mine, asked is not None)
            try:
                me = Member(
                    self._job.rank, node_identity(), os.getpid(), mine, door.getsockname()[1]
                )
                return Star(self._introduce(channel, me), door, {0: channel})
            except BaseException:
                door.close()
                raise
        except BaseException:
            channel.sock.close()
            raise

    def _seek(self) -> Channel:
        """A connection to rank 0, with the handshake done."""
        host = self._job.host
        hosts = [host] if is_address(host) else resolve(host, self._deadline)
        first, *rest = candidates(self._job)
        tasks = [self._pursue(h, first, 0.0) for h in hosts]
        tasks += [self._pursue(h, port, STAGGER) for port in rest for h in hosts]
        try:
            self._loop.run(lambda: self._found is not None, self._deadline)
        except BaseException:
            if self._found:
                self._found.sock.close()
            raise
        finally:
            for task in tasks:
                self._loop.stop(task)
        if self._found is None:
            raise RoundelayError(self._nobody())
        return self._found

    def _pursue(self, host: str, port: int, after: float) -> Task:
        async def pursue() -> None:
            await pause(after)
            wait = 0.02
            while True:
                self._loop.limit(ATTEMPT)
                self._met[port] = await self._attempt(host, port)
                self._loop.limit(FOREVER)
                await pause(wait)
                wait = min(1.5 * wait, 0.5)

        return self._loop.start(pursue())

    async def _attempt(self, host: str, port: int) -> str:
        """Finds rank 0 at this address, or says what else is there."""
        sock = None
        try:
            sock = await call(host, port)
            channel = Channel(sock)
            await connect_handshake(channel, self._job.secret, Hello(self._job.rank, 0, JOIN))
            if self._found is None:
                channel.limit = MEMBER_LIMIT
                self._found, sock = channel, None
            return "rank 0"
        except TimeoutError:
            return "no answer" if sock is None else "somebody who says nothing"
        except OSError as error:
            return (error.strerror or str(error)).lower()
        except DroppedError as error:
            return str(error)
        finally:
            if sock is not None:
                sock.close()

    def _nobody(self) -> str:
        ports = candidates(self._job)
        kinds: dict[str, list[int]] = {}
        for port, met in sorted(self._met.items()):
            kinds.setdefault(met, []).append(port)
        met = "; ".join(f"{what} at {_ports_text(at)}" for what, at in kinds.items())
        return (
            f"rank {self._job.rank} has not found rank 0 within {self._timeout:g} s; expected it "
            f"at {address_text(self._job.host, ports[0])} or a port up to {ports[-1]}, and met: "
            f"{met or 'nobody'}. Was rank 0 started, and does the address lead to its machine?"
        )

    def _introduce(self, channel: Channel, me: Member) -> Table:
        answer: list[bytes] = []
        peer = channel.sock.getpeername()

        async def talk() -> None:
            wait = max(0.0, self._deadline - time.monotonic())
            await channel.send(encode_arrival(Arrival(me, self._job.ranks, wait)))
            answer.append(await channel.receive())

        task = self._loop.start(talk())
        try:
            self._loop.run(lambda: task.ended, self._deadline + GRACE)
            if answer:
                return decode_table(answer[0], self._job.ranks)
            reason = f"it did not answer within {self._timeout:g} s"
        except DroppedError as gone:
            reason = str(gone)
        finally:
            self._loop.stop(task)
        raise RoundelayError(
            f"rank 0 at {address_text(plain(peer[0]), peer[1])} has gone during start-up: "
            f"{reason}; expected the table of {self._job.ranks} ranks. Its own output may say why"
        )


def _ports_text(ports: list[int]) -> str:
    """``29400, 29402 to 29416``."""
    runs: list[list[int]] = []
    for port in ports:
        if runs and runs[-1][-1] == port - 1:
            runs[-1].append(port)
        else:
            runs.append([port])
    return ", ".join(f"{r[0]} to {r[-1]}" if len(r) > 1 else str(r[0]) for r in runs)
