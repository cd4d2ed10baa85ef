"""What is said of network cards beside which card they are near to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...formats.machine import Card, Machine, Nic
from ..finding import Figures, Finding, names
from .seen import Seen

FLAT: Final = 4
"""Cards that are equally near to as many network cards, from which switches seem hidden."""
RAW: Final = 1.3125
"""A PCIe link's rate by what NCCL reckons for it: 15.75 GB/s for 12 (generation 3, 16 lanes)."""


def bound(nic: Nic) -> bool:
    """Whether its slot carries less than its ports."""
    return bool(nic.told and nic.rate and nic.pcie and nic.rate > 1.02 * RAW * nic.pcie)


def nic_slots(seen: Seen) -> Finding | None:
    """Network cards whose slot carries less than their ports."""
    machine = seen.machine
    slow = [nic for nic in machine.nics if bound(nic)]
    if not slow or machine.source != "nccl":
        return None
    one = slow[0]
    line = RAW * (one.pcie or 0.0)
    figures: Figures = {
        "nics": names([nic.device or nic.name for nic in slow], 8), "nic_GBps": one.rate or 0.0,
        "pcie_GBps": line, "ports": len(one.ports), "count": len(slow),
    }  # fmt: skip
    reason = ["{nics}: {ports:port|ports}, {nic_GBps} GB/s one way in all, on a PCIe link that "
              "by this file carries {pcie_GBps} GB/s one way: the slot is the bound, not the "
              "port."]  # fmt: skip
    return seen.tell(
        "slot_bounds", figures, reason,
        "See the link under load (lspci -vv: LnkSta); where it is so, reckon with the slot, in "
        "practice about 0.85 of it, or use a wider one.",
        seen.rows(slow[:4]), confidence=0.85,
    )  # fmt: skip


def nic_reach(
    machine: Machine, way: str, pairs: Sequence[tuple[Card, Nic]], figures: Figures
) -> list[str]:
    """What the class of the nearest way means."""
    told = []
    joined = [f"{a.name}/{b.name}" for i, a in enumerate(machine.nics)
              for b in machine.nics[i + 1 :] if machine.way(a, b) == "PIX"]  # fmt: skip
    if joined and len(machine.nics) <= FLAT and machine.source == "nvidia-smi":
        figures["joined"] = names(joined, 4)
        told.append("{joined} are PIX to each other: two ports of one card, or cards on one "
                    "switch.")  # fmt: skip
    if way not in ("PHB", "NODE"):
        return told
    by: dict[str, set[str]] = {}
    for card, nic in pairs:
        by.setdefault(card.name, set()).add(nic.name)
    sets = [nics for nics in by.values() if len(nics) >= FLAT]
    if any(sets.count(nics) >= FLAT for nics in sets):
        told.append(
            "Cards of one socket are all equally far from its network cards: as in a "
            "virtual machine that hides PCIe switches. Which belong together cannot be "
            "told from this; a topology file of the machine type can (NCCL_TOPO_FILE)."
        )
    direct = all(nic.direct is not False for nic in machine.nics)
    if not direct or any(card.c2c for card in machine.cards):
        return told  # said elsewhere, or over the links to the processor
    told.append("The way passes the processor, and NCCL as a rule uses GPUDirect RDMA only up to "
                "PXB (NCCL_NET_GDR_LEVEL): then what goes to other nodes passes through the host's "
                "memory.")  # fmt: skip
    return told


def nic_spare(
    machine: Machine, spare: Sequence[Nic], used: set[str], figures: Figures
) -> list[str]:
    """Network cards that are nearest to no card."""
    if not spare:
        return []
    figures["spare"] = names([nic.device or nic.name for nic in spare])
    lacking = [card for card in machine.cards if card.name in set(machine.missing)]
    cut = machine.cut and machine.source == "nccl"
    if cut or any(_open(machine, nic, lacking) for nic in spare):
        return ["Of the cards that are described none is nearest to {spare}: those may belong to "
                "the others."]  # fmt: skip
    if len(spare) >= len(used):
        return ["No card is nearest to {spare}: they belong to cards that this file does not show "
                "(a part of a machine), or are of the network of management or storage; leave them "
                "out for these cards."]  # fmt: skip
    return ["No card is nearest to {spare}: as a rule the network of management or storage, to be "
            "left out."]  # fmt: skip


def _open(machine: Machine, nic: Nic, lacking: Sequence[Card]) -> bool:
    """Whether a card without a row may be near to it: one that no other card parts from it."""
    known = [card for card in machine.cards if card not in lacking]
    return any(
        not any(machine.way(card, nic) not in (None, "SYS") and machine.way(card, other) == "SYS"
                for card in known)
        and machine.nearest(other) is None
        for other in lacking
    )  # fmt: skip
