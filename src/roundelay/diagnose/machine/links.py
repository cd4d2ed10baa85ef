"""Rules about the links between the cards of a machine."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

from ...formats.machine import PATHS, Card, Machine
from ..finding import Figures, Finding, names
from .seen import Seen

USABLE: Final = MappingProxyType(
    {"sm60": 18.0, "sm70": 20.0, "sm80": 20.0, "sm86": 12.0, "sm90": 20.6, "sm100": 40.1,
     "sm103": 40.1}
)  # fmt: skip
"""GB/s one way that NCCL reckons for an NVLink, by compute capability (NCCL 2.30, topo.h)."""
LINE: Final = 25.0
"""GB/s one way of an NVLink from Volta to Hopper; it is twice that from Blackwell on."""
LATE: Final = 100
"""Compute capability from which it is."""
WORKSTATION: Final = 14.0625
"""GB/s one way of an NVLink of Ampere's GeForce and RTX cards (sm86)."""
BRIDGES: Final = 12
"""Links of a pair of cards with three bridges; one has 2 (Turing) or 4 (Ampere)."""

MEANS: Final = MappingProxyType({
    "PIX": "PIX: below one PCIe switch, without passing a processor.",
    "PXB": "PXB: through several PCIe switches, without passing a processor.",
    "PHB": "PHB: through the PCIe host bridge of a processor, inside one socket.",
    "NODE": "NODE: they are of one NUMA node, under different PCIe host bridges: through that "
            "processor, and not across sockets.",
    "SYS": "SYS: across sockets (or NUMA nodes), over the link between processors.",
})  # fmt: skip
"""Ways between cards, in words."""


def line_rate(card: Card) -> float:
    """GB/s one way of one of its links, where they are NVLinks."""
    if card.model == "sm86":
        return WORKSTATION
    digits = card.model.removeprefix("sm")
    return 2 * LINE if digits.isdecimal() and int(digits[:4]) >= LATE else LINE


def _who(cards: Sequence[Card]) -> str:
    """Names, with what else tells a card from others."""
    found = []
    for card in cards:
        parts = [f"rank {card.rank}" if card.rank is not None else "",
                 f"device {card.device}" if card.device is not None else "", card.bus]  # fmt: skip
        about = ", ".join(filter(None, parts))
        found.append(f"{card.name} ({about})" if about else card.name)
    return names(found, 8)


def linkless(seen: Seen) -> Finding | None:
    """Cards without a link among cards that have them."""
    cards = seen.machine.cards
    without = [card for card in cards if not card.links]
    others = [card for card in cards if card.links]
    without = [card for card in without if card.name not in seen.machine.missing]
    if not without or len(others) <= len(without):
        return None
    figures: Figures = {
        "who": _who(without), "others": len(others), "links": seen.machine.usual_links(),
    }  # fmt: skip
    if others[0].kind == "xgmi":
        return seen.tell(
            "linkless", figures,
            ["{who}: no xGMI link, while {others:other has|others have} {links:link|links} each. "
             "It is reached over PCIe alone, and a ring through it is no faster than that."],
            "Look at that card: amd-smi xgmi, errors of xGMI and RAS in dmesg; reset it, or leave "
            "it out.",
            seen.rows(without[:4]), fault=True, confidence=0.9, subject=_who(without),
        )  # fmt: skip
    if all(len(card.links) == 1 and "switch" not in card.links for card in others):
        return seen.tell(
            "linkless", figures,
            ["{who}: no NVLink, while {others} others are joined in pairs by bridges "
             "({links:link|links}). It is reached over PCIe alone, and a ring through it is no "
             "faster than that."],
            "Keep what exchanges much on cards with a bridge; see that a bridge is plugged in "
            "where there should be one (nvidia-smi nvlink -s).",
            seen.rows(without[:4]), fault=True, confidence=0.8, subject=_who(without),
        )  # fmt: skip
    return seen.tell(
        "linkless", figures,
        ["{who}: no NVLink at all, while {others:other has|others have} {links:link|links} each.",
         "One such card pulls all ranks down: NCCL searches for what every rank can do, and falls "
         "to a single channel as slow as 0.1 GB/s."],
        "Look at that card, not at an average: nvidia-smi nvlink -s and nvidia-smi -q (fabric "
        "state) there, the fabric manager's log, Xid errors in dmesg; reset it, or leave it out.",
        seen.rows(without[:4]), fault=True, confidence=0.95, subject=_who(without),
    )  # fmt: skip


