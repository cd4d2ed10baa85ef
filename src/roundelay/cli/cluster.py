"""`roundelay cluster`: the machines known by name, and what a cluster consists of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, Final

import click

from ..clusters import cluster, names, schema
from ..topology import Cluster
from ..units import Rate, format_rate, format_time
from .base import Command, say
from .output import emit, figure, table
from .targets import complete_cluster


@click.command(
    cls=Command,
    short_help="list the known machines, or describe a cluster",
    help="List the machines that are known by name, or describe one cluster: every figure with its "
    "direction and source, its switches and links. TARGET is a name, such as dgx-h100, with a "
    "number of nodes, dgx-h100:16, or a cluster file (.toml, .yaml).",
)
@click.argument("target", required=False, shell_complete=complete_cluster)
@click.option("--schema", "as_schema", is_flag=True, help="print the JSON Schema of cluster files")
def command(target: str | None, as_schema: bool, as_json: str | None) -> None:
    """List, or describe."""
    if as_schema:
        emit(schema(), "-", str)
    elif target:
        found = cluster(target)
        emit(_entry(found), as_json, lambda: _details(found))
    else:
        all_of_them = [cluster(name) for name in names()]
        emit([_line(c) for c in all_of_them], as_json, lambda: _overview(all_of_them))


def _gb(rate: float) -> float:
    return round(rate / 1e9, 6)


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 6)


def _ratio(c: Cluster) -> float | None:
    """A card's rate inside over its part of the rate between nodes, both one way."""
    return c.inside.rate / c.network_rate if c.nics.count else None


def _line(c: Cluster) -> dict[str, Any]:
    return {
        "name": c.name,
        "title": c.title,
        "generation": c.generation,
        "cards_per_node": c.cards,
        "inside_GBps_oneway_per_card": _gb(c.inside.rate),
        "nics_per_node": c.nics.count,
        "nic_Gbps_oneway": _gb(c.nics.rate * 8),
        "between_GBps_oneway_per_card": _gb(c.network_rate),
        "inside_over_between": _ratio(c),
    }


def _overview(found: list[Cluster]) -> str:
    head = ("name", "cards", "inside, GB/s", "network cards, Gb/s", "between, GB/s", "ratio")
    rows = []
    for c in found:
        nics = f"{c.nics.count} x {figure(c.nics.rate * 8e-9)}" if c.nics.count else "-"
        between = figure(_gb(c.network_rate)) if c.nics.count else "-"
        rows.append(
            [c.name, str(c.cards), figure(_gb(c.inside.rate)), nics, between, _shown_ratio(c)]
        )
    lines = table([*map(say, head)], rows, right="bcdef")
    more = say(
        "Cards of a node; GB/s one way for each card, inside its node and between nodes, at line "
        "rate; and the ratio of the two.\nDescribe one: roundelay cluster dgx-h100:16"
    )
    return f"{lines}\n\n{more}"


def _shown_ratio(c: Cluster) -> str:
    ratio = _ratio(c)
    return f"{ratio:.3g} : 1" if ratio else "-"


