"""What NCCL's table of paths says (NCCL_DEBUG_SUBSYS=GRAPH): who reaches whom, how and how fast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...formats.nccl_log import NcclLog, Reach
from ..finding import Figures, Finding, cited, tell
from ..speed.possible import CARD

OWN: Final = "LOC"
"""The class of a device's way to itself."""


def table_of_paths(file: str, log: NcclLog) -> Finding | None:
    """The classes of ways between cards, and from each card to its nearest network card."""
    ways = [r for r in log.paths if r.way != OWN and 0 < r.rate <= CARD]
    cards = [r for r in ways if r.source.startswith("GPU/") and r.target.startswith("GPU/")]
    if not cards or (any(r.way == "SYS" for r in cards) and not any(r.way == "NVL" for r in cards)):
        return None  # of which `far_apart` tells more
    best: dict[str, Reach] = {}
    for r in ways:
        if r.source.startswith("GPU/") and r.target.startswith("NET/"):
            known = best.setdefault(r.source, r)
            best[r.source] = max(known, r, key=lambda reach: (reach.rate, -reach.hops))
    figures: Figures = {
        "cards": len({r.source for r in cards}), "between": _classes(cards),
        "nets": _classes(list(best.values())),
    }  # fmt: skip
    reason = ["By NCCL's table of paths {cards:card reaches|cards reach} other cards by {between} "
              "(GB/s one way, of one way each)."]  # fmt: skip
    if best:
        reason.append("The best way from a card to a network card is {nets}.")
    if len({r.way for r in cards}) > 1:
        reason.append("Not all pairs are alike: a ring is as fast as its slowest pair.")
    return tell("paths", file, figures, reason,
                "Compare nvidia-smi topo -m: what NCCL sees as slower than it is, a virtual "
                "machine or a topology file hides.", cited(file, cards[0].line), confidence=0.85,
                area="machine")  # fmt: skip


def _classes(reaches: Sequence[Reach]) -> str:
    """Such as NVL 240 (12), SYS 9 (4): class, GB/s and how many."""
    by: dict[tuple[str, float], int] = {}
    for r in reaches:
        by[r.way, r.rate] = by.get((r.way, r.rate), 0) + 1
    listed = sorted(by.items(), key=lambda item: -item[0][1])
    return ", ".join(f"{way} {rate:g} ({count})" for (way, rate), count in listed[:6]) or "-"