def few_links(seen: Seen) -> Finding | None:
    """Cards with fewer links than most."""
    machine, usual = seen.machine, seen.machine.usual_links()
    few = [c for c in machine.cards if 0 < c.link_count < usual and c.name not in machine.missing]
    if not few or 2 * len(few) > len(machine.cards) or machine.cut:
        return None
    figures: Figures = {"who": _who(few), "links": few[0].link_count, "usual": usual,
                        "share": few[0].link_count / usual}  # fmt: skip
    return seen.tell(
        "few_links", figures,
        ["{who}: {links:link|links}, where most cards have {usual} ({share}).",
         "Rings and trees go at the rate of the slowest card."],
        "See which links are down (nvidia-smi nvlink -s), and have the card or the switch seen to.",
        seen.rows(few[:4]), fault=True, confidence=0.9, subject=_who(few),
    )  # fmt: skip


def links_hidden(seen: Seen) -> Finding | None:
    """`topo -mp` shows PCIe only."""
    if seen.machine.links_shown:
        return None
    if seen.machine.source == "hwloc":
        return seen.tell(
            "links_hidden", {"cards": len(seen.machine.cards), "nics": len(seen.machine.nics)},
            ["lstopo shows {cards:card|cards} and {nics:network card|network cards} by PCIe and "
             "NUMA node; links between cards (NVLink, xGMI) are not in it."],
            "For links: nvidia-smi topo -m, or amd-smi topology.",
            seen.rows(seen.machine.cards[:1] or seen.machine.nics[:1]), confidence=0.9,
        )  # fmt: skip
    return seen.tell(
        "links_hidden", {},
        ["This is the table of PCIe alone (topo -mp): SYS between two cards does not mean that "
         "there is no NVLink."],
        "Ask for both: nvidia-smi topo -m.", seen.rows(seen.machine.cards[:1]), confidence=0.95,
    )  # fmt: skip


def parted(seen: Seen) -> Finding | None:
    """Several ranks on parts of one card."""
    parts = [card for card in seen.machine.cards if card.part is not None]
    if len(parts) < 2:
        return None
    figures: Figures = {
        "parts": len(parts), "whole": len({card.bus for card in parts}),
        "links": max(card.link_count for card in parts), "who": names([c.name for c in parts]),
    }  # fmt: skip
    return seen.tell(
        "parted", figures,
        ["{who} are {parts:part|parts} of {whole:card|cards}: no card is listed twice.",
         "Each part lists all {links:link|links} of the whole card; they are shared, not to be "
         "added."],
        "Count links by PCI address.", seen.rows(parts[:4]), confidence=0.9,
    )  # fmt: skip


def connected(seen: Seen) -> Finding | None:
    """How the cards reach one another."""
    machine = seen.machine
    if not machine.cards or not machine.links_shown:
        return None
    linked = [card for card in machine.cards if card.links]
    if not linked:
        return _by_pcie(seen)
    if machine.source == "nccl" and all(card.name in machine.missing for card in linked):
        return _cut_links(seen, linked)
    figures: Figures = {"cards": len(machine.cards), "links": machine.usual_links()}
    if all(set(card.links) == {card.bus} for card in linked):
        return seen.tell(
            "links_hidden", figures,
            ["Each card lists {links:link that leads|links that lead} to its own address: the "
             "virtual machine hides the other end, so which cards are joined cannot be told from "
             "this file, and an NVSwitch is not in it."],
            "See which pairs are joined with nvidia-smi topo -m and nvidia-smi nvlink -s.",
            seen.rows(linked[:1]), confidence=0.85,
        )  # fmt: skip
    direct = "switch" not in linked[0].links
    reason = [_mesh(machine, linked, figures) if direct else
              "Cards: {cards}, each with {links:link|links} to an NVSwitch."]  # fmt: skip
    if linked[0].kind == "nvlink" and figures["links"]:
        line, usable = line_rate(linked[0]), USABLE.get(linked[0].model)
        figures["line_GBps"] = line * machine.usual_links()
        figures["duplex_GBps"] = 2 * line * machine.usual_links()
        if linked[0].model:
            reason.append("Their line rate is {line_GBps} GB/s one way, {duplex_GBps} duplex.")
        else:
            reason.append("At 25 GB/s a link (Volta to Hopper) that is {line_GBps} GB/s one way, "
                          "{duplex_GBps} duplex; from Blackwell on twice that, with Ampere's "
                          "GeForce and RTX cards 14 GB/s a link.")  # fmt: skip
            if len(machine.cards) == 2 and direct and 1 < machine.usual_links() < BRIDGES:
                reason += _odd_bridge(machine.usual_links())
        if usable:
            figures["usable_GBps"] = usable * machine.usual_links()
            reason.append("NCCL reckons with {usable_GBps} GB/s one way.")
    return seen.tell("connected", figures, reason, "Compare what you measure with one direction.",
                     seen.rows(linked[:1]), confidence=0.85)  # fmt: skip


