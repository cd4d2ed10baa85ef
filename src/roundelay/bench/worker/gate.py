"""A barrier in a shared page that every side uses, so that no library's own decides."""

from __future__ import annotations

import mmap
from os import sched_yield
from time import monotonic_ns, sleep
from typing import Final

LINE: Final = 8
"""Words of 8 bytes that a rank has to itself: a line of the cache."""


def page_bytes(ranks: int) -> int:
    """Bytes of the page for so many ranks."""
    return -(-ranks * LINE * 8 // mmap.PAGESIZE) * mmap.PAGESIZE


_PATIENCE: Final = 100_000
"""Nanoseconds that a rank looks for the others before it lies down in between."""
_NAP: Final = 20e-6


class Gate:
    """All ranks come, then all go, at the same moment where each has a core of its own.

    There are two barriers in one. In the first, who waits long sleeps, so that the library's own
    threads, still at work on what another rank waits for, have the core. In the second all are
    awake and meet within microseconds: every rank writes when it came, and once all have, each
    waits for one moment that all compute alike, so that none gets a start because it looked last.
    Where ranks share cores there is no such moment: they go as they are scheduled.
    """

    def __init__(self, page: mmap.mmap, rank: int, ranks: int, cores: int) -> None:
        self._words = memoryview(page).cast("q")
        self._own = rank * LINE
        self._others = [r * LINE for r in range(ranks) if r != rank]
        self._crowded = ranks > cores
        self._margin = 1500 + 300 * ranks  # ns: what it takes to look at all the others
        self._number = 0

    def wait(self) -> None:
        """Come, and go when all have come."""
        self._number += 1
        self._gather()
        number, words, own = self._number, self._words, self._own
        stamp = 2 + (number & 1)  # the fastest rank may be one barrier ahead
        words[own + stamp] = monotonic_ns()
        words[own + 1] = number
        for other in self._others:
            while words[other + 1] < number:
                sched_yield()
        if not self._crowded and self._others:
            last = max(words[own + stamp], *[words[other + stamp] for other in self._others])
            while monotonic_ns() < last + self._margin:
                pass

    def _gather(self) -> None:
        number, words = self._number, self._words
        words[self._own] = number
        sleepy = monotonic_ns() + _PATIENCE
        for other in self._others:
            while words[other] < number:
                sched_yield()
                if monotonic_ns() > sleepy:
                    sleep(_NAP)
