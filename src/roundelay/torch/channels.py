"""One direction between two ranks: a communicator of the two on which the sender broadcasts.

A message has a head, which says its tag and size and holds it where it is short.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
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
    """A thread that does things in order, and ends with the process whatever it does."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread = Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def do(self, job: Callable[[], Any]) -> Future[Any]:
        """Have it done after all before it."""
        future: Future[Any] = Future()
        self._jobs.put((future, job))
        return future

    def _work(self) -> None:
        while (found := self._jobs.get()) is not None:
            future, job = found
            try:
                future.set_result(job())
            except BaseException as error:
                future.set_exception(error)

    def close(self) -> None:
        """Wait until all is done."""
        self._jobs.put(None)
        self._thread.join()


class Channel:
    """One direction between two ranks, as either of them sees it."""

    def __init__(self, comm: Communicator, store: Any, name: str, source: int, target: int,
                 timeout: float) -> None:  # fmt: skip
        self._whole, self._store, self._timeout = comm, store, timeout
        self._ends, self._name = [source, target], f"{name}.{source}to{target}"
        self._comm: Communicator | None = None
        self._closed = False
        self._head = np.zeros(HEAD, np.uint8)
        self._numbers = self._head[:16].view(np.int64)
        self.lane = Lane(f"roundelay-{self._name}")

    def open(self) -> Communicator:
        """The communicator of the two; waits until the other end opens it as well."""
        if self._comm is None:
            store = dist.PrefixStore(self._name, self._store)
            me = self._ends.index(self._whole.rank)
            board = Board(store, me, 2, self._timeout, lambda: self._closed)
            self._comm = self._whole.part(self._ends, board, self._name, math.inf, ARENA)
            if self._closed:  # too late for `close` to interrupt it
                raise RoundelayError("the process group was destroyed")
        return self._comm

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

    def close(self) -> None:
        """End what is under way."""
        self._closed = True
        if self._comm is not None:
            self._comm.interrupt()
        self.lane.close()
        if self._comm is not None:
            self._comm.close()
