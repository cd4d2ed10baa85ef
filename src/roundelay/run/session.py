"""A job that has come together."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

from ..errors import RoundelayError
from .connector import Connector
from .environment import Job, job_from_environment
from .gathering import Gathering
from .links import DATA_LIMIT, Links
from .loop import Loop
from .machine import node_identity
from .members import Member, Star
from .sealed import encrypts
from .seeking import Seeking
from .wire import derive

PURPOSE_LIMIT: Final = 1024
"""Bytes of a purpose of `Session.connect`."""


class Session:
    """The ranks of a job, as `join` found them; for start-up, before data flows by other ways.

    Threads take turns. `close` ends it; as a context manager it closes itself.

    Attributes:
        rank: this process.
        ranks: how many there are.
        nonce: 16 random bytes that all ranks of this session share, and no other session has.
        members: every rank's node, process id and address.
        local: the ranks on this node, this one included, ascending.
        nodes: the ranks of each node, ascending, nodes in the order of their first ranks.
    """

    def __init__(self, job: Job, loop: Loop, star: Star, timeout: float) -> None:
        self.rank: Final = job.rank
        self.ranks: Final = job.ranks
        self.nonce: Final = star.nonce
        self.members: Final = star.members
        self.nodes: Final = _by_node(star.members)
        self.local: Final = next(ranks for ranks in self.nodes if job.rank in ranks)
        self._timeout = timeout
        self._owner = os.getpid()
        self._turn = threading.RLock()
        self._closed = False
        self._loop = loop
        self._links = Links(loop, job.rank, star.members, star.links)
        key = derive(job.secret, b"data:" + star.nonce)
        self._connector = (
            Connector(loop, job.rank, star.members, star.door, key, self._links)
            if star.door
            else None
        )

    def exchange(self, data: bytes, timeout: float | None = None) -> list[bytes]:
        """What each rank brings, in the order of ranks; every rank must call it.

        Args:
            data: bytes of this rank; all together at most 64 MiB.
            timeout: seconds to wait for the others; without it, that of `join`.

        Raises:
            RoundelayError: a rank has gone or does not come in time. The session is closed then.
        """
        self._check()
        if len(data) > DATA_LIMIT:
            raise RoundelayError(
                f"{len(data):,} bytes to exchange; expected at most {DATA_LIMIT:,}. Send more by "
                "connections of `connect`"
            )
        with self._turn:
            if self._connector:
                self._connector.refresh()
            seconds = self._timeout if timeout is None else timeout
            try:
                return self._links.exchange(bytes(data), seconds)
            except BaseException:
                self.close()
                raise

    def connect(
        self, peers: Iterable[int], purpose: str, count: int = 1, timeout: float | None = None
    ) -> dict[int, list[socket.socket]]:
        """TCP connections with other ranks, who must ask for them with the same purpose and count.

        Any set of pairs will do, in any order. The n-th connection of a list leads to the n-th of
        the peer's list. They are blocking, without delay (TCP_NODELAY), and the caller's to close.

        Args:
            peers: other ranks.
            purpose: what they are for; connections for another purpose are kept until asked for.
            count: how many with each peer.
            timeout: seconds to wait for the others; without it, that of `join`.

        Raises:
            RoundelayError: a peer cannot be reached, has gone, or does not come in time. What was
                opened by this call is closed then; the session can still be used.
        """
        self._check()
        asked = list(peers)
        self._check_request(asked, purpose, count)
        if not asked or self._connector is None:
            return {}
        seconds = self._timeout if timeout is None else timeout
        with self._turn:
            deadline = time.monotonic() + seconds
            return self._connector.connect(asked, purpose, count, seconds, deadline)

    def close(self) -> None:
        """Ends the session; connections that `connect` gave stay open. Closing twice is fine.

        Raises:
            RoundelayError: this is a forked child.
        """
        if self._closed:
            return
        self._check()
        self._closed = True
        if self._connector:
            self._connector.close()
        self._loop.close()
        self._links.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if os.getpid() == self._owner:  # a forked child that leaves has nothing to close
            self.close()

    def __del__(self) -> None:
        with suppress(Exception):
            if os.getpid() == self._owner:
                self.close()

    def _check(self) -> None:
        if os.getpid() != self._owner:
            raise RoundelayError(
                f"this session belongs to process {self._owner}, and this is process "
                f"{os.getpid()}, forked from it; expected the process that called join. Fork "
                "before joining, or use the session in the parent only"
            )
        if self._closed:
            raise RoundelayError("the session is closed; expected an open one. Call join again")

    def _check_request(self, peers: list[int], purpose: str, count: int) -> None:
        others = set(range(self.ranks)) - {self.rank}
        wrong = [peer for peer in peers if peer not in others]
        if wrong or len(set(peers)) != len(peers):
            raise RoundelayError(
                f"connect to {wrong[0] if wrong else peers!r}; expected other ranks than "
                f"{self.rank}, from 0 to {self.ranks - 1}, each once"
            )
        if count < 1:
            raise RoundelayError(f"count = {count}; expected 1 or more connections with each peer")
        if len(purpose.encode()) > PURPOSE_LIMIT:
            raise RoundelayError(
                f"a purpose of {len(purpose.encode())} bytes; expected at most {PURPOSE_LIMIT}"
            )


def join(job: Job | None = None, timeout: float = 60.0) -> Session:
    """Meets the other ranks of the job.

    Args:
        job: the job; without it, what the environment says (see `job_from_environment`).
        timeout: seconds to wait for all ranks to come.

    Raises:
        RoundelayError: the environment contradicts itself, rank 0 is not found, or ranks are
            missing, came twice or have gone. Every rank that is there gets the error.
    """
    job = job_from_environment() if job is None else job
    if job.ranks == 1:
        return _alone(job, timeout)
    encrypts()  # what is missing for it is an error before anything begins
    loop = Loop()
    star = None
    try:
        side = Gathering(loop, job, timeout) if job.rank == 0 else Seeking(loop, job, timeout)
        star = side.run()
        return Session(job, loop, star, timeout)
    except BaseException:
        loop.close()
        if star is not None:
            if star.door:
                star.door.close()
            for channel in star.links.values():
                channel.sock.close()
        raise


def _alone(job: Job, timeout: float) -> Session:
    """A job of one rank needs no network."""
    me = Member(0, node_identity(), os.getpid(), "127.0.0.1", 0)
    return Session(job, Loop(), Star((me,), secrets.token_bytes(16), None), timeout)


def _by_node(members: tuple[Member, ...]) -> tuple[tuple[int, ...], ...]:
    nodes: dict[str, list[int]] = {}
    for member in members:
        nodes.setdefault(member.node, []).append(member.rank)
    return tuple(tuple(ranks) for ranks in nodes.values())
