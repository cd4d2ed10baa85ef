"""A cluster over time: jobs queue, start as gangs, end, fail and come back."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from ...errors import RoundelayError
from ...topology import Cluster
from ..job import Ints
from .arrivals import Arrival
from .contention import Contention, Crowd
from .kinds import CUTS, Kind, cut_job
from .nodes import Nodes
from .queue import Queue
from .rates import Failure, Rates, failures
from .record import Event, Record
from .run import Run, Saving

PATIENCE: Final = 10_000
"""Failures, while there are jobs, in which none ends or keeps any work, before one is taken never
to end."""


@dataclass(frozen=True)
class Settings:
    """How a cluster is run.

    Attributes:
        policy: see `Kind.choose`.
        saving: of states.
        rates: of failures.
        exchange: part of a step that the exchange takes where it is cheapest.
        backfill: see `Queue`.
        seed: of failures.
        contention: whether jobs slow one another on links that they share; see `longer`.
    """

    policy: str
    saving: Saving
    rates: Rates
    exchange: float
    backfill: bool = True
    seed: int = 1
    contention: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.exchange <= 1:
            raise RoundelayError(f"exchange: {self.exchange:g}; expected a part from 0 to 1")
        if self.contention and not self.exchange:
            raise RoundelayError("exchange takes no part of a step, so no job can slow another; "
                                 "expected more than 0 with contention, such as 0.2")  # fmt: skip


@dataclass(eq=False)
class Outcome:
    """What came of it.

    Attributes:
        runs: the jobs, in the order of their arrival.
        over: seconds of the last end.
        fragmentation: see `Nodes`; in the mean over time.
        failures: that met a job, by kind.
        events: in their order, where they are recorded.
    """

    runs: list[Run]
    over: float = 0.0
    fragmentation: float = 0.0
    failures: dict[str, int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)


class ClusterClock:
    """Events, one after another."""

    def __init__(
        self, cluster: Cluster, jobs: Sequence[Arrival], settings: Settings,
        kinds: dict[tuple[str, int], Kind], *, record: bool = False,
    ) -> None:  # fmt: skip
        """Nothing has happened.

        Args:
            cluster: with a tree of switches.
            jobs: in the order of their arrival.
            settings: how it is run.
            kinds: known from before, by cut and cards; added to.
            record: keep the events.

        Raises:
            RoundelayError: a job that is larger than the cluster.
        """
        first = min((job.submit for job in jobs), default=0.0)
        self.settings, self.first, self.now = settings, first, first
        self.nodes = Nodes(cluster)
        self.queue = Queue(self.nodes, settings.saving, backfill=settings.backfill)
        runs = [Run(i, job, _kind(kinds, cluster, i, job.cards), job.seconds)
                for i, job in enumerate(jobs)]  # fmt: skip
        self.outcome = Outcome(runs)
        self.contention = Contention() if settings.contention else None
        self.record = Record(cluster, settings.exchange, first) if record else None
        self.left, self._in_vain = len(runs), 0
        self._events: list[tuple[float, int, str, Any]] = []
        self._count, self._area = 0, 0.0
        for run in runs:
            self._at(run.arrival.submit, "submit", run)
        self._failures = failures(settings.rates, cluster, settings.seed, first)
        self._next_failure()

    def run(self) -> Outcome:
        """Until all jobs have ended.

        Raises:
            RoundelayError: a job that never ends, as it fails before it can save, or finds no room.
        """
        while self.left:
            self.step()
        outcome = self.outcome
        outcome.over = self.now
        over = self.now - self.first
        outcome.fragmentation = self._area / over if over else 0.0
        outcome.events = self.record.events if self.record else []
        return outcome

    def step(self) -> None:
        """What happens at the next moment at which something does."""
        now = self._events[0][0]
        self._area += self.nodes.fragmentation() * (now - self.now)
        self.now = now
        while self._events and self._events[0][0] == now:
            _, _, what, about = heapq.heappop(self._events)
            getattr(self, f"_{what}")(about)
        self.queue.serve(now, self._start, self._preempt)
        if self.contention:
            self._crowd(self.contention)

    def _at(self, time: float, what: str, about: Any) -> None:
        heapq.heappush(self._events, (time, self._count, what, about))
        self._count += 1

    def _next_failure(self) -> None:
        following = next(self._failures, None)
        if following:
            self._at(following.time, "fail", following)

    # What happens, by name

    def _submit(self, run: Run) -> None:
        self.queue.add(run)

    def _end(self, about: tuple[Run, int]) -> None:
        run, version = about
        if run.version == version and run.nodes is not None:
            run.advance(self.now)
            nodes = run.nodes
            run.finish(self.now, self.settings.saving)
            self._leave(run, nodes)
            if self.record:
                self.record.end(self.now, run, self.settings.saving.save)
            self.left -= 1
            self._in_vain = 0

    def _back(self, nodes: range) -> None:
        self.nodes.turn(nodes, -1)
        self._note("back", nodes)

    def _well(self, node: int) -> None:
        if self.nodes.slow.get(node) == self.now:
            del self.nodes.slow[node]
            self._note("well", [node])
            self._pace(list(self.nodes.held[node]))

    def _found(self, node: int) -> None:
        """A slow node is taken out, and its jobs go elsewhere; they save before."""
        if self.nodes.slow.get(node) == self.now:
            del self.nodes.slow[node]
            self._note("well", [node])
            self._out(range(node, node + 1))
            for run in list(self.nodes.held[node]):
                run.moved += 1
                self._stop(run, "slow", saved=True)

    def _fail(self, failure: Failure) -> None:
        met = self.nodes.met(failure)
        self._next_failure()
        self._in_vain += bool(self.queue.waiting or self.queue.running)
        if self._in_vain > PATIENCE:
            self._give_up()
        if failure.kind == "slow":
            met = self._slow(failure, met)
        else:
            if failure.kind != "software":
                self._out(range(failure.node, failure.node + failure.nodes))
            for run in sorted(met, key=lambda r: r.number):
                run.failures += 1
                self._stop(run, failure.kind, saved=False)
        if met:
            counts = self.outcome.failures
            counts[failure.kind] = counts.get(failure.kind, 0) + 1

    def _slow(self, failure: Failure, met: list[Run]) -> list[Run]:
        if failure.node in self.nodes.slow:
            return []
        found = self.settings.rates.found
        until = self.now + min(found, failure.lasts)
        self.nodes.slow[failure.node] = until
        self._note("slow", [failure.node])
        self._at(until, "found" if found < failure.lasts else "well", failure.node)
        self._pace(met)
        return met

    # What is done then

    def _note(self, what: Literal["out", "back", "slow", "well"], nodes: Sequence[int]) -> None:
        if self.record:
            self.record.about(self.now, what, nodes)

    def _out(self, nodes: range) -> None:
        repair = self.settings.rates.repair
        if repair:
            self.nodes.turn(nodes, 1)
            self._note("out", nodes)
            self._at(self.now + repair, "back", nodes)

    def _pace(self, runs: list[Run]) -> None:
        """A job is as slow as its slowest node."""
        for run in runs:
            run.advance(self.now)
            slow = any(self.nodes.slow_ones(run))
            run.pace = self.settings.rates.slower if slow else 1.0
            self._plan(run)

    def _crowd(self, contention: Contention) -> None:
        for run, crowd, met in contention.changed():
            run.advance(self.now)
            run.crowd, run.met = crowd, met
            self._plan(run)

    def _start(self, run: Run) -> None:
        kind = run.kind
        room = self.nodes.room(kind.block)[0]
        nodes, exchange = kind.placed(self.settings.policy, room)
        if self.record:
            self.record.start(self.now, run, nodes, exchange, room)
        self.nodes.take(run, nodes)
        self.queue.running.add(run)
        run.start(self.now, nodes, exchange, 1 + self.settings.exchange * (exchange - 1))
        if self.contention and kind.blocks > 1 and self.settings.exchange:
            step = kind.cheapest / self.settings.exchange * run.longer
            crossing = kind.objective.crossing(nodes)
            self.contention.add(run, Crowd(crossing, step, kind.cheapest * exchange))
        self._pace([run])

    def _plan(self, run: Run) -> None:
        run.replan(self.settings.saving)
        self._at(run.planned, "end", (run, run.version))

    def _preempt(self, run: Run) -> None:
        run.preempted += 1
        self._stop(run, "preempted", saved=True)

    def _stop(self, run: Run, reason: str, *, saved: bool) -> None:
        assert run.nodes is not None
        run.advance(self.now)
        nodes = run.nodes
        work = run.work
        run.stop(self.settings.saving, saved=saved)
        if run.work > work:
            self._in_vain = 0
        self._leave(run, nodes)
        if self.record:
            self.record.stop(self.now, run, reason, self.settings.saving.save)
        self.queue.add(run)

    def _leave(self, run: Run, nodes: Ints) -> None:
        """Its cards are free again."""
        self.queue.running.discard(run)
        self.nodes.give_back(run, nodes)
        if self.contention:
            self.contention.drop(run)

    def _give_up(self) -> None:
        run = max((r for r in self.outcome.runs if r.ended < 0), key=lambda r: r.failures)
        first = self.queue.waiting[0] if self.queue.waiting else run
        what = f"a job of {run.arrival.cards:,} cards has failed {run.failures:,} times"
        if not run.failures:
            what = f"a job of {first.arrival.cards:,} cards never finds as many in whole nodes"
        raise RoundelayError(f"no job gets on: in {PATIENCE:,} failures none ended or saved; "
                             f"{what}. Expected fewer failures, quicker repair, or spare nodes"
                             )  # fmt: skip


def _kind(kinds: dict[tuple[str, int], Kind], cluster: Cluster, number: int, cards: int) -> Kind:
    key = (CUTS[number % len(CUTS)], cards)
    if key not in kinds:
        if cards > cluster.size:
            raise RoundelayError(f"job {number}: {cards:,} cards, and {cluster.name} has "
                                 f"{cluster.size:,}; expected as many at most")  # fmt: skip
        kind = Kind(cut_job(*key, cluster.cards), cluster)
        kind.cheapest  # noqa: B018 (says what doesn't fit)
        kinds[key] = kind
    return kinds[key]
