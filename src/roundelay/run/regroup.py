"""Ranks count themselves anew: without those that have gone, or with newcomers.

The lowest rank that lives leads. The others dial it, one candidate after another; it waits until
each rank has come or is known to have ended, and sends everyone the new table. A rank that is
silent, which may be the network's fault, is left out only by more than half of those who are not
known to have ended: so no two halves of a job go on side by side.
"""

from __future__ import annotations

import errno
import os
import secrets
import select
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from ..errors import RoundelayError
from .door import call
from .environment import parse_address
from .interfaces import asked_address, is_loopback, plain
from .loop import Loop, pause
from .machine import node_identity
from .members import (
    GRACE,
    Arrival,
    Member,
    Star,
    Table,
    address_text,
    decode_table,
    encode_arrival,
    encode_table,
    open_listener,
    ranks_text,
    seen_from,
    send_all,
)
from .room import JOINING, REGROUP, Room
from .wire import MEMBER_LIMIT, Channel, DroppedError, Hello, connect_handshake

AGAIN: Final = 0.05
"""Seconds between two attempts to reach a rank."""


class Regroup:
    """One rank's part in it."""

    def __init__(
        self, loop: Loop, rank: int, table: Table, key: bytes, room: Room, timeout: float
    ) -> None:
        """For a session.

        Args:
            loop: of the session.
            rank: this one.
            table: of the ranks as they are counted so far.
            key: of the session's door.
            room: where others wait for this rank to lead.
            timeout: seconds that the others may take to come.
        """
        self._loop, self._key, self._room, self._timeout = loop, key, room, timeout
        self._table, self._me = table, table.members[rank]
        self._deadline = time.monotonic() + timeout
        self._dead: set[int] = set()

    def run(self, newcomers: int, stop: Callable[[], None]) -> Star:
        """The new table, with links; its door is left open.

        Args:
            newcomers: how many of those who wait at rank 0 are taken in. If any, no rank may be
                missing.
            stop: makes the door serve no more, which is done before anybody has the new table.

        Raises:
            RoundelayError: too few ranks have come, or this one was left out.
        """
        for candidate in self._table.members[: self._me.rank]:
            if (channel := self._follow(candidate)) is not None:
                stop()
                return Star(self._answer, None, {0: channel})
        return self._lead(newcomers, stop)

    def _follow(self, leader: Member) -> Channel | None:
        """The link with a leader who has sent a table; None where it has gone or is silent."""
        found: list[Channel] = []
        task = self._loop.start(self._ask(leader, found))
        try:
            if not self._loop.run(lambda: task.ended, self._deadline + GRACE):
                self._deadline = time.monotonic() + self._timeout  # for the next to lead
        finally:
            self._loop.stop(task)
        if not found:
            return None
        self._room.empty()  # they are to look for a leader again
        return found[0]

    async def _ask(self, leader: Member, found: list[Channel]) -> None:
        hello = Hello(self._me.rank, leader.rank, REGROUP)
        while not await self._has_ended(leader):
            channel = None
            try:
                channel = Channel(await call(leader.host, leader.port))
                await connect_handshake(channel, self._key, hello)
                channel.limit = MEMBER_LIMIT
                wait = max(0.0, self._deadline - time.monotonic())
                arrival = Arrival(self._me, len(self._table.members), wait, self._table.generation)
                await channel.send(encode_arrival(arrival))
                self._answer = decode_table(await channel.receive())
                found.append(channel)
                return
            except (DroppedError, OSError):
                await pause(AGAIN)
            finally:
                if channel is not None and channel not in found:
                    channel.sock.close()

    async def _has_ended(self, member: Member) -> bool:
        """Whether it has certainly ended: no such process, or nobody listens any more."""
        if member.node == self._me.node:
            return process_ended(member.pid)
        try:
            (await call(member.host, member.port)).close()
        except OSError as error:
            return error.errno == errno.ECONNREFUSED
        return False

    def _lead(self, newcomers: int, stop: Callable[[], None]) -> Star:
        others = [m for m in self._table.members if m is not self._me]
        probes = [self._loop.start(self._probe(m)) for m in others]
        try:
            complete = lambda: self._complete(others, newcomers)  # noqa: E731
            self._loop.run(complete, self._first_deadline)
        finally:
            for probe in probes:
                self._loop.stop(probe)
        if problem := self._problem(others, newcomers):
            self._room.empty(problem)
            raise RoundelayError(problem)
        stop()
        return self._send(newcomers)

    async def _probe(self, member: Member) -> None:
        while not await self._has_ended(member):
            await pause(AGAIN)
        self._dead.add(member.rank)

    def _complete(self, others: list[Member], newcomers: int) -> bool:
        self._room.prune()
        there = self._room.ranks
        if newcomers and self._dead:
            return True
        known = all(m.identity in there or m.rank in self._dead for m in others)
        return known and len(self._room.newcomers) >= newcomers

    def _first_deadline(self) -> float:
        """When the first of those who have come gives up."""
        return min([self._deadline, *(w.until for w in self._room.ranks.values())])

    def _problem(self, others: list[Member], newcomers: int) -> str | None:
        came = [m for m in others if m.identity in self._room.ranks]
        dead = [m.rank for m in others if m not in came and m.rank in self._dead]
        silent = [m.rank for m in others if m not in came and m.rank not in self._dead]
        there = len(self._room.newcomers)
        if newcomers and dead:
            return f"{ranks_text(dead)} ended when newcomers were to be taken in; call shrink first"
        if newcomers and (silent or there < newcomers):
            late = ranks_text(silent) if silent else f"{newcomers - there} of them"
            return (
                f"{newcomers} newcomers were to be taken in, and {late} did not come within "
                f"{self._timeout:g} s; expected all ranks to call grow"
            )
        if silent and 2 * (len(came) + 1) <= len(others) + 1 - len(dead):
            return (
                f"{1 + len(came)} of {len(others) + 1} ranks have come within {self._timeout:g} s "
                f"to go on; {ranks_text(silent)} did not, and may live: expected more than half. "
                "Is the network between them cut, or do they not call shrink?"
            )
        return None

    def _send(self, newcomers: int) -> Star:
        """Counts who has come, and tells them."""
        there = self._room.ranks
        kept = [m for m in self._table.members if m is self._me or m.identity in there]
        links = [there[m.identity] for m in kept if m is not self._me]
        new = list(self._room.newcomers.items())[:newcomers]
        outside = None if is_loopback(self._me.host) else self._me.host
        for identity, waiting in new:
            kept.append(seen_from(outside, waiting.arrival.member))
            links.append(waiting)
            del self._room.newcomers[identity]
        generation = 1 + max([self._table.generation, *(w.arrival.generation for w in links)])
        members = tuple(replace(m, rank=r) for r, m in enumerate(kept))
        table = Table(secrets.token_bytes(16), members, generation, self._table.name)
        # This rank is the lowest that lives, so it is rank 0 from now on.
        channels = {r: waiting.channel for r, waiting in enumerate(links, 1)}
        send_all(self._loop, encode_table(table), channels.values())
        there.clear()
        return Star(table, None, channels)


