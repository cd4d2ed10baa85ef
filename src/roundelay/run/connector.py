"""Connections for data between pairs of ranks: the lower rank calls, the higher answers."""

from __future__ import annotations

import errno
import socket
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from ..errors import RoundelayError
from .door import Door, call, has_ended, log
from .links import Links
from .loop import Loop, pause
from .members import Member, address_text, ranks_text
from .room import JOINING, REGROUP, Room
from .wire import Channel, ClosedError, DroppedError, Hello, connect_handshake

_AGAIN: Final = (errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.EINTR)


@dataclass
class _Request:
    """What one call of `connect` waits for."""

    purpose: str
    count: int
    sockets: dict[int, dict[int, socket.socket]]
    failure: str | None = None
    left: int = field(init=False)

    def __post_init__(self) -> None:
        self.left = self.count * len(self.sockets)

    def put(self, peer: int, index: int, sock: socket.socket) -> None:
        self.sockets[peer][index] = sock
        self.left -= 1

    def wants(self, hello: Hello) -> bool:
        """Whether it is for this call; if so and the counts differ, the call has failed."""
        got = self.sockets.get(hello.source)
        if got is None or hello.purpose != self.purpose or hello.index in got:
            return False
        if hello.count != self.count:
            self.failure = self.failure or (
                f"rank {hello.source} opens {hello.count} connections for {self.purpose!r}, this "
                f"rank expects {self.count}; expected the same count at both"
            )
        return True

    def missing(self) -> list[int]:
        return [peer for peer, got in self.sockets.items() if len(got) < self.count]

    def close(self) -> None:
        for got in self.sockets.values():
            for sock in got.values():
                sock.close()


