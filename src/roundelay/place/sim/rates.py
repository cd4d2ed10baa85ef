"""What breaks, how often, and what that takes down.

Rates are counted by cards. The usual ones are those of Llama 3's pre-training (Grattafiori et al.
2024, arXiv:2407.21783, table 5): 419 unexpected interruptions in 54 days on 16,384 cards, one in
3.09 hours. The table's causes are gathered here by what they take down.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Final, NamedTuple

import numpy as np

from ...errors import RoundelayError
from ...topology import Cluster
from ...units import parse_time

HOUR: Final = 3600.0
MILLION: Final = 1e6
MOST: Final = 1e9
"""Of a rate, a time or a factor."""
CARD_HOURS: Final = 54 * 24 * 16384
"""In which these were counted: 21.2 million."""
CARD_EVENTS: Final = 281
"""Cards, their memory, network cards, and what the table doesn't tell apart."""
SOFTWARE_EVENTS: Final = 71
"""Bugs (54), time-outs of the watchdog, corrupt data: the job ends, and nothing is repaired."""
SWITCH_EVENTS: Final = 35
"""Switches and cables."""
HOST_EVENTS: Final = 32
"""Maintenance of hosts that nobody planned."""
KINDS: Final = ("card", "host", "switch", "software", "slow")
TIMES: Final = ("repair", "lasts", "found")


def _each(events: int) -> float:
    return events / CARD_HOURS * MILLION


@dataclass(frozen=True)
class Rates:
    """Failures in a million card-hours; 0: never.

    Attributes:
        card: of a card; the node is out until repaired.
        host: of a computer with its cards; the same.
        switch: of a leaf; all nodes under it are out.
        software: of a job.
        slow: of a node that becomes slow, and with it any job that it works for. No source counts
            these by hours; 16 of 27 large jobs met one (Wu et al. 2025, Greyhound, ATC'25).
        repair: seconds that a node is out; 0: another takes its place at once.
        slower: how many times longer a job takes with a slow node (1.34 in the mean, the same).
        lasts: seconds that a node is slow, in the mean (24 minutes for communication, the same).
        found: seconds until a slow node is found and its jobs are moved away (10 minutes; Jiang et
            al. 2024, MegaScale, NSDI'24).
    """

    card: float = _each(CARD_EVENTS)
    host: float = _each(HOST_EVENTS)
    switch: float = _each(SWITCH_EVENTS)
    software: float = _each(SOFTWARE_EVENTS)
    slow: float = 0.0
    repair: float = 4 * HOUR
    slower: float = 1.34
    lasts: float = 1440.0
    found: float = 600.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            least = 1.0 if name == "slower" else 0.0
            if not least <= value <= MOST:
                raise RoundelayError(f"failures: {name} = {value:g}; expected {least:g} or more, "
                                     f"and {MOST:g} at most")  # fmt: skip

    def between_failures(self, cards: int, cluster: Cluster) -> float:
        """Mean seconds between failures of a job, packed as closely as can be; infinite for none.

        A job that has a part of a host or leaf ends with the whole of it.
        """
        leaf = (cluster.levels[0].nodes if cluster.levels else cluster.nodes) * cluster.cards
        host = cluster.cards // cluster.hosts
        rate = (
            cards * (self.card + self.software)
            + -(-cards // host) * host * self.host
            + -(-cards // leaf) * leaf * self.switch
        )
        return HOUR * MILLION / rate if rate else math.inf


def read_rates(text: str) -> Rates:
    """Rates from "llama3", "none", or changes to the first such as "card=20,slow=5,repair=60min".

    Raises:
        RoundelayError: no such rate, or no number.
    """
    if text == "none":
        return Rates(**dict.fromkeys(KINDS, 0.0))
    found = {}
    known = [f.name for f in fields(Rates)]
    for pair in text.split(",") if text != "llama3" else ():
        key, equals, value = (word.strip() for word in pair.partition("="))
        if key not in known or not equals:
            raise RoundelayError(f"failures: {pair!r:.80}; expected llama3, none, or KEY=VALUE of "
                                 f"{', '.join(known)}")  # fmt: skip
        if key in found:
            raise RoundelayError(f"failures: {key} stands there twice; expected it once")
        found[key] = parse_time(value) if key in TIMES else _number(key, value)
    return Rates(**found)


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise RoundelayError(f"failures: {key} = {text!r:.80}; expected a number") from None


class Failure(NamedTuple):
    """Something breaks.

    Attributes:
        time: seconds.
        kind: one of `KINDS`.
        node: the first node that it is in.
        nodes: how many.
        card: the first card of each.
        cards: how many of each.
        lasts: seconds that a node is slow.
    """

    time: float
    kind: str
    node: int
    nodes: int
    card: int
    cards: int
    lasts: float


def failures(rates: Rates, cluster: Cluster, seed: int, first: float = 0.0) -> Iterator[Failure]:
    """The failures of a cluster from a moment on, one after another; none if nothing ever breaks.

    Times between them are exponential. The same seed gives the same, whatever the jobs do.
    """
    rng = np.random.default_rng(seed)
    each = np.array([getattr(rates, kind) for kind in KINDS]) * cluster.size / MILLION / HOUR
    total = float(each.sum())
    if not total:
        return
    part = np.cumsum(each / total)
    leaf = cluster.levels[0].nodes if cluster.levels else cluster.nodes
    host = cluster.cards // cluster.hosts
    time = first
    while True:
        time += float(rng.exponential(1 / total))
        kind = KINDS[min(int(np.searchsorted(part, rng.random(), "right")), len(KINDS) - 1)]
        node, card = divmod(int(rng.integers(cluster.size)), cluster.cards)
        lasts = float(rng.exponential(rates.lasts)) if rates.lasts else 0.0
        first, nodes, cards = node, 1, 1
        if kind == "switch":
            first = node // leaf * leaf
            nodes, card, cards = min(leaf, cluster.nodes - first), 0, cluster.cards
        elif kind == "host":
            card, cards = card // host * host, host
        elif kind == "slow":
            card, cards = 0, cluster.cards
        yield Failure(time, kind, first, nodes, card, cards, lasts)
