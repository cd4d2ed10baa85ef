"""Links of InfiniBand that came up narrower or slower than they could."""

from __future__ import annotations

from collections import Counter

from ...formats.fabric import Fabric
from ..finding import Evidence, Figures, Finding, names, tell


def narrow_findings(file: str, fabric: Fabric) -> list[Finding]:
    """Links that the tool itself calls too low, and those far below most of their kind."""
    found = [_could(file, fabric), _differ(file, fabric), _slow(file, fabric)]
    return [finding for finding in found if finding is not None]


def _could(file: str, fabric: Fabric) -> Finding | None:
    if not fabric.could:
        return None
    told = [f"{where} ({could})" for where, could, _ in fabric.could]
    return tell(
        "link_narrow", file, {"count": len(told), "who": names(told, 8)},
        ["{count:link runs|links run} below what both ends are able to: {who}. A collective that "
         "passes there is no faster than such a link."],
        "Reseat or change the cable, look at the error counters of both ports (perfquery, "
        "mlxlink), then reset the port.",
        tuple(Evidence(file, line, where) for where, _, line in fabric.could[:4]), fault=True,
        confidence=0.9, area="machine",
    )  # fmt: skip


def _differ(file: str, fabric: Fabric) -> Finding | None:
    """Links of which each end tells another rate."""
    if not fabric.differ:
        return None
    figures: Figures = {"count": len(fabric.differ), "who": names(fabric.differ, 4)}
    return tell(
        "link_ends_differ", file, figures,
        ["{count:link is|links are} listed with one rate at one end and with another at the other: "
         "{who}. A link runs at one rate, so either it came up at the lower one, below what the "
         "ports can (1x is one lane of four), or one entry is not of now."],
        "Run the tool again and ask both ports (iblinkinfo, mlxlink); if the lower rate holds, "
        "reseat or change the cable, then reset the port.",
        (Evidence(file, 0, fabric.differ[0]),), fault=True, confidence=0.75, area="machine",
    )  # fmt: skip


def _slow(file: str, fabric: Fabric) -> Finding | None:
    """Hosts whose links are slower than those of most hosts; the tool has no complaint."""
    rates = Counter(cable.rate for cable in fabric.host_cables if cable.rate)
    if len(rates) < 2 or fabric.could:
        return None
    usual, count = max(rates.items(), key=lambda item: (item[1], item[0]))
    slow = [c for c in fabric.host_cables if c.rate and c.rate < usual]
    if not slow or 2 * len(slow) > count:
        return None
    labels = Counter(c.label for c in fabric.host_cables if c.rate == usual)
    ends = [cable.b if cable.a in fabric.switches else cable.a for cable in slow]
    who = [f"{fabric.titles.get(end, end)} {c.label}" for end, c in zip(ends, slow, strict=True)]
    figures: Figures = {
        "who": names(who, 8), "usual": labels.most_common(1)[0][0], "usual_GBps": usual,
        "slow_GBps": min(c.rate or 0 for c in slow),
    }  # fmt: skip
    return tell(
        "host_slower", file, figures,
        ["Slower than most hosts, which have {usual} ({usual_GBps} GB/s one way): {who} "
         "({slow_GBps} GB/s at the least). What a job exchanges with such a host is no faster."],
        "If its network card is of the faster kind, look at the cable and at the speed that is "
        "set (mlxlink -d ...); else keep it out of such jobs.",
        (Evidence(file, 0, who[0]),), fault=False, confidence=0.8, area="machine",
    )  # fmt: skip
