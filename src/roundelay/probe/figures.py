"""What a probe has found."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

from ..i18n import Message, Translate, message

Unit = Literal["s", "B/s oneway", "B/s", "s/B"]


@dataclass(frozen=True)
class Measured:
    """One figure.

    Attributes:
        value: the median over repetitions.
        low, high: half of them lie in between.
        unit: seconds, bytes a second (one way, where they go from rank to rank), or seconds a
            byte.
        how: what was done.
    """

    value: float
    low: float
    high: float
    unit: Unit
    how: Message

    @property
    def spread(self) -> float:
        """What half of the repetitions lie within, as a part of the median."""
        return (self.high - self.low) / self.value

    def as_json(self, translate: Translate) -> dict[str, Any]:
        """The figure in `--json`."""
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "unit": self.unit,
            "how": self.how.tell(translate),
        }


@dataclass(frozen=True)
class Probed:
    """All figures of a machine, or of several with a network between them.

    Attributes:
        nodes: hosts.
        ranks: of each host.
        machine: processor, cores and so on, of the first host.
        figures: by name: latency, rate, all_rate, cached, copy, reduce, call; network_latency and
            network_rate where there are several hosts.
        by_host: latency and rate from the first host to others.
        cache: bytes of a collective up to which its data stay in the processors' caches; 0: not
            known.
    """

    nodes: int
    ranks: int
    machine: Mapping[str, Any]
    figures: Mapping[str, Measured]
    by_host: Mapping[int, tuple[Measured, Measured]]
    cache: int = 0


HOW: Final[Mapping[str, Message]] = MappingProxyType(
    {
        "latency": message("half of a round trip of 8 bytes between two ranks, calls included"),
        "rate": message("half of what large data take there and back between two ranks"),
        "turn": message("a step in which all ranks, more than cores, send 8 bytes to all others"),
        "all_rate": message("all ranks gather from all at once, added up"),
        "cached": message("the same with data that stay in the processors' caches"),
        "copy": message("every rank copies within its memory at once, added up"),
        "reduce": message("every rank adds float32 at once"),
        "call": message("an all_reduce of one rank: what the call itself takes"),
        "network_latency": message(
            "half of a round trip of 8 bytes between two hosts, calls included"
        ),
        "network_rate": message(
            "how much longer twice as large data take there and back between two hosts, halved"
        ),
    }
)


def times(name: str, seconds: Sequence[float]) -> Measured:
    """A time."""
    return _of(name, seconds, "s")


def rates(name: str, nbytes: float, seconds: Sequence[float], unit: Unit) -> Measured:
    """Bytes over each time."""
    return _of(name, [nbytes / s for s in seconds], unit)


def per_byte(name: str, nbytes: float, seconds: Sequence[float]) -> Measured:
    """Each time over bytes."""
    return _of(name, [s / nbytes for s in seconds], "s/B")


def middle(figures: Sequence[Measured]) -> Measured:
    """The median of several, such as of several hosts."""
    value = statistics.median(f.value for f in figures)
    low, high = min(f.low for f in figures), max(f.high for f in figures)
    return Measured(value, low, high, figures[0].unit, figures[0].how)


def _of(name: str, values: Sequence[float], unit: Unit) -> Measured:
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return Measured(middle, low, high, unit, HOW[name])
