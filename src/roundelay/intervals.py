"""How often to save what must not be lost."""

from __future__ import annotations

from math import exp, expm1, inf, sqrt
from typing import Final

from .errors import RoundelayError

CARD_HOURS = 50_677.0
"""Mean hours between failures of one card: 419 unexpected interruptions of 16,384 H100 in 54 days.

Grattafiori et al., The Llama 3 Herd of Models, 2024, table 5.
"""
EXPONENT: Final = 700.0
"""A float takes e to the power of 709 at most; the part that is work is below 1e-300 there."""


def young(save: float, between_failures: float) -> float:
    """Seconds from one save to the next that waste the least: sqrt(2 d M).

    J. W. Young, A first order approximation to the optimum checkpoint interval, Communications of
    the ACM 17 (1974). It takes a save to be short beside the time between failures.

    Args:
        save: seconds that a save takes, d.
        between_failures: mean seconds between failures of the whole job, M.

    Raises:
        RoundelayError: a time that is not more than 0.
    """
    _check(save, between_failures)
    return sqrt(2 * save * between_failures)


def daly(save: float, between_failures: float) -> float:
    """Seconds of work from the end of one save to the begin of the next.

    J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, Future
    Generation Computer Systems 22 (2006), equation 37:
    sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + d / 2M / 9) - d, and M where d is 2 M or more.

    Args:
        save: seconds that a save takes, d.
        between_failures: mean seconds between failures of the whole job, M.

    Raises:
        RoundelayError: a time that is not more than 0.
    """
    first = young(save, between_failures)
    if save >= 2 * between_failures:
        return between_failures
    ratio = save / (2 * between_failures)
    return first * (1 + sqrt(ratio) / 3 + ratio / 9) - save


def waste(save: float, restart: float, interval: float, between_failures: float) -> float:
    """Part of the time that saves and failures take, to first order: d / t + (t / 2 + R) / M.

    Young's; see `young`.

    Args:
        save: seconds that a save takes, d.
        restart: seconds from a failure until work goes on, R.
        interval: seconds from one save to the next, t.
        between_failures: mean seconds between failures of the whole job, M.

    Raises:
        RoundelayError: a time that is not more than 0; a restart may take none.
    """
    _check(save, between_failures)
    return save / interval + (interval / 2 + restart) / between_failures


def effective(save: float, restart: float, work: float, between_failures: float) -> float:
    """Part of the time that is work: t / (M exp(R / M) (exp((t + d) / M) - 1)).

    Daly's complete cost, as named at `daly`: failures come at any time, also in saves and restarts.

    Args:
        save: seconds that a save takes, d.
        restart: seconds from a failure until work goes on, R.
        work: seconds from the end of one save to the begin of the next, t.
        between_failures: mean seconds between failures of the whole job, M.

    Raises:
        RoundelayError: a time that is not more than 0; a restart may take none.
    """
    _check(save, between_failures)
    m = between_failures
    if (restart + work + save) / m > EXPONENT:
        return 0.0
    return work / (m * exp(restart / m) * expm1((work + save) / m))


def _check(save: float, between_failures: float) -> None:
    for name, value in (("a save", save), ("the time between failures", between_failures)):
        if not 0 < value < inf:
            raise RoundelayError(f"{name} of {value!r} seconds; expected more than 0")
