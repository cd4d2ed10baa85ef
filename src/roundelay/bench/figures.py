"""From what workers report to the figures of a line."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .cells import Point

Spans = Sequence[Sequence[int]]
"""Begin and end of each call of one rank, in ns of a clock that all ranks share."""


def durations(spans: Sequence[Spans]) -> list[int]:
    """Nanoseconds of each call: from the first rank's start to the last rank's end.

    >>> durations([[(0, 5)], [(2, 9)]])
    [9]
    """
    return [max(e for _, e in call) - min(s for s, _ in call) for call in zip(*spans, strict=True)]


def geometric_mean(values: Iterable[float]) -> float | None:
    """The geometric mean; None of nothing."""
    logs = [math.log(value) for value in values]
    return math.exp(statistics.fmean(logs)) if logs else None


class Figure(NamedTuple):
    """What one form of one point gave.

    Attributes:
        time_us: median over the calls.
        calls: how many were timed.
        wrong: elements that were wrong over all ranks; None if nothing was checked.
    """

    time_us: float
    calls: int
    wrong: int | None

    def algbw(self, point: Point) -> float:
        """GB/s: size over time."""
        return point.nbytes / self.time_us / 1e3

    def busbw(self, point: Point) -> float:
        """GB/s: what links would carry in nccl-tests' sense."""
        return self.algbw(point) * float(point.bus_factor)


@dataclass(frozen=True)
class Line:
    """All figures of one point.

    Attributes:
        ours: by form, whether in place; a form that does not exist is left out.
        rivals: microseconds in the usual form; None for a rival that has no such call.
        ping_ns: one way between two cores, measured beside this point.
        predicted_us: microseconds that the clock says of the usual form.
    """

    point: Point
    ours: Mapping[bool, Figure]
    rivals: Mapping[str, float | None] = field(default_factory=dict)
    ping_ns: float | None = None
    predicted_us: float | None = None

    @property
    def ratio(self) -> float | None:
        """Our time over the best rival's, in the usual form."""
        best = min((t for t in self.rivals.values() if t is not None), default=None)
        ours = self.ours.get(self.point.usually_in_place)
        return None if best is None or ours is None else ours.time_us / best

    def rows(self) -> list[dict[str, Any]]:
        """The rows of `--json`: out of place, then in place."""
        return [self._row(in_place) for in_place in (False, True)]

    def _row(self, in_place: bool) -> dict[str, Any]:
        point, figure = self.point, self.ours.get(in_place)
        usual = in_place == point.usually_in_place
        return {
            "collective": point.collective,
            "algorithm": point.algorithm,
            "ranks": point.ranks,
            "bytes": point.nbytes,
            "dtype": point.dtype,
            "in_place": in_place,
            "time_us": figure and figure.time_us,
            "algbw_GBps": figure and figure.algbw(point),
            "busbw_GBps": figure and figure.busbw(point),
            "wrong": figure and figure.wrong,
            "ping_ns": self.ping_ns,
            "rivals": {name: us if usual else None for name, us in self.rivals.items()},
            "ratio": self.ratio if usual else None,
            "predicted_us": self.predicted_us if usual else None,
            "op": point.op if point.sums else None,
            "root": point.root if point.rooted else None,
            "shared": point.shared,
            "calls": figure and figure.calls,
        }


class Summary(NamedTuple):
    """The ratios of all lines in two figures."""

    geometric_mean: float | None
    worst: Line | None

    @staticmethod
    def of(lines: Sequence[Line]) -> Summary:
        """Over the lines that have a ratio."""
        compared = [line for line in lines if line.ratio is not None]
        worst = max(compared, key=lambda line: line.ratio or 0.0, default=None)
        return Summary(geometric_mean(line.ratio or 1.0 for line in compared), worst)


def as_json(lines: Sequence[Line], machine: Mapping[str, Any], versions: Mapping[str, str | None],
            ping_ns: float | None) -> dict[str, Any]:  # fmt: skip
    """The value of `--json`."""
    summary = Summary.of(lines)
    worst = summary.worst
    return {
        "machine": machine,
        "ping_ns": ping_ns,
        "versions": versions,
        "rows": [row for line in lines for row in line.rows()],
        "geometric_mean": summary.geometric_mean,
        "worst": worst and worst.rows()[worst.point.usually_in_place],
    }
