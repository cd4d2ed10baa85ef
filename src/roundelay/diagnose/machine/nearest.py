"""Rules about which network cards are near which cards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...formats.machine import PATHS, Card, Machine, Nic
from ..finding import Figures, Finding, names
from .nics import bound, nic_reach, nic_spare
from .seen import Seen


class Layout(NamedTuple):
    """Cards by the class of their way to the network."""

    near: list[tuple[Card, tuple[Nic, ...]]]
    far: list[Card]
    way: str


def _layout(machine: Machine) -> Layout | None:
    if machine.folded:
        return None
    found = {card: machine.nearest(card) for card in machine.cards}
    ways = {card: way for card, way in found.items() if way is not None}
    if not ways:
        return None
    best = min((PATHS.index(way) for way, _ in ways.values()), default=0)
    near = [(card, nics) for card, (way, nics) in ways.items() if PATHS.index(way) <= best]
    whole = [card for card in ways if card.name not in machine.missing]
    far = [card for card in whole if PATHS.index(ways[card][0]) > best]
    return Layout(near, far, PATHS[best])


def far_cards(seen: Seen) -> Finding | None:
    """Cards that reach the network across sockets only, where others have it near."""
    machine, layout = seen.machine, _layout(seen.machine)
    if layout is None:
        return None
    across = [card for card in layout.far if (machine.nearest(card) or ("",))[0] == "SYS"]
    real = machine.source != "nccl" or any(nic.bus for nic in machine.nics)
    if not across or not real:  # a virtual one hangs on the first processor for want of a place
        return None
    figures: Figures = {
        "far": names([c.name for c in across]), "near": names([c.name for c, _ in layout.near]),
        "way": layout.way, "nics": len(machine.nics),
    }  # fmt: skip
    sides = {card.numa for card, _ in layout.near} - {None}
    beside = [card.name for card in across if card.numa in sides]
    linked = any(card.links for card in across)
    advice = ("Put a network card on their side too, or have ranks of the near cards speak "
              "for the others (two levels).")  # fmt: skip
    if linked:
        advice = ("Let NCCL forward over NVLink to a card that has a network card (PXN, on by "
                  "default: NCCL_PXN_DISABLE=0), and see in its log that it does.")  # fmt: skip
    reason = ["{far} reach a network card only across sockets or NUMA nodes (SYS), while {near} "
              "have one near ({way})."]  # fmt: skip
    if beside:
        figures["beside"] = names(beside)
        reason = ["{far} reach a network card only by SYS, while {near} have one near ({way}). "
                  "{beside} are of a NUMA node that has one, so there SYS does not mean another "
                  "socket: part of PCIe is hidden, as in a virtual machine. NCCL takes them for "
                  "far all the same."]  # fmt: skip
        if not linked:
            advice = ("Give NCCL a topology file of the host (NCCL_TOPO_FILE), or have ranks of "
                      "the near cards speak for the others (two levels).")  # fmt: skip
    return seen.tell(
        "far_cards", figures,
        reason, advice, seen.rows(across[:4]), fault=True, confidence=0.9,
    )  # fmt: skip


def all_far(seen: Seen) -> Finding | None:
    """No card has a network card on its side of the sockets."""
    machine, layout = seen.machine, _layout(seen.machine)
    between = {way for _, _, way in machine.pairs()}
    if layout is None or layout.way != "SYS" or between == {"SYS"} or machine.missing:
        return None
    who = names([nic.device or nic.name for nic in machine.nics], 8)
    figures: Figures = {"cards": len(layout.near), "nics": len(machine.nics), "who": who}
    return seen.tell(
        "all_far", figures,
        ["Every card reaches {who} only across sockets (SYS). NCCL uses no GPUDirect RDMA over "
         "such a way by itself, so what goes to other nodes passes through the host's memory and "
         "the link between the sockets."],
        "Put the network card into a slot on the side of the cards; until then try "
        "NCCL_NET_GDR_LEVEL=SYS, and bind processes to the network card's NUMA node.",
        seen.rows([card for card, _ in layout.near[:2]]), fault=True, confidence=0.85,
    )  # fmt: skip


def nic_layout(seen: Seen) -> Finding | None:
    """Which card uses which network card."""
    machine, layout = seen.machine, _layout(seen.machine)
    if layout is None or layout.way == "SYS":
        return None
    pairs = [(card, nic) for card, nics in layout.near for nic in nics]
    used = {nic.name for _, nic in pairs}
    spare = [nic for nic in machine.nics if nic.name not in used]
    figures: Figures = {
        "map": names([f"{card.name}-{nic.name}" for card, nic in pairs], 32), "way": layout.way,
        "cards": len(machine.cards), "nics": len(machine.nics),
    }  # fmt: skip
    single = len(pairs) == len(layout.near) == len(used)
    own = single and len(pairs) == len(machine.cards)
    reason = ["Each card has a network card of its own, by {way}: {map}." if own else
              "Nearest network cards, by {way}: {map}."]  # fmt: skip
    order = [machine.nics.index(nic) for _, nic in pairs]
    if single and len(order) > 2 and order == sorted(order, reverse=True):
        reason.append("Their order is reversed: go by the way, not by the number.")
    reason += nic_reach(machine, layout.way, pairs, figures)
    reason += _rates(machine, layout, figures)
    reason += _others(machine, layout, figures)
    reason += nic_spare(machine, spare, used, figures)
    advice = ("Bind each rank to its card's network card and NUMA node; leave out others by name "
              "(NCCL_IB_HCA=^...)." if spare else
              "Bind each rank to its card's network card and NUMA node.")  # fmt: skip
    cited = seen.rows([card for card, _ in layout.near[:2]])
    return seen.tell("nic_layout", figures, reason, advice, cited, confidence=0.9)


def _rates(machine: Machine, layout: Layout, figures: Figures) -> Sequence[str]:
    rates = [nic.rate for nic in machine.nics if nic.rate]
    if not rates or len(rates) < len(machine.nics):
        return ()
    one = rates[0]
    if any(bound(nic) or not nic.told for nic in machine.nics):
        return ()
    figures |= {"nic_GBps": one, "node_GBps": sum(rates)}
    ports = max(len(nic.ports) for nic in machine.nics)
    if len({rate for nic in machine.nics for rate in nic.ports}) > 1 or len(set(rates)) > 1:
        figures |= {"least_GBps": min(rates), "most_GBps": max(rates)}
        return ("A network card carries {least_GBps} to {most_GBps} GB/s one way, all of the node "
                "{node_GBps} GB/s.",)  # fmt: skip
    if ports > 1:
        figures |= {"ports": ports, "port_GBps": machine.nics[0].ports[0]}
        return ("A network card has {ports} ports of {port_GBps} GB/s, {nic_GBps} GB/s one way; "
                "the node has {node_GBps} GB/s.",)  # fmt: skip
    return ("A network card carries {nic_GBps} GB/s one way, all of the node {node_GBps} GB/s.",)


def _others(machine: Machine, layout: Layout, figures: Figures) -> Sequence[str]:
    """Cards that have it less near, but not across sockets."""
    ways: dict[str, list[str]] = {}
    for card in layout.far:
        found = machine.nearest(card)
        if found is not None and found[0] != "SYS":
            ways.setdefault(found[0], []).append(card.name)
    if not ways:
        return ()
    figures["others"] = names([f"{name} {way}" for way, list_ in ways.items() for name in list_])
    return ("Others have it less near: {others}.",)
