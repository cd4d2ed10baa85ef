"""What NCCL's search for rings and trees has found, as its log tells (NCCL_DEBUG_SUBSYS=GRAPH)."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from ...formats.nccl_graph import PATTERNS
from ...formats.nccl_log import NcclLog, Search
from ...i18n import counted
from ..finding import Figures, Finding, cited, tell
from ..speed.possible import CARD

RING: Final = 4
SLOW: Final = 1.0
"""GB/s of a channel below which no sound way was found."""
_PCIE: Final = "The cards of the ring are joined by PCIe; NCCL sees no NVLink all the way round."
_HOST: Final = (
    "The cards of the ring are joined by PCIe through the processor, which bounds it; NCCL sees no "
    "NVLink all the way round."
)
_INSIDE: Final = MappingProxyType(
    {
        "NVL": "All its ways inside a node are NVLink.",
        "NVB": "Some of its ways are NVLink through a third card.",
        **dict.fromkeys(("PIX", "PXB"), _PCIE),
        **dict.fromkeys(("PHB", "NODE"), _HOST),
        "SYS": "It crosses the link between sockets, which bounds it, as where NVLink does not "
               "join all cards.",
    }
)  # fmt: skip
"""What bounds a ring inside a node, by the longest way in it."""
_FAR: Final = ("PHB", "NODE", "SYS")


def searched(file: str, log: NcclLog) -> Finding | None:
    """What the search has found for each pattern, and what bounds it."""
    found = [s for s in log.searches.values() if max(s.inside, s.between) <= CARD]
    if not found:
        return None
    ring = max((s for s in found if s.pattern == RING), key=_total, default=found[0])
    between = log.nets or any((t.nodes or 1) > 1 for t in log.threads.values())
    figures: Figures = {
        "parts": "; ".join(_told(s, between) for s in found[:6]), "channels": ring.channels,
        "inside_GBps": _total(ring), "between_GBps": ring.channels * ring.between,
        "net": ring.way_between,
    }  # fmt: skip
    reason = ["NCCL's search has found: {parts}.",
              "So by NCCL's own reckoning a ring carries at most {inside_GBps} GB/s one way inside "
              "a node ({channels:channel|channels}, which may be doubled afterwards at half the "
              "rate each).", *filter(None, (_INSIDE.get(ring.way_inside),))]  # fmt: skip
    advice = ("If it should be more, compare nvidia-smi topo -m: a virtual machine, a topology "
              "file or a missing link hides the faster way.")  # fmt: skip
    if between:
        reason.append("Between nodes it is {between_GBps} GB/s one way.")
    far = between and ring.way_between in _FAR
    if far:
        reason.append("Card and network card are far apart ({net}): data pass the processor, and "
                      "by default GPUDirect RDMA is not used on such a way.")  # fmt: skip
        advice = ("Use a network card below the same PCIe switch (NCCL_IB_HCA, nvidia-smi topo "
                  "-m); allow the longer way only on purpose (NCCL_NET_GDR_LEVEL).")  # fmt: skip
    slow = [s for s in found if 0 < s.inside < SLOW]
    if slow:
        reason.append("A channel below 1 GB/s means that the search has found no sound way: look "
                      "for a card without links, or a virtual figure.")  # fmt: skip
    lines = cited(file, *(s.line for s in found[:4]))
    return tell("searched", file, figures, reason, advice, lines, fault=bool(slow),
                confidence=0.85, area="machine")  # fmt: skip


def _total(search: Search) -> float:
    return search.channels * search.inside


def _told(search: Search, between: bool) -> str:
    channels = counted(search.channels, "channel", "channels")
    name = PATTERNS.get(search.pattern, f"pattern {search.pattern}")
    told = f"{name}: {channels} of {search.inside:g} GB/s ({search.way_inside or '?'})"
    if between:
        told += f", {search.between:g} GB/s between nodes ({search.way_between or '?'})"
    return told + (", crossing network cards" if search.crosses and between else "")
