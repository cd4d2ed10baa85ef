"""What the table of `nvidia-smi topo -p2p` says: which cards reach each other's memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from ..finding import Evidence, Figures, Finding, names, tell

WHY: Final = MappingProxyType(
    {
        "GNS": "GNS: the cards or their driver do not offer it, as those for desks do not.",
        "CNS": "CNS: the chipset does not offer it.",
        "TNS": "TNS: the way between the cards does not allow it.",
        "DR": "DR: a setting of the driver (registry key) has turned it off.",
    }
)
"""By the table's own legend."""

_ASKED: Final = re.compile(r"topo +-p2p +([rwnap])\b")


def peer_findings(
    file: str, peers: Mapping[tuple[str, str], tuple[str, int]], lines: Sequence[str]
) -> list[Finding]:
    """Cards that cannot reach each other's memory over PCIe."""
    if all(cell == "NS" for cell, _ in peers.values()):
        return [_unsupported(file, peers, lines)]
    off = {pair: cell for pair, (cell, _) in peers.items() if cell in ("GNS", "CNS", "TNS", "DR")}
    if not off:
        return _reached(file, peers, lines)
    some = next(iter(off))
    line = peers[some][1]
    figures: Figures = {
        "pairs": names(sorted({"-".join(sorted(pair)) for pair in off}), 6),
        "states": names(sorted(set(off.values()))),
    }
    reason = ["The table of peer access says {states} for {pairs}: these cards cannot reach each "
              "other's memory over PCIe, so NCCL takes its data through the host's memory "
              "(SHM)."]  # fmt: skip
    reason.append(WHY[off[some]])
    return [tell(
        "no_peer_access", file, figures, reason,
        "Expect the rate of two copies through memory, not PCIe's; NCCL sees it by itself "
        "(NCCL_P2P_DISABLE=1 only where it hangs). Keep ranks that exchange most on cards that "
        "have peer access, where there are any.",
        (Evidence(file, line, lines[line - 1].strip()[:400]),), confidence=0.85,
    )]  # fmt: skip


def _unsupported(
    file: str, peers: Mapping[tuple[str, str], tuple[str, int]], lines: Sequence[str]
) -> Finding:
    """NS for all pairs, which of NVLink (-p2p n) says another thing than of memory."""
    line = min(number for _, number in peers.values())
    asked = [word for text in lines[:line] for word in _ASKED.findall(text)]
    figures: Figures = {"cards": len({card for pair in peers for card in pair})}
    cited = (Evidence(file, line, lines[line - 1].strip()[:400]),)
    if asked and asked[-1] in "na":
        return tell(
            "peer_table", file, figures,
            ["The table says NS for all pairs of {cards:card|cards}, and it was asked for NVLink "
             "or atomics alone: of access to each other's memory over PCIe it says nothing."],
            "Ask for that: nvidia-smi topo -p2p r.", cited, confidence=0.85, area="machine",
        )  # fmt: skip
    reason = ["The table of peer access says NS (not supported) for all pairs of "
              "{cards:card|cards}: they cannot reach each other's memory, so NCCL takes their data "
              "through the host's memory (SHM)."]  # fmt: skip
    if not asked:
        reason.append("That is so where it was asked for reading or writing (-p2p r, w); of -p2p n "
                      "it says only that there is no NVLink.")  # fmt: skip
    return tell(
        "no_peer_access", file, figures, reason,
        "Expect the rate of copies through memory; the driver offers no P2P for many cards for "
        "desks (GeForce), and in virtual machines it may be hidden.",
        cited, confidence=0.8, fault=False, area="machine",
    )  # fmt: skip


def _reached(
    file: str, peers: Mapping[tuple[str, str], tuple[str, int]], lines: Sequence[str]
) -> list[Finding]:
    """All pairs of the table reach each other."""
    fine = [pair for pair, (cell, _) in peers.items() if cell == "OK"]
    if not fine or len(fine) < len(peers):
        return []
    line = peers[fine[0]][1]
    return [tell(
        "peer_access", file, {"cards": len({card for pair in fine for card in pair})},
        ["Every pair of {cards:card|cards} reaches each other's memory (OK), so NCCL can use P2P; "
         "how fast that is depends on the way between them."],
        "For the ways: nvidia-smi topo -m.",
        (Evidence(file, line, lines[line - 1].strip()[:400]),), confidence=0.9, area="machine",
    )]  # fmt: skip
