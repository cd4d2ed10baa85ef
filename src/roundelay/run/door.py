"""Sockets of a job: listening ones that keep strangers out, and calling a listening one."""

from __future__ import annotations

import errno
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from .interfaces import family_of, plain
from .loop import READ, WRITE, Loop, Task, pause, ready
from .wire import MEMBER_LIMIT, Channel, ClosedError, DroppedError, Hello, accept_handshake

HANDSHAKE: Final = 2.0
"""Seconds that whoever connects may take to show that it belongs to the job."""
TRUSTED: Final = 30.0
"""Seconds that it may then take to say what it wants."""
GUESTS: Final = 512
"""Handshakes under way at once, beyond which connections wait in the kernel's queue."""

log: Final = logging.getLogger("roundelay")

Admit = Callable[[Hello, Channel], Awaitable[None]]


def listen(host: str, port: int = 0) -> socket.socket:
    """A listening socket; on ``::`` it takes IPv4 as well.

    Raises:
        OSError: the address or the port cannot be had.
    """
    sock = socket.socket(family_of(host), socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(host != "::"))
        sock.bind(_sockaddr(host, port))
        sock.listen(socket.SOMAXCONN)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


async def call(host: str, port: int) -> socket.socket:
    """A connection to an address.

    Raises:
        OSError: it cannot be had.
    """
    sock = socket.socket(family_of(host), socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        code = sock.connect_ex(_sockaddr(host, port))
        if code == errno.EINPROGRESS:
            await ready(sock, WRITE)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        # Where nobody listens, the kernel may give the same port to our end: TCP meets itself.
        if code == 0 and sock.getsockname() == sock.getpeername():
            code = errno.ECONNREFUSED
        if code:
            raise OSError(code, os.strerror(code))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        sock.close()
        raise
    return sock


def has_ended(sock: socket.socket) -> bool:
    """Whether the other end closed it without a word, as a process does that died."""
    try:
        return not sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


def _sockaddr(host: str, port: int) -> Any:
    """IPv6 addresses may name a scope, which only getaddrinfo turns into a number."""
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)[0][4]


class Door:
    """A listening socket; whoever passes the handshake is given to `admit`.

    `admit` is given the connection, and raises DroppedError for one that is not wanted after all.
    Strangers are logged and dropped, and never keep others waiting.
    """

    def __init__(self, loop: Loop, sock: socket.socket, key: bytes, admit: Admit) -> None:
        self._loop = loop
        self._sock = sock
        self._key = key
        self._admit = admit
        self._guests: dict[Task, socket.socket] = {}
        self._task = loop.start(self._open())

    def refresh(self) -> None:
        """Gives handshakes under way their full time again, after the loop has stood still."""
        for task in self._guests:
            task.deadline = time.monotonic() + HANDSHAKE

    def stop(self) -> None:
        """Takes no more connections, and drops handshakes under way; the socket stays open."""
        self._loop.stop(self._task)
        for task, sock in list(self._guests.items()):
            self._loop.stop(task)
            sock.close()  # a coroutine that has not begun cannot do so
        self._guests.clear()

    def close(self) -> None:
        """Listens no more."""
        self.stop()
        self._sock.close()

    async def _open(self) -> None:
        while True:
            await ready(self._sock, READ)
            if len(self._guests) >= GUESTS:
                await pause(0.02)
                continue
            try:
                sock, address = self._sock.accept()
            except BlockingIOError:
                continue
            except OSError as error:  # such as too many open files
                log.warning("a connection could not be taken: %s", error)
                await pause(0.1)
                continue
            peer = f"{plain(address[0])}:{address[1]}"
            guest = self._loop.start(self._receive(sock, peer), time.monotonic() + HANDSHAKE)
            self._guests[guest] = sock

    async def _receive(self, sock: socket.socket, peer: str) -> None:
        guest = self._loop.current
        channel = Channel(sock)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            hello = await accept_handshake(channel, self._key)
            channel.limit = MEMBER_LIMIT
            self._loop.limit(TRUSTED)
            await self._admit(hello, channel)
        except ClosedError as gone:
            # Probes of ports do this, and so do ranks of other jobs that look for their rank 0.
            log.info("connection from %s dropped: %s", peer, gone)
            sock.close()
        except (DroppedError, OSError) as error:
            late = isinstance(error, TimeoutError)
            reason = f"it said nothing for {HANDSHAKE:g} s" if late else str(error)
            log.warning("connection from %s dropped: %s", peer, reason)
            sock.close()
        except BaseException:
            sock.close()
            raise
        finally:
            if guest is not None:
                self._guests.pop(guest, None)
