"""A job that has come together."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext, suppress
from types import TracebackType
from typing import Final, Self
from weakref import WeakSet

from ..errors import RoundelayError
from .connector import Connector
from .environment import Job, job_from_environment
from .gathering import Gathering
from .keeper import Keeper
from .links import DATA_LIMIT, Links
from .loop import Loop
from .machine import node_identity
from .members import Member, Star, Table, address_text
from .regroup import Regroup, enter
from .room import Room
from .sealed import encrypts
from .seeking import Seeking
from .status import Answering
from .watch import Crowd, Watch
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
        generation: how often the ranks have been counted anew, by `regroup`.
        name: what the job is called.
        communicators: those of this session that are open.
    """

    def __init__(
        self, rank: int, loop: Loop, star: Star, key: bytes, timeout: float,
        room: Room | None = None, keeper: Keeper | None = None,
    ) -> None:  # fmt: skip
        """See `join`, `accept` and `regroup`."""
        table = star.table
        self.rank: Final = rank
        self.ranks: Final = len(table.members)
        self.nonce: Final = table.nonce
        self.generation: Final = table.generation
        self.members: Final = table.members
        self.nodes: Final = _by_node(table.members)
        self.local: Final = next(ranks for ranks in self.nodes if rank in ranks)
        self.name: Final = table.name
        self._table, self._key, self._timeout = table, key, timeout
        self._owner = os.getpid()
        _OPEN.add(self)
        self._closed = self._over = False
        self._loop, self._door = loop, star.door
        self._links = Links(loop, rank, table.members, star.links)
        self._room = room or Room(table.members)
        self._room.members = table.members
        self.communicators: Final = Crowd()
        self._connector = self._keeper = self._watch = self._answering = None
        if star.door:
            self._connector = Connector(
                loop, rank, table.members, star.door, key, self._links, self._room, self.generation
            )
            self._watch = Watch(loop, rank, table.members, self._links, table.name,
                                self.communicators)  # fmt: skip
            self._answering = Answering(loop, table.name, rank, self._watch.status)
            self._keeper = keeper or Keeper(loop, "roundelay-session")

    def _turn(self) -> AbstractContextManager[None]:
        """Within this the loop is the caller's."""
        return self._keeper.paused() if self._keeper else nullcontext()

    def exchange(self, data: bytes, timeout: float | None = None) -> list[bytes]:
        """What each rank brings, in the order of ranks; every rank must call it.

        Args:
            data: bytes of this rank; all together at most 64 MiB.
            timeout: seconds to wait for the others; without it, that of `join`.

        Raises:
            RoundelayError: a rank has gone or does not come in time. The session can then only be
                closed, or gone on from by `regroup`.
        """
        self._check()
        if self._over:
            raise RoundelayError("an exchange has failed before; expected a session that is whole")
        if len(data) > DATA_LIMIT:
            raise RoundelayError(
                f"{len(data):,} bytes to exchange; expected at most {DATA_LIMIT:,}. Send more by "
                "connections of `connect`"
            )
        with self._turn():
            if self._connector:
                self._connector.refresh()
            seconds = self._timeout if timeout is None else timeout
            try:
                return self._links.exchange(bytes(data), seconds)
            except BaseException:
                self._check()  # another thread may have closed it
                self._links.close()
                self._over = True
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
        with self._turn():
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
        self._loop.end()  # another thread may be waiting there
        if self._keeper:
            self._keeper.end()
        with self._turn():
            if self._connector:
                self._connector.close()
            self._stop_watching()
            self._room.close()
            self._loop.close()
            self._links.close()

    def _forget(self) -> None:
        """In a forked child: close its copies of sockets, or nobody could see the parent end."""
        self._links.forget()
        if self._door:
            self._door.close()
        if self._answering:
            self._answering.close()

    def _stop_watching(self) -> None:
        if self._watch and self._answering:
            for task in (*self._watch.tasks, *self._answering.tasks):
                self._loop.stop(task)
            self._answering.close()

    @property
    def invitation(self) -> str:
        """What a new process needs to become a rank: ``host:port/key`` of rank 0. It is secret."""
        first = self.members[0]
        return f"{address_text(first.host, first.port)}/{self._key.hex()}"

    def newcomers(self, count: int, timeout: float) -> int:
        """How many processes wait at this rank to become ranks; waits until there are so many.

        Not where a rank has gone, for then they cannot be taken in.
        """
        self._check()

        def there() -> bool:
            self._room.prune()
            return len(self._room.newcomers) >= count or bool(self._links.lost)

        with self._turn():
            self._loop.run(there, time.monotonic() + timeout)
            self._check()
            return len(self._room.newcomers)

    def expect_others(self) -> None:
        """Refuses where this process was started alone, and nobody could reach it.

        Raises:
            RoundelayError: it was.
        """
        if self._door is None:
            raise RoundelayError(
                "a job of one process has no others to go on with; expected two ranks or more. "
                "Start it by a launcher: roundelay launch -n 2"
            )

    @property
    def lost(self) -> dict[int, str]:
        """Ranks that have gone, and how that was noticed."""
        return self._links.lost

    def regroup(self, timeout: float, newcomers: int = 0) -> Session:
        """The session of those ranks that have not gone, and of newcomers.

        All that live must call it, and be through with connections of this one, which ends.

        Args:
            timeout: seconds that the others may take to come.
            newcomers: how many of those who wait at rank 0 become ranks; all others must have
                come then.

        Raises:
            RoundelayError: too few have come, or this rank was left out. This session can be used
                as before.
        """
        self._check()
        self.expect_others()
        assert self._connector is not None
        with self._turn():
            self._connector.refresh()
            regroup = Regroup(self._loop, self.rank, self._table, self._key, self._room, timeout)
            star = regroup.run(newcomers, self._connector.stop)
            star.door = self._door
            self._connector.drop_early()
            self._links.close()
            self._stop_watching()
            self._closed = True
            me = self.members[self.rank].identity
            rank = next(m.rank for m in star.table.members if m.identity == me)
            return Session(rank, self._loop, star, self._key, timeout, self._room,
                           self._keeper)  # fmt: skip

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


