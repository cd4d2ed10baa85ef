"""The cheapest setting of a policy with which requests are in time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from .policy import Fixed, Scaler
from .simulate import Outcome, Service, simulate
from .traffic import Request

SHARE: Final = 0.99
"""Part of all requests that should be in time."""
TARGETS: Final = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8)
"""Parts of an instance's places that are tried."""


def best_target(
    requests: Sequence[Request],
    service: Service,
    scaler: Callable[[float], Scaler],
    targets: Sequence[float] = TARGETS,
) -> tuple[float, Outcome]:
    """The target with the fewest card hours of those that keep `SHARE` in time.

    Where none does, the one with most in time.

    Args:
        requests: see `simulate`.
        service: see `simulate`.
        scaler: by a target.
        targets: that are tried; one or more.
    """
    tried = [(target, simulate(requests, service, scaler(target))) for target in targets]
    enough = [(target, found) for target, found in tried if found.in_time >= SHARE]
    if enough:
        return min(enough, key=lambda pair: pair[1].card_hours)
    return max(tried, key=lambda pair: pair[1].in_time)


def least_fixed(requests: Sequence[Request], service: Service, most: int) -> int | None:
    """The fewest instances, always there, with which `SHARE` of requests is in time.

    Found by halving, which takes it that more instances are never worse; None: not with `most`.
    """

    def enough(instances: int) -> bool:
        scaler = Scaler(Fixed(instances), instances, instances)
        return simulate(requests, service, scaler).in_time >= SHARE

    low, high = 1, most
    if not enough(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low
