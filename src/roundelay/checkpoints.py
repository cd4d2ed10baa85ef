"""How often to save a job's state, where failures come by chance.

A job saves every `interval` seconds of work, which takes `save` seconds; failures come with a mean
time `mtbf` between them, and what was done since the last save is done again, after `restart`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .errors import RoundelayError


class Waste(NamedTuple):
    """Parts of the time that are no work.

    Attributes:
        saving: writing states.
        again: doing again what was lost.
        restarting: coming back.
    """

    saving: float
    again: float
    restarting: float

    @property
    def all(self) -> float:
        """Their sum."""
        return self.saving + self.again + self.restarting


def young(save_s: float, mtbf_s: float) -> float:
    """Seconds of work between two saves: sqrt(2 save mtbf).

    Young 1974, A first order approximation to the optimum checkpoint interval,
    doi:10.1145/361147.361115.

    Raises:
        RoundelayError: a time that is none.

    >>> round(young(30, 3.09 * 3600) / 60, 1)
    13.6
    """
    _check(save_s, mtbf_s)
    return math.sqrt(2 * save_s * mtbf_s)


def daly(save_s: float, mtbf_s: float) -> float:
    """Seconds of work between two saves, to a higher order.

    Daly 2006, A higher order estimate of the optimum checkpoint interval for restart dumps,
    doi:10.1016/j.future.2004.11.016, equation 37.

    Raises:
        RoundelayError: a time that is none.
    """
    _check(save_s, mtbf_s)
    if save_s >= 2 * mtbf_s:
        return mtbf_s
    x = save_s / (2 * mtbf_s)
    return math.sqrt(2 * save_s * mtbf_s) * (1 + math.sqrt(x) / 3 + x / 9) - save_s


def waste(interval_s: float, save_s: float, mtbf_s: float, restart_s: float) -> Waste:
    """Parts of the time lost, to first order: save / interval + (interval / 2 + restart) / mtbf.

    Raises:
        RoundelayError: a time that is none.
    """
    _check(save_s, mtbf_s)
    if not 0 < interval_s < math.inf or not 0 <= restart_s < math.inf:
        raise RoundelayError(f"an interval of {interval_s:g} s and a restart of {restart_s:g} s; "
                             "expected an interval above 0 and a restart of 0 or more")  # fmt: skip
    return Waste(save_s / interval_s, interval_s / 2 / mtbf_s, restart_s / mtbf_s)


def effective(interval_s: float, save_s: float, mtbf_s: float, restart_s: float) -> float:
    """Part of the time that is work, where failures come by an exponential law: exact.

    A failure may strike while the state is saved or the job restarts. Daly 2006, equation 20.

    Raises:
        RoundelayError: a time that is none.
    """
    waste(interval_s, save_s, mtbf_s, restart_s)
    tries = math.expm1((interval_s + save_s) / mtbf_s)
    return interval_s / (mtbf_s * math.exp(restart_s / mtbf_s) * tries)


def _check(save_s: float, mtbf_s: float) -> None:
    if not 0 < save_s < math.inf or not 0 < mtbf_s < math.inf:
        raise RoundelayError(
            f"a save of {save_s:g} s and a mean time between failures of {mtbf_s:g} s; expected "
            "both above 0 and finite. Without failures there is nothing to save for"
        )
