"""Rules about what a description of a machine leaves out, or shows otherwise than it is."""

from __future__ import annotations

from typing import Final

from ...formats.machine import Card, Nic
from ..finding import Evidence, Figures, Finding, names
from .seen import Seen

TINY: Final = 1.0
"""GB/s: a PCIe figure below this is no link's, and NCCL acts on it all the same."""


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
