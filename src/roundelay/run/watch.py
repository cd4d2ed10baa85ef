"""The watchdog: rank 0 asks what each rank does, and all are told who keeps whom waiting.

Every rank looks at its own calls now and then. One that waits for long tells rank 0, which asks all
and sends its findings to all. So a hang has a name in every rank's log, whoever causes it; and
`roundelay status` asks the same from outside (see `status`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any, Final, Protocol
from weakref import ref

import msgspec

from ..errors import RoundelayError
from .door import log
from .findings import Doing, Finding, findings
from .links import Links
from .loop import Loop, pause
from .members import Member
from .wire import DroppedError

AFTER: Final = 30.0
"""Seconds in a call after which it is told; ROUNDELAY_WATCHDOG is another number, 0 for never."""
ANSWER: Final = 1.0
"""Seconds in which a rank answers whose process runs at all."""
SHOWN: Final = 1.0
"""Seconds in a call from which `roundelay status` speaks of it."""

_STUCK, _ASK, _STATE, _SAY, _WANT, _STATUS = range(6)


class RankStatus(msgspec.Struct):
    """What a rank does.

    Attributes:
        rank, node: numbers.
        state: waiting (in a call), running (in none), silent (no answer), gone, or unknown where
            rank 0, which asks the others, does not answer itself.
        operation: the call it is in, or was last in.
        sequence: this call's number in its group.
        since_s: seconds since it began, or has ended.
        waiting_for: ranks that have not arrived there.
    """

    rank: int
    node: int
    state: str
    operation: str = ""
    sequence: int = 0
    since_s: float = 0.0
    waiting_for: list[int] = []


class Status(msgspec.Struct):
    """What the ranks of a job do, and what is wrong."""

    job: str
    ranks: list[RankStatus]
    findings: list[Finding]


class Busy(Protocol):
    """A communicator, as far as it is watched."""

    def doing(self) -> list[Doing]:
        """What this rank does in it."""


class Crowd:
    """The communicators of a session that are open, as long as somebody else holds them.

    Any thread may look through them.
    """

    def __init__(self) -> None:
        self._held: list[ref[Any]] = []

    def add(self, comm: Busy) -> None:
        """It is open."""
        self._held = [*map(ref, self), ref(comm)]

    def remove(self, comm: Busy) -> None:
        """It is open no more."""
        self._held = [ref(other) for other in self if other is not comm]

    def __iter__(self) -> Iterator[Any]:
        return iter([comm for held in self._held if (comm := held()) is not None])


class Watch:
    """One rank's part in it."""

    def __init__(
        self, loop: Loop, rank: int, members: tuple[Member, ...], links: Links, job: str,
        communicators: Crowd,
    ) -> None:  # fmt: skip
        """For a session; it works while the loop runs."""
        self._loop, self._rank, self._members, self._job = loop, rank, members, job
        self._links, self._communicators = links, communicators
        nodes = dict.fromkeys(member.node for member in members)
        self._places = {node: number for number, node in enumerate(nodes)}
        self._after = seconds_asked()
        self._due: dict[str, tuple[int, float]] = {}
        self._told: dict[tuple[str, int], float] = {}
        self._tickets = 0
        self._answers: dict[int, dict[int, list[Doing]]] = {}
        self._status: dict[int, bytes] = {}
        self._unanswered: tuple[float, str] | None = None
        links.watch = self._hear
        self.tasks = [loop.start(self._look())] if self._after else []

    def _doing(self) -> list[Doing]:
        return [doing for comm in self._communicators for doing in comm.doing()]

    async def _look(self) -> None:
        """Tell rank 0 when this rank has waited for long; twice as long before the next time."""
        while True:
            await pause(max(0.05, min(1.0, self._after / 4)))
            stuck = [d for d in self._doing() if self._is_due(d)]
            if stuck and self._rank == 0:
                self._start_asking()
            elif stuck:
                self._links.tell(_STUCK, b"", 0)
                self._unanswered = time.monotonic() + 3 * ANSWER, str(stuck[0])
            if self._unanswered and time.monotonic() > self._unanswered[0]:
                log.warning("this rank waits in %s; rank 0, which asks the others what they do, "
                            "does not answer", self._unanswered[1])  # fmt: skip
                self._unanswered = None

    def _is_due(self, doing: Doing) -> bool:
        if not doing.active:
            return False
        call, seconds = self._due.get(doing.tag, (0, 0.0))
        if call != doing.call:
            seconds = self._after
        due = doing.seconds >= seconds
        self._due[doing.tag] = doing.call, 2 * seconds if due else seconds
        return due

    def _start_asking(self) -> None:
        if not self._answers:  # else it is asking already
            self._loop.start(self._ask_and_tell())

    async def _ask_and_tell(self) -> None:
        found = findings(await self._ask(), self._links.lost, self._after)
        now = time.monotonic()
        texts = [f.text for f in found if now >= self._told.get((f.tag, f.call), 0.0)]
        # All ranks that wait tell of it at about the same time.
        self._told = {(f.tag, f.call): now + self._after / 2 for f in found}
        self._links.tell(_SAY, msgspec.msgpack.encode(texts))
        _say(texts)

    async def _ask(self) -> dict[int, list[Doing] | None]:
        """What every rank does; rank 0 only."""
        self._tickets += 1
        ticket, answers = self._tickets, {0: self._doing()}
        self._answers[ticket] = answers
        self._links.tell(_ASK, msgspec.msgpack.encode(ticket))
        until = time.monotonic() + ANSWER
        expected = set(range(len(self._members)))
        while expected - set(answers) - set(self._links.lost) and time.monotonic() < until:
            await pause(0.005)
        del self._answers[ticket]
        return {r: answers.get(r) for r in expected}

    def _hear(self, peer: int, what: int, data: bytes) -> None:
        """What another rank says; what cannot be read ends the link."""
        try:
            self._take(peer, what, data)
        except msgspec.MsgspecError as error:
            raise DroppedError("it sent what is not understood") from error

    def _take(self, peer: int, what: int, data: bytes) -> None:
        if what == _STUCK:
            self._start_asking()
        elif what == _ASK:
            ticket = msgspec.msgpack.decode(data, type=int)
            self._links.tell(_STATE, msgspec.msgpack.encode((ticket, self._doing())), 0)
        elif what == _STATE:
            ticket, doing = msgspec.msgpack.decode(data, type=tuple[int, list[Doing]])
            if ticket in self._answers:
                self._answers[ticket][peer] = doing
        elif what == _SAY:
            self._unanswered = None
            _say(msgspec.msgpack.decode(data, type=list[str]))
        elif what == _WANT:
            self._loop.start(self._answer(peer, msgspec.msgpack.decode(data, type=int)))
        elif what == _STATUS:
            ticket, status = msgspec.msgpack.decode(data, type=tuple[int, bytes])
            self._status[ticket] = status

    async def _answer(self, peer: int, ticket: int) -> None:
        self._links.tell(_STATUS, msgspec.msgpack.encode((ticket, await self.status())), peer)

    async def status(self) -> bytes:
        """What all ranks do, a `Status` as JSON; of this rank alone where rank 0 is silent."""
        if self._rank == 0:
            return self._encoded(await self._ask())
        self._tickets += 1
        ticket = self._tickets
        self._links.tell(_WANT, msgspec.msgpack.encode(ticket), 0)
        until = time.monotonic() + 3 * ANSWER
        while ticket not in self._status and time.monotonic() < until and 0 not in self._links.lost:
            await pause(0.005)
        if ticket in self._status:
            return self._status.pop(ticket)
        return self._alone()

    def _alone(self) -> bytes:
        """What this rank knows by itself."""
        ranks = [RankStatus(m.rank, self._node(m), "unknown") for m in self._members]
        me = self._members[self._rank]
        ranks[self._rank] = _row(self._rank, self._node(me), self._doing(), False, {})
        for rank in self._links.lost:
            ranks[rank].state = "gone"
        return msgspec.json.encode(Status(self._job, ranks, []))

    def _node(self, member: Member) -> int:
        return self._places[member.node]

    def _encoded(self, states: dict[int, list[Doing] | None]) -> bytes:
        gone = self._links.lost
        late = {(f.tag, f.call): f.late for f in findings(states, gone, 0.0)}
        ranks = [
            _row(m.rank, self._node(m), states[m.rank], m.rank in gone, late) for m in self._members
        ]
        return msgspec.json.encode(Status(self._job, ranks, findings(states, gone, SHOWN)))


