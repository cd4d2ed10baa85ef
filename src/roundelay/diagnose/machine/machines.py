"""Rules about machines: what is connected how, and what of it is not as it should be."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from ...formats.machine import Card, Machine, Nic
from ..finding import Figures, Finding, names
from ..speed.possible import CARD, NIC, PCIE, Odd, odd_findings
from .hidden import (
    folded,
    hidden_pcie,
    numa_hidden,
    numa_only,
    unknown_kinds,
    unplaced,
    virtual_pcie,
)
from .links import connected, few_links, line_rate, linkless, links_hidden, parted
from .nearest import all_far, far_cards, nic_layout
from .nics import nic_slots
from .seen import Seen

RDMA: Final = re.compile(r"(?:mlx|bnxt_re|irdma|ionic|efa|rdmap|hfi|hns|qedr|rocep|ibp)\w*", re.I)
"""Names of network cards that can do RDMA, as Linux gives them."""
UNTOLD: Final = 1.25
"""GB/s one way: what NCCL takes for a network card whose speed it is not told."""


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
