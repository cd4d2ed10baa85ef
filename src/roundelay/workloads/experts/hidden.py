"""How much of an exchange hides behind computing, from a trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...timeline import Timeline, What
from .moving import Span


class Hidden(NamedTuple):
    """What of a rank's exchanges it did not have to wait for.

    Attributes:
        exchange: seconds in which an exchange was under way.
        waited: seconds of these in which the rank did nothing but wait for it.
    """

    exchange: float
    waited: float

    @property
    def share(self) -> float:
        """Part of the exchange that was hidden; 0 where there was none."""
        return 1 - self.waited / self.exchange if self.exchange else 0.0


def hidden(timeline: Timeline, rank: int, waited: Iterable[Span]) -> Hidden:
    """From the calls of a trace and the spans in which the layer waited.

    Args:
        timeline: of ``comm.trace()``, on this rank (on rank 0 it has all ranks).
        rank: this one.
        waited: spans in ns of CLOCK_MONOTONIC, as `Experts.waited` has them.
    """
    mine = (timeline.rank == rank) & (timeline.what == What.CALL)
    calls = _union(zip(timeline.begin[mine].tolist(), timeline.end[mine].tolist(), strict=True))
    spans = _union(waited)
    both = sum(
        max(0, min(end, e) - max(begin, b)) for begin, end in calls for b, e in spans
    )  # fmt: skip
    return Hidden(sum(end - begin for begin, end in calls) / 1e9, both / 1e9)


def _union(spans: Iterable[Span]) -> list[Span]:
    found: list[Span] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return found
