"""One direction between two ranks: a communicator of the two on which the sender broadcasts.

A message has a head, which says its tag and size and holds it where it is short.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from threading import Lock, Semaphore, Thread
from typing import Any, Final

import numpy as np
import torch.distributed as dist

from ..arrays import Array
from ..communicator import Communicator
from ..errors import RoundelayError
from .meeting import Board

HEAD: Final = 56
"""Bytes of a head: what goes with a flag in its cache line."""
SHORT: Final = HEAD - 16
"""Bytes of a message that fits into its head, beside tag and size."""
ARENA: Final = 1 << 20
"""Bytes of shared memory for the messages of a pair that have not been received."""


class Lane:
    """A thread that works when it is woken, and lets somebody else work in its place.

    Who waits for the work had better do it: to wake a thread takes longer than a short message. The
    thread ends with the process, whatever it does.
    """

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self._work, self._ended = work, False
        self._awake = Semaphore(0)
        self._turn = Lock()
        self._thread = Thread(target=self._go, name=name, daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Have it work."""
        self._awake.release()

    def instead(self, work: Callable[[], None]) -> None:
        """Work in the thread of the caller; not if another is at it."""
        if self._turn.acquire(blocking=False):
            try:
                work()
            finally:
                self._turn.release()

    def _go(self) -> None:
        while True:
            self._awake.acquire()
            if self._ended:
                return
            with self._turn:
                self._work()

    def close(self) -> None:
        """Wait until it has ended."""
        self._ended = True
        self.wake()
        self._thread.join()


class Channel:
    """One direction between two ranks, as either of them sees it."""

    def __init__(self, comm: Communicator, store: Any, name: str, ends: tuple[int, int],
                 timeout: float) -> None:  # fmt: skip
        """From one rank to another.

        Args:
            comm: of all ranks.
            store: of these ranks alone.
            name: of the group.
            ends: the sender and the receiver.
            timeout: seconds until the other end must have opened it.
        """
        self._whole, self._store, self._timeout = comm, store, timeout
        self._ends, self.name = ends, f"{name}.{ends[0]}to{ends[1]}"
        self._comm: Communicator | None = None
        self._closed = False
        self._head = np.zeros(HEAD, np.uint8)
        self._numbers = self._head[:16].view(np.int64)

    def open(self) -> Communicator:
        """The communicator of the two; waits until the other end opens it as well."""
        if self._comm is None:
            store = dist.PrefixStore(self.name, self._store)
            me = self._ends.index(self._whole.rank)
            board = Board(store, me, 2, self._timeout, lambda: self._closed, self._ends,
                          self._whole.gone)  # fmt: skip
            names = [f"rank {end}" for end in self._ends]
            self._comm = self._whole.part(self._ends, board, self.name, math.inf, ARENA, names)
            sender, receiver = self._ends
            self._comm.name = f"messages {sender} to {receiver} of {self._whole.name}"
            if self._closed:  # too late for `interrupt`
                raise RoundelayError("the process group was destroyed")
        return self._comm

    def patience(self, seconds: float) -> None:
        """How long a message may take from now on."""
        if self._comm is not None:
            self._comm.patience(seconds)

    def put(self, data: Array, tag: int) -> None:
        """Send a message, a row of bytes."""
        comm = self.open()
        self._numbers[:] = tag, data.size
        if data.size <= SHORT:
            self._head[16 : 16 + data.size] = data
        comm.broadcast(self._head)
        if data.size > SHORT:
            comm.broadcast(data)

    def head(self) -> tuple[int, int]:
        """Tag and size of the next message, when it comes."""
        self.open().broadcast(self._head)
        tag, size = self._numbers.tolist()
        return tag, size

    def take(self, data: Array) -> None:
        """The message, after its head, into memory of its size."""
        if data.size <= SHORT:
            data[:] = self._head[16 : 16 + data.size]
        else:
            self.open().broadcast(data)

    def interrupt(self) -> None:
        """End what is under way, for good."""
        self._closed = True
        if self._comm is not None:
            self._comm.interrupt()

    def close(self) -> None:
        """Say farewell; nothing may be under way."""
        if self._comm is not None:
            self._comm.close()
