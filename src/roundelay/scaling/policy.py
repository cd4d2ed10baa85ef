"""How many instances there should be, from what is seen of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from ..collectives import UnknownName
from ..errors import RoundelayError

TARGET: Final = 0.6
"""Part of the places of an instance that should be taken."""
TOLERANCE: Final = 0.1
"""By how much the load may differ from its target before anything is changed; that of Kubernetes'
horizontal pod autoscaler (--horizontal-pod-autoscaler-tolerance)."""
CALM: Final = 300.0
"""Seconds for which fewer must have been enough before there are fewer; the autoscaler's
stabilizationWindowSeconds of scaleDown."""
LOOK: Final = 15.0
"""Seconds from one look to the next; the autoscaler's --horizontal-pod-autoscaler-sync-period."""


class Seen(NamedTuple):
    """What a policy sees.

    Attributes:
        now: seconds.
        instances: that are ready, or start.
        places: requests that run at once in one.
        running, waiting: requests, of all.
        work: seconds of an instance that what has come since the look before will take.
    """

    now: float
    instances: int
    places: int
    running: int
    waiting: int
    work: float


class Policy(Protocol):
    """How many instances there should be."""

    def wanted(self, seen: Seen) -> int:
        """Called at every look, with what is seen."""
        ...


@dataclass
class Fixed:
    """Always as many."""

    count: int

    def wanted(self, seen: Seen) -> int:
        """So many."""
        return self.count


@dataclass
class Utilisation:
    """By the part of all places that is taken: ceil(instances x taken / target).

    The rule of Kubernetes' horizontal pod autoscaler. It does not see who waits, and with all
    places taken it cannot grow by more than 1 / target at a look.
    """

    target: float = TARGET

    def wanted(self, seen: Seen) -> int:
        """As many as bring the taken part to the target; no change within the tolerance."""
        ratio = seen.running / (seen.instances * seen.places) / self.target
        if abs(ratio - 1) <= TOLERANCE:
            return seen.instances
        return ceil(seen.instances * ratio)


@dataclass
class Queue:
    """By how many requests there are, running and waiting: ceil(requests / (places x target)).

    What KEDA and the autoscaler make of an external metric with an AverageValue.
    """

    target: float = TARGET

    def wanted(self, seen: Seen) -> int:
        """As many as give each its share."""
        return ceil((seen.running + seen.waiting) / (seen.places * self.target))


@dataclass
class Forecast:
    """By the work that will come when an instance that is started now is ready.

    Work is in seconds of an instance, so work a second is how many instances are busy. It is
    smoothed with its trend (C. C. Holt, 1957: double exponential smoothing).

    Attributes:
        ahead: seconds to look ahead: those of a start.
        target: part of the instances' time that should be taken.
        level: how much a new look counts, 0 to 1.
        trend: how much its change counts, 0 to 1.
    """

    ahead: float
    target: float = TARGET
    level: float = 0.4
    trend: float = 0.1

    def __post_init__(self) -> None:
        self._before: float | None = None
        self._busy = self._slope = 0.0

    def wanted(self, seen: Seen) -> int:
        """As many as will be needed, or are needed for what has just come."""
        before, self._before = self._before, seen.now
        if before is None or seen.now <= before:
            return seen.instances
        passed = seen.now - before
        busy = seen.work / passed
        smooth = self.level * busy + (1 - self.level) * (self._busy + self._slope * passed)
        self._slope += self.trend * ((smooth - self._busy) / passed - self._slope)
        self._busy = smooth
        return ceil(max(busy, smooth + self._slope * self.ahead) / self.target)


POLICIES: Final[Mapping[str, Callable[[float, float], Policy]]] = MappingProxyType(
    {
        "utilisation": lambda target, ahead: Utilisation(target),
        "queue": lambda target, ahead: Queue(target),
        "forecast": lambda target, ahead: Forecast(ahead, target),
    }
)
"""What scales, by name; each is given the target and the seconds of a start."""


def policy(name: str, target: float = TARGET, ahead: float = 0.0) -> Policy:
    """A policy that scales, by name.

    Raises:
        UnknownName: with the nearest known names.
        RoundelayError: a target that is no part.
    """
    if name not in POLICIES:
        raise UnknownName("policy", name, POLICIES)
    if not 0 < target <= 1:
        raise RoundelayError(f"a target of {target:g} of the places; expected above 0 and up to 1")
    return POLICIES[name](target, ahead)


class Scaler:
    """A policy within limits, which takes instances away only after a while of calm."""

    def __init__(self, policy: Policy, least: int, most: int, calm: float = CALM) -> None:
        """By a policy.

        Args:
            policy: which.
            least: instances, 1 or more.
            most: instances.
            calm: seconds for which fewer must have been enough.

        Raises:
            RoundelayError: limits that cannot be.
        """
        if not 1 <= least <= most:
            raise RoundelayError(f"{least} to {most} instances; expected 1 or more to no fewer")
        self.policy, self.least, self.most, self.calm = policy, least, most, calm
        self._wanted: deque[tuple[float, int]] = deque()

    def count(self, seen: Seen) -> int:
        """How many instances there should be now."""
        wanted = min(max(self.policy.wanted(seen), self.least), self.most)
        self._wanted.append((seen.now, wanted))
        while self._wanted[0][0] < seen.now - self.calm:
            self._wanted.popleft()
        if wanted >= seen.instances:
            return wanted
        return min(seen.instances, max(count for _, count in self._wanted))
