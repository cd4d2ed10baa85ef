"""Warnings of NCCL and RCCL that advise a setting of the host: every sound run prints them, too."""

from __future__ import annotations

import re
from typing import Final

from ...formats.nccl_log import NcclLog
from ..finding import Figures, Finding, cited, names, tell

HINTS: Final = re.compile(
    r"NUMA auto balancing enabled|Missing \"?(?:amd_)?iommu=|(?:GPU|HSA)_\w+ .*recommended|"
    r"HSA_FORCE_FINE_GRAIN_PCIE", re.I,
)  # fmt: skip


def host_settings(file: str, log: NcclLog) -> Finding | None:
    """What the library advises to set."""
    told = [warned for _, warned in log.warned.values() if HINTS.search(warned.text)]
    if not told:
        return None
    figures: Figures = {"count": len(told), "said": "; ".join(w.text[:160] for w in told[:4])}
    stuck = [str(t.rank) for t in log.threads.values() if t.started and not t.complete]
    through = any(t.complete for t in log.threads.values())
    open_ = []
    if stuck and not through and "iommu" in str(figures["said"]):
        figures["waiting"] = names(stuck, 8)
        open_ = ["This log ends before the start-up of rank {waiting} is through: if it hangs "
                 "there, this is the first cause to look at."]  # fmt: skip
    return tell(
        "host_setting", file, figures,
        [*open_,
         "The library advises settings of the host, as it does in every run without them: {said}",
         "By itself that stops no run; times vary more. Without iommu=pt hangs are known in "
         "virtual machines and where cards reach one another over PCIe (NCCL_P2P_DISABLE=1 shows "
         "whether that is it)."],
        "sudo sysctl kernel.numa_balancing=0; iommu=pt among the kernel's parameters (with "
        "amd_iommu=on on AMD processors); HSA_FORCE_FINE_GRAIN_PCIE=1 for cards without xGMI "
        "between them.",
        cited(file, *(warned.line for warned in told[:4])), confidence=0.85, area="machine",
    )  # fmt: skip
