"""Rules about machines: what is connected how, and what of it is not as it should be."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from ...formats.machine import PATHS, Card, Machine, Nic
from ..finding import Evidence, Figures, Finding, names
from ..speed.possible import CARD, NIC, PCIE, Odd, odd_findings
from .links import connected, few_links, line_rate, linkless, links_hidden, parted
from .nics import bound, nic_reach, nic_slots, nic_spare
from .seen import Seen

RDMA: Final = re.compile(r"(?:mlx|bnxt_re|irdma|ionic|efa|rdmap|hfi|hns|qedr|rocep|ibp)\w*", re.I)
"""Names of network cards that can do RDMA, as Linux gives them."""
UNTOLD: Final = 1.25
"""GB/s one way: what NCCL takes for a network card whose speed it is not told."""
TINY: Final = 1.0
"""GB/s: a PCIe figure below this is no link's, and NCCL acts on it all the same."""


class Layout(NamedTuple):
    """Cards by the class of their way to the network."""

    near: list[tuple[Card, tuple[Nic, ...]]]
    far: list[Card]
    way: str


def incomplete(seen: Seen) -> Finding | None:
    """The file ends too early, or lacks rows."""
    machine = seen.machine
    if not machine.cut and not machine.missing:
        return None
    notes = [n for n in machine.notes if n.line] or list(machine.notes)
    figures: Figures = {
        "cards": len(machine.cards), "nics": len(machine.nics), "missing": names(machine.missing),
        "line": max((n.line for n in notes), default=0),
    }  # fmt: skip
    reason = ["The file is not whole (line {line}): what is said here holds for what was read "
              "(cards: {cards}, network cards: {nics}), and for no others."]  # fmt: skip
    if machine.missing:
        reason.append("Cut off: {missing}." if machine.source == "nccl"
                      else "Rows that are missing or cut off: {missing}.")  # fmt: skip
    return seen.tell(
        "incomplete", figures, reason, "Save it again, whole: into a file, not from the terminal.",
        tuple(seen.at(line, "") for line in sorted({n.line for n in notes})[-4:]), fault=True,
        confidence=0.95,
    )  # fmt: skip


def unknown_kinds(seen: Seen) -> Finding | None:
    """Devices without a class."""
    unknown = seen.machine.unknown
    if not unknown:
        return None
    figures: Figures = {"devices": len(unknown), "buses": names([bus for bus, _ in unknown])}
    return seen.tell(
        "unknown_kinds", figures,
        ["{devices:PCI device has|PCI devices have} an address only: the file does not tell which "
         "are cards and "
         "which network cards, nor how fast they are.",
         "NCCL finds that out on the machine; from the file nothing can be concluded."],
        "Dump the topology on the machine itself: NCCL_TOPO_DUMP_FILE=topo.xml with any program "
        "that uses NCCL.",
        tuple(Evidence(seen.file, line, bus) for bus, line in unknown[:4]), confidence=0.95,
    )  # fmt: skip


def unplaced(seen: Seen) -> Finding | None:
    """Cards that stand where NCCL looks for none."""
    lines = seen.machine.unplaced
    if not lines:
        return None
    return seen.tell(
        "topology_file", {"count": len(lines)},
        ["{count:<gpu> stands|<gpu> stand} outside of any <pci busid=...> under a <cpu>: NCCL "
         "places cards by PCI address, and takes nothing from elements elsewhere. So this is no "
         "topology that it can use; files that it writes do not look so."],
        "Have NCCL write one on the machine itself (NCCL_TOPO_DUMP_FILE=topo.xml), and change "
        "that.",
        tuple(seen.at(line, "<gpu>") for line in lines[:4]), fault=True, confidence=0.9,
    )  # fmt: skip


