"""NCCL's tuner table for a cluster: the choices that the clock prefers, and NCCL's own elsewhere.

The clock's choice is written only where it is as many times as fast as the clock may err: by
``sqrt(high / low)`` of its error band, half of its width, as both times are of one model.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import sqrt
from typing import Any, Final

from .errors import RoundelayError
from .formats.tuner import COLLECTIVES, MOST, Row, write_tuner
from .simulate.nccl import Cost, Prediction, options
from .simulate.nccl.tables import ROWS
from .topology import Cluster

SIZES: Final = tuple(1 << k for k in range(10, 35))
"""Bytes that are looked at: 1 KiB to 16 GiB."""
MADE: Final = "# The first row that fits is taken. Made by `roundelay tune --for nccl`."
"""The first line of a file."""
EVEN: Final = 1.005
"""A gain below this is none."""


@dataclass(frozen=True)
class Choice:
    """What is written for one size of one collective.

    Attributes:
        ranks, nodes: that take part.
        own: what NCCL takes by itself.
        best: the quickest by the clock.
    """

    collective: str
    ranks: int
    nodes: int
    size: int
    own: tuple[Cost, Prediction]
    best: tuple[Cost, Prediction]

    @property
    def gain(self) -> float:
        """How many times as fast the best is."""
        return self.own[1].time_s / self.best[1].time_s

    @property
    def needed(self) -> float:
        """The gain from which on the clock's error does not matter."""
        low, high = self.own[1].band
        return sqrt(high / low)

    @property
    def dared(self) -> bool:
        """Whether the best is written in place of NCCL's own."""
        return self.gain >= self.needed

    @property
    def written(self) -> Cost:
        """The choice."""
        return (self.best if self.dared else self.own)[0]


@dataclass(frozen=True)
class Span:
    """Sizes next to one another with the same choice, NCCL's and ours: one row."""

    row: Row
    choices: tuple[Choice, ...]

    @property
    def gains(self) -> tuple[float, float]:
        """Smallest and largest gain of what the clock prefers, written or not."""
        found = [choice.gain for choice in self.choices]
        return min(found), max(found)

    def as_json(self) -> dict[str, Any]:
        """One entry of `--json`."""
        first = self.choices[0]
        return {
            "collective": self.row.collective, "ranks": first.ranks, "nodes": first.nodes,
            "low": self.row.low, "high": self.row.high, "algorithm": self.row.algorithm,
            "protocol": self.row.protocol, "channels": self.row.channels, "dared": first.dared,
            "own": f"{first.own[0].algorithm}/{first.own[0].protocol}",
            "prefers": f"{first.best[0].algorithm}/{first.best[0].protocol}",
            "sizes": [
                {"bytes": c.size, "own_us": c.own[1].time_s * 1e6,
                 "prefers_us": c.best[1].time_s * 1e6, "gain": c.gain, "needed": c.needed}
                for c in self.choices
            ],
        }  # fmt: skip


def spans(
    cluster: Cluster, collectives: Sequence[str] = tuple(COLLECTIVES),
    ranks: Sequence[int] = (), sizes: Sequence[int] = SIZES,
) -> list[Span]:  # fmt: skip
    """Rows of the table.

    Args:
        cluster: the machine.
        collectives: of those that the tuner knows.
        ranks: numbers of cards of a communicator; none: of one node, and of the whole cluster.
        sizes: bytes as NCCL counts them, rising; each stands for those up to the next.

    Raises:
        RoundelayError: NCCL's choice on these cards is not known, or a collective has none.
    """
    if cluster.generation not in ROWS:
        raise RoundelayError(
            f"NCCL's own choice on {cluster.name} ({cluster.generation}) is not known, so nothing "
            f"can be said to be better; expected cards of {', '.join(ROWS)}"
        )
    counts = ranks or sorted({n for n in (cluster.cards, cluster.size) if n > 1})
    found = []
    for collective in collectives:
        if collective not in COLLECTIVES:
            raise RoundelayError(f"{collective}: the tuner has {', '.join(COLLECTIVES)}")
        for n in counts:
            found += list(_spans(cluster, collective, n, sorted(set(sizes))))
    return found


def _spans(cluster: Cluster, collective: str, n: int, sizes: Sequence[int]) -> Iterator[Span]:
    nodes = -(-n // cluster.cards)
    choices = []
    for size in sizes:
        known = options(cluster, collective, size, n)
        best = min(known, key=lambda pair: pair[1].time_s)
        if known[0][1].time_s < best[1].time_s * EVEN:
            best = known[0]
        choices.append(Choice(collective, n, nodes, size, known[0], best))
    low = 0
    groups = [tuple(group) for _, group in groupby(choices, key=_kind)]
    for i, group in enumerate(groups):
        high = MOST if i == len(groups) - 1 else groups[i + 1][0].size - 1
        cost = group[0].written
        channels = max(1, min(64, cost.channels))
        yield Span(Row(collective, low, high, cost.algorithm, cost.protocol, channels, nodes, n),
                   group)  # fmt: skip
        low = high + 1


def _kind(choice: Choice) -> tuple[object, ...]:
    own, best, written = choice.own[0], choice.best[0], choice.written
    return own[:2], best[:2], written.channels, choice.dared


def tuner_file(found: Sequence[Span]) -> bytes:
    """The file for NCCL_TUNER_CONFIG_FILE.

    Communicators of other sizes take the last rows: ring, by LL up to the size where NCCL takes LL
    for the largest number of ranks of `found`, and by Simple beyond.
    """
    last = [row for name in dict.fromkeys(span.row.collective for span in found)
            for row in _last([span for span in found if span.row.collective == name])]  # fmt: skip
    channels = max((row.channels for row in last), default=8)
    rows = write_tuner([*(span.row for span in found), *last], channels)
    return MADE.encode() + b"\n" + rows


def _last(found: list[Span]) -> Iterator[Row]:
    """Two rows for communicators that nobody looked at."""
    largest = max(span.choices[0].ranks for span in found)
    here = [c for span in found for c in span.choices if c.ranks == largest]
    small = [c.size for c in here if c.own[0].protocol == "LL"]
    name, channels = found[0].row.collective, max(c.own[0].channels for c in here)
    channels = max(1, min(64, channels))
    if small:
        few = max(1, min(64, max(c.own[0].channels for c in here if c.size == max(small))))
        yield Row(name, 0, max(small), "ring", "LL", few)
    yield Row(name, 0, MOST, "ring", "Simple", channels)
