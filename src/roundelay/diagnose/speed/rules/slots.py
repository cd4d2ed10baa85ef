"""Cards that reach one another over PCIe, and network cards that are faster than their slot."""

from __future__ import annotations

import re
from typing import Final

from ...finding import Figures, Finding
from ..case import Case, found
from ..quantities import slot_rate

WIDTH: Final = 16
"""Lanes of a card's slot where nothing is said."""
LITTLE: Final = 0.12
"""Of PCIe's line rate: less is usual of no way between cards, be it through the host's memory."""
P2P_GAIN: Final = 1.2
"""Times the rate without P2P, to be called more."""
FILLED: Final = 0.7
"""Of PCIe's line rate: what goes over PCIe alone reaches at best about 0.9."""
_AMD: Final = re.compile(r"\bMI\d")
COPIED: Final = 0.7
"""Of PCIe's line rate: copies between the host and a card reach about 0.8 and more."""
DIRECT: Final = 0.9
"""Of a line rate: more than anything over PCIe reaches."""


def over_pcie(case: Case) -> Finding | None:
    """Cards without NVLink, or more of them than a bridge joins."""
    kind, facts = case.kind, case.facts
    on, off = facts.p2p.get("on"), facts.p2p.get("off")
    rate = on or case.best_rate
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
    if kind.joined == "bridge" and _AMD.search(facts.card or ""):
        reason = ["{card} has xGMI (Infinity Fabric) over bridges between cards only. Without "
                  "them it goes over PCIe {generation} x{lanes}, {pcie_GBps} GB/s one way."
                  ]  # fmt: skip
    if not kind.direct and not on and not _with_p2p(case):
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
        reason.append("{measured_GBps} GB/s each way with P2P is {share} of it." if on else
                      "{measured_GBps} GB/s is {share} of it.")  # fmt: skip
    pair = (case.ranks or 2) == 2 or _AMD.search(facts.card or "")
    if kind.joined == "bridge" and pair and rate is not None and rate > FILLED * line:
        reason.append("That is what PCIe gives, so the bridge is not there or not used; no "
                      "setting of the library puts one in its place. nvidia-smi topo -m (NV#) or "
                      "rocm-smi --showtopo (XGMI) shows whether one is.")  # fmt: skip
    if on and off:
        figures |= {"off_GBps": off, "times": on / off}
        reason.append("Without P2P it is {off_GBps} GB/s each way: P2P works and brings {times} "
                      "times as much. What is left to the line is lost on the way between the "
                      "slots (the processor's host bridge, or a switch)." if on > P2P_GAIN * off
                      else "Without P2P it is {off_GBps} GB/s each way, so P2P brings nothing "
                      "here.")  # fmt: skip
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
                 case.cited("card", "p2p", "busbw", "measured", "texts") or case.best_line,
                 fault=low or lanes < WIDTH, confidence=0.8)  # fmt: skip


def copies(case: Case) -> Finding | None:
    """Copies between the host's memory and a card, by kernels (SM) or copy engines (CE)."""
    facts, kind = case.facts, case.kind
    by = next((by for way, by in facts.copies if way == "in" and ("out", by) in facts.copies), None)
    if by is None or kind is None or case.table is not None:
        return None
    line = slot_rate(min(facts.pcie or kind.pcie, 6), facts.lanes or WIDTH)
    into, out = facts.copies["in", by], facts.copies["out", by]
    if max(into, out) > line:
        return None
    low, high = min(into, out) / line, max(into, out) / line
    figures: Figures = {"generation": min(facts.pcie or kind.pcie, 6), "in_GBps": into,
                        "lanes": facts.lanes or WIDTH, "pcie_GBps": line, "out_GBps": out,
                        "in_share": into / line, "out_share": out / line}  # fmt: skip
    reason = ["Host to device is {in_GBps} GB/s ({in_share} of the line), device to host "
              "{out_GBps} GB/s ({out_share}). The line is PCIe {generation} x{lanes}, {pcie_GBps} "
              "GB/s one way."]  # fmt: skip
    slow = low < COPIED and high < COPIED
    if not slow:
        reason.append("A slot with fewer lanes or of an older generation would bound both "
                      "directions: one is near the line, so the slot is sound.")  # fmt: skip
    if not slow and into < COPIED * line and "sm" in (by, facts.texts.get("copies_by", "").lower()):
        reason.append("Copied by kernels (SM), host to device means that the card reads the "
                      "host's memory: reads under way times the way there and back bound it, and "
                      "less than writes get is usual.")  # fmt: skip
    return found(case, "over_pcie", figures, reason,
                 "Measure the line with the copy engines (memcpy_ce) and pinned memory, from "
                 "cores next to the card; nvidia-smi -q shows the slot's width and generation "
                 "under load.",
                 case.cited("copies", "card"), fault=slow, confidence=0.75)  # fmt: skip


def _with_p2p(case: Case) -> bool:
    """Whether a driver is told that offers P2P between such cards."""
    texts = case.facts.texts.items()
    said = any("driver" in name and re.search(r"with p2p|p2p (?:on|enabled|patch)|\bopen\b.*p2p",
                                              text, re.I) for name, text in texts)  # fmt: skip
    return said or case.facts.has("p2p")


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
