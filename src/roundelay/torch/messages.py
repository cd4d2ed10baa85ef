"""Messages between two ranks, with tags.

Each ordered pair of ranks that sends has a channel of its own, made when it is first used, and two
threads go with it, one at each end. A message goes to the first receive of its tag; one that
nobody waits for is kept. A receive from any rank waits at all of them, and so opens all channels.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock

import numpy as np

from ..arrays import Array
from ..errors import RoundelayError
from .channels import Channel, Lane


class Outgoing:
    """What goes to one rank."""

    def __init__(self, channel: Channel) -> None:
        """Through a channel."""
        self._channel = channel
        self._jobs: deque[tuple[Array, int, Future[None]]] = deque()
        self._lane = Lane(f"roundelay-{channel.name}", self._work)

    def send(self, data: Array, tag: int) -> Future[None]:
        """Send a row of bytes; ended when it may be changed again."""
        done: Future[None] = Future()
        self._jobs.append((data, tag, done))
        self._lane.wake()
        return done

    def help(self, timeout: float) -> None:
        """Send what waits to be sent, in the thread of the caller, which has so many seconds."""
        self._channel.patience(timeout)
        self._lane.instead(self._work)
        self._channel.patience(math.inf)

    def _work(self) -> None:
        while self._jobs:
            data, tag, done = self._jobs.popleft()
            try:
                self._channel.put(data, tag)
            except BaseException as error:
                done.set_exception(error)
                if not isinstance(error, Exception):
                    raise
            else:
                done.set_result(None)

    def close(self) -> None:
        """End what is under way."""
        self._channel.interrupt()
        self._lane.close()
        self._channel.close()


class Receive:
    """A receive that waits for its message, at the ranks that it may come from.

    Attributes:
        places: where it waits.
        claimed: whether its message has come.
        ended: the rank that the message came from.
    """

    def __init__(self, array: Array, tag: int) -> None:
        self.tag, self.claimed = tag, False
        self.places: list[Incoming] = []
        self.ended: Future[int] = Future()
        self._array = array
        self._row = array.reshape(-1).view(np.uint8) if array.flags.c_contiguous else None

    def room(self, size: int) -> Array:
        """Where a message of so many bytes may be put, to be given to `fill`."""
        row = self._row
        return row if row is not None and row.size == size else np.empty(size, np.uint8)

    def fill(self, data: Array, source: int) -> None:
        """The message has come."""
        if data.size != self._array.nbytes:
            self.ended.set_exception(RoundelayError(
                f"the message of rank {source} with tag {self.tag} has {data.size:,} bytes, the "
                f"tensor to receive it {self._array.nbytes:,}; expected a tensor of the same "
                "size and dtype as the one that was sent"
            ))  # fmt: skip
            return
        if data is not self._row:
            self._array[...] = data.view(self._array.dtype).reshape(self._array.shape)
        self.ended.set_result(source)


class Incoming:
    """What comes from one rank: messages that nobody waits for yet, and receives that wait."""

    def __init__(self, source: int, channel: Channel | None, lock: Lock) -> None:
        """From a rank.

        Args:
            source: the rank.
            channel: from there; None for what this rank sends itself.
            lock: of all receives of the group.
        """
        self.source, self._channel, self._lock = source, channel, lock
        self._waiting: list[Receive] = []
        self._kept: list[tuple[int, Array]] = []
        self._error: BaseException | None = None
        self._lane = Lane(f"roundelay-{channel.name}", self._work) if channel else None

    def post(self, receive: Receive) -> BaseException | None:
        """Have it wait here, or give it a message that is here already; why not, if it cannot."""
        with self._lock:
            if receive.claimed:
                return None
            at = next((i for i, kept in enumerate(self._kept) if kept[0] == receive.tag), None)
            if at is not None:
                self._leave(receive)
            elif self._error is not None:
                return self._error
            else:
                self._waiting.append(receive)
                receive.places.append(self)
            kept = None if at is None else self._kept.pop(at)
        if kept is not None:
            receive.fill(kept[1], self.source)
        elif self._lane is not None:
            self._lane.wake()
        return None

    def deliver(self, tag: int, data: Array, receive: Receive | None = None) -> None:
        """A message has come, for this receive or for the first of its tag."""
        with self._lock:
            receive = receive or self._claim(tag)
            if receive is None:
                self._kept.append((tag, data))
        if receive is not None:
            receive.fill(data, self.source)

    def help(self, receive: Receive, timeout: float) -> None:
        """Take messages until that of the receive has come, in the thread of the caller.

        It has so many seconds.
        """
        if self._channel is None or self._lane is None:
            return
        self._channel.patience(timeout)
        self._lane.instead(lambda: self._take(lambda: not receive.ended.done()))
        self._channel.patience(math.inf)
        if self._wanted():
            self._lane.wake()

    def _work(self) -> None:
        self._take(self._wanted)

    def _take(self, wanted: Callable[[], bool]) -> None:
        """Take messages as long as they are wanted."""
        assert self._channel is not None
        try:
            while wanted():
                tag, size = self._channel.head()
                with self._lock:
                    receive = self._claim(tag)
                data = np.empty(size, np.uint8) if receive is None else receive.room(size)
                try:
                    self._channel.take(data)
                except BaseException as error:
                    if receive is not None:
                        receive.ended.set_exception(error)
                    raise
                self.deliver(tag, data, receive)
        except BaseException as error:
            self._fail(error)
            if not isinstance(error, Exception):
                raise

    def _wanted(self) -> bool:
        return bool(self._waiting)

    def _claim(self, tag: int) -> Receive | None:
        receive = next((r for r in self._waiting if r.tag == tag), None)
        if receive is not None:
            self._leave(receive)
        return receive

    def _leave(self, receive: Receive) -> None:
        """Its message has been found; with the lock held."""
        receive.claimed = True
        for place in receive.places:
            place._waiting.remove(receive)

    def _fail(self, error: BaseException) -> None:
        """Nothing more will come from here; a receive that waits elsewhere as well goes on."""
        with self._lock:
            self._error = error
            lost = [r for r in self._waiting if r.places == [self]]
            for receive in self._waiting:
                receive.places.remove(self)
            self._waiting.clear()
        for receive in lost:
            receive.ended.set_exception(error)

    def close(self) -> None:
        """End what is under way."""
        if self._channel is not None and self._lane is not None:
            self._channel.interrupt()
            self._lane.close()
            self._channel.close()
