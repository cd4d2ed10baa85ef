"""A cluster of CPUs from measured figures."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ..clusters import HERE
from ..topology import Cluster, Fabric, Inside, Nics, Processor
from .figures import Measured, Probed

_VENDORS: Final[Mapping[str, Processor]] = MappingProxyType(
    {"GenuineIntel": "intel", "AuthenticAMD": "amd"}
)
LEAST: Final = 1e-12
"""Seconds a byte below which adding counts as hidden behind copying."""


def as_cluster(probed: Probed) -> Cluster:
    """The cluster: a rank is a card, and the host's memory the bus between them.

    A card's rate is that of two ranks alone; what all share is the sum of all at once, each
    copying its own piece as well. Adding counts as far as it takes longer than copying does.
    Between hosts is TCP, with a network card that all ranks of a host share.
    """
    figures = probed.figures
    rate = figures.get("rate", figures["copy"])
    latency = figures.get("latency", figures["call"])
    all_rate = figures.get("all_rate")
    cached = figures.get("cached")
    faster = bool(cached and all_rate and cached.value > all_rate.value)
    adding = figures["reduce"].value - probed.ranks / figures["copy"].value
    inside = Inside(
        "bus", "memory", _round(rate), latency=_round(latency),
        uplink=_round(all_rate) if all_rate else None,
        reduce=round(max(0.0, adding) / LEAST) * LEAST,
        cache=probed.cache if faster else 0, cached=_round(cached) if cached and faster else None,
    )  # fmt: skip
    nics, fabric = Nics(0), Fabric("none")
    sources = {
        "inside.rate": _source(rate),
        "inside.latency": _source(latency),
        "inside.reduce": f"{_source(figures['reduce'])}; less what copying takes",
        "launch": _source(figures["call"]),
    }
    if all_rate:
        sources["inside.uplink"] = _source(all_rate)
    if cached and faster:
        sources["inside.cached"] = _source(cached)
        sources["inside.cache"] = "half of the cache that a core has to itself, over its ranks"
    if probed.nodes > 1:
        network, far = figures["network_rate"], figures["network_latency"]
        lane = max(_round(rate), _round(network))
        nics = Nics(1, _round(network), "tcp", _round(far), card_pcie=lane)
        fabric = Fabric("switch")
        sources |= {
            "nics.rate": _source(network),
            "nics.latency": _source(far),
            "nics.card_pcie": "as inside.rate: data of TCP lie in the host's memory",
        }
    here = probed.machine
    return Cluster(
        HERE, f"{here['cores']} cores of {here['cpu']}", "cpu", probed.nodes, probed.ranks, inside,
        nics, fabric, sockets=1, processor=_processor(), launch=_round(figures["call"]),
        sources=sources,
    )  # fmt: skip


def _round(figure: Measured) -> float:
    """Four digits: more would be noise."""
    return float(f"{figure.value:.4g}")


def _source(figure: Measured) -> str:
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    within = f"{100 * figure.spread:.0f} %"
    return f"roundelay probe, {today}: {figure.how}; median, half of the runs lie within {within}"


def _processor() -> Processor:
    with suppress(OSError):
        text = Path("/proc/cpuinfo").read_text()
        if (found := re.search(r"vendor_id\s*: (\w+)", text)) is not None:
            return _VENDORS.get(found[1], "other")
        if re.search(r"CPU implementer", text):
            return "arm"
    return "other"
