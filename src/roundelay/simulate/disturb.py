"""What differs from time to time: factors on the times of messages, by step, card or link.

A factor is drawn from a table of equally likely ones, the quantiles of a distribution. Those of a
card or a link are drawn once for a collective, those of a step for every message.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..collectives import UnknownName
from ..errors import RoundelayError
from .clock import Clock

Table = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]

QUANTILES: Final = 1 << 18
"""Factors in a table: the greatest is what one of half a million has."""
CALLS: Final = 1000
"""Of which the slowest is expected to be as `Spread.expected_most` says."""
SAMPLES_LIMIT: Final = 10**7
"""Samples at most."""
NOTHING: Final[Table] = np.empty(0, np.float32)


def _normal(u: Floats, sigma: float) -> Floats:
    return np.maximum(1 + sigma * _z(u), 0.0)


def _lognormal(u: Floats, cv: float) -> Floats:
    sigma = math.sqrt(math.log1p(cv * cv))
    return np.asarray(np.exp(sigma * _z(u) - sigma**2 / 2))


def _exponential(u: Floats, mean: float) -> Floats:
    return np.asarray(1 - mean * np.log1p(-u))


def _pareto(u: Floats, alpha: float) -> Floats:
    return np.asarray((1 - u) ** (-1 / alpha))


def _uniform(u: Floats, half: float) -> Floats:
    return 1 - half + 2 * half * u


def _z(u: Floats) -> Floats:
    """Quantiles of the standard normal distribution, between 2,000 exact ones."""
    inverse = NormalDist().inv_cdf
    knots = np.linspace(math.log(u[0]), math.log(0.5), 2000)
    low = np.array([inverse(math.exp(k)) for k in knots])
    tail = np.log(np.minimum(u, 1 - u))
    return np.asarray(np.where(u < 0.5, 1.0, -1.0) * np.interp(tail, knots, low))


class Distribution(NamedTuple):
    """A family of distributions of factors.

    Attributes:
        quantiles: of probabilities and the parameter.
        parameter: what it is.
        most: its greatest value.
    """

    quantiles: Callable[[Floats, float], Floats]
    parameter: str
    most: float


DISTRIBUTIONS: Final[Mapping[str, Distribution]] = MappingProxyType(
    {
        "normal": Distribution(_normal, "standard deviation, such as 0.05", 1.0),
        "lognormal": Distribution(_lognormal, "standard deviation over mean, such as 0.05", 10.0),
        "exponential": Distribution(_exponential, "mean of what is added, such as 0.05", 100.0),
        "pareto": Distribution(_pareto, "exponent of the tail, such as 3", 100.0),
        "uniform": Distribution(_uniform, "half the width, such as 0.05", 1.0),
    }
)
"""Factors have a mean of 1, except exponential and pareto, which only add to 1."""


def table(name: str, parameter: float) -> Table:
    """The factors of a distribution, each as likely as the others.

    Args:
        name: one of `DISTRIBUTIONS`.
        parameter: see there.

    Raises:
        RoundelayError: no such distribution, or its parameter is out of range.
    """
    if name not in DISTRIBUTIONS:
        raise UnknownName("distribution", name, DISTRIBUTIONS)
    known = DISTRIBUTIONS[name]
    if not 0 < parameter <= known.most:
        raise RoundelayError(f"{name}:{parameter:g}; expected its {known.parameter}, above 0 and "
                             f"up to {known.most:g}")  # fmt: skip
    u = (np.arange(QUANTILES) + 0.5) / QUANTILES
    return known.quantiles(u, parameter).astype(np.float32)


class Jitter(NamedTuple):
    """Tables of factors: of every message, of each card, of each link (that binds a message)."""

    step: Table = NOTHING
    card: Table = NOTHING
    link: Table = NOTHING

    @classmethod
    def parse(cls, text: str) -> Jitter:
        """From "step=normal:0.05,card=lognormal:0.03,link=pareto:3".

        Raises:
            RoundelayError: it cannot be understood.
        """
        found: dict[str, Table] = {}
        for part in filter(None, text.split(",")):
            where, equals, what = part.partition("=")
            name, colon, number = what.partition(":")
            try:
                parameter = float(number) if equals and colon else math.nan
            except ValueError:
                parameter = math.nan
            if where not in ("step", "card", "link") or math.isnan(parameter):
                raise RoundelayError(
                    f"{part!r} is no jitter; expected step, card or link, and a distribution: "
                    "step=normal:0.05,card=lognormal:0.03,link=pareto:3"
                )
            found[where] = table(name, parameter)
        return cls(**found)


@dataclass(frozen=True)
class Spread:
    """Times of a collective that differ from time to time, in seconds.

    Attributes:
        mean, p50, p99, p999: of the samples.
        most: the greatest of them.
        expected_most: the greatest of 1,000 calls, in the mean.
        samples: how many.
    """

    mean: float
    p50: float
    p99: float
    p999: float
    most: float
    expected_most: float
    samples: int


def expected_most(times: Floats, calls: int) -> float:
    """Seconds of the slowest of so many calls, in the mean.

    E[max] = sum of the ordered samples, each by how likely it is to be the greatest of `calls` that
    are drawn from them: (i/n)^calls - ((i-1)/n)^calls.
    """
    edges = (np.arange(len(times) + 1) / len(times)) ** calls
    return float((np.sort(times) * np.diff(edges)).sum())


def spread(
    clock: Clock,
    size: int,
    jitter: Jitter,
    samples: int,
    protocol: str | None = None,
    *,
    seed: int = 1,
    threads: int = 1,
) -> tuple[Spread, Floats]:
    """How the time of a collective differs.

    Args:
        clock: the schedule on its cluster; what is slow there stays so.
        size: bytes, as in nccl-tests' size column.
        jitter: what differs.
        samples: how often it is drawn.
        protocol: by which messages go; without it, the quickest where nothing differs.
        seed: the same gives the same samples.
        threads: that work at it; they don't change the result.

    Returns:
        the spread, and [sample] seconds.

    Raises:
        RoundelayError: no such number of samples.
    """
    if not 1 <= samples <= SAMPLES_LIMIT:
        raise RoundelayError(f"{samples} samples; expected 1 to {SAMPLES_LIMIT:,}")
    tables = (jitter.step, jitter.card, jitter.link)
    times = clock.samples(size, tables, samples, protocol, seed=seed, threads=threads)
    p50, p99, p999 = np.quantile(times, (0.5, 0.99, 0.999), method="inverted_cdf")
    found = Spread(float(times.mean()), float(p50), float(p99), float(p999), float(times.max()),
                   expected_most(times, CALLS), samples)  # fmt: skip
    return found, times
