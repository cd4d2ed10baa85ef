"""What happens on a cluster over time, in its order, for those who want to see it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Literal, cast

import msgspec
import numpy as np

from ...topology import Cluster
from ..baselines import best_fit, first_fit
from ..cost import price
from ..job import Ints
from ..traffic import traffic
from .run import Run

Time = Annotated[float, msgspec.Meta(ge=0, lt=1e15)]
Ratio = Annotated[float, msgspec.Meta(ge=0, lt=1e12)]
Count = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
Some = Annotated[int, msgspec.Meta(ge=1, lt=2**31)]
Name = Annotated[str, msgspec.Meta(max_length=200)]
Reason = Literal["card", "host", "switch", "software", "slow", "preempted"]
NODES: Final = 1_000_000


class Event(msgspec.Struct, omit_defaults=True):
    """Something that happens.

    Attributes:
        at_s: when, from the first arrival.
        what: a job starts, stops or ends; nodes are out or back, slow or well.
        job: whose start, stop or end.
        nodes: [block] of a start; else those that it is about.
        exchange: of a start; an exchange there over the cheapest one.
        best_fit, first_fit: the same where these place it.
        part: the exchange of a step that takes longest there.
        link, index: its busiest link: the class, such as "leaf up", and its place in that.
        above: of a start; [level] domain, and what part of the links that lead up from it the job
            fills, in the mean over its steps.
        reason: of a stop.
        saves: since the start.
        kept_s, lost_s: work saved since the start, and what a failure takes, with its saves.
    """

    at_s: Time
    what: Literal["start", "stop", "end", "out", "back", "slow", "well"]
    job: Annotated[int, msgspec.Meta(ge=-1, lt=2**31)] = -1
    nodes: Annotated[list[Count], msgspec.Meta(max_length=NODES)] = []
    exchange: Ratio = 1.0
    best_fit: Ratio = 1.0
    first_fit: Ratio = 1.0
    part: Name = ""
    link: Name = ""
    index: Annotated[list[Count], msgspec.Meta(max_length=8)] = []
    above: Annotated[list[list[tuple[Count, Ratio]]], msgspec.Meta(max_length=8)] = []
    reason: Reason | None = None
    saves: Count = 0
    kept_s: Time = 0.0
    lost_s: Time = 0.0


class Record:
    """Events of one policy."""

    def __init__(self, cluster: Cluster, exchange: float, first: float) -> None:
        """Nothing has happened.

        Args:
            cluster: with a tree of switches.
            exchange: part of a step that it takes where it is cheapest.
            first: seconds of the first arrival.
        """
        self.cluster, self.exchange, self.first = cluster, exchange, first
        self.events: list[Event] = []
        self._before: dict[Run, tuple[float, float, float]] = {}

    def about(self, now: float, what: Literal["out", "back", "slow", "well"],
              nodes: Iterable[int]) -> None:  # fmt: skip
        """Nodes are out or back, slow or well."""
        self.events.append(Event(round(now - self.first, 1), what, nodes=list(nodes)))

    def start(self, now: float, run: Run, nodes: Ints, exchange: float, room: Ints) -> None:
        """A job starts.

        Args:
            now: seconds.
            run: of the job.
            nodes: [block] those it takes.
            exchange: there, over the cheapest one.
            room: [node] blocks that it could take.
        """
        kind = run.kind
        event = Event(round(now - self.first, 1), "start", run.number, nodes.tolist(),
                      round(exchange, 4))  # fmt: skip
        if kind.blocks > 1 and kind.cheapest:
            others = best_fit(room, kind.blocks, kind.sizes), first_fit(room, kind.blocks)
            event.best_fit, event.first_fit = (
                round(max(1.0, kind.seconds(other) / kind.cheapest), 4) for other in others
            )
            self._links(event, run, nodes, exchange)
        self.events.append(event)
        self._before[run] = run.work, run.again, run.saving

    def stop(self, now: float, run: Run, reason: str, save: float) -> None:
        """A job has stopped."""
        self._left(now, run, "stop", save).reason = cast(Reason, reason)

    def end(self, now: float, run: Run, save: float) -> None:
        """A job has ended."""
        self._left(now, run, "end", save)

    def _left(self, now: float, run: Run, what: Literal["stop", "end"], save: float) -> Event:
        work, again, saving = self._before.pop(run)
        event = Event(
            round(now - self.first, 1), what, run.number, kept_s=round(run.work - work, 1),
            lost_s=round(run.again - again, 1), saves=int((run.saving - saving) / save + 1e-9),
        )  # fmt: skip
        self.events.append(event)
        return event

    def _links(self, event: Event, run: Run, nodes: Ints, exchange: float) -> None:
        """The link that decides, and what the job sends up from each switch."""
        kind, cluster = run.kind, self.cluster
        cards = _cards(nodes, kind.block, cluster.cards)
        traffics = traffic(kind.job, kind.block)
        binding = price(traffics, cluster, cards).binding
        if binding:
            event.part = binding.name
            for links in cluster.links:
                if 0 <= binding.number - links.first < links.count:
                    event.link, event.index = links.name, links.index(binding.number)
        if not self.exchange:
            return
        step = kind.cheapest * (1 / self.exchange + exchange - 1)
        load = np.zeros(len(cluster.rates) + 1)
        for t in traffics:
            for stage in t.stages:
                for hop in cluster.path(cards[stage.src], cards[stage.dst]).links:
                    load += t.calls * np.bincount(hop + 1, stage.bytes, len(load))
        ups = {links.name: links for links in cluster.links}
        for level in cluster.levels[:-1]:
            up = ups.get(f"{level.name} up")
            if up:
                own = load[1 + up.first : 1 + up.first + up.count].reshape(up.shape).mean(axis=1)
                filled = (own / up.rate / step).round(4)
                event.above.append([(int(d), float(filled[d])) for d in np.flatnonzero(filled)])


def _cards(nodes: Ints, block: int, inside: int) -> Ints:
    """[rank] a card, from [block] nodes; blocks of one node stand behind one another."""
    order = np.argsort(nodes, kind="stable")
    slot = np.empty(len(nodes), np.int64)
    slot[order] = np.arange(len(nodes)) - np.searchsorted(nodes[order], nodes[order])
    cards: Ints = (nodes * inside + slot * block)[:, None] + np.arange(block)
    return cards.ravel()
