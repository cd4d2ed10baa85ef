"""What tables of other programs say: of a wire, of a collective, of a card's slot, of latency."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ...formats.bandwidth import Bandwidths, Curve, Point
from ..finding import Evidence, Figures, Finding, tell
from .cards import Card, card_of
from .matrices import matrix_findings, slot_like

PORTS: Final = (1, 10, 25, 40, 56, 100, 200, 400, 800)
"""Gb/s of usual ports."""
FULL: Final = (0.86, 1.01)
"""Of a port's line rate, what a test of the wire reaches in data."""
_NETWORK: Final = re.compile(r"RDMA|\bSend |Atomic|perftest", re.I)
"""Titles of tests that go over a network card for sure."""
_FULL: Final = (
    "That is a full port of {port_Gbps} Gb/s ({share} of its line rate). If the "
    "network card should do more, the port, cable or switch runs at this rate."
)
_NET: Final = (
    "Over a network that is a full port of {port_Gbps} Gb/s ({share} of its line rate); "
    "inside a host it is the rate of PCIe or of links between cards."
)
SMALL: Final = 1 << 16
"""Bytes up to which the time of a call is latency."""


def bandwidth_findings(file: str, found: Bandwidths) -> list[Finding]:
    """What is to be said of all tables."""
    kinds = [card for card in map(card_of, found.cards) if card is not None]
    card = kinds[0] if kinds else None
    name = found.cards[0] if kinds else ""
    told = matrix_findings(file, found, card, name)
    hosts = [curve for curve in found.curves if curve.what == "host"]
    told += _slot(file, hosts, card, name)
    for curve in found.curves:
        one = {"wire": _wire, "tcp": _tcp, "collective": _collective, "latency": _latency}.get(
            curve.what
        )
        if one is not None and (finding := one(file, curve)) is not None:
            told.append(finding)
    return told


def _at(file: str, *points: Point) -> tuple[Evidence, ...]:
    return tuple(Evidence(file, point.line, point.text) for point in points)


def _wire(file: str, curve: Curve) -> Finding | None:
    """A test between two: which port would give it."""
    best = max(curve.points, key=lambda point: point.rate or 0.0)
    rate = best.rate or 0.0
    if not rate:
        return None
    figures: Figures = {"what": curve.title[:60], "rate_GBps": rate, "rate_Gbps": 8 * rate}
    reason = ["{what}: at most {rate_GBps} GB/s = {rate_Gbps} Gb/s one way."]
    if best.size:
        figures["size_bytes"] = best.size
        reason = ["{what}: at most {rate_GBps} GB/s = {rate_Gbps} Gb/s one way, at {size_bytes}."]
    if best.size and best.size < SMALL:
        reason.append("The largest size is small: large messages, 64 KiB and more, would show what "
                      "the wire carries.")  # fmt: skip
    port = next((p for p in PORTS if FULL[0] * p <= 8 * rate <= FULL[1] * p), None)
    if port is not None:
        figures |= {"port_Gbps": port, "share": 8 * rate / port}
        reason.append(_FULL if _NETWORK.search(curve.title) else _NET)
    elif 8 * rate < PORTS[-1] and _NETWORK.search(curve.title):
        larger = next(p for p in PORTS if 8 * rate < p)
        figures |= {"port_Gbps": larger, "share": 8 * rate / larger}
        reason.append("No usual port gives just that when full: it is {share} of {port_Gbps} Gb/s. "
                      "A slot of too few lanes, memory on the other socket, a way through the "
                      "host's memory or too few queues bound it.")  # fmt: skip
    else:
        reason.append("No usual port of a network gives just that when full; inside a host it is "
                      "what PCIe, links between cards or memory carry.")  # fmt: skip
    return tell("wire", curve.title[:60], figures, reason,
                "Compare with what NCCL gets of each network card: with GPUDirect RDMA nearly as "
                "much. For memory of cards test with --use_cuda; look at ibstat (Rate), and at "
                "lspci (LnkSta) for the slot.",
                _at(file, best), confidence=0.85)  # fmt: skip