def numa_only(seen: Seen) -> Finding | None:
    """NUMA nodes alone, as rocm-smi --showtoponuma tells them."""
    machine = seen.machine
    if machine.source != "rocm-smi" or machine.between or not machine.cards:
        return None
    by: dict[int, list[str]] = {}
    for card in machine.cards:
        if card.numa is not None:
            by.setdefault(card.numa, []).append(card.name)
    if not by:
        return None
    told = "; ".join(f"{numa}: {names(cards)}" for numa, cards in sorted(by.items()))
    return seen.tell(
        "numa_nodes", {"cards": len(machine.cards), "count": len(by), "told": told},
        ["{cards:card|cards} on {count:NUMA node|NUMA nodes} ({told}). How they are linked is not "
         "in this text."],
        "Bind each process to its card's NUMA node; rocm-smi --showtopo tells the links.",
        seen.rows(machine.cards[:2]), confidence=0.9,
    )  # fmt: skip


def virtual_pcie(seen: Seen) -> Finding | None:
    """Bridges that say less than what hangs under them."""
    slow = seen.machine.slow
    if not slow:
        return None
    rate, below = min(s.rate for s in slow), max(s.below for s in slow)
    tiny = rate < TINY
    figures: Figures = {"bridges": len(slow), "figure_GBps": rate, "endpoint_GBps": below}
    reason = ["{bridges:PCI bridge says|PCI bridges say} {figure_GBps} GB/s, over devices that say "
              "{endpoint_GBps}: that is a virtual port's figure and must not be taken literally; "
              "{endpoint_GBps} GB/s one way is the rate to reckon with."]  # fmt: skip
    advice = ("Reckon with the rate of the devices. If NCCL's log shows the low figure too, give "
              "it a topology file with the right one (NCCL_TOPO_FILE).")  # fmt: skip
    if tiny:
        reason.append("NCCL does take it literally: it avoids these ways, or believes that hardly "
                      "anything comes through.")  # fmt: skip
        advice = ("In a virtual machine have the host pass on what the switch can do (ACS, ATS, "
                  "link speed), or give NCCL a topology file with the devices' link_speed and "
                  "link_width at the bridge (NCCL_TOPO_FILE).")  # fmt: skip
    cited = tuple(Evidence(seen.file, s.line, s.text) for s in slow[:3])
    return seen.tell("virtual_pcie", figures, reason, advice, cited, fault=tiny, confidence=0.9)


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


def hidden_pcie(seen: Seen) -> Finding | None:
    """All ways cross sockets, also inside a NUMA node: a virtual machine."""
    machine = seen.machine
    numas = list({card.numa for card in machine.cards})
    ends: tuple[Card | Nic, ...] = (*machine.cards, *machine.nics)
    ways = {machine.way(a, b) for a in machine.cards for b in ends if a is not b}
    if len(machine.cards) < 2 or ways != {"SYS"} or not machine.links_shown or numas == [None]:
        return None
    if len(numas) > 1:
        return _hidden_in_part(seen)
    return seen.tell(
        "hidden_pcie", {"cards": len(machine.cards)},
        ["Every way is SYS though all {cards:card|cards} are of one NUMA node: a virtual machine "
         "that hides PCIe, a bare machine whose BIOS tells NUMA nodes otherwise than the cards "
         "lie, or a table without PCIe.",
         "What is near what cannot be told from this; NCCL cannot tell it either, and over SYS it "
         "as a rule uses neither P2P nor GPUDirect RDMA: data pass through the host's memory."],
        "On a bare machine try the BIOS's NUMA nodes per socket (NPS, such as 4); in a virtual one "
        "ask for a machine type that passes the PCIe layout on, or give NCCL a topology file of "
        "the host (NCCL_TOPO_FILE).",
        seen.rows(machine.cards[:1]), fault=True,
    )  # fmt: skip


def _hidden_in_part(seen: Seen) -> Finding | None:
    """Cards of one NUMA node of several, and SYS between them, which cannot be."""
    by: dict[int, list[Card]] = {}
    for card in seen.machine.cards:
        if card.numa is not None:
            by.setdefault(card.numa, []).append(card)
    together = next((cards for cards in by.values() if len(cards) > 1), None)
    if together is None:
        return None
    figures: Figures = {"who": names([card.name for card in together]), "numas": len(by),
                        "numa": together[0].numa or 0}  # fmt: skip
    return seen.tell(
        "hidden_pcie", figures,
        ["Every way is SYS, also between {who}, which are all of NUMA node {numa} (of {numas}): a "
         "virtual machine that shows NUMA nodes and hides PCIe.",
         "What is near what cannot be told from this; NCCL cannot tell it either, and uses no P2P "
         "between such cards."],
        "Ask for a machine type that passes the PCIe layout on, or give NCCL a topology file of "
        "the host (NCCL_TOPO_FILE).",
        seen.rows(together[:2]), fault=True,
    )  # fmt: skip


