"""Rank 0's part in start-up: wait for all ranks, then send everyone the table."""

from __future__ import annotations

import os
import secrets
import socket
import time
from contextlib import suppress
from typing import Final

from ..errors import RoundelayError
from .door import Door, listen, log
from .environment import Job
from .interfaces import asked_address, is_address, is_loopback, plain, resolve
from .loop import Loop, Task
from .machine import node_identity
from .members import (
    JOIN,
    Arrival,
    Member,
    Star,
    Table,
    address_text,
    candidates,
    decode_arrival,
    encode_failure,
    encode_table,
    open_door,
    ranks_text,
    seen_from,
    send_all,
)
from .sealed import encrypts
from .wire import Channel, ClosedError, DroppedError, Hello, encrypts_differ

LINGER: Final = 0.5
"""Seconds that rank 0 stays after a failure, so that late ranks hear of it, too."""


class Gathering:
    """Rank 0 in `join`."""

    def __init__(self, loop: Loop, job: Job, timeout: float) -> None:
        self._loop = loop
        self._job = job
        self._timeout = timeout
        self._deadline = time.monotonic() + timeout
        self._members: dict[int, Member] = {}
        self._links: dict[int, Channel] = {}
        self._there: list[Channel] = []
        self._watches: list[Task] = []
        self._failure: str | None = None

    def run(self) -> Star:
        """Waits for all ranks, and sends them the table.

        Raises:
            RoundelayError: ranks are missing, came twice, have gone, or disagree.
        """
        asked = asked_address(os.environ)
        sock = self._listen()
        where = address_text(self._job.host, sock.getsockname()[1])
        door = Door(self._loop, sock, self._job.secret, self._admit)
        try:
            self._wait(where)
            door.close()
            return self._finish(asked)
        except BaseException as error:
            self._tell(str(error) if isinstance(error, RoundelayError) else "rank 0 was ended")
            raise
        finally:
            door.close()

    def _wait(self, where: str) -> None:
        if not self._loop.run(self._complete, lambda: self._deadline):
            raise RoundelayError(self._missing(where))
        if self._failure:
            expected = self._job.ranks - 1
            self._loop.run(lambda: len(self._there) >= expected, time.monotonic() + LINGER)
            raise RoundelayError(self._failure)

    def _complete(self) -> bool:
        return self._failure is not None or len(self._links) == self._job.ranks - 1

    def _listen(self) -> socket.socket:
        ports, busy = candidates(self._job), ""
        hosts = self._hosts()
        for port in ports:
            for host in hosts:
                try:
                    return listen(host, port)
                except OSError as error:
                    busy = f"{address_text(host, port)}: {error.strerror}"
        raise RoundelayError(
            f"rank 0 cannot listen on {self._job.host} at any port from {ports[0]} to {ports[-1]} "
            f"(at last {busy}); expected one to be free. Choose another port by MASTER_PORT or "
            "ROUNDELAY_ADDRESS"
        )

    def _hosts(self) -> list[str]:
        """Where to listen; a name may mean other addresses on other machines."""
        host = self._job.host
        if is_address(host):
            return [host if _is_here(host) else "::" if ":" in host else "0.0.0.0"]
        found = resolve(host, self._deadline)
        return found if is_loopback(host) else ["::", "0.0.0.0"]

    async def _admit(self, hello: Hello, channel: Channel) -> None:
        if hello.purpose != JOIN or hello.target != 0:
            raise DroppedError(f"it asks rank {hello.target} for {hello.purpose!r}")
        if hello.sealed != encrypts():
            differ = encrypts_differ(0, hello.source, hello.sealed)
            self._failure = self._failure or differ
            raise DroppedError(differ)
        try:
            arrival = decode_arrival(await channel.receive())
        except ClosedError:
            raise  # it will come again
        except DroppedError as error:
            self._failure = self._failure or f"rank {hello.source} came, but {error}"
            raise
        self._there.append(channel)
        member = arrival.member
        log.debug("rank %d has come: process %d at %s", member.rank, member.pid, member.host)
        problem = self._problem(arrival)
        if problem:
            self._failure = self._failure or problem
            return
        self._members[member.rank] = member
        self._links[member.rank] = channel
        self._deadline = min(self._deadline, time.monotonic() + arrival.wait)
        self._watches.append(self._loop.start(self._watch(member, channel)))

    async def _watch(self, member: Member, channel: Channel) -> None:
        """A member has nothing to say until it has the table."""
        try:
            await channel.receive()
            reason = "it spoke out of turn"
        except DroppedError as gone:
            reason = str(gone)
        who = f"rank {member.rank} (process {member.pid} at {member.host})"
        self._failure = self._failure or (
            f"{who} has gone during start-up: {reason}; expected all {self._job.ranks} ranks. "
            "Its own output may say why"
        )

    def _problem(self, arrival: Arrival) -> str | None:
        member, where = arrival.member, address_text(self._job.host, self._job.port)
        if arrival.ranks != self._job.ranks:
            return (
                f"rank {member.rank} at {member.host} counts {arrival.ranks} ranks, rank 0 counts "
                f"{self._job.ranks}; expected the same number everywhere"
            )
        known = self._members.get(member.rank)
        if known or not 0 < member.rank < self._job.ranks:
            first = f"process {known.pid} at {known.host}" if known else f"process {os.getpid()}"
            return (
                f"rank {member.rank} came twice: {first} and process {member.pid} at "
                f"{member.host}; expected each rank once. If there are two jobs at {where}, give "
                "each a ROUNDELAY_SECRET of its own"
            )
        return None

    def _missing(self, where: str) -> str:
        missing = set(range(1, self._job.ranks)) - set(self._members)
        verb = "have" if len(missing) > 1 else "has"
        return (
            f"{ranks_text(missing)} {verb} not come within {self._timeout:g} s; expected "
            f"{self._job.ranks} ranks at {where}. Were all of them started, and can they reach "
            "this address?"
        )

    def _finish(self, asked: str | None) -> Star:
        reached = [plain(link.sock.getsockname()[0]) for link in self._links.values()]
        outside = next((host for host in reached if not is_loopback(host)), None)
        mine = asked or outside or reached[0]
        door = open_door(self._job, mine, asked is not None)
        try:
            me = Member(0, node_identity(), os.getpid(), mine, door.getsockname()[1])
            others = [seen_from(outside, self._members[r]) for r in sorted(self._members)]
            table = Table(secrets.token_bytes(16), (me, *others), 0, self._job.title)
            for task in self._watches:
                self._loop.stop(task)
            send_all(self._loop, encode_table(table), self._links.values())
        except BaseException:
            door.close()
            raise
        return Star(table, door, self._links)

    def _tell(self, reason: str) -> None:
        for task in self._watches:
            self._loop.stop(task)
        for channel in self._there:
            with suppress(ClosedError):
                channel.post(encode_failure(reason))
            channel.sock.close()


def _is_here(host: str) -> bool:
    try:
        listen(host).close()
    except OSError:
        return False
    return True