def _row(
    rank: int, node: int, doing: list[Doing] | None, gone: bool,
    late: dict[tuple[str, int], list[int]],
) -> RankStatus:  # fmt: skip
    if gone or doing is None:
        return RankStatus(rank, node, "gone" if gone else "silent")
    # What it waits in longest, or was in last.
    made = [d for d in doing if d.call]
    last = max(made, key=lambda d: (d.active, d.seconds if d.active else -d.seconds, d.call),
               default=None)  # fmt: skip
    if last is None:
        return RankStatus(rank, node, "running")
    missed = late.get((last.tag, last.call), []) if last.active else []
    return RankStatus(rank, node, "waiting" if last.active else "running", str(last), last.call,
                      round(last.seconds, 3), missed)  # fmt: skip


def _say(texts: list[str]) -> None:
    for text in texts:
        log.warning("%s", text)


def seconds_asked(environ: Any = os.environ) -> float:
    """Seconds after which the watchdog speaks.

    Raises:
        RoundelayError: ROUNDELAY_WATCHDOG is no number from 0 up.
    """
    text = environ.get("ROUNDELAY_WATCHDOG", "")
    try:
        seconds = float(text) if text else AFTER
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise RoundelayError(
            f"ROUNDELAY_WATCHDOG is {text!r}; expected seconds in a call after which it is told, "
            "or 0 for never"
        )
    return seconds
