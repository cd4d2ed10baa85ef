"""Lines of an answer: sizes and times, for our schedules and for NCCL's choice alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..schedule import Schedule
from ..topology import Cluster
from .candidates import Candidate, Contest
from .clock import Clock, Timing
from .disturb import Jitter, Spread, spread
from .nccl import Prediction, bus_factor, predict
from .protocols import band


@dataclass(frozen=True, eq=False)
class Row:
    """The time of one size, in seconds. The parts add up to `time`; see `Timing`.

    Attributes:
        size: bytes, as in nccl-tests' size column.
        algorithm: its name, and the parameters that differ from the defaults.
        protocol, channels: by which messages go; channels are known of NCCL only.
        bus: factor from algbw to busbw.
        band: between which times measured ones are expected; None where nothing is known.
        spread: where something differs from time to time.
    """

    size: int
    algorithm: str
    protocol: str
    channels: int | None
    time: float
    latency: float
    wire: float
    reduce: float
    wait: float
    host: float
    binding_link: str
    bus: float
    band: tuple[float, float] | None
    spread: Spread | None = None

    @property
    def algbw(self) -> float:
        """Bytes a second: size / time."""
        return self.size / self.time if self.time else 0.0

    @property
    def busbw(self) -> float:
        """Bytes a second, as nccl-tests counts them."""
        return self.algbw * self.bus


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of the clock.

    Attributes:
        collective: its name.
        cluster: the machine.
        ranks: cards that take part, the first of the cluster.
        slow_ranks, slow_links: see `Clock`.
        jitter: what differs from time to time, or None.
        samples: how often that is drawn.
        seed: of the draws.
        threads: that draw.
    """

    collective: str
    cluster: Cluster
    ranks: int
    slow_ranks: Sequence[tuple[int, float]] = ()
    slow_links: Mapping[int, float] | None = None
    jitter: Jitter | None = None
    samples: int = 1000
    seed: int = 1
    threads: int = 1

    def clock(self, schedule: Schedule) -> Clock:
        """For a schedule."""
        return Clock(schedule, self.cluster, None, self.slow_ranks, self.slow_links)

    def of(self, name: str, clock: Clock, size: int, protocol: str | None = None) -> Row:
        """A line for a schedule, whose clock it is."""
        timing = clock.time(size, protocol)
        drawn = None
        if self.jitter is not None:
            drawn, _ = spread(clock, size, self.jitter, self.samples, protocol, seed=self.seed,
                              threads=self.threads)  # fmt: skip
        return self._row(name, timing, drawn)

    def _row(self, name: str, t: Timing, drawn: Spread | None) -> Row:
        known = None
        # A box with more cards on PCIe hangs on its tree of switches, which is not known.
        guess = self.cluster.inside.medium == "pcie" and self.ranks > 2
        if self.cluster.generation != "cpu" and not guess:
            nodes = -(-self.ranks // self.cluster.cards)
            low, high = band(nodes, self.cluster.hosts > 1, t.size)
            known = low * t.time, high * t.time
        return Row(t.size, name, t.protocol, None, t.time, t.latency, t.wire, t.reduce, t.wait,
                   t.host, t.binding_link, bus_factor(self.collective, self.ranks), known,
                   drawn)  # fmt: skip

    def quickest(self, size: int) -> list[tuple[Candidate, Row]]:
        """The quickest of our algorithms and some of the others; with what is slow."""
        found = self._contest.quickest(size)
        if not (self.slow_ranks or self.slow_links or self.jitter):
            return [(c, self._row(c.name, t, None)) for c, t in found]
        return [(c, self.of(c.name, self.clock(c.schedule(self.ranks)), size))
                for c, _ in found[:1]]  # fmt: skip

    @cached_property
    def _contest(self) -> Contest:
        return Contest(self.collective, self.cluster, self.ranks)

    def nccl(self, size: int) -> Row:
        """A line for what NCCL does."""
        p = predict(self.cluster, self.collective, size, self.ranks)
        return nccl_row(p)


def nccl_row(p: Prediction) -> Row:
    """A line for a prediction of NCCL."""
    return Row(p.size, p.algorithm, p.protocol, p.channels, p.time_s, p.latency_s, p.wire_s,
               p.reduce_s, p.wait_s, p.host_s, p.binding_link,
               bus_factor(p.collective, p.ranks), (p.band[0] * p.time_s, p.band[1] * p.time_s),
               )  # fmt: skip


def row_json(row: Row) -> dict[str, Any]:
    """A line as the command's JSON has it: microseconds, and GB/s of 1e9 bytes."""
    times = {
        "latency_us": row.latency, "wire_us": row.wire, "reduce_us": row.reduce,
        "wait_us": row.wait, "host_us": row.host,
    }  # fmt: skip
    drawn = row.spread
    return {
        "bytes": row.size,
        "algorithm": row.algorithm,
        "protocol": row.protocol,
        "channels": row.channels,
        "time_us": row.time * 1e6,
        "p50_us": drawn.p50 * 1e6 if drawn else None,
        "p99_us": drawn.p99 * 1e6 if drawn else None,
        "p999_us": drawn.p999 * 1e6 if drawn else None,
        "mean_us": drawn.mean * 1e6 if drawn else None,
        "max_us": drawn.most * 1e6 if drawn else None,
        "expected_max_us": drawn.expected_most * 1e6 if drawn else None,
        "algbw_GBps": row.algbw / 1e9,
        "busbw_GBps": row.busbw / 1e9,
        **{name: seconds * 1e6 for name, seconds in times.items()},
        "binding_link": row.binding_link,
        "error_band": [t * 1e6 for t in row.band] if row.band else None,
    }
