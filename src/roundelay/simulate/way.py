"""A schedule's ways through a cluster, one of each kind, and how long they take."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from .alike import Kinds, kinds
from .machine import Machine
from .pricing import PS, Loads, Rates, Roads, costs, slowed
from .protocols import Protocol
from .recurrence import Costs

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Way:
    """A schedule's ways through a cluster, as they should be or with what is slow."""

    def __init__(
        self, roads: Roads, ranks: Sequence[tuple[int, float]] = (), *, shortcuts: bool = True
    ) -> None:
        """For roads, and ranks that are slower.

        Args:
            roads: the ways of messages.
            ranks: those that are slow, and how many times.
            shortcuts: see `Clock`.
        """
        self.roads = roads
        self._slower = slowed(roads, ranks)
        self._shortcuts = shortcuts
        self._rates: dict[str, Rates] = {}

    @cached_property
    def kinds(self) -> Kinds:
        """Which ranks and messages are alike."""
        roads = self.roads
        if not self._shortcuts:
            return Kinds.all_different(roads.phases)
        line, paths = roads.line_rates, roads.paths
        columns = (line.alone, line.shared, roads.medium, paths.latency, paths.between,
                   roads.helped, roads.fan, self._slower)  # fmt: skip
        cluster = roads.cluster
        levels = [level.nodes * cluster.cards for level in cluster.levels]
        distances = [d for d in (cluster.cards, *levels) if d < roads.phases.schedule.ranks]
        return kinds(roads.phases, columns, distances)

    @cached_property
    def machine(self) -> Machine:
        """The recurrence over one of each kind."""
        return Machine(self.kinds.phases)

    @cached_property
    def loads(self) -> Loads:
        """What messages of each kind carry."""
        some, roads = self.kinds.messages, self.roads
        return Loads(
            roads.phases.column("chunks")[some].astype(float),
            roads.phases.column("added")[some].astype(float),
            roads.paths.between[some],
            roads.paths.latency[some],
            roads.fan[some],
            self._slower[some],
        )

    def end(
        self, protocol: Protocol, chunk: float, *, alone: bool = False, adding: bool = True
    ) -> float:
        """Seconds until the last message has ended.

        Args:
            protocol: by which messages go.
            chunk: bytes of a chunk.
            alone: every message has its links for itself.
            adding: count what adding takes.
        """
        price = self.price(protocol, chunk, alone=alone, adding=adding)
        return int(self.machine.run(price, steady=self._shortcuts).max(initial=0)) / PS

    def price(
        self, protocol: Protocol, chunk: float, *, alone: bool = False, adding: bool = True
    ) -> Costs:
        """What messages cost; see `end`."""
        return costs(self.loads, self._rate(protocol, alone), protocol, chunk, adding=adding)

    def _rate(self, protocol: Protocol, alone: bool) -> Floats:
        if protocol.name not in self._rates:
            whole, some = self.roads.rates(protocol), self.kinds.messages
            self._rates[protocol.name] = Rates(whole.alone[some], whole.shared[some])
        rates = self._rates[protocol.name]
        return rates.alone if alone else rates.shared

    def port(self, protocol: Protocol, chunk: float) -> float:
        """Seconds that the busiest rank sends or receives, one message at a time.

        Inside its node and to other nodes it does so at the same time.
        """
        price = self.price(protocol, chunk, alone=True, adding=False)
        phases, (at_src, at_dst) = self.kinds.phases, self._messages_at
        each = price.busy * phases.column("repeated")
        most = 0.0
        for side, often in (("src", at_src), ("dst", at_dst)):
            for network in (False, True):
                own = np.where(self.loads.between == network, each * often, 0.0)
                sums = np.bincount(phases.column(side), own, phases.participants)
                most = max(most, float(sums[self._kinds_of_ranks].max()))
        return most / PS

    @cached_property
    def _kinds_of_ranks(self) -> Ints:
        n = self.roads.phases.schedule.ranks
        return np.unique(self.kinds.participants[:n])

    @cached_property
    def _messages_at(self) -> tuple[Floats, Floats]:
        """[kind of message], how many a participant at either end has."""
        messages = np.bincount(self.kinds.of, minlength=len(self.kinds.messages))
        participants = np.bincount(self.kinds.participants)
        src, dst = (participants[self.kinds.phases.column(side)] for side in ("src", "dst"))
        return messages / src, messages / dst
