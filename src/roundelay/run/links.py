"""After start-up, the links between rank 0 and the others: exchanges, and news of who has gone."""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ..errors import RoundelayError
from .loop import Loop, Task
from .members import GRACE, Member, ranks_text
from .wire import MEMBER_LIMIT, Channel, ClosedError, DroppedError

DATA_LIMIT: Final = MEMBER_LIMIT - 64
"""Bytes that all ranks together may bring to an exchange, lengths included."""

_HEAD: Final = struct.Struct(">cI")
_WAIT: Final = struct.Struct(">d")
_SIZE: Final = struct.Struct(">I")
_BRINGS: Final = b"B"
_ANSWER: Final = b"A"
_LOST: Final = b"L"
_FAILED: Final = b"F"
_WATCH: Final = b"W"


class Links:
    """The links of one rank: at rank 0 with all others, elsewhere with rank 0.

    Attributes:
        lost: ranks that have gone, and how that was noticed.
        watch: is given what `tell` sent: from which rank, a number that says what it is, and bytes.
    """

    def __init__(
        self, loop: Loop, rank: int, members: tuple[Member, ...], links: dict[int, Channel]
    ) -> None:
        self._loop = loop
        self._rank = rank
        self._members = members
        self._links = links
        self._number = 0
        self._deadline = 0.0
        self._brought: dict[int, deque[tuple[float, bytes]]] = {peer: deque() for peer in links}
        self._answer: bytes | None = None
        self._failure: str | None = None
        self.lost: dict[int, str] = {}
        self.watch: Callable[[int, int, bytes], None] = lambda *_: None
        self._readers: dict[int, Task] = {}
        self.listen()

    def listen(self) -> None:
        """Have the loop take what comes over the links; again, where an interrupt ended that."""
        for peer in self._links:
            reader = self._readers.get(peer)
            if peer not in self.lost and (reader is None or reader.ended):
                self._readers[peer] = self._loop.start(self._read(peer))

    def tell(self, what: int, data: bytes, to: int | None = None) -> None:
        """Sends something for `watch`, as far as it goes without waiting, to one or to all."""
        self._post(_HEAD.pack(_WATCH, what) + data, to)

    def exchange(self, data: bytes, timeout: float) -> list[bytes]:
        """What each rank brings, in the order of ranks.

        Raises:
            RoundelayError: a rank has gone, or does not come in time, or it is too much.
        """
        self.listen()
        self._number += 1
        self._deadline = time.monotonic() + timeout
        self._refuse_lost()
        if self._rank == 0:
            try:
                answer = self._collect(data, timeout)
            except RoundelayError as error:
                self._post(_HEAD.pack(_FAILED, self._number) + str(error).encode())
                raise
            self._send(_HEAD.pack(_ANSWER, self._number) + answer)
            self._refuse_lost()
        else:
            wait = _WAIT.pack(timeout)
            self._send(_HEAD.pack(_BRINGS, self._number) + wait + data)
            answer = self._await(timeout)
        return _unpack(answer, len(self._members))

    def gone(self, rank: int) -> str:
        """A sentence about a rank that has gone."""
        m = self._members[rank]
        return f"rank {rank} (process {m.pid} at {m.host}) has gone: {self.lost[rank]}"

    def close(self) -> None:
        """Closes all links."""
        for reader in self._readers.values():
            self._loop.stop(reader)
        self.forget()

    def forget(self) -> None:
        """Closes the sockets alone, as a forked child does."""
        for channel in self._links.values():
            channel.sock.close()

    def _refuse_lost(self) -> None:
        if self._failure is not None:  # what it said before it went is the better reason
            raise RoundelayError(self._failure)
        if self.lost:
            who, ranks = self.gone(next(iter(self.lost))), len(self._members)
            raise RoundelayError(
                f"{who}; an exchange needs all {ranks} ranks. Its own output may say why"
            )

    def _collect(self, data: bytes, timeout: float) -> bytes:
        def complete() -> bool:
            return bool(self.lost) or all(self._brought.values())

        if not self._loop.run(complete, self._first_deadline):
            late = [peer for peer, brought in self._brought.items() if not brought]
            raise RoundelayError(_late(late, timeout, len(self._members)))
        self._refuse_lost()
        parts = [data, *(self._brought[peer].popleft()[1] for peer in sorted(self._brought))]
        total = sum(_SIZE.size + len(part) for part in parts)
        if total > DATA_LIMIT:
            raise RoundelayError(
                f"an exchange of {total:,} bytes in all; expected at most {DATA_LIMIT:,}. It is "
                "for what ranks must know of one another at the start"
            )
        return b"".join(_SIZE.pack(len(part)) + part for part in parts)

    def _first_deadline(self) -> float:
        """When the first of those who have come gives up."""
        return min(
            [self._deadline, *(brought[0][0] for brought in self._brought.values() if brought)]
        )

    def _await(self, timeout: float) -> bytes:
        def complete() -> bool:
            return bool(self.lost) or self._failure is not None or self._answer is not None

        self._loop.run(complete, self._deadline + GRACE)
        answer, self._answer = self._answer, None
        if answer is not None:
            return answer
        self._refuse_lost()
        raise RoundelayError(_late([0], timeout, len(self._members)))

    def _send(self, frame: bytes) -> None:
        """Sends a frame over all links."""
        tasks = [self._loop.start(self._send_one(peer, frame)) for peer in self._links]
        try:
            self._loop.run(lambda: all(t.ended for t in tasks), self._deadline + GRACE)
        finally:
            for task in tasks:
                self._loop.stop(task)

    async def _send_one(self, peer: int, frame: bytes) -> None:
        with suppress(ClosedError):  # who reads there takes what was said before, and then notices
            await self._links[peer].send(frame)

    def _post(self, frame: bytes, to: int | None = None) -> None:
        """Tells one or all, as far as that goes without waiting."""
        for peer, channel in self._links.items():
            if peer not in self.lost and to in (None, peer):
                with suppress(ClosedError):
                    channel.post(frame)

    async def _read(self, peer: int) -> None:
        channel = self._links[peer]
        try:
            while True:
                self._take(peer, await channel.receive())
        except DroppedError as gone:
            self._lose(peer, str(gone))

    def _take(self, peer: int, frame: bytes) -> None:
        if len(frame) < _HEAD.size:
            raise DroppedError("it sent what is not understood")
        kind, number = _HEAD.unpack_from(frame)
        rest = frame[_HEAD.size :]
        if kind == _BRINGS and len(rest) >= _WAIT.size:
            (wait,) = _WAIT.unpack_from(rest)
            if self._brought[peer] or not wait >= 0:  # it brings one thing, and has an answer first
                raise DroppedError("it sent what is not understood")
            self._brought[peer].append((time.monotonic() + wait, rest[_WAIT.size :]))
        elif kind == _ANSWER and number == self._number:
            self._answer = rest
        elif kind == _FAILED:
            self._failure = rest.decode("utf-8", "replace")
        elif kind == _LOST and number < len(self._members):
            self.lost.setdefault(number, rest.decode("utf-8", "replace"))
        elif kind == _WATCH:
            self.watch(peer, number, rest)
        else:
            raise DroppedError("it sent what is not understood")

    def _lose(self, peer: int, reason: str) -> None:
        if peer not in self.lost:
            self.lost[peer] = reason
            if self._rank == 0:
                self._post(_HEAD.pack(_LOST, peer) + reason.encode())


def _late(late: list[int], timeout: float, ranks: int) -> str:
    verb = "have" if len(late) > 1 else "has"
    return (
        f"{ranks_text(late)} {verb} not come to the exchange within {timeout:g} s; expected all "
        f"{ranks} ranks. Do all of them call it as many times?"
    )


def _unpack(answer: bytes, ranks: int) -> list[bytes]:
    parts: list[bytes] = []
    at = 0
    while len(parts) < ranks and at + _SIZE.size <= len(answer):
        (size,) = _SIZE.unpack_from(answer, at)
        at += _SIZE.size
        parts.append(answer[at : at + size])
        at += size
    if len(parts) < ranks or at != len(answer):
        raise RoundelayError(
            f"rank 0 answered with {len(answer)} bytes that are not those of {ranks} ranks; are "
            "all of one version of Roundelay?"
        )
    return parts
