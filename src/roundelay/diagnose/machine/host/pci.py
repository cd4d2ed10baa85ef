"""What `lspci -vv` shows: links of cards that run narrow or slow, and access control (ACS)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ....formats.lspci import PciDevice, read_lspci
from ...finding import Evidence, Figures, Finding, names, tell

CARD: Final = re.compile(r"NVIDIA|3D controller|Processing accelerators", re.I)
NIC: Final = re.compile(r"Mellanox|Infiniband|ConnectX|BlueField|Broadcom.*(?:57[45]|576)", re.I)
SPARE: Final = re.compile(r"bridge|Audio|USB|Serial bus", re.I)
"""What hangs on a card besides, or between: a port is as wide as what is in it."""


def pci_findings(file: str, data: bytes) -> list[Finding]:
    """What links and access control say.

    Raises:
        RoundelayError: the text tells of neither.
    """
    devices = read_lspci(data)
    found = [_control(file, devices), _narrow(file, devices), _shown(file, devices)]
    return [finding for finding in found if finding is not None]


def _ends(devices: Sequence[PciDevice]) -> list[PciDevice]:
    return [d for d in devices if d.now and d.able and d.now[1] and not SPARE.search(d.title)
            and (CARD.search(d.title) or NIC.search(d.title) or not d.title)]  # fmt: skip


def _control(file: str, devices: Sequence[PciDevice]) -> Finding | None:
    on = [d for d in devices if d.control and d.control[1]]
    if not on:
        return None
    every = sum(d.control is not None for d in devices)
    figures: Figures = {"count": len(on), "all": every,
                        "where": names([d.bus for d in on if d.bus], 6) or "-"}  # fmt: skip
    return tell(
        "acs_on", file, figures,
        ["Access control (ACS) is on at {count} of {all:port that shows it|ports that show it} "
         "({where}): what a card sends to another card or to a network card goes up to the "
         "processor first, which makes P2P and GPUDirect RDMA slow, or hangs them."],
        "On the machine itself switch it off (BIOS, or setpci at the bridges: ECAP_ACS+6.w=0), and "
        "the IOMMU where it is not needed; in a virtual machine it has to stay, with ATS instead.",
        tuple(Evidence(file, d.control[0] if d.control else 0, f"{d.bus} ACSCtl") for d in on[:4]),
        fault=True, confidence=0.8, area="machine",
    )  # fmt: skip


def _narrow(file: str, devices: Sequence[PciDevice]) -> Finding | None:
    found = [(d, d.now, d.able) for d in _ends(devices) if d.now and d.able
             and (d.now[1] < d.able[1]
                  or (d.now[0] < d.able[0] and NIC.search(d.title)))]  # fmt: skip
    if not found:
        return None
    who = [f"{d.bus} x{now[1]} {now[0]:g} GT/s of x{able[1]} {able[0]:g}" for d, now, able in found]
    worst = min(now[0] * now[1] / (able[0] * able[1]) for _, now, able in found)
    figures: Figures = {"who": names(who, 8), "share": worst}
    return tell(
        "pcie_narrow", file, figures,
        ["PCIe links that run below what the device is able to: {who}; {share} of the rate are "
         "left at the worst."],
        "Reseat the card or its riser, see how many lanes and which generation the slot has, and "
        "what the BIOS sets for it.",
        tuple(Evidence(file, d.now_line, f"{d.bus} {d.title}"[:200]) for d, _, _ in found[:4]),
        fault=True, confidence=0.85, area="machine",
    )  # fmt: skip


def _shown(file: str, devices: Sequence[PciDevice]) -> Finding | None:
    ends = _ends(devices)
    told = [f"{d.bus or d.title} x{d.now[1]} {d.now[0]:g} GT/s" for d in ends if d.now]
    idle = [d for d in ends if d.now and d.able and d.now[0] < d.able[0]
            and not NIC.search(d.title)]  # fmt: skip
    off = [d for d in devices if d.control and not d.control[1]]
    figures: Figures = {"links": names(told, 8) or "-", "off": len(off),
                        "idle": names([d.bus for d in idle], 8)}  # fmt: skip
    reason = ["PCIe links of cards and network cards: {links}."]
    if off and not any(d.control and d.control[1] for d in devices):
        reason.append("Access control (ACS) is off wherever it is shown ({off}).")
    if idle:
        reason.append("{idle} runs at a lower speed than it is able to, as cards do while nothing "
                      "runs; look at it under load.")  # fmt: skip
    first = devices[0]
    return tell(
        "pcie", file, figures, reason, "For who is near whom: nvidia-smi topo -m.",
        (Evidence(file, first.line, first.title),), confidence=0.85, area="machine",
    )  # fmt: skip