def enter(loop: Loop, invitation: str, timeout: float) -> tuple[int, bytes, Star]:
    """A newcomer's way into a job: its rank, the key of the job's doors, table and links.

    Args:
        loop: of the session to be.
        invitation: ``host:port/key``, as rank 0 of the job gives it.
        timeout: seconds to wait until the job takes newcomers in.

    Raises:
        RoundelayError: it is no invitation, nobody answers, or nobody is taken in.
    """
    where, _, text = invitation.partition("/")
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise RoundelayError(
            f"an invitation to {where or 'nowhere'} with a key of {len(text)} digits; expected "
            "host:port/key with 64 digits, as Communicator.invitation gives it"
        )
    host, port = parse_address(where)
    newcomer = _Newcomer(loop, host, port, key, time.monotonic() + timeout)
    task = loop.start(newcomer.ask())
    try:
        loop.run(lambda: task.ended, time.monotonic() + timeout + GRACE)
        if newcomer.star is None:
            raise RoundelayError(
                f"the job at {address_text(host, port)} has not taken this process in within "
                f"{timeout:g} s: {newcomer.met}; expected its ranks to call grow. Is the "
                "invitation of its rank 0 as it is now?"
            )
    except BaseException:
        newcomer.close()
        raise
    finally:
        loop.stop(task)
    return newcomer.rank, key, newcomer.star


class _Newcomer:
    def __init__(self, loop: Loop, host: str, port: int, key: bytes, until: float) -> None:
        self._loop, self._host, self._port, self._key, self._until = loop, host, port, key, until
        self.met, self.rank = "nobody answers", -1
        self.star: Star | None = None
        self._channel: Channel | None = None

    async def ask(self) -> None:
        """Asks again and again until it has a table."""
        while self.star is None:
            try:
                await self._attempt()
            except OSError as error:
                self.met = (error.strerror or str(error)).lower()
            except DroppedError as error:
                self.met = str(error)
            if self.star is None:
                self.close()
                await pause(AGAIN)

    async def _attempt(self) -> None:
        sock = await call(self._host, self._port)
        channel = self._channel = Channel(sock)
        await connect_handshake(channel, self._key, Hello(0, 0, JOINING))
        channel.limit = MEMBER_LIMIT
        self.met = "it does not take newcomers in"
        asked = asked_address(os.environ)
        mine = asked or plain(sock.getsockname()[0])
        door = open_listener(mine, asked is not None or is_loopback(self._host))
        try:
            me = Member(0, node_identity(), os.getpid(), mine, door.getsockname()[1])
            wait = max(0.0, self._until - time.monotonic())
            await channel.send(encode_arrival(Arrival(me, 0, wait)))
            table = decode_table(await channel.receive())
            ranks = [m.rank for m in table.members if m.identity == me.identity]
            if not ranks:
                raise DroppedError("it sent a table without this process")
        except BaseException:
            door.close()
            raise
        self.rank, self.star = ranks[0], Star(table, door, {0: channel})

    def close(self) -> None:
        """Closes what is open."""
        if self._channel is not None:
            self._channel.sock.close()


def process_ended(pid: int) -> bool:
    """Whether a process of this node has ended, be it that nobody has asked for its status yet."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    try:
        watch = select.poll()
        watch.register(fd, select.POLLIN)
        return bool(watch.poll(0))
    finally:
        with suppress(OSError):
            os.close(fd)
