"""What NCCL chooses: its cost model over every legal algorithm and protocol.

time = latency + bytes / bandwidth, from `tables`. It decides well and tells time badly, so only
the choice is used; `clock` gives the time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final, NamedTuple

from ...errors import RoundelayError
from . import graph, tables
from .graph import Graph
from .shape import Shape


class Cost(NamedTuple):
    """What NCCL believes of one algorithm with one protocol.

    Attributes:
        algorithm: one of `tables.ALGORITHMS`.
        protocol: "LL", "LL128" or "Simple".
        time_s: seconds, by NCCL's model.
        channels: that it runs on.
    """

    algorithm: str
    protocol: str
    time_s: float
    channels: int


NVLS_GATHER_RANKS: Final = 32
"""Cards of a node up to which NVLS gathers and scatters."""
DIRECT_RANKS: Final = 8
"""Cards of a node up to which CollNet works."""


def costs(shape: Shape, collective: str, size: int) -> list[Cost]:
    """Every algorithm and protocol that NCCL may take, the fastest by its model first.

    Args:
        shape: the cards.
        collective: one that has a choice: all_reduce, all_gather, reduce_scatter, broadcast,
            reduce.
        size: bytes, as in nccl-tests' size column.
    """
    found = [cost for cost in _legal(shape, collective, size) if cost.time_s < math.inf]
    return sorted(found, key=lambda cost: cost.time_s)


def _legal(shape: Shape, collective: str, size: int) -> Iterator[Cost]:
    for algorithm in tables.LEGAL[collective]:
        if not _possible(shape, algorithm, collective):
            continue
        found = _graph(shape, algorithm)
        for protocol in tables.PROTOCOLS if algorithm in ("tree", "ring") else ("Simple",):
            if protocol == "LL128" and not _has_ll128(shape):
                continue
            rate = _rate(shape, algorithm, protocol, collective, found) * _correction(
                shape, algorithm, protocol, collective, size
            )
            if rate > 0:
                latency = _latency(shape, algorithm, protocol, collective)
                latency *= _plateau(shape, algorithm, protocol, collective, size, found)
                channels = _channels(shape, algorithm, protocol, size, found)
                time = latency * 1e-6 + size / (rate * 1e9)
                yield Cost(algorithm, protocol, time, channels)


def _possible(shape: Shape, algorithm: str, collective: str) -> bool:
    """NCCL's conditions."""
    cluster, several = shape.cluster, shape.nodes > 1
    adds = several and cluster.fabric.adds
    gathers = collective != "all_reduce"
    multicast = cluster.inside.multicast and graph.row(shape) in tables.NVLS_EFFICIENCY
    if algorithm == "nvls":
        fits = not gathers or shape.cards <= NVLS_GATHER_RANKS
        return multicast and shape.cards > 1 and fits and (not several or (adds and not gathers))
    if algorithm == "nvls_tree":
        return several and shape.cards > 1 and multicast
    if algorithm.startswith("collnet"):
        one_each = cluster.nics.count >= shape.cards
        direct = algorithm == "collnet_direct"
        switched = cluster.inside.kind == "switch" or not direct
        return adds and shape.cards <= DIRECT_RANKS and switched and (not gathers or one_each)
    if algorithm == "pat":
        return several and shape.cards == 1
    return True


def _has_ll128(shape: Shape) -> bool:
    """LL128 needs stores of 128 bytes that stay whole: NVLink inside, no host between."""
    near = shape.nodes == 1 or shape.cluster.nics.gpudirect
    return shape.medium == "nvlink" and near


def _graph(shape: Shape, algorithm: str) -> Graph:
    if algorithm.startswith("nvls"):
        return graph.nvls(shape)
    return graph.tree(shape) if algorithm == "tree" else graph.ring(shape)


def _steps(shape: Shape, collective: str) -> int:
    n = shape.ranks
    return {"all_reduce": 2 * (n - 1), "broadcast": n, "reduce": n}.get(collective, n - 1)


def _column(shape: Shape) -> int:
    return min(shape.nodes, 3) - 1


def _rate(shape: Shape, algorithm: str, protocol: str, collective: str, found: Graph) -> float:
    """GB/s of the collective's size."""
    row, column = graph.row(shape), _column(shape)
    busy = found.channels * (found.inside if shape.nodes <= 2 else found.between)
    if algorithm == "ring":
        busy = _ring_rate(shape, protocol, busy, found.channels)
    elif algorithm == "tree":
        busy = min(busy * 0.92, found.channels * tables.TREE[row][column])
        if protocol == "LL":
            busy = min(busy / 3.8, _ll_max(shape))
        elif protocol == "LL128":
            share = 7 / 9 if shape.nodes == 1 else 120 / 128
            busy = min(busy * share, found.channels * tables.TREE_LL128[row][column])
    elif algorithm.startswith("nvls"):
        busy = _nvls_rate(shape, algorithm, collective, found)
    elif algorithm == "pat":
        busy *= 0.75
    elif algorithm == "collnet_direct":
        factor = shape.cards / found.channels
        busy /= factor - (factor - 1) / 2
        busy *= 0.85 if row in ("hopper", "blackwell") else 1.0
    if algorithm in ("ring", "nvls", "nvls_tree") and (
        algorithm == "ring" or collective == "all_reduce"
    ):
        return busy * shape.ranks / _steps(shape, collective)
    return busy * 0.5 if collective == "all_reduce" else busy