def _tcp(file: str, curve: Curve) -> Finding | None:
    """What TCP carries."""
    rates = sorted(point.rate or 0.0 for point in curve.points)
    rate = rates[len(rates) // 2]
    if not rate:
        return None
    figures: Figures = {"rate_GBps": rate, "rate_Gbps": 8 * rate}
    reason = ["TCP carries {rate_GBps} GB/s = {rate_Gbps} Gb/s here (the usual interval)."]
    if "all" not in curve.title:
        reason.append("A single connection is bound by one core, not by the network card: 10 to 40 "
                      "Gb/s are usual. It says nothing of RDMA, and NCCL over sockets opens "
                      "several.")  # fmt: skip
    else:
        reason.append("That is of all connections together, through the host's memory; it says "
                      "nothing of RDMA.")  # fmt: skip
    return tell("tcp_rate", curve.title, figures, reason,
                "Use iperf3 -P 8 for several connections, and ib_write_bw for RDMA. Over sockets "
                "NCCL reaches about as much as several connections do.",
                _at(file, curve.points[-1]), confidence=0.8)  # fmt: skip


def _collective(file: str, curve: Curve) -> Finding | None:
    """A collective: its peak, and another library's beside it."""
    best = max(curve.points, key=lambda point: point.busbw or point.rate or 0.0)
    if not (best.busbw or best.rate):
        return None
    figures: Figures = {"what": curve.title[:60], "size_bytes": best.size,
                        "algbw_GBps": best.rate or 0.0}  # fmt: skip
    if best.busbw and best.rate:
        figures["busbw_GBps"] = best.busbw
        reason = ["{what}: the highest busbw is {busbw_GBps} GB/s (algbw {algbw_GBps} GB/s), at "
                  "{size_bytes}."]  # fmt: skip
    elif best.busbw:
        figures["busbw_GBps"] = best.busbw
        reason = ["{what}: the highest busbw is {busbw_GBps} GB/s, at {size_bytes}."]
    else:
        reason = ["{what}: the highest algbw is {algbw_GBps} GB/s, at {size_bytes}."]
        reason.append("busbw is not printed; of an all_reduce it is 2 (n - 1) / n times algbw.")
    if best.busbw and best.rate:
        ratio = best.busbw / best.rate
        if 1.2 < ratio < 1.998:
            figures |= {"factor": ratio, "ranks": curve.ranks or round(2 / (2 - ratio))}
            reason.append("busbw is {factor} times algbw: an all_reduce over {ranks:rank|ranks}.")
    if beside := [(p.rate / p.other, p) for p in curve.points if p.rate and p.other]:
        low, high = beside[0], beside[-1]
        figures |= {"small_bytes": low[1].size, "small_times": low[0], "large_bytes": high[1].size,
                    "large_times": high[0]}  # fmt: skip
        reason.append("Beside NCCL it has {small_times} times the rate at {small_bytes}, and "
                      "{large_times} times at {large_bytes}.")  # fmt: skip
    timed = [point for point in curve.points if point.time_us]
    if timed:
        figures["least_us"] = min(point.time_us or 0.0 for point in timed)
        reason.append("No call takes less than {least_us} us: that is the latency, and at small "
                      "sizes the rate follows from it.")  # fmt: skip
    if curve.points[-1].size < 2**26:
        figures["largest_bytes"] = curve.points[-1].size
        reason.append("The largest size, {largest_bytes}, is small: a rate tells what the links "
                      "carry from 64 MiB on, and the peak shows at 1 GiB and above.")  # fmt: skip
    return tell("measured", curve.title[:60], figures, reason,
                "Compare busbw at the largest sizes with one direction of the links: about 0.8 of "
                "NVLink's line rate for a ring, 0.9 of all network cards of a node. Write it as "
                "facts with gpu, nodes and nics_per_node to have it judged.",
                _at(file, best), confidence=0.85)  # fmt: skip


def _latency(file: str, curve: Curve) -> Finding | None:
    """Times only."""
    timed = [point for point in curve.points if point.time_us]
    if not timed:
        return None
    low, high = min(timed, key=lambda p: p.time_us or 0.0), max(timed, key=lambda p: p.size)
    figures: Figures = {"what": curve.title[:60], "least_us": low.time_us or 0.0}
    reason = ["{what}: no call takes less than {least_us} us: that is the latency."]
    if high.size >= SMALL:
        figures |= {"size_bytes": high.size, "most_us": high.time_us or 0.0,
                    "rate_GBps": high.size / (high.time_us or 1.0) / 1e3}  # fmt: skip
        reason.append("At {size_bytes} a call takes {most_us} us, which is {rate_GBps} GB/s of "
                      "size over time (algbw).")  # fmt: skip
    else:
        reason.append("Sizes are small: what the links carry cannot be told from it.")
    return tell("latency", curve.title[:60], figures, reason,
                "Between hosts RDMA takes 1 to 5 us for a small message and TCP 15 to 50 us; a "
                "collective takes that times its steps, and the launch of a kernel.",
                _at(file, low, high), confidence=0.8)  # fmt: skip


def _slot(file: str, curves: Sequence[Curve], card: Card | None, name: str) -> list[Finding]:
    """Between a card and its host: what the slot gives."""
    across = [curve for curve in curves if "device to device" not in curve.title.lower()]
    points = [max(curve.points, key=lambda point: point.rate or 0.0) for curve in across]
    if not points:
        return []
    worst = min(points, key=lambda point: point.rate or 0.0)
    finding = slot_like(worst.rate or 0.0, card, name, _at(file, *points))
    return [finding] if finding else []