def folded(seen: Seen) -> Finding | None:
    """Network cards in the place of a host bridge: the tree of PCIe is hidden."""
    lines = seen.machine.folded
    if not lines:
        return None
    figures: Figures = {"bridges": len(lines)}
    return seen.tell(
        "hidden_pcie", figures,
        ["Network cards stand in the place of {bridges:host bridge|host bridges} (class 0x0600), "
         "which no network card is: a sandbox or virtual machine hides the tree of PCIe, and all "
         "of a bridge are taken for ports of one card.",
         "Which card of the machine is near to which network card cannot be told from this, and "
         "NCCL can't tell it either."],
        "Give NCCL a topology file of the host or of the machine type (NCCL_TOPO_FILE), or dump "
        "it outside of the sandbox.",
        tuple(seen.at(line, "<pci>") for line in lines[:4]), fault=True, confidence=0.85,
    )  # fmt: skip


def numa_hidden(seen: Seen) -> Finding | None:
    """A virtual machine that tells of no NUMA node."""
    machine = seen.machine
    if not machine.numa_hidden or len(machine.cards) < 2:
        return None
    linked = {way for _, _, way in machine.pairs()} == {"NVL"}
    if machine.source == "nccl" and linked and len(machine.nics) < 2:
        return None  # there is nothing to choose by it
    if machine.source == "nvidia-smi":
        return seen.tell(
            "numa_hidden", {"cards": len(machine.cards)},
            ["The columns of affinity are empty: the container or virtual machine does not pass on "
             "which processor a card is near to, so processes cannot be bound by this table."],
            "Look on the host itself (nvidia-smi topo -m, numactl -H).",
            seen.rows(machine.cards[:1]), confidence=0.8,
        )  # fmt: skip
    return seen.tell(
        "numa_hidden", {"cards": len(machine.cards)},
        ["The file says of no processor which NUMA node it is (numaid -1), as virtual machines and "
         "kernels without NUMA do: all {cards:card|cards} seem to hang on one processor. If there "
         "are several, which of them are across a socket cannot be told, and NCCL can't tell it "
         "either."],
        "In a virtual machine ask for a type that passes NUMA nodes on, or give NCCL a topology "
        "file of the host (NCCL_TOPO_FILE).",
        seen.rows(machine.cards[:1]), confidence=0.85,
    )  # fmt: skip


def doubtful_rate(seen: Seen) -> Finding | None:
    """Network cards of the rate that NCCL takes where it is told none."""
    slow = [
        nic
        for nic in seen.machine.nics
        if nic.rate is not None and (nic.rate == UNTOLD or not nic.told)
    ]
    if seen.machine.source != "nccl" or not slow or len(slow) < len(seen.machine.nics):
        return None
    figures: Figures = {"nics": names([nic.device or nic.name for nic in slow], 8),
                        "rate_GBps": slow[0].rate or 0.0}  # fmt: skip
    if not any(nic.told for nic in slow):
        return seen.tell(
            "nic_rate_doubtful", figures,
            ["The file tells no speed of {nics}, and NCCL then takes 10 Gb/s a port: the real rate "
             "cannot be told from this file."],
            "See the real speed (ibstat, ethtool), and give it in the file (speed, in Mb/s).",
            seen.rows(slow[:4]), confidence=0.8,
        )  # fmt: skip
    return seen.tell(
        "nic_rate_doubtful", figures,
        ["The file says {rate_GBps} GB/s one way for {nics} (10 Gb/s), and NCCL reckons "
         "with that. It is also what it takes where the driver tells no speed, as those of virtual "
         "network cards do: then the real rate is another."],
        "See the real speed (ethtool, or the machine type's data sheet) and, if it is another, "
        "give NCCL a topology file with it (speed is in Mb/s).",
        seen.rows(slow[:4]), confidence=0.8,
    )  # fmt: skip


