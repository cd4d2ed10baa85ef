"""What a rank of a job measures together with the others; each gives seconds, alike on all ranks.

Ranks that do not take part in a measurement wait for it. Before each exchange of large data every
rank writes what it will send, as a program that computes does.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..arrays import Array
from ..errors import RoundelayError

if TYPE_CHECKING:
    from ..communicator import Communicator

SMALL: Final = 8
"""Bytes of a message that is all latency."""
TURNS: Final = 300
"""Round trips of small messages that are timed as one."""


class Measures:
    """The measurements, by name."""

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
        self._groups: dict[tuple[int, ...], Communicator | None] = {}

    @property
    def handlers(self) -> dict[str, Callable[..., dict[str, Any]]]:
        """The measurements as a worker's commands."""
        every = (self.latency, self.turn, self.one_way, self.sustained, self.everyone, self.copy,
                 self.reduce, self.call)  # fmt: skip
        return {measure.__name__: measure for measure in every}

    def latency(self, a: int, b: int, times: int) -> dict[str, Any]:
        """One way of a small message from rank a to rank b, the call included.

        Half of a round trip: a broadcast from each to the other.
        """
        return self._between(a, b, times, lambda pair: self._turns(pair) / (2 * TURNS))

    def one_way(self, a: int, b: int, nbytes: int, times: int) -> dict[str, Any]:
        """One way of many bytes: half of what it takes to send as many there and back."""
        x, y = self._buffers(nbytes, nbytes)
        return self._between(a, b, times, lambda pair: self._there_and_back(pair, x, y) / 2)

    def sustained(self, a: int, b: int, nbytes: int, times: int) -> dict[str, Any]:
        """What many bytes take behind as many others: twice as many take that much longer.

        A link that lay idle may let some through at once, and a shorter message is quicker by as
        much as a longer one.
        """
        x, y = self._buffers(2 * nbytes, 2 * nbytes)

        def measure(pair: Communicator) -> float:
            once = self._there_and_back(pair, x[:nbytes], y[:nbytes])
            twice = self._there_and_back(pair, x, y)
            return max(twice - once, twice / 4) / 2  # noise must not make a time negative

        return self._between(a, b, times, measure)

    def _between(
        self, a: int, b: int, times: int, measure: Callable[[Communicator], float]
    ) -> dict[str, Any]:
        pair = self._group((a, b))
        found = np.zeros(times)
        if pair is not None:
            measure(pair)  # the first call plans and connects
            found[:] = [measure(pair) for _ in range(times)]
        return self._longest(found)

    def _group(self, ranks: tuple[int, ...]) -> Communicator | None:
        """The communicator of these ranks; None on the others."""
        if len(ranks) == self._comm.ranks:
            return self._comm
        if ranks not in self._groups:
            color = 0 if self._comm.rank in ranks else -1
            self._groups[ranks] = self._comm.split(color)
        return self._groups[ranks]

    def _turns(self, pair: Communicator) -> float:
        x = np.zeros(SMALL, np.uint8)
        pair.barrier()
        begun = perf_counter()
        for _ in range(TURNS):
            pair.broadcast(x, root=0)
            pair.broadcast(x, root=1)
        return perf_counter() - begun

    def _there_and_back(self, pair: Communicator, x: Array, y: Array) -> float:
        first, second = (x, y) if pair.rank == 0 else (y, x)
        x.fill(1)
        pair.barrier()
        begun = perf_counter()
        pair.broadcast(first, root=0)
        pair.broadcast(second, root=1)
        return perf_counter() - begun

    def turn(self, ranks: list[int], times: int) -> dict[str, Any]:
        """A step in which each of these ranks sends a small message to all others."""
        group = self._group(tuple(ranks))
        found = np.zeros(times)
        if group is not None:
            mine, every = np.zeros(SMALL, np.uint8), np.zeros(SMALL * group.ranks, np.uint8)
            for i in range(-1, times):  # the first plans and connects
                group.barrier()
                begun = perf_counter()
                for _ in range(TURNS):
                    group.all_gather(mine, every, algorithm="direct")
                found[i] = (perf_counter() - begun) / TURNS
        return self._longest(found)

    def everyone(self, ranks: list[int], nbytes: int, times: int) -> dict[str, Any]:
        """These ranks gather at once: each gets so many bytes from others, and copies its own."""
        group = self._group(tuple(ranks))
        found = np.zeros(times)
        if group is not None:
            piece = nbytes // (group.ranks - 1)
            every, mine = self._buffers(piece * group.ranks, piece)
            for i in range(-1, times):  # the first plans and connects
                mine.fill(1)
                every.fill(1)
                group.barrier()
                begun = perf_counter()
                group.all_gather(mine, every, algorithm="direct")
                group.barrier()
                found[i] = perf_counter() - begun
        return self._longest(found)

    def copy(self, nbytes: int, times: int) -> dict[str, Any]:
        """All ranks at once copy so many bytes from one place of their own memory to another."""
        x, y = self._buffers(nbytes, nbytes)
        return self._together(lambda: np.copyto(y, x), times)

    def reduce(self, nbytes: int, times: int) -> dict[str, Any]:
        """All ranks at once add so many bytes of float32 and as many others into a third place."""
        add = import_module("roundelay._native").reduce
        x, y = self._buffers(nbytes, 2 * nbytes)
        return self._together(lambda: add("sum", "float32", y[nbytes:], [y[:nbytes], x]), times)

    def call(self, times: int) -> dict[str, Any]:
        """A call of a collective with nobody else in it: what the host itself takes."""
        if () not in self._groups:
            self._groups[()] = self._comm.split(self._comm.rank)
        alone, x = self._groups[()], np.zeros(SMALL // 4, np.float32)
        assert alone is not None
        found = np.zeros(times)
        for i in range(-1, times):
            self._comm.barrier()
            begun = perf_counter()
            for _ in range(TURNS):
                alone.all_reduce(x)
            found[i] = (perf_counter() - begun) / TURNS
        return self._longest(found)

    def _together(self, act: Callable[[], Any], times: int) -> dict[str, Any]:
        """From when all begin to when all have ended."""
        found = np.zeros(times)
        for i in range(-1, times):  # the first is not counted: the last takes its place
            self._comm.barrier()
            begun = perf_counter()
            act()
            self._comm.barrier()
            found[i] = perf_counter() - begun
        return self._longest(found)

    def _longest(self, seconds: Array) -> dict[str, Any]:
        """Of each time that of the slowest rank."""
        self._comm.all_reduce(seconds, op="max")
        return {"seconds": seconds.tolist()}

    def _buffers(self, *sizes: int) -> tuple[Array, Array]:
        try:
            first, second = (np.ones(nbytes, np.uint8) for nbytes in sizes)
        except MemoryError:
            raise RoundelayError(f"no memory for {sum(sizes):,} bytes; try fewer ranks") from None
        return first, second