def _odd_bridge(links: int) -> list[str]:
    """A pair of cards with an odd number of links, which no whole bridge has."""
    if links % 2 == 0:
        return []
    return ["A bridge between two cards has 2 links (Turing) or 4 (Ampere), so where these are "
            "joined by one, {links} means that a link is down, as where the bridge sits badly: "
            "calls may then hang. nvidia-smi nvlink -s tells which; plug it in anew, and try "
            "NCCL_P2P_DISABLE=1 until then."]  # fmt: skip


def _cut_links(seen: Seen, linked: Sequence[Card]) -> Finding:
    """The only cards with links are those in which the file ends."""
    ends = ["an NVSwitch" if end == "switch" else end for end in linked[0].links]
    figures: Figures = {"who": _who(linked), "links": linked[0].link_count, "ends": names(ends, 8)}
    return seen.tell(
        "connected", figures,
        ["The file ends within {who}: {links:link was|links were} read until there, to {ends}; it "
         "has as many or more, so what its links carry in all cannot be told."],
        "Save the file again, whole; nvidia-smi nvlink -s counts the links of each card.",
        seen.rows(linked[:1]), confidence=0.85,
    )  # fmt: skip


def _mesh(machine: Machine, linked: Sequence[Card], figures: Figures) -> str:
    near = {len(card.links) for card in linked}
    figures |= {"neighbours": max(near), "directed": sum(len(card.links) for card in linked),
                "kind": "xGMI" if linked[0].kind == "xgmi" else "NVLink"}  # fmt: skip
    if len(machine.cards) == 2 and near == {1} and machine.source == "nvidia-smi":
        figures["links"] = machine.usual_links()
        return ("2 cards, joined by {kind} ({links:link|links}); whether directly or through a "
                "switch, a table of two does not tell.")  # fmt: skip
    if near == {len(machine.cards) - 1}:
        return ("{cards:card|cards}, each linked with all {neighbours:other|others} by {kind}: a "
                "full mesh, "
                "{directed:directed way|directed ways}, no switch.")  # fmt: skip
    groups = _groups(machine)
    if len(groups) > 1:
        figures["groups"] = "; ".join(names(group, 8) for group in groups[:8])
        figures["parts"] = len(groups)
        return ("{cards:card|cards}, linked by {kind} in {parts} groups with no link between them "
                "({groups}); a card is linked with up to {neighbours:other|others}, "
                "{directed:directed way|directed ways}.")  # fmt: skip
    apart = [(a, b) for a, b, _ in machine.pairs() if not _joined(a, b)]
    if not apart:
        return ("{cards:card|cards}, linked by {kind} with up to {neighbours:other|others}, "
                "{directed:directed way|directed ways}.")  # fmt: skip
    figures |= {"apart": len(apart), "pairs": len(machine.cards) * (len(machine.cards) - 1) // 2,
                "examples": names([f"{a.name}-{b.name}" for a, b in apart], 4)}  # fmt: skip
    return (
        "{cards:card|cards}, linked by {kind} with up to {neighbours:other|others}, "
        "{directed:directed way|directed ways}: no full mesh and no switch. {apart} of "
        "{pairs} pairs have no link of their own ({examples}), so what they exchange "
        "goes by way of another card or over PCIe."
    )