def links_unequal(seen: Seen) -> Finding | None:
    """Two rows that say different things of one pair."""
    odd = seen.machine.unequal
    if not odd:
        return None
    figures: Figures = {
        "told": names([f"{a} {x} / {b} {y}" for a, b, x, y, _ in odd], 6), "count": len(odd),
        "pairs": names([f"{a}-{b}" for a, b, *_ in odd], 6),
    }  # fmt: skip
    return seen.tell(
        "links_unequal", figures,
        ["The two rows of a pair do not agree ({told}; pairs: {pairs}): a link has two ends, so at "
         "one end some are down, or the table was changed by hand."],
        "Count the links of both cards: nvidia-smi nvlink -s; look for Xid 74 in dmesg.",
        tuple(seen.at(line, f"{a}-{b}") for a, b, _, _, line in odd[:4]), fault=True,
        confidence=0.85,
    )  # fmt: skip


def no_direct_memory(seen: Seen) -> Finding | None:
    """Network cards of RDMA for which NCCL has found no GPUDirect RDMA."""
    nics = [nic for nic in seen.machine.nics if nic.direct is False and RDMA.match(nic.device)]
    if not nics:
        return None
    figures: Figures = {"nics": names([nic.device for nic in nics], 8), "count": len(nics),
                        "all": len(seen.machine.nics)}  # fmt: skip
    return seen.tell(
        "no_gpudirect", figures,
        ["When this was dumped, {count} of {all:network card|network cards} ({nics}) had no "
         "GPUDirect RDMA (gdr=0): what they send and receive passes through the host's memory."],
        "Load nvidia_peermem (modprobe nvidia_peermem; older: nv_peer_mem), or use a kernel and "
        "driver with DMA-BUF, and dump again; a dump that another program made without cards says "
        "0 too.",
        seen.rows(nics[:4]), fault=True, confidence=0.75,
    )  # fmt: skip


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


Rule = Callable[[Seen], Finding | None]
RULES: Final[tuple[Rule, ...]] = (
    unplaced,
    linkless,
    few_links,
    links_unequal,
    incomplete,
    hidden_pcie,
    folded,
    far_cards,
    all_far,
    no_direct_memory,
    virtual_pcie,
    unknown_kinds,
    numa_hidden,
    doubtful_rate,
    nic_slots,
    numa_only,
    links_hidden,
    parted,
    nic_layout,
    connected,
)
"""What weighs more comes first."""


def machine_findings(file: str, machine: Machine, lines: Sequence[str] = ()) -> list[Finding]:
    """All that the rules find in a machine, by the figures of it that can be."""
    machine, odd = _sound(Seen(file, machine, tuple(lines)))
    seen = Seen(file, machine, tuple(lines))
    found = [finding for rule in RULES if (finding := rule(seen)) is not None]
    return [*odd_findings(file, odd, "machine"), *found]


def _sound(seen: Seen) -> tuple[Machine, list[Odd]]:
    """The machine without rates and links that cannot be, and these."""
    odd: list[Odd] = []

    def high(what: str, rate: float | None, most: float, end: Card | Nic) -> bool:
        if rate is None or rate <= most:
            return False
        odd.append(Odd("high", f"{end.name} {what}".strip(), rate, most, seen.rows([end])[0]))
        return True

    cards = [
        replace(card, links={} if high(card.kind, card.link_count * line_rate(card), CARD, card)
                else card.links, pcie=None if high("PCIe", card.pcie, PCIE, card) else card.pcie)
        for card in seen.machine.cards
    ]  # fmt: skip
    nics = [replace(nic, ports=() if high("", nic.rate, NIC, nic) else nic.ports)
            for nic in seen.machine.nics]  # fmt: skip
    if not odd:
        return seen.machine, odd
    return replace(seen.machine, cards=tuple(cards), nics=tuple(nics)), odd
