"""Rules about the rates that NCCL's log shows: of links, and of ways between cards."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from ...formats.nccl_log import NcclLog
from ..finding import Figures, Finding, cited, names, tell
from ..speed.possible import CARD, NIC, PCIE, Odd, odd_findings

TINY: Final = 1.0
"""GB/s: a PCIe figure below this is no link's."""
MOST: Final = MappingProxyType({"PCI": PCIE, "NET": NIC})
"""GB/s one way of a medium in the tree of the system; all others have at most a card's links."""


def impossible(file: str, log: NcclLog) -> list[Finding]:
    """Links and ways that carry more than any."""
    rates = [(e.medium, e.rate or 0.0, e.line) for tree in log.systems.values() for e in tree]
    rates += [(f"{r.source} {r.target}", r.rate, r.line) for r in log.paths if r.way != "LOC"]
    odd = [Odd("high", what, rate, most, at) for what, rate, line in rates
           if rate > (most := MOST.get(what, CARD)) for at in cited(file, line)]  # fmt: skip
    return odd_findings(file, odd, "machine")


def tiny_pcie(file: str, log: NcclLog) -> Finding | None:
    """NCCL believes that a PCIe link carries next to nothing."""
    at = {host: [e for e in tree if e.medium == "PCI" and e.rate is not None and e.rate < TINY]
          for host, tree in log.systems.items()}  # fmt: skip
    edges = [edge for found in at.values() for edge in found]
    if not edges:
        return None
    figures: Figures = {"links": len(edges), "rate_GBps": min(e.rate or 0.0 for e in edges)}
    return tell(
        "virtual_pcie", names(sorted(host for host in at if at[host])), figures,
        ["NCCL believes that {links:PCIe link carries|PCIe links carry} {rate_GBps} GB/s each: a "
         "virtual switch says "
         "2.5 GT/s x1, which is not what it does.",
         "So it goes round these links, and GPUDirect RDMA between a card and its network card may "
         "be lost or bent through the host."],
        "On the host of the virtual machine, pass on ACS and ATS and the link's real speed; or "
        "give NCCL a topology file with the devices' link_speed and link_width at that switch "
        "(NCCL_TOPO_FILE).",
        cited(file, *(e.line for e in edges[:3])), fault=True, confidence=0.9, area="machine",
    )  # fmt: skip


def far_apart(file: str, log: NcclLog) -> Finding | None:
    """Cards that reach one another across sockets only, by NCCL's table of paths."""
    ways = [r for r in log.paths
            if r.target.startswith("GPU/") and r.way != "LOC" and r.rate <= CARD]  # fmt: skip
    slow = [r for r in ways if r.way == "SYS"]
    if not slow or any(r.way == "NVL" for r in ways):
        return None
    near = [r for r in ways if r.way != "SYS"]
    figures: Figures = {
        "across_GBps": min(r.rate for r in slow), "across": len(slow), "near": len(near),
        "near_GBps": max((r.rate for r in near), default=0.0),
        "way": near[0].way if near else "",
    }  # fmt: skip
    reason = ["No NVLink: by NCCL's table "
              "{across:way between cards crosses|ways between cards cross} the sockets (SYS), at "
              "{across_GBps} GB/s one way."]  # fmt: skip
    if near:
        reason.append("Inside a socket it is {near_GBps} GB/s ({way}).")
    return tell(
        "far_apart", names(sorted({r.source for r in slow})), figures, reason,
        "GeForce cards have no P2P: data go through the host's memory (SHM). Keep groups that "
        "exchange much inside a socket; bind ranks and memory to it.",
        cited(file, slow[0].line), confidence=0.8, area="machine",
    )  # fmt: skip
