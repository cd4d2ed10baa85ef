"""What came of policies, beside one another, and how often jobs should save."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

import numpy as np

from ...errors import RoundelayError
from ...intervals import daly, effective, waste, young
from ...topology import Cluster
from .arrivals import Arrival
from .clock import ClusterClock, Outcome, Settings
from .kinds import Kind
from .rates import HOUR, Rates
from .run import Run, Saving

PARTS = ("work", "dearer", "crowded", "slowed", "saving", "restarting", "again")
"""Of the seconds that jobs hold their cards; see `Run`."""


class Checkpoint(NamedTuple):
    """How often jobs of a size should save, and what failures cost them then.

    Attributes:
        cards: of the job.
        between_failures: seconds, in the mean.
        young, daly: seconds from save to save, and of work between saves; see `intervals`.
        waste: part of the time that is no work, by Young's first order with his interval.
        effective: part that is work, by Daly's complete cost with his.
    """

    cards: int
    between_failures: float
    young: float
    daly: float
    waste: float
    effective: float


def checkpoints(
    cluster: Cluster, cards: Sequence[int], save: float, restart: float, rates: Rates
) -> list[Checkpoint]:
    """One a size; none where nothing fails.

    Raises:
        RoundelayError: a save that takes no time, or a negative restart.
    """
    if not 0 < save < inf or not 0 <= restart < inf:
        raise RoundelayError(f"a save of {save:g} s, a restart of {restart:g} s; expected more "
                             "than 0, and 0 or more")  # fmt: skip
    found = []
    for n in sorted({*cards}):
        m = rates.between_failures(n, cluster)
        if m < inf:
            t, work = young(save, m), daly(save, m)
            found.append(Checkpoint(n, m, t, work, min(1.0, waste(save, restart, t, m)),
                                    effective(save, restart, work, m)))  # fmt: skip
    return found


def saving(
    cluster: Cluster, jobs: Sequence[Arrival], save: float, restart: float, rates: Rates,
    interval: float | None = None,
) -> Saving:  # fmt: skip
    """How jobs save: after so many seconds of work, or as many as `daly` says for their size.

    Raises:
        RoundelayError: see `checkpoints`; an interval that isn't more than 0.
    """
    sizes = {job.cards for job in jobs}
    best = {c.cards: c.daly for c in checkpoints(cluster, [*sizes], save, restart, rates)}
    if interval is not None and not 0 < interval < inf:
        raise RoundelayError(f"saves every {interval:g} s; expected more than 0")
    each = {n: best.get(n, inf) if interval is None else interval for n in sizes}
    return Saving(save, restart, each)


@dataclass(frozen=True, eq=False)
class Summary:
    """A policy's figures.

    Attributes:
        policy: its name.
        wait_s: from arrival to first start, in the mean.
        makespan_s: from the first arrival to the last end.
        fragmentation: see `Nodes`; in the mean over time.
        exchange_slowdown: an exchange over the cheapest one, of jobs on several nodes, in the mean
            over the time that they hold their cards.
        crowding: an exchange with other jobs on its links over the same one alone, likewise; None
            where they don't slow one another.
        card_hours: held by jobs, by `PARTS`, which add up to them.
        outcome: all of it.
    """

    policy: str
    wait_s: float
    makespan_s: float
    fragmentation: float
    exchange_slowdown: float
    crowding: float | None
    card_hours: Mapping[str, float]
    outcome: Outcome

    @property
    def lost_card_hours(self) -> float:
        """What saves and failures take."""
        return sum(self.card_hours[part] for part in ("saving", "restarting", "again"))

    @property
    def effective(self) -> float:
        """Part of the held card-hours that is work."""
        return self.card_hours["work"] / sum(self.card_hours.values())


def compare(
    cluster: Cluster, jobs: Sequence[Arrival], policies: Sequence[str], settings: Settings,
    done: Callable[[Summary], None] = lambda _: None, *, record: bool = False,
) -> list[Summary]:  # fmt: skip
    """The same jobs and failures under several policies.

    Args:
        cluster: with a tree of switches.
        jobs: in the order of their arrival.
        policies: see `Kind.choose`.
        settings: but for the policy.
        done: called with each, as soon as it is known.
        record: keep the events of each.

    Raises:
        RoundelayError: no job, one that is larger than the cluster, or one that never ends.
    """
    if not jobs:
        raise RoundelayError("no job arrives; expected 1 or more")
    kinds: dict[tuple[str, int], Kind] = {}
    found = []
    for policy in policies:
        one = replace(settings, policy=policy)
        clock = ClusterClock(cluster, jobs, one, kinds, record=record)
        found.append(summary(policy, clock.run(), contention=one.contention))
        done(found[-1])
    return found


def summary(policy: str, outcome: Outcome, *, contention: bool) -> Summary:
    """The figures of one."""
    runs = outcome.runs
    several = [r for r in runs if r.kind.blocks > 1]
    held, exchanged, shared = (
        sum(getattr(r, what) * r.arrival.cards for r in several)
        for what in ("held", "exchanged", "shared")
    )
    return Summary(
        policy,
        float(np.mean([r.started - r.arrival.submit for r in runs])),
        outcome.over - min(r.arrival.submit for r in runs),
        outcome.fragmentation,
        exchanged / held if held else 1.0,
        (shared / exchanged if exchanged else 1.0) if contention else None,
        {part: _card_hours(runs, part) for part in PARTS},
        outcome,
    )


def _card_hours(runs: Sequence[Run], part: str) -> float:
    return float(sum(getattr(r, part) * r.arrival.cards for r in runs)) / HOUR
