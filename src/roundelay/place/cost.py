"""The time of a job's exchanges on given cards: the links of the clock, and its protocols.

The exchanges of a step come one after another; all groups of one at once. A call takes its steps,
and the bytes of its busiest link. That is what the clock finds where messages under way together
share a link (`simulate`), as long as calls are large enough for their stages to overlap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..simulate.protocols import Protocol, protocols
from ..topology import MEDIA, Cluster
from .job import Ints
from .traffic import Floats, Traffic


@dataclass(frozen=True)
class Part:
    """One exchange of a step.

    Attributes:
        name: such as "data".
        seconds: of all its calls.
        link: the busiest; "" where there is none.
        wire: seconds of these that the busiest link takes.
        number: of that link; -1 where there is none.
    """

    name: str
    seconds: float
    link: str
    wire: float
    number: int = -1


@dataclass(frozen=True)
class Price:
    """The exchanges of a step; they add up to `seconds`."""

    parts: tuple[Part, ...]

    @property
    def seconds(self) -> float:
        """Of a step."""
        return sum(part.seconds for part in self.parts)

    @property
    def binding(self) -> Part | None:
        """The exchange that takes longest."""
        return max(self.parts, key=lambda part: part.seconds, default=None)


def price(traffics: Sequence[Traffic], cluster: Cluster, cards: Ints) -> Price:
    """The time of a step's exchanges.

    Args:
        traffics: messages between ranks.
        cluster: whose links they take.
        cards: [rank] the card it drives.
    """
    found = protocols(cluster)
    return Price(tuple(_part(t, cluster, cards, found) for t in traffics))


def _part(t: Traffic, cluster: Cluster, cards: Ints, found: Sequence[Protocol]) -> Part:
    load = np.zeros(len(cluster.rates) + 1)
    worst: list[tuple[int, int, Mapping[bool, float]]] = []
    for stage in t.stages:
        path = cluster.path(cards[stage.src], cards[stage.dst])
        for hop in path.links:
            load += np.bincount(hop + 1, stage.bytes, len(load))
        far = {b: float(path.latency[path.between == b].max(initial=0.0))
               for b in (False, True) if (path.between == b).any()}  # fmt: skip
        worst.append((stage.steps, stage.fan, far))
    carried = load[1:]
    best = Part(t.name, float("inf"), "", 0.0)
    for p in usable(found, t.size):
        link, wire = _busiest(carried, cluster, p)
        steps = p.base + sum(n * (_step(p, far) + fan * p.peer) for n, fan, far in worst)
        seconds = t.calls * (steps + wire)
        if seconds < best.seconds:
            name = cluster.link_name(link) if wire else ""
            best = Part(t.name, seconds, name, t.calls * wire, link if wire else -1)
    return best


def usable(found: Sequence[Protocol], size: float) -> list[Protocol]:
    """The protocols by which a call of so many bytes may go."""
    return [p for p in found if p.most is None or size <= p.most]


def _step(p: Protocol, far: Mapping[bool, float]) -> float:
    """A step takes as long as its farthest message; inside a node the latency is the protocol's."""
    own = {True: p.between + far.get(True, 0.0), False: p.inside}
    return max((own[between] for between in far), default=0.0)


def _busiest(carried: Floats, cluster: Cluster, p: Protocol) -> tuple[int, float]:
    share = np.array([p.efficiency.get(medium, np.nan) for medium in MEDIA])
    seconds = np.divide(carried, cluster.rates * share[cluster.media],
                        out=np.zeros(len(carried)), where=carried > 0)  # fmt: skip
    link = int(np.argmax(seconds))
    return link, float(seconds[link])
