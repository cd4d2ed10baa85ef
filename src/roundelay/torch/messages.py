"""Messages between two ranks, with tags.

Each ordered pair of ranks that sends has a channel of its own, made when it is first used, and two
threads go with it, one at each end. A message goes to the first receive of its tag; one that
nobody waits for is kept. A receive from any rank waits at all of them, and so opens all channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from threading import Lock
from typing import Any

import numpy as np
import torch

from ..arrays import Array
from ..communicator import Communicator
from ..errors import RoundelayError
from ..run.handles import Handle
from .channels import Channel
from .tensors import memory
from .work import Finished, Pending, Receiving


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
        self.source, self.channel, self._lock = source, channel, lock
        self._waiting: list[Receive] = []
        self._kept: list[tuple[int, Array]] = []
        self._reading = False
        self._error: BaseException | None = None

    def post(self, receive: Receive) -> BaseException | None:
        """Have it wait here, or give it a message that is here already; why not, if it cannot."""
        with self._lock:
            if receive.claimed:
                return None
            at = next((i for i, kept in enumerate(self._kept) if kept[0] == receive.tag), None)
            start = False
            if at is not None:
                _leave(receive)
            elif self._error is not None:
                return self._error
            else:
                self._waiting.append(receive)
                receive.places.append(self)
                start = self.channel is not None and not self._reading
                self._reading = self._reading or start
            kept = None if at is None else self._kept.pop(at)
        if kept is not None:
            receive.fill(kept[1], self.source)
        elif start and self.channel is not None:
            self.channel.lane.do(self._read)
        return None

    def deliver(self, tag: int, data: Array, receive: Receive | None = None) -> None:
        """A message has come, for this receive or for the first of its tag."""
        with self._lock:
            receive = receive or self._claim(tag)
            if receive is None:
                self._kept.append((tag, data))
        if receive is not None:
            receive.fill(data, self.source)

    def _claim(self, tag: int) -> Receive | None:
        receive = next((r for r in self._waiting if r.tag == tag), None)
        if receive is not None:
            _leave(receive)
        return receive

    def _read(self) -> None:
        """Take messages as long as receives wait."""
        assert self.channel is not None
        try:
            while self._wanted():
                tag, size = self.channel.head()
                with self._lock:
                    receive = self._claim(tag)
                data = np.empty(size, np.uint8) if receive is None else receive.room(size)
                try:
                    self.channel.take(data)
                except BaseException as error:
                    if receive is not None:
                        receive.ended.set_exception(error)
                    raise
                self.deliver(tag, data, receive)
        except BaseException as error:
            self._fail(error)

    def _wanted(self) -> bool:
        with self._lock:
            self._reading = bool(self._waiting)
            return self._reading

    def _fail(self, error: BaseException) -> None:
        """Nothing more will come from here; a receive that waits elsewhere as well goes on."""
        with self._lock:
            self._error, self._reading = error, False
            lost = [r for r in self._waiting if r.places == [self]]
            for receive in self._waiting:
                receive.places.remove(self)
            self._waiting.clear()
        for receive in lost:
            receive.ended.set_exception(error)


def _leave(receive: Receive) -> None:
    """Its message has been found; with the lock held."""
    receive.claimed = True
    for place in receive.places:
        place._waiting.remove(receive)


class Messages:
    """All messages of a process group's rank."""

    def __init__(self, comm: Communicator, store: Any, name: str, timeout: float) -> None:
        """Of a communicator.

        Args:
            comm: the group's.
            store: of the group alone.
            name: of the group.
            timeout: seconds that a wait may take.
        """
        self._comm, self._store, self._name, self._timeout = comm, store, name, timeout
        self._lock = Lock()
        self._outgoing: dict[int, Channel] = {}
        self._incoming: dict[int, Incoming] = {}

    def send(self, tensor: torch.Tensor, target: int, tag: int) -> Finished:
        """Send a tensor; ended when it may be changed again."""
        self._check(target)
        data = np.ascontiguousarray(memory(tensor)[0]).reshape(-1).view(np.uint8)
        if target == self._comm.rank:
            self._from(target).deliver(tag, data.copy())
            return Finished([tensor])
        if target not in self._outgoing:
            self._outgoing[target] = self._channel(self._comm.rank, target)
        channel = self._outgoing[target]
        done = channel.lane.do(lambda: channel.put(data, tag))
        return Pending(Handle(done, _nothing), [tensor], self._timeout)

    def receive(self, tensor: torch.Tensor, sources: Sequence[int], tag: int) -> Finished:
        """Receive a tensor from the first of some ranks that sends one."""
        receive = Receive(memory(tensor)[0], tag)
        errors = []
        for source in sources:
            self._check(source)
            errors.append(self._from(source).post(receive))
        if None not in errors:
            receive.ended.set_exception(errors[0] or RoundelayError("there is no other rank"))
        return Receiving(Handle(receive.ended, _nothing), [tensor], self._timeout)

    def _from(self, source: int) -> Incoming:
        if source not in self._incoming:
            mine = source == self._comm.rank
            channel = None if mine else self._channel(source, self._comm.rank)
            self._incoming[source] = Incoming(source, channel, self._lock)
        return self._incoming[source]

    def _channel(self, source: int, target: int) -> Channel:
        return Channel(self._comm, self._store, self._name, source, target, self._timeout)

    def _check(self, rank: int) -> None:
        if not 0 <= rank < self._comm.ranks:
            raise RoundelayError(
                f"a message with rank {rank}; expected a rank of the group, 0 to "
                f"{self._comm.ranks - 1}"
            )

    def close(self) -> None:
        """End what is under way."""
        incoming = [i.channel for i in self._incoming.values() if i.channel is not None]
        for channel in [*self._outgoing.values(), *incoming]:
            channel.close()


def _nothing() -> None:
    """A message under way ends with the process: there is nothing to interrupt."""
