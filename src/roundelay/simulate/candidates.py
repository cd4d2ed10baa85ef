"""Which algorithms a cluster might use for a collective, and which of them is the quickest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..algorithms import Algorithm, algorithms
from ..errors import RoundelayError
from ..schedule import Schedule, ScheduleError
from ..topology import Cluster
from .clock import Clock, Timing
from .protocols import protocols

DENSE_LIMIT: Final = 512
"""Ranks above which algorithms with n * n messages are not tried unless they are asked for."""
PIECES: Final = (1, 8, 64)
"""Numbers of pieces that are tried of a pipelined algorithm."""
OUTER: Final = ("ring", "halving_doubling", "double_tree")
"""What is tried between nodes by an algorithm of two levels."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """An algorithm with its parameters.

    Attributes:
        algorithm: the algorithm.
        parameters: those that differ from the defaults.
    """

    algorithm: Algorithm
    parameters: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The algorithm and its parameters, for people: "rails, group=8, outer=ring"."""
        return ", ".join([self.algorithm.name, *(f"{k}={v}" for k, v in self.parameters.items())])

    def least(self, cluster: Cluster, n: int, size: int) -> float:
        """Seconds that it takes at least.

        Its steps and further peers, those of one piece where pieces follow one another, and the
        bytes of its busiest rank on the links of its card.
        """
        card = self.algorithm.card(n, size, **self.parameters)
        one = {**self.parameters, "pieces": 1} if "pieces" in self.parameters else self.parameters
        first = self.algorithm.card(n, size, **one)
        found = protocols(cluster)
        step = min(p.inside for p in found)
        share = max(p.efficiency[cluster.inside.medium] for p in found)
        peers = max(0.0, float(first.messages - first.steps)) * min(p.peer for p in found)
        wire = float(card.bytes_sent) / (cluster.inside.rate * share)
        return float(first.steps) * step + peers + wire

    def schedule(self, n: int) -> Schedule:
        """Its schedule over n ranks."""
        return self.algorithm(n, **self.parameters)


def fitted(
    algorithm: Algorithm, parameters: Mapping[str, Any], cluster: Cluster, n: int
) -> dict[str, Any]:
    """The parameters; groups are the cluster's nodes where nothing is said of them."""
    found = dict(parameters)
    if "group" in algorithm.parameters and n > cluster.cards:
        found.setdefault("group", cluster.cards)
    return found


def candidates(collective: str, cluster: Cluster, n: int) -> Iterator[Candidate]:
    """What might be used, as far as the cluster has the switches for it.

    Raises:
        UnknownName: there is no such collective.
    """
    for a in algorithms(collective):
        if (a.dense and n > DENSE_LIMIT) or not _switches(a, cluster, n):
            continue
        for parameters in _parameters(a, cluster, n):
            if a.fits(n, parameters):
                yield Candidate(a, parameters)


def _switches(a: Algorithm, cluster: Cluster, n: int) -> bool:
    """Whether switches add where the algorithm needs it."""
    inside = cluster.inside.multicast
    if a.name == "switch":
        return inside if n <= cluster.cards else cluster.fabric.adds
    if a.name == "rails_switch":
        return inside and cluster.fabric.adds and n > cluster.cards
    return cluster.fabric.adds and n > cluster.cards if "switch" in a.name else True


def _parameters(a: Algorithm, cluster: Cluster, n: int) -> Iterator[dict[str, Any]]:
    known = a.parameters
    if "groups" in known:
        return
    base: dict[str, Any] = {}
    if "group" in known:
        if n <= cluster.cards:
            return
        base = {"group": cluster.cards}
    if "pieces" in known:
        yield from ({**base, "pieces": pieces} for pieces in PIECES)
    elif "outer" in known and a.collective == "all_reduce":
        yield from ({**base, "outer": outer} for outer in OUTER)
    else:
        yield base


class Contest:
    """The candidates for a collective over n ranks of a cluster; their clocks are kept."""

    def __init__(self, collective: str, cluster: Cluster, n: int) -> None:
        """None of them is timed yet."""
        self._what, self._cluster, self._n = collective, cluster, n
        self._candidates = list(candidates(collective, cluster, n))
        self._clocks: dict[int, Clock | None] = {}

    def quickest(self, size: int) -> list[tuple[Candidate, Timing]]:
        """Candidates and their times, the quickest first.

        Those that cannot be as quick as the second are left out.

        Raises:
            RoundelayError: there is none.
        """
        found: list[tuple[Candidate, Timing]] = []
        each = [(c.least(self._cluster, self._n, size), i)
                for i, c in enumerate(self._candidates)]  # fmt: skip
        for least, i in sorted(each):
            if len(found) > 1 and least >= found[1][1].time:
                break
            if (clock := self._clock(i)) is not None:
                found.append((self._candidates[i], clock.time(size)))
                found.sort(key=lambda pair: pair[1].time)
        if not found:
            raise RoundelayError(
                f"no algorithm of {self._what} for {self._n:,} ranks on {self._cluster.name}; "
                "name one, as in --algorithm direct"
            )
        return found

    def _clock(self, i: int) -> Clock | None:
        """None for one that does not suit, such as rails over nodes of unequal size."""
        if i not in self._clocks:
            try:
                schedule = self._candidates[i].schedule(self._n)
                self._clocks[i] = Clock(schedule, self._cluster)
            except ScheduleError:
                self._clocks[i] = None
        return self._clocks[i]


def quickest(
    collective: str, cluster: Cluster, n: int, size: int
) -> list[tuple[Candidate, Timing]]:
    """See `Contest.quickest`."""
    return Contest(collective, cluster, n).quickest(size)