def _joined(a: Card, b: Card) -> bool:
    return bool({b.bus, b.name} & set(a.links) or {a.bus, a.name} & set(b.links))


def _groups(machine: Machine) -> list[list[str]]:
    """Names of cards that hang together by links, however many steps apart."""
    left, groups = list(machine.cards), list[list[str]]()
    while left:
        group = [left.pop(0)]
        for card in group:
            near = [other for other in left if _joined(card, other)]
            group += near
            left = [other for other in left if other not in near]
        groups.append([card.name for card in group])
    return groups


def _own(machine: Machine) -> list[str]:
    if not machine.cards[0].c2c:
        return []
    return ["It hangs on its processor by C2C: the figures of PCIe at the card are nominal."]


def _by_pcie(seen: Seen) -> Finding | None:
    """No link is shown: which pairs are near."""
    machine = seen.machine
    if len(machine.cards) == 1 and not machine.cut and not machine.missing:
        return seen.tell(
            "connected", {"cards": 1},
            ["One card: inside this host nothing is exchanged between cards.", *_own(machine)],
            "Give the table of a host with several, or the network's files.",
            seen.rows(machine.cards), confidence=0.9,
        )  # fmt: skip
    ways: dict[str, list[str]] = {}
    for a, b, way in machine.pairs():
        ways.setdefault(way, []).append(f"{a.name}-{b.name}")
    if not ways:
        return None
    best = min(ways, key=_rank)
    figures: Figures = {
        "cards": len(machine.cards), "near": names(ways[best], 12), "way": best,
        "ways": ", ".join(f"{way} {len(pairs)}" for way, pairs in sorted(ways.items(), key=_first)),
    }  # fmt: skip
    reason = ["{cards:card|cards}, and the file shows no links between them. Where there are none "
              "indeed, what they exchange goes over PCIe (pairs by way: {ways})."]  # fmt: skip
    odd = _same_side(machine)
    told = machine.source in ("nccl", "nvidia-smi")  # others write one class for all of PCIe
    if told and len(ways) == 1 and best in MEANS and not odd:
        reason.append(MEANS[best])
        if best == "PHB" and len(machine.cards) > 2:
            reason.append("A virtual machine that hides PCIe switches shows the same.")
    if len(ways) > 1:
        reason.append("The nearest pairs, by {way}: {near}.")
    advice = ("Put ranks that exchange most on the nearest pairs; order rings so that they cross "
              "sockets as seldom as can be." if len(ways) > 1 else
              "Compare what you measure with one direction of the slot.")  # fmt: skip
    if odd and any(
        machine.nearest(card) not in (None, ("SYS", machine.nics)) for card in machine.cards
    ):
        figures |= {"pairs": names([f"{a.name}-{b.name}" for a, b in odd], 6),
                    "numa": odd[0][0].numa or 0}  # fmt: skip
        reason.append(
            "But {pairs} are SYS though both are of NUMA node {numa}, where bare PCIe "
            "gives NODE at most: as in a virtual machine or container that hides part of "
            "it. So whether there are NVLinks, hidden or not up, this does not tell."
        )
    if machine.source == "nvidia-smi":
        reason.append("nvidia-smi nvlink -s tells whether cards have NVLinks that are down or "
                      "hidden.")  # fmt: skip
    bare = machine.source == "nccl" and not any(card.model for card in machine.cards)
    if bare:
        reason = ["{cards:card|cards}, told by their PCI class; links are not in such a file, "
                  "since NCCL adds them when it starts."]  # fmt: skip
    return seen.tell(
        "connected", figures, reason,
        advice, seen.rows(machine.cards[:1]), confidence=0.85,
    )  # fmt: skip


def _same_side(machine: Machine) -> list[tuple[Card, Card]]:
    """Pairs of one NUMA node that are SYS all the same."""
    return [(a, b) for i, a in enumerate(machine.cards) for b in machine.cards[i + 1 :]
            if a.numa is not None and a.numa == b.numa and a.host == b.host
            and machine.way(a, b) == "SYS"]  # fmt: skip


def _rank(way: str) -> int:
    return PATHS.index(way)


def _first(item: tuple[str, list[str]]) -> int:
    return _rank(item[0])
