"""What a prediction says: a time, its parts, and how sure it is."""

from __future__ import annotations

from dataclasses import dataclass

from ...collectives import collective as find


@dataclass(frozen=True)
class Prediction:
    """The time of one collective by NCCL on a cluster.

    The parts add up to `time_s`.

    Attributes:
        collective: such as "all_reduce".
        size: bytes, as in nccl-tests' size column.
        ranks: cards.
        algorithm: "ring", "tree", "nvls", "nvls_tree", "collnet_direct", "collnet_chain", "pat", or
            "p2p" (grouped sends and receives).
        protocol: "LL", "LL128" or "Simple".
        channels: that NCCL runs it on.
        time_s: seconds.
        latency_s: starting, and what steps take beyond their bytes.
        wire_s: bytes on the link that binds.
        reduce_s: copying and adding that is not hidden behind the wire.
        wait_s: waiting for a pipeline to fill.
        host_s: what the host's launching takes beyond the above.
        binding_link: the link that binds, and its line rate.
        band: measured times are expected between these multiples of `time_s`.
        formula: the sum with its numbers.
    """

    collective: str
    size: int
    ranks: int
    algorithm: str
    protocol: str
    channels: int
    time_s: float
    latency_s: float
    wire_s: float
    reduce_s: float
    wait_s: float
    host_s: float
    binding_link: str
    band: tuple[float, float]
    formula: str

    @property
    def algbw(self) -> float:
        """Bytes a second: size / time."""
        return self.size / self.time_s if self.time_s else 0.0

    @property
    def busbw(self) -> float:
        """Bytes a second, as nccl-tests counts them on the links of a flat machine."""
        return self.algbw * bus_factor(self.collective, self.ranks)


def bus_factor(collective: str, n: int) -> float:
    """Factor from algbw to busbw, by nccl-tests."""
    return float(find(collective).bus_factor(n))


@dataclass(frozen=True)
class Parts:
    """Seconds of a collective on the cards, and what they are made of.

    Attributes:
        latency, wire, reduce, wait: as in `Prediction`.
        binds: the link that binds.
        text: the formula.
    """

    latency: float
    wire: float
    reduce: float
    wait: float
    binds: str
    text: str

    @property
    def device(self) -> float:
        """All of them."""
        return self.latency + self.wire + self.reduce + self.wait
