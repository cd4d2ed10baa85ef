"""A job as it runs: work, saves, and what failures take from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, inf

from ..job import Ints
from .arrivals import Arrival
from .kinds import Kind


@dataclass(frozen=True)
class Saving:
    """How jobs save their state.

    Attributes:
        save: seconds of a save.
        restart: seconds until work goes on after a failure or a move.
        interval: seconds of work between saves, by cards of the job; infinite: never.
    """

    save: float
    restart: float
    interval: Mapping[int, float]


@dataclass(eq=False, slots=True)
class Run:
    """A job from its arrival to its end.

    Seconds that it holds its cards are `work`, where its exchange is cheapest, or one of `dearer`
    (its exchange takes longer there), `crowded` (by others on its links), `slowed` (by a slow
    node), `saving`, `restarting` and `again` (work and saves that a failure takes, to be done once
    more).

    `clock` counts seconds since the last start at the job's own pace: first what it owes, then work
    and saves in turn.

    Attributes:
        left: seconds of work that aren't saved.
        owes: seconds before work goes on.
        exchange: an exchange over the cheapest one.
        longer: times that work takes for it.
        pace: times longer for a slow node.
        crowd: times longer for others on its links.
        met: an exchange with them over one alone.
        planned: when it ends as things are.
        version: of its plan; the ends of older ones are void.
        started: first; -1: not yet. `ended` likewise.
        exchanged, shared: seconds held, times `exchange`, and times that and `met`.
    """

    number: int
    arrival: Arrival
    kind: Kind
    left: float
    nodes: Ints | None = None
    owes: float = 0.0
    exchange: float = 1.0
    longer: float = 1.0
    pace: float = 1.0
    crowd: float = 1.0
    met: float = 1.0
    clock: float = 0.0
    seen: float = 0.0
    planned: float = inf
    version: int = 0
    started: float = -1.0
    ended: float = -1.0
    failures: int = 0
    preempted: int = 0
    moved: int = 0
    held: float = 0.0
    exchanged: float = 0.0
    shared: float = 0.0
    work: float = 0.0
    dearer: float = 0.0
    crowded: float = 0.0
    slowed: float = 0.0
    saving: float = 0.0
    restarting: float = 0.0
    again: float = 0.0

    def start(self, now: float, nodes: Ints, exchange: float, longer: float) -> None:
        """On nodes where its exchange takes so many times the least, and its work therefore too."""
        self.nodes, self.exchange, self.longer = nodes, exchange, longer
        self.clock, self.seen = 0.0, now
        self.pace = self.crowd = self.met = 1.0
        if self.started < 0:
            self.started = now

    def advance(self, now: float) -> None:
        """Let time pass."""
        gone = now - self.seen
        quick = gone / self.crowd
        self.clock += quick / self.pace
        self.crowded += gone - quick
        self.slowed += quick - quick / self.pace
        self.held += gone
        self.exchanged += gone * self.exchange
        self.shared += gone * self.exchange * self.met
        self.seen = now

    def saves(self, saving: Saving) -> int:
        """How many lie before its end."""
        interval = saving.interval[self.arrival.cards]
        return max(0, ceil(self.left * self.longer / interval - 1e-9) - 1) if interval < inf else 0

    def whole(self, saving: Saving) -> float:
        """Seconds of `clock` at which it has done all."""
        return self.owes + self.left * self.longer + self.saves(saving) * saving.save

    def replan(self, saving: Saving) -> None:
        """When it will end as things are."""
        self.version += 1
        self.planned = (
            self.seen + max(0.0, self.whole(saving) - self.clock) * self.pace * self.crowd
        )

    def stop(self, saving: Saving, *, saved: bool) -> None:
        """Keep what is saved; all of it where it had notice, for a save more before it goes on."""
        paid = min(self.clock, self.owes)
        ran, interval = self.clock - paid, saving.interval[self.arrival.cards]
        cycles = min(int(ran // (interval + saving.save)), self.saves(saving))
        rest = max(0.0, ran - cycles * (interval + saving.save)) if cycles else ran
        done = cycles * interval if cycles else 0.0
        if saved:
            new = min(rest, interval, self.left * self.longer - done)
            done += new
            self.saving += rest - new
        else:
            self.again += rest
        self.restarting += paid
        self.saving += cycles * saving.save
        self._count(done / self.longer)
        self.owes = saving.restart + (saving.save if saved and ran else 0.0)
        self._leave()

    def finish(self, now: float, saving: Saving) -> None:
        """It has done all."""
        self.restarting += self.owes
        self.saving += self.saves(saving) * saving.save
        self._count(self.left)
        self.left, self.ended = 0.0, now
        self._leave()

    def _count(self, work: float) -> None:
        self.work += work
        self.dearer += work * (self.longer - 1)
        self.left = max(0.0, self.left - work)

    def _leave(self) -> None:
        self.nodes = None
        self.version += 1
        self.planned = inf
