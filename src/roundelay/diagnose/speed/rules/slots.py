"""Cards that reach one another over PCIe, and network cards that are faster than their slot."""

from __future__ import annotations

from typing import Final

from ...finding import Figures, Finding
from ..case import Case, found
from ..quantities import slot_rate

WIDTH: Final = 16
"""Lanes of a card's slot where nothing is said."""
LITTLE: Final = 0.12
"""Of PCIe's line rate: less is usual of no way between cards, be it through the host's memory."""
DIRECT: Final = 0.9
"""Of a line rate: more than anything over PCIe reaches."""


def over_pcie(case: Case) -> Finding | None:
    """Cards without NVLink, or more of them than a bridge joins."""
    kind, facts = case.kind, case.facts
    rate = case.best_rate
    if kind is None or (case.nodes or 1) > 1 or (case.ranks or 2) < 2 or facts.link_line:
        return None
    if kind.joined not in ("none", "bridge") or (kind.joined == "bridge" and case.bridged):
        return None
    generation = min(facts.pcie or kind.pcie, 6)
    lanes = min(facts.lanes or WIDTH, WIDTH)
    line = slot_rate(generation, lanes)
    if rate is not None and rate > DIRECT * line:
        return None
    figures: Figures = {
        "card": facts.card or "", "pcie_GBps": line, "generation": generation, "lanes": lanes,
    }  # fmt: skip
    reason = ["{card} has no NVLink: what such cards exchange goes over PCIe {generation} "
              "x{lanes}, {pcie_GBps} GB/s one way."]  # fmt: skip
    if kind.joined == "bridge":
        reason = ["{card} has NVLink over bridges between two cards only. Without them, and beyond "
                  "a pair, it goes over PCIe {generation} x{lanes}, {pcie_GBps} GB/s one way."
                  ]  # fmt: skip
    if not kind.direct:
        reason.append("The driver offers no P2P between GeForce cards of this kind: every piece "
                      "passes through the host's memory, over PCIe twice, and a sixth to a half of "
                      "the line is usual.")  # fmt: skip
    if lanes < WIDTH:
        reason.append("{lanes} of 16 lanes are what bounds it: a ring goes at the rate of its "
                      "narrowest slot.")  # fmt: skip
    low = False
    if rate is not None:
        figures |= {"measured_GBps": rate, "share": rate / line}
        low = rate < LITTLE * line and _large(case)
        reason.append("{measured_GBps} GB/s is {share} of it.")
    if low:
        reason.append("That is little even so: PCIe access control (ACS) or the IOMMU that sends "
                      "P2P the long way round, or a slot that runs at fewer lanes, does this."
                      )  # fmt: skip
    advice = ("That shows no fault. See nvidia-smi topo -m: cards below one PCIe switch "
              "exchange faster than across sockets, and nvidia-smi -q shows each slot's width "
              "under load.")  # fmt: skip
    if lanes < WIDTH:
        advice = ("See nvidia-smi -q for each slot's width under load, then seat the card anew, "
                  "use another slot, or look in the BIOS for how lanes are split.")  # fmt: skip
    if low:
        advice = ("See ACS (lspci -vvv | grep ACSCtl, all flags should be -) and the IOMMU (off, "
                  "or iommu=pt), the width of each slot under load (nvidia-smi -q), and compare "
                  "with NCCL_P2P_DISABLE=1: if that is faster, P2P is broken.")  # fmt: skip
    return found(case, "over_pcie", figures, reason, advice,
                 case.cited("card", "busbw", "measured", "texts") or case.best_line,
                 fault=low or lanes < WIDTH, confidence=0.8)  # fmt: skip


def _large(case: Case) -> bool:
    """Whether sizes are such that a rate tells."""
    sizes = [*case.facts.sizes.values(), case.facts.max_bytes or 0]
    return max(sizes) >= 2**25 or not any(sizes)


def slot_bounds(case: Case) -> Finding | None:
    """A network card whose ports carry more than its slot."""
    facts, nic = case.facts, case.nic
    if nic is None or facts.pcie is None or not (facts.nic or facts.nic_per_card):
        return None
    line = slot_rate(min(facts.pcie, 6), facts.lanes or WIDTH)
    if nic <= 1.02 * line:
        return None
    figures: Figures = {"nic_GBps": nic, "pcie_GBps": line, "generation": facts.pcie,
                        "lanes": facts.lanes or WIDTH}  # fmt: skip
    reason = ["The ports of the network card carry {nic_GBps} GB/s one way, its slot (PCIe "
              "{generation} x{lanes}) only {pcie_GBps} GB/s: the slot is the bound, and about 0.8 "
              "of it, in data, is usual."]  # fmt: skip
    if rate := case.best_rate:
        figures |= {"measured_GBps": rate, "share": rate / line}
        reason.append("{measured_GBps} GB/s is {share} of it.")
    return found(case, "slot_bounds", figures, reason,
                 "Put it into a slot of a newer generation or use a second one; a second port adds "
                 "nothing here.",
                 case.cited("nic", "texts", "measured", "busbw"), confidence=0.85)  # fmt: skip
