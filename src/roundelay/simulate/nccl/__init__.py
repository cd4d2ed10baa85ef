"""NCCL: which algorithm and protocol it takes on a machine, and how long that takes.

The choice is NCCL's own cost model (`choice`); the time is ours (`clock`).
"""

from __future__ import annotations

from ...collectives import UnknownName
from ...errors import RoundelayError
from ...topology import Cluster
from ...units import format_time
from ..protocols import Protocol, band, protocols
from . import tables
from .choice import Cost, costs
from .clock import CLOCKS, Call
from .prediction import Parts, Prediction, bus_factor
from .shape import Shape

__all__ = ["COLLECTIVES", "Cost", "Prediction", "bus_factor", "options", "predict"]

COLLECTIVES = (*tables.LEGAL, "all_to_all", "send_recv")
"""What can be predicted."""


def predict(
    cluster: Cluster,
    collective: str,
    size: int,
    n: int | None = None,
    algorithm: str | None = None,
    protocol: str | None = None,
) -> Prediction:
    """The time of a collective by NCCL.

    Args:
        cluster: the machine.
        collective: one of `COLLECTIVES`.
        size: bytes, as in nccl-tests' size column: of what the slowest rank gives or gets in all.
        n: cards, on as few nodes as can be; all, if None.
        algorithm: to be taken in place of NCCL's choice, such as "ring".
        protocol: the same for the protocol, such as "Simple".

    Raises:
        RoundelayError: no such collective, size, number of cards, algorithm or protocol, or a
            machine whose links are not known well enough.
    """
    shape, found = _check(cluster, collective, size, n)
    known = _costs(shape, collective, size)
    asked = [
        cost
        for cost in known
        if algorithm in (None, cost.algorithm) and protocol in (None, cost.protocol)
    ]
    if not asked:
        words = " with ".join(name for name in (algorithm, protocol) if name)
        legal = ", ".join(f"{cost.algorithm} with {cost.protocol}" for cost in known)
        raise RoundelayError(
            f"NCCL has no {collective} by {words} here; expected one of: {legal or 'none'}"
        )
    return _timed(shape, found, collective, size, asked[:1] if _chosen(shape) else asked)[0][1]


def options(
    cluster: Cluster, collective: str, size: int, n: int | None = None
) -> list[tuple[Cost, Prediction]]:
    """All that NCCL may choose from, its favourite first, each with our time.

    Raises:
        RoundelayError: as `predict`.
    """
    shape, found = _check(cluster, collective, size, n)
    return _timed(shape, found, collective, size, _costs(shape, collective, size))


def _check(
    cluster: Cluster, collective: str, size: int, n: int | None
) -> tuple[Shape, dict[str, Protocol]]:
    if collective not in COLLECTIVES:
        raise UnknownName("collective of NCCL", collective, COLLECTIVES)
    if not 0 <= size < 2**63:
        raise RoundelayError(f"{size} bytes; expected 0 or more, below 2^63")
    return Shape.of(cluster, n), {p.name: p for p in protocols(cluster)}


def _chosen(shape: Shape) -> bool:
    """Whether NCCL's tables know these cards; if not, the fastest by our clock is taken."""
    return shape.cluster.generation in tables.ROWS


def _timed(
    shape: Shape, found: dict[str, Protocol], collective: str, size: int, known: list[Cost]
) -> list[tuple[Cost, Prediction]]:
    timed = []
    for cost in known:
        protocol = found[cost.protocol]
        call = Call(shape, collective, size, cost.algorithm, protocol, cost.channels)
        timed.append((cost, _time(call)))
    return timed if _chosen(shape) else sorted(timed, key=lambda pair: pair[1].time_s)


def _costs(shape: Shape, collective: str, size: int) -> list[Cost]:
    if collective in ("all_to_all", "send_recv"):
        peer = size if collective == "send_recv" else size / shape.ranks
        name = "LL" if peer <= tables.POINT_TO_POINT_LL else "Simple"
        return [Cost("p2p", name, 0.0, tables.SEARCHED_CHANNELS)]
    if not _chosen(shape):
        return [Cost("ring", name, 0.0, tables.SEARCHED_CHANNELS) for name in ("LL", "Simple")]
    return costs(shape, collective, size)


def _time(call: Call) -> Prediction:
    parts = CLOCKS[call.algorithm](call)
    host = max(0.0, call.shape.cluster.launch - parts.device)
    text = parts.text + (f" + {format_time(host)} until the host launches the next" if host else "")
    return Prediction(
        call.collective,
        call.size,
        call.shape.ranks,
        call.algorithm,
        call.protocol.name,
        call.channels,
        parts.device + host,
        parts.latency,
        parts.wire,
        parts.reduce,
        parts.wait,
        host,
        _binding(parts, host),
        band(call.shape.nodes, call.shape.rack, call.size),
        text,
    )


def _binding(parts: Parts, host: float) -> str:
    if host > parts.device:
        return "the host's launching"
    return parts.binds if parts.wire >= parts.latency else f"steps, not bytes ({parts.binds})"