def _ring_rate(shape: Shape, protocol: str, busy: float, channels: int) -> float:
    if protocol == "LL":
        return min(busy * 0.5, _ll_max(shape))
    if protocol == "LL128":
        return min(busy * 0.92, channels * tables.RING_LL128[graph.row(shape)][_column(shape)])
    return busy


def _nvls_rate(shape: Shape, algorithm: str, collective: str, found: Graph) -> float:
    if found.channels < 2:
        return 0.0
    row = graph.row(shape)
    each = found.inside * tables.NVLS_EFFICIENCY[row] * (found.channels - 1) / found.channels
    each *= 2 if collective == "all_reduce" else (shape.cards - 1) / shape.cards
    if shape.nodes > 1:
        double = shape.nodes == 2 and algorithm == "nvls_tree"
        each = min(each, found.between * (2 if double else 1))
    if algorithm == "nvls_tree":
        each = min(each, tables.NVLS_TREE[row][_column(shape)])
    return each * found.channels


def _ll_max(shape: Shape) -> float:
    """With several nodes the processor is the limit, not the card."""
    if shape.nodes == 1:
        return tables.LL_MAX[graph.row(shape)][0]
    row = "ampere" if shape.cluster.processor == "amd" else "volta"
    return tables.LL_MAX[row][_column(shape)]


def _latency(shape: Shape, algorithm: str, protocol: str, collective: str) -> float:
    """Microseconds."""
    p, nodes, cards = tables.PROTOCOLS.index(protocol), shape.nodes, shape.cards
    hardware: tables.Hardware = "nvlink" if shape.medium == "nvlink" else "pci"
    inside = tables.LATENCY[hardware][algorithm][p]
    between = tables.LATENCY["net"]["tree" if cards == 1 else algorithm][p]
    levels = max(0, int(math.log2(nodes)))
    base = tables.BASE[algorithm][p]
    if algorithm == "ring":
        return base + _ring_latency(shape, protocol, collective, inside, between)
    if algorithm == "tree":
        return base + 2 * ((cards - 1) * inside + levels * between)
    if algorithm == "collnet_direct":
        return base + 2 * (min(1, cards - 1) * inside + (cards - 1) * 0.4) + between
    if algorithm == "collnet_chain":
        return base + 2 * (cards - 1) * inside + between
    if algorithm == "nvls":
        return inside + (between if nodes > 1 else 0.0)
    if algorithm == "nvls_tree":
        return inside + 2 * levels * between
    return base + levels * between / 3.5 + 2.8 * shape.ranks


def _ring_latency(
    shape: Shape, protocol: str, collective: str, inside: float, between: float
) -> float:
    steps = _steps(shape, collective)
    if collective in ("broadcast", "reduce"):
        return inside if shape.nodes == 1 else between
    if shape.nodes == 1:
        return steps * inside
    overhead = tables.NET_OVERHEAD.get(shape.cluster.processor, 1.0)
    overhead *= 3 if protocol == "Simple" else 1
    crossings = (2 if collective == "all_reduce" else 1) * (shape.nodes - 1)
    return (steps - crossings) * max(inside, overhead) + crossings * between


def _plateau(
    shape: Shape, algorithm: str, protocol: str, collective: str, size: int, found: Graph
) -> float:
    """Ring and Simple between nodes: waiting grows where each channel has its own piece."""
    simple_ring = algorithm == "ring" and protocol == "Simple" and collective == "all_reduce"
    filled = size / (2 * found.channels * shape.ranks) >= 64
    if not (simple_ring and shape.nodes > 1 and filled):
        return 1.0
    return 1.9 if graph.row(shape) == "volta" else 1.4


def _correction(shape: Shape, algorithm: str, protocol: str, collective: str, size: int) -> float:
    """Trees are slower than the model at middle sizes."""
    blackwell = graph.row(shape) == "blackwell" and shape.cluster.processor in ("intel", "amd")
    corrected = algorithm == "tree" or (algorithm == "nvls_tree" and blackwell)
    if collective != "all_reduce" or not corrected or size < 64:
        return 1.0
    factors, at = tables.TREE_CORRECTION[protocol], int(math.log2(size // 64))
    return factors[at] if at < len(factors) else 1.0


def _channels(shape: Shape, algorithm: str, protocol: str, size: int, found: Graph) -> int:
    """Channels of a run: fewer while each would have too little to do."""
    if algorithm.startswith("nvls"):
        if shape.rack:
            return tables.NVLS_CHANNELS_OF_A_RACK
        return tables.NVLS_CHANNELS.get(graph.row(shape), 16)
    channels = 2 * found.channels
    if shape.nodes > 1 and graph.row(shape) in ("hopper", "blackwell") and found.inside > 45:
        channels *= 2 if channels < 16 else 1
    each = tables.THREADS[protocol] * tables.THRESHOLD[protocol]
    if algorithm.startswith("collnet"):
        each = tables.THREADS[protocol] * 512
    elif algorithm == "ring" and protocol == "LL":
        each *= shape.ranks
    return max(1, min(channels, size // each))


def choose(shape: Shape, collective: str, size: int) -> Cost:
    """What NCCL takes.

    Raises:
        RoundelayError: nothing is legal.
    """
    found = costs(shape, collective, size)
    if not found:
        raise RoundelayError(f"NCCL has no algorithm for {collective} on {shape.cluster.name}")
    return found[0]
