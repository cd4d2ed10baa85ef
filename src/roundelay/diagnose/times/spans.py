"""Stretches of time as disjoint intervals, so that what runs at once is counted once."""

from __future__ import annotations

from typing import Self

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.int64]


class Spans:
    """The union of intervals.

    Attributes:
        begin, end: [interval], ns, disjoint and in order.
    """

    def __init__(self, begin: npt.ArrayLike, end: npt.ArrayLike) -> None:
        """Of intervals in any order, which may overlap; [interval], ns."""
        first, last = np.asarray(begin, np.int64), np.asarray(end, np.int64)
        order = np.argsort(first, kind="stable")
        first, last = first[order], np.maximum.accumulate(last[order])
        apart = np.ones(len(first), bool)
        apart[1:] = first[1:] > last[:-1]
        self.begin = first[apart]
        self.end = last[np.append(apart[1:], True)] if len(first) else last
        self._total = np.concatenate(([0], np.cumsum(self.end - self.begin)))

    @property
    def length(self) -> int:
        """Ns of all of them."""
        return int(self._total[-1])

    def before(self, times: npt.ArrayLike) -> Times:
        """Ns of them before each time."""
        at = np.asarray(times, np.int64)
        if not len(self.begin):
            return np.zeros_like(at)
        place = np.searchsorted(self.begin, at, "right") - 1
        inside = np.minimum(at, self.end[place]) - self.begin[place]
        return np.where(place >= 0, self._total[place] + inside, 0)

    def both(self, other: Spans) -> Self:
        """What is in both."""
        times = np.concatenate([self.begin, other.begin, self.end, other.end])
        begun = len(self.begin) + len(other.begin)
        change = np.where(np.arange(len(times)) < begun, 1, -1)
        order = np.lexsort((change, times))  # at one time what ends comes first
        times, depth = times[order], np.cumsum(change[order])
        two = np.flatnonzero(depth == 2)
        return type(self)(times[two], times[two + 1])

    def without(self, other: Spans) -> Self:
        """What is not in the other."""
        shared = self.both(other)
        edges = np.sort(np.concatenate([self.begin, shared.begin, self.end, shared.end]))
        begin, end = edges[::2], edges[1::2]
        return type(self)(begin[end > begin], end[end > begin])
