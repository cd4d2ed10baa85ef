"""Rates and kinds of PCI devices, as the kernel's files and NCCL's topology write them."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

_LANES: Final = MappingProxyType({"2.5": 15, "5": 30, "8": 60, "16": 120, "32": 240, "64": 480})
"""Units of 100 Mb/s that a lane carries, by GT/s (NCCL 2.30, src/graph/topo.cc)."""
_SPEED: Final = re.compile(r"(\d+(?:\.\d+)?) ?GT/s", re.I)
USUAL_WIDTH: Final = 16
"""Lanes where the file says 0."""


def pcie_rate(speed: str, width: str) -> float | None:
    """GB/s one way, as NCCL works it out; None where the file says no speed."""
    found = _SPEED.search(speed)
    if found is None:
        return None
    lane = _LANES.get(found[1].removesuffix(".0"), 60)
    lanes = int(width) if width.isdecimal() and len(width) < 4 else 0
    return (lanes or USUAL_WIDTH) * lane / 80


def kind_of(code: str) -> str:
    """What a PCI class stands for: card, nic, nvswitch, bridge or other; "" where none is said."""
    digits = code.lower().removeprefix("0x")
    if not digits:
        return ""
    for start, kind in (("0680", "nvswitch"), ("0604", "bridge"), ("03", "card"), ("12", "card"),
                        ("02", "nic")):  # fmt: skip
        if digits.startswith(start):
            return kind
    return "other"
