"""What the bucket shows: a step of n cards is as slow as the slowest card and the slowest link.

Computing takes a card ``compute * F``, where F is normal with mean 1 and deviation ``noise``, drawn
anew for each card and step; one card may be slower by a factor. In a step a link stalls with
probability ``stall``, and if any does, all wait for it. So the time of a step is::

    compute * max(F_1, ..., F_(n-1), slow * F_n) + exchange + (pause if a link stalls) + update

The distribution of the greatest is ``P(max <= x) = P(x)^(n-1) * P(x / slow)``, so that quantiles
need no trials. Times are in milliseconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ...errors import RoundelayError
from .parameters import Reader, whole

MOST: Final = 10_000
"""Cards."""
QUANTILES: Final = (("p50", 0.5), ("p99", 0.99), ("p999", 0.999))
COUNTS: Final = (4, 8, 16, 32, 64, 128, 256, 512, 1000, 2000, 4096, 10_000)
"""Cards of the table."""
SLICES: Final = 2000
"""Into which integrals are cut."""


_NUMBER: Final = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.A | re.I)


def number(name: str, low: float, high: float) -> Reader:
    """A reader of numbers from `low` to `high`."""

    def read(text: str) -> float:
        value = float(text) if _NUMBER.fullmatch(text) else math.nan
        if not low <= value <= high:
            raise RoundelayError(f"{name} = {text!r:.40}; expected {low:g} to {high:g}")
        return value

    return read


READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "n": whole("n", 4, MOST),
        "slow": number("slow", 1, 10),
        "noise": number("noise", 0, 0.3),
        "stall": number("stall", 0, 0.1),
        "pause": number("pause", 0, 10_000),
        "compute": number("compute", 1, 10_000),
        "exchange": number("exchange", 0, 10_000),
        "update": number("update", 0, 10_000),
    }
)


def bucket(
    n: int = 64,
    slow: float = 1.0,
    noise: float = 0.02,
    stall: float = 1e-4,
    pause: float = 200.0,
    compute: float = 200.0,
    exchange: float = 40.0,
    update: float = 10.0,
) -> dict[str, Any]:
    """Figures of a step.

    Args:
        n: cards.
        slow: factor of the slow card's time; 1: none is slow.
        noise: standard deviation of a card's time for computing, over its mean.
        stall: probability that the link of a card stalls in a step.
        pause: ms that it stalls.
        compute: ms of computing, in the mean.
        exchange: ms of exchanging and adding.
        update: ms of applying the sum.

    Returns:
        ``ideal``, ``mean``, ``p50``, ``p99``, ``p999``: ms of a step; ``lost``: part of the cards'
        time that is spent waiting; ``hours``: card-hours of that in an hour; ``well``: probability
        that no link stalls; ``rows``: the same for other numbers of cards.
    """
    given = (slow, noise, stall, pause, compute, exchange, update)
    return {**_figures(n, *given), "rows": [_figures(k, *given) for k in COUNTS]}


def _figures(
    n: int, slow: float, noise: float, stall: float, pause: float, compute: float,
    exchange: float, update: float,
) -> dict[str, float]:  # fmt: skip
    fixed = exchange + update
    well = math.exp(n * math.log1p(-stall))
    greatest = _slowest(n, slow, noise)
    jam = [(0.0, well), (pause, 1 - well)]

    def below(ms: float) -> float:
        return sum(p * greatest((ms - fixed - wait) / compute) for wait, p in jam if p > 0)

    high = fixed + pause + compute * _most(slow, noise)
    found = {name: _inverse(below, q, fixed, high) for name, q in QUANTILES}
    mean = compute * _mean(greatest, slow, noise) + fixed + pause * (1 - well)
    ideal = compute + fixed
    busy = compute * (1 + (slow - 1) / n) + fixed
    lost = max(0.0, 1 - busy / mean)
    return {"n": n, "ideal": ideal, "mean": mean, **found, "lost": lost, "hours": n * lost,
            "well": well}  # fmt: skip


def _slowest(n: int, slow: float, noise: float) -> Callable[[float], float]:
    """P(max <= x) of the factors of n cards, of which one is slow."""

    def below(x: float) -> float:
        if noise <= 0:
            return float(x >= max(1.0, slow))
        above = beyond((x - 1) / noise)
        if above >= 1:
            return 0.0
        return math.exp((n - 1) * math.log1p(-above)) * (1 - beyond((x / slow - 1) / noise))

    return below


def beyond(z: float) -> float:
    """P(Z > z) of the standard normal distribution."""
    return 0.5 * math.erfc(z / math.sqrt(2))


def _most(slow: float, noise: float) -> float:
    """A factor that the greatest hardly ever exceeds: ten deviations above all."""
    return slow * (1 + 10 * noise) + 1e-9


def _mean(below: Callable[[float], float], slow: float, noise: float) -> float:
    """The mean of a distribution of positive values: the integral of 1 - P."""
    if noise <= 0:
        return max(1.0, slow)
    low = max(0.0, 1 - 10 * noise)
    width = (_most(slow, noise) - low) / SLICES
    return low + width * sum(1 - below(low + (k + 0.5) * width) for k in range(SLICES))


def _inverse(below: Callable[[float], float], q: float, low: float, high: float) -> float:
    """Where a distribution reaches q, by halving."""
    for _ in range(40):
        middle = (low + high) / 2
        if below(middle) < q:
            low = middle
        else:
            high = middle
    return high
