"""Communicators made from others: of some of the ranks, of those that live, or with new ones."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, Self

import numpy as np

from .calls import Calls
from .errors import RoundelayError
from .run.among import Among
from .run.group import Exchange
from .run.session import Session

JOB: Final = "w"
"""The tag of a communicator of all ranks; `+` and how often they were counted anew may follow."""


class Membership(Calls):
    """Who belongs to a communicator, and how others come of it; see `Communicator`."""

    ranks: int
    _session: Session
    _members: list[int]
    _tag: str
    _timeout: float
    _fixed_order: bool
    _splits: int

    @abstractmethod
    def _make(
        self, exchange: Exchange, session: Session, members: Sequence[int], rank: int, tag: str,
        timeout: float, fixed_order: bool, arena: int | None = None,
        names: Sequence[str] | None = None,
    ) -> Self: ...  # fmt: skip

    @abstractmethod
    def _usable(self) -> None: ...

    @abstractmethod
    def _in_order(self, do: Callable[[], Any]) -> Any: ...

    @abstractmethod
    def _exchange(self, data: bytes) -> list[bytes]: ...

    @abstractmethod
    def _leave(self) -> None: ...

    @abstractmethod
    def interrupt(self) -> None:
        """See `Communicator`."""

    def split(
        self, color: int, key: int | None = None, *, fixed_order: bool | None = None
    ) -> Self | None:
        """A communicator of the ranks that give the same color; every rank must call it.

        Args:
            color: a number from 0 up; less than 0 is for none, and returns None.
            key: order of ranks in the new communicator; without it, as here.
            fixed_order: see `init`; without it, as here.
        """
        self._usable()
        key = self.rank if key is None else key
        for name, number in (("color", color), ("key", key)):
            if not isinstance(number, int | np.integer) or not -(2**63) <= number < 2**63:
                raise RoundelayError(f"{name} = {number!r}; expected a whole number of 64 bits")
        mine = np.array([color, key], np.int64)
        every = self.all_gather(mine).reshape(self.ranks, 2)
        self._splits += 1
        same = [r for r in range(self.ranks) if every[r, 0] == color]
        same.sort(key=lambda r: (every[r, 1], r))
        new = None
        # The others go along, for what a new group tells one another goes through all ranks.
        exchange = Among(lambda data: self._in_order(lambda: self._exchange(data)), same)
        if color >= 0:
            new = self._make(
                exchange, self._session, [self._members[r] for r in same],
                same.index(self.rank), f"{self._tag}.{self._splits}.{color}", self._timeout,
                self._fixed_order if fixed_order is None else fixed_order,
            )  # fmt: skip
        exchange.finish()
        return new

    def part(
        self,
        ranks: Sequence[int],
        exchange: Exchange,
        name: str,
        timeout: float | None = None,
        arena: int | None = None,
        names: Sequence[str] | None = None,
    ) -> Self:
        """A communicator of some ranks; unlike `split`, only these need to call it.

        Args:
            ranks: of this communicator, this one among them, in the order of the new one.
            exchange: all-gathers small bytes among them, in that order, by other means.
            name: what no other communicator of the job is called at the time.
            timeout: see `init`; without it, as here.
            arena: bytes of shared memory for each rank's messages; see `ROUNDELAY_ARENA`.
            names: of the ranks, for messages of errors.
        """
        self._usable()
        return self._make(
            exchange, self._session, [self._members[r] for r in ranks],
            list(ranks).index(self.rank), f"{self._tag}.{name}",
            self._timeout if timeout is None else timeout, self._fixed_order, arena, names,
        )  # fmt: skip

    def shrink(self, timeout: float = 30.0) -> Self:
        """A communicator of the ranks that live, after one has gone; all that live must call it.

        This communicator, and all others of the job, end. Ranks keep their order. A rank that does
        not come and is not known to have ended is left out, but only by more than half of those
        that may live.

        Args:
            timeout: seconds that the others may take to come.

        Raises:
            RoundelayError: too few have come, this rank was left out, or this is not a
                communicator of the whole job.
        """
        self._whole("shrink")
        self._session.expect_others()
        for comm in list(self._session.communicators):
            comm.interrupt()  # calls under way are not waited for
            comm._leave()
        return self._settled(self._session.regroup(timeout), timeout)

    def gone(self) -> list[int]:
        """The ranks that are known to have gone; from any thread."""
        lost = self._session.lost
        return [rank for rank, member in enumerate(self._members) if member in lost]

    def newcomers(self) -> int:
        """How many processes wait to become ranks; every rank must call it, and gets the same."""
        self._whole("newcomers")
        return self._waiting(0, 0.0)

    def grow(self, count: int | None = None, timeout: float = 60.0) -> Self:
        """A communicator of these ranks and of newcomers, behind them; every rank must call it.

        Newcomers are processes that call `init` with the variable ROUNDELAY_INVITATION set to this
        job's `invitation`. This communicator, and all others of the job, end.

        Args:
            count: how many to wait for; without it, those who wait already, and where there is
                none, this communicator is returned as it is.
            timeout: seconds that they may take to come.

        Raises:
            RoundelayError: too few have come; this communicator can still be used.
        """
        self._whole("grow")
        self._session.expect_others()
        if count is not None and count < 1:
            raise RoundelayError(f"count = {count}; expected 1 newcomer or more, or None")
        wanted = self.newcomers() if count is None else count
        if wanted == 0:
            return self
        there = self._waiting(wanted, timeout)
        if there < wanted:
            raise RoundelayError(
                f"{there} of {wanted} newcomers have come within {timeout:g} s; expected processes "
                "with ROUNDELAY_INVITATION set to this job's Communicator.invitation"
            )
        session = self._session.regroup(timeout, wanted)
        for comm in list(self._session.communicators):
            comm._leave()
        return self._settled(session, timeout)

    @property
    def invitation(self) -> str:
        """What ROUNDELAY_INVITATION is to be where a process shall join. It holds the job's key."""
        self._whole("invitation")
        self._session.expect_others()
        return self._session.invitation

    def _waiting(self, count: int, timeout: float) -> int:
        """How many newcomers wait at rank 0, when there are so many, or in the end."""
        there = self._session.newcomers(count, timeout) if self.rank == 0 else 0
        return int(self.broadcast(np.array([there], np.int64))[0])

    def _settled(self, session: Session, timeout: float) -> Self:
        """The communicator of a session, or of those ranks of it that have not gone since."""
        deadline = time.monotonic() + 2 * timeout
        while True:
            try:
                return self._of(session)
            except (RoundelayError, OSError):
                if time.monotonic() > deadline or session.ranks == 1:
                    session.close()
                    raise
            session = session.regroup(timeout)

    def _of(self, session: Session) -> Self:
        """The communicator of all ranks of a session."""
        return self._make(session.exchange, session, range(session.ranks), session.rank,
                          job_tag(session), self._timeout, self._fixed_order)  # fmt: skip

    def _whole(self, what: str) -> None:
        if "." in self._tag:
            raise RoundelayError(
                f"{what} of a communicator of some ranks of the job; expected that of all, as "
                "roundelay.init() gave it. Call it there, and split again"
            )


def job_tag(session: Session) -> str:
    """The tag of the communicator of all ranks of a session."""
    return f"{JOB}+{session.generation}" if session.generation else JOB