class Connector:
    """Opens connections to other ranks, and keeps those that come before they are asked for."""

    def __init__(
        self,
        loop: Loop,
        rank: int,
        members: tuple[Member, ...],
        sock: socket.socket,
        key: bytes,
        links: Links,
        room: Room,
        generation: int,
    ) -> None:
        self._loop = loop
        self._rank = rank
        self._members = members
        self._key = key
        self._links = links
        self._room, self._generation = room, generation
        self._early: dict[int, deque[tuple[Hello, socket.socket]]] = {}
        self._request: _Request | None = None
        self._door = Door(loop, sock, key, self._admit)
        later, room.later = room.later, []
        for hello, channel in later:
            loop.start(self._admit_later(hello, channel))

    def connect(
        self, peers: Iterable[int], purpose: str, count: int, timeout: float, deadline: float
    ) -> dict[int, list[socket.socket]]:
        """`count` connections with each peer; see `Session.connect`."""
        request = _Request(purpose, count, {peer: {} for peer in peers})
        self.refresh()
        tasks = []
        try:
            self._request = request
            self._take_early(request)
            for peer in request.sockets:
                if peer > self._rank:
                    tasks += [self._loop.start(self._dial(request, peer, i)) for i in range(count)]
            self._links.listen()
            self._loop.run(lambda: self._settled(request), deadline)
            self._check(request, timeout)
            return _blocking(request)
        except BaseException:
            request.close()
            raise
        finally:
            self._request = None
            for task in tasks:
                self._loop.stop(task)

    def refresh(self) -> None:
        """To be called when the loop has stood still; see `Door.refresh`."""
        self._door.refresh()

    def stop(self) -> None:
        """Takes no more; the socket stays open, and who connects meanwhile waits in its queue."""
        self._door.stop()

    def close(self) -> None:
        """Listens no more, and closes what nobody asked for."""
        self._door.close()
        self.drop_early()

    def drop_early(self) -> None:
        """Closes what nobody asked for."""
        for kept in self._early.values():
            for _, sock in kept:
                sock.close()
        self._early.clear()

    async def _admit(self, hello: Hello, channel: Channel) -> None:
        if hello.purpose in (REGROUP, JOINING):
            await self._room.admit(hello.purpose, channel)
            return
        number, _, purpose = hello.purpose.partition(":")
        generation = int(number) if number.isdecimal() else -1
        if generation > self._generation:
            self._room.later.append((hello, channel))
        elif generation == self._generation:
            self._put(replace(hello, purpose=purpose), channel)
        else:
            raise DroppedError(f"it asks for {hello.purpose!r}, which is over")

    async def _admit_later(self, hello: Hello, channel: Channel) -> None:
        try:
            await self._admit(hello, channel)
        except DroppedError as error:
            log.warning("a connection was dropped: %s", error)
            channel.sock.close()

    def _put(self, hello: Hello, channel: Channel) -> None:
        if hello.target != self._rank or not 0 <= hello.source < self._rank:
            raise DroppedError(f"it is rank {hello.source} and asks for rank {hello.target}")
        if not 0 <= hello.index < hello.count:
            raise DroppedError(f"it is number {hello.index} of {hello.count}")
        request = self._request
        if request is not None and request.wants(hello):
            request.put(hello.source, hello.index, channel.sock)
        else:
            self._early.setdefault(hello.source, deque()).append((hello, channel.sock))

    def _take_early(self, request: _Request) -> None:
        for peer in request.sockets:
            kept = self._early.pop(peer, deque())
            for hello, sock in kept:
                if has_ended(sock):
                    sock.close()
                elif request.wants(hello):
                    request.put(peer, hello.index, sock)
                else:
                    self._early.setdefault(peer, deque()).append((hello, sock))

    def _settled(self, request: _Request) -> bool:
        if request.left and self._links.lost and not request.failure:
            gone = [peer for peer in request.missing() if peer in self._links.lost]
            if gone:
                request.failure = (
                    f"{self._links.gone(gone[0])}; expected {request.count} connections with it "
                    f"for {request.purpose!r}. Its own output may say why"
                )
        return request.failure is not None or not request.left

    def _check(self, request: _Request, timeout: float) -> None:
        if request.failure is not None:
            raise RoundelayError(request.failure)
        missing = request.missing()
        if missing:
            member = self._members[missing[0]]
            where = address_text(member.host, member.port)
            verb = "have" if len(missing) > 1 else "has"
            raise RoundelayError(
                f"{ranks_text(missing)} {verb} not connected for {request.purpose!r} within "
                f"{timeout:g} s (rank {member.rank} is at {where}); expected {request.count} "
                "connections with each. Do both sides ask for it, and can they reach each other? "
                "ROUNDELAY_INTERFACE chooses the network"
            )

    async def _dial(self, request: _Request, peer: int, index: int) -> None:
        member = self._members[peer]
        purpose = f"{self._generation}:{request.purpose}"
        hello = Hello(self._rank, peer, purpose, index, request.count)
        while True:
            sock = None
            try:
                sock = await call(member.host, member.port)
                await connect_handshake(Channel(sock), self._key, hello)
                request.put(peer, index, sock)
                return
            except ClosedError:
                pass  # it was too slow for the other end, or that is ending: the next call shows
            except (DroppedError, OSError) as error:
                if getattr(error, "errno", None) not in _AGAIN:
                    request.failure = request.failure or self._unreachable(member, error)
                    return
            finally:
                if sock is not None and request.sockets[peer].get(index) is not sock:
                    sock.close()
            await pause(0.05)

    def _unreachable(self, member: Member, error: Exception) -> str:
        reason = getattr(error, "strerror", None) or str(error)
        return (
            f"rank {member.rank} at {address_text(member.host, member.port)} cannot be reached: "
            f"{reason}; expected it to listen there. Has it ended, or is the network between "
            "closed? ROUNDELAY_INTERFACE chooses the network"
        )


def _blocking(request: _Request) -> dict[int, list[socket.socket]]:
    opened: dict[int, list[socket.socket]] = {}
    for peer, got in request.sockets.items():
        opened[peer] = [got[index] for index in range(request.count)]
        for sock in opened[peer]:
            with suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setblocking(True)
    return opened