_OPEN: Final[WeakSet[Session]] = WeakSet()


def _forked() -> None:
    for session in list(_OPEN):
        session._forget()


os.register_at_fork(after_in_child=_forked)


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
        key = derive(job.secret, b"data:" + star.table.nonce)
        return Session(job.rank, loop, star, key, timeout)
    except BaseException:
        _drop(loop, star)
        raise


def accept(invitation: str, timeout: float = 60.0) -> Session:
    """Becomes a rank of a job that goes on, when its ranks take newcomers in.

    Args:
        invitation: `Session.invitation` of the job.
        timeout: seconds to wait for that.

    Raises:
        RoundelayError: it is no invitation, nobody answers, or nobody is taken in.
    """
    loop = Loop()
    star = None
    try:
        rank, key, star = enter(loop, invitation, timeout)
        return Session(rank, loop, star, key, timeout)
    except BaseException:
        _drop(loop, star)
        raise


def _drop(loop: Loop, star: Star | None) -> None:
    loop.close()
    if star is not None:
        if star.door:
            star.door.close()
        for channel in star.links.values():
            channel.sock.close()


def _alone(job: Job, timeout: float) -> Session:
    """A job of one rank needs no network."""
    me = Member(0, node_identity(), os.getpid(), "127.0.0.1", 0)
    star = Star(Table(secrets.token_bytes(16), (me,), 0, job.title), None)
    return Session(0, Loop(), star, job.secret, timeout)


def _by_node(members: tuple[Member, ...]) -> tuple[tuple[int, ...], ...]:
    nodes: dict[str, list[int]] = {}
    for member in members:
        nodes.setdefault(member.node, []).append(member.rank)
    return tuple(tuple(ranks) for ranks in nodes.values())