def _levels(c: Cluster) -> list[dict[str, Any]]:
    """The switches in use: a level that joins no more than the one below it is not.

    `switches` have positions; those above the same cards are one. `boxes` is how many switches
    with the fabric's number of ports that takes.
    """
    links = {one.name: one for one in c.links}
    found: list[dict[str, Any]] = []
    cables, below = c.nodes * c.nics.count, 0
    for level, above in zip_longest(c.levels, c.levels[1:]):
        if level.count == below:
            break
        up = links[f"{level.name} up"] if above and above.count < level.count else None
        upwards = up.count * up.cables if up else 0
        boxes = level.count if level.name == "leaf" else None
        if c.fabric.radix and level.name in ("spine", "core"):
            boxes = -(-(cables + upwards) // c.fabric.radix)
        found.append(
            {
                "level": level.name,
                "switches": level.count,
                "boxes": boxes,
                "bundles_up": up.count if up else 0,
                "cables_of_each": up.cables if up else 0,
                "GBps_oneway_of_each": _gb(up.rate) if up else 0.0,
            }
        )
        cables, below = upwards, level.count
    return found


def _entry(c: Cluster) -> dict[str, Any]:
    inside, nics, fabric = c.inside, c.nics, c.fabric
    return {
        **_line(c),
        "nodes": c.nodes,
        "cards": c.size,
        "hosts_per_node": c.hosts,
        "sockets_per_host": c.sockets,
        "processor": c.processor,
        "launch_us": _us(c.launch),
        "inside": {
            "kind": inside.kind,
            "medium": inside.medium,
            "links_per_card": inside.links,
            "GBps_oneway_per_card": _gb(inside.rate),
            "GBps_duplex_per_node": _gb(2 * inside.rate * c.cards),
            "latency_us": _us(inside.latency),
            "multicast": inside.multicast,
            "socket_uplink_GBps_oneway": _gb(inside.uplink) if inside.uplink else None,
            "between_sockets_GBps_oneway": (
                _gb(inside.between_sockets) if inside.between_sockets else None
            ),
        },
        "nics": {
            "count_per_node": nics.count,
            "medium": nics.medium if nics.count else None,
            "GBps_oneway": _gb(nics.rate),
            "latency_us": _us(nics.latency),
            "gpudirect": nics.gpudirect,
            "card_pcie_GBps_oneway": _gb(nics.card_pcie),
        },
        "fabric": {
            "kind": fabric.kind,
            "levels": _levels(c),
            "oversubscription": fabric.oversubscription,
            "planes": fabric.planes,
            "dims": fabric.dims,
            "hop_latency_us": _us(fabric.hop_latency),
            "adds": fabric.adds,
            "flows": fabric.flows,
        },
        "bisection_GBps_oneway": _gb(c.bisection()),
        "links": [
            {"name": one.name, "count": one.count, "cables": one.cables,
             "GBps_oneway": _gb(one.rate), "medium": one.medium}
            for one in c.links
        ],
        "sources": dict(c.sources),
    }  # fmt: skip


Row = tuple[str, str, str]
"""What, its value, and the field that has its source, if any."""

_INSIDE: Final = MappingProxyType(
    {
        "switch": "all cards on one switch",
        "mesh": "links between every two cards",
        "bus": "through the host",
    }
)
_FABRIC: Final = MappingProxyType(
    {
        "switch": "one switch",
        "rail": "rails: card i of all nodes of a group on one leaf switch",
        "fat_tree": "fat tree: all cards of a group on one leaf switch",
        "dragonfly": "dragonfly: a link between every two groups",
        "torus": "torus: links between neighbours",
        "none": "none: a single node",
    }
)

_LEVELS: Final = MappingProxyType(
    {
        "switch": "switches",
        "leaf": "leaf switches",
        "spine": "spine switches",
        "core": "core switches",
        "group": "groups",
    }
)


def _details(c: Cluster) -> str:
    rows = [*_cards(c), *_inside(c), *_network(c), *_fabric(c)]
    links = [
        [one.name, f"{one.count:,}", str(one.cables), _oneway(one.rate), one.medium]
        for one in c.links
    ]
    heads = (("figure", "value"), ("links", "count", "cables of each", "rate of each", "medium"))
    sources = [f"{say(what)}: {c.sources[field]}" for what, _, field in rows if field in c.sources]
    blocks = [
        f"{c.name}: {c.title}",
        table([*map(say, heads[0])], [[say(what), value] for what, value, _ in rows]),
        table([*map(say, heads[1])], links, right="bcd"),
    ]
    if sources:
        blocks.append("\n  ".join([say("Sources"), *sources]))
    return "\n\n".join(blocks)


def _oneway(rate: float) -> str:
    return format_rate(Rate(rate, "oneway"))


def _both(rate: float) -> str:
    """A rate one way, and both ways together."""
    return f"{_oneway(rate)} = {format_rate(Rate(2 * rate, 'duplex'))}"


def _cards(c: Cluster) -> Iterator[Row]:
    yield "nodes", f"{c.nodes:,}", "nodes"
    yield "cards of a node", f"{c.cards:,}", "cards"
    yield "cards", f"{c.size:,}", ""
    yield "generation", c.generation, "generation"
    if c.hosts > 1:
        yield "hosts of a node", str(c.hosts), "hosts"
    yield "processors of a host", f"{c.sockets} x {c.processor}", "sockets"
    if c.launch:
        yield "launching takes at least", format_time(c.launch), "launch"


def _inside(c: Cluster) -> Iterator[Row]:
    inside = c.inside
    yield "inside a node", f"{say(_INSIDE[inside.kind])}, {inside.medium}", "inside.kind"
    yield "links of a card", str(inside.links), "inside.links"
    yield "rate of a card", _both(inside.rate), "inside.rate"
    total = float(f"{2 * inside.rate * c.cards:.3g}")
    yield "rate of all cards of a node", format_rate(Rate(total, "duplex")), ""
    if inside.kind == "mesh":
        yield "rate between two cards", _oneway(c.links[0].rate), ""
    if inside.uplink:
        yield "shared by a socket", _oneway(inside.uplink), "inside.uplink"
    if inside.between_sockets:
        yield "between sockets", _oneway(inside.between_sockets), "inside.between_sockets"
    if inside.latency:
        yield "small message", format_time(inside.latency), "inside.latency"
    if inside.kind == "switch":
        yield "switch adds", say("yes") if inside.multicast else say("no"), "inside.multicast"


def _network(c: Cluster) -> Iterator[Row]:
    nics = c.nics
    if not nics.count:
        return
    each = f"{_oneway(nics.rate)} = {figure(nics.rate * 8e-9)} Gb/s"
    yield "network cards of a node", f"{nics.count}, {nics.medium}", "nics.count"
    yield "rate of a network card", each, "nics.rate"
    yield "rate between nodes, a card", _oneway(c.network_rate), ""
    yield "inside : between", _shown_ratio(c), ""
    if nics.latency:
        yield "small message between nodes", format_time(nics.latency), "nics.latency"
    yield (
        "reads cards' memory (GPUDirect)",
        say("yes") if nics.gpudirect else say("no"),
        ("nics.gpudirect"),
    )
    yield "PCIe of a card", _oneway(nics.card_pcie), "nics.card_pcie"


def _fabric(c: Cluster) -> Iterator[Row]:
    fabric = c.fabric
    yield "between nodes", say(_FABRIC[fabric.kind]), "fabric.kind"
    if fabric.dims:
        yield "dimensions", " x ".join(map(str, fabric.dims)), "fabric.dims"
    if fabric.planes > 1:
        yield "planes without links between", str(fabric.planes), "fabric.planes"
    for level in _levels(c):
        yield _LEVELS[level["level"]], _shown_level(level), f"fabric.nodes_per_{level['level']}"
    if fabric.oversubscription:
        tapers = ", ".join(f"{x:g} : 1" for x in fabric.oversubscription)
        yield "oversubscription", tapers, "fabric.oversubscription"
    if fabric.flows:
        yield "flows of a network card, hashed", str(fabric.flows), "fabric.flows"
    if fabric.hop_latency:
        yield "each further switch", format_time(fabric.hop_latency), "fabric.hop_latency"
    if fabric.adds:
        yield "switches add (SHARP)", say("yes"), "fabric.adds"
    yield "from one half to the other", _oneway(c.bisection()), ""


def _shown_level(level: dict[str, Any]) -> str:
    count = f"{level['switches' if level['boxes'] is None else 'boxes']:,}"
    if not level["bundles_up"]:
        return count
    return say(
        "{count}; links up: {n} of {k} cables, {rate} each",
        count=count,
        n=f"{level['bundles_up']:,}",
        k=f"{level['cables_of_each']:,}",
        rate=_oneway(level["GBps_oneway_of_each"] * 1e9),
    )
