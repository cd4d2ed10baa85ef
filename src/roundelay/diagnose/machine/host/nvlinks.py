"""What `nvidia-smi nvlink` shows: links that are not up, and those that err."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from ....formats.smi_links import LinkedCard, read_smi_links
from ...finding import Evidence, Figures, Finding, names, tell

SOLDERED: Final = re.compile(r"SXM|HBM3|(?<![A-Z])[HB]\d00\b|\bGB[23]00\b|\bH20\b")
"""In names of cards that sit on a board with their links wired."""
PLUGGED: Final = re.compile(r"PCIe|NVL\b", re.I)
"""In names of cards for PCIe, which have links only by bridges."""
FEW: Final = 100
"""Repeats of a link that an electrical link has now and then."""


def link_findings(file: str, data: bytes) -> list[Finding]:
    """What the links say.

    Raises:
        RoundelayError: there are none.
    """
    cards = read_smi_links(data)
    found = [_down(file, cards), _peers(file, cards), _errors(file, cards), _shown(file, cards)]
    return [finding for finding in found if finding is not None]


def _down(file: str, cards: Sequence[LinkedCard]) -> Finding | None:
    """Cards with fewer links up than most."""
    listed = [card for card in cards if card.rates]
    ups = {card.number: len(card.rates) - len(card.down) for card in listed}
    usual = max(Counter(ups.values()).items(), key=lambda c: (c[1], c[0]), default=(0, 0))[0]
    if not usual:
        usual = max(ups.values(), default=0)
    if not usual:
        return _none(file, listed)
    bad = [card for card in listed if ups[card.number] < usual]
    if not bad:
        return None
    who = [f"GPU{c.number} (links {', '.join(map(str, c.down[:18]))})" for c in bad]
    figures: Figures = {"who": names(who, 8), "left": ups[bad[0].number], "usual": usual,
                        "share": ups[bad[0].number] / usual}  # fmt: skip
    gone = ups[bad[0].number] == 0
    return tell(
        "linkless" if gone else "few_links", file, figures,
        ["NVLinks that are not up: {who}. {left} of the {usual} that the others have are left "
         "({share}), and rings and trees go at the rate of the slowest card."],
        "Look for Xid 74 in dmesg and for errors in the fabric manager's log, reset the card; "
        "reseat the bridge where it is one, else have the board seen to.",
        tuple(Evidence(file, c.lines[link], f"GPU{c.number} Link {link}: inactive")
              for c in bad[:4] for link in c.down[:2]),
        fault=True, confidence=0.9, area="machine",
    )  # fmt: skip


def _none(file: str, cards: Sequence[LinkedCard]) -> Finding | None:
    if not cards:
        return None
    wired = [c for c in cards if SOLDERED.search(c.name) and not PLUGGED.search(c.name)]
    figures: Figures = {"cards": len(cards), "model": cards[0].name}
    reason = ["Not one NVLink of {cards:card|cards} ({model}) is up: what they exchange goes over "
              "PCIe."]  # fmt: skip
    reason.append("Cards of this kind are always wired, so they have not been set up." if wired
                  else "Cards for PCIe have links only where a bridge is plugged in.")  # fmt: skip
    advice = ("Start the fabric manager, of the very version of the driver (systemctl status "
              "nvidia-fabricmanager); see that no option of the module switches NVLink off, and "
              "that a virtual machine gets the switches too.") if wired else (
              "Plug bridges in, or reckon with PCIe.")  # fmt: skip
    return tell("linkless", file, figures, reason, advice,
                (Evidence(file, cards[0].line, cards[0].name),), fault=bool(wired),
                confidence=0.85, area="machine")  # fmt: skip


def _errors(file: str, cards: Sequence[LinkedCard]) -> Finding | None:
    counts = [(card, link, kind, count, line) for card in cards
              for (link, kind), (count, line) in card.errors.items()]  # fmt: skip
    if not counts:
        return None
    bad = any(kind == "recovery" or count >= FEW for _, _, kind, count, _ in counts)
    worst = sorted(counts, key=lambda c: -c[3])
    figures: Figures = {
        "who": names([f"GPU{card.number} link {link}: {kind} {count}"
                      for card, link, kind, count, _ in worst], 6),
    }  # fmt: skip
    reason = ["Errors of NVLinks since the driver was loaded: {who}."]
    reason.append("Each is sent again, which takes time; a link that recovers often falls out in "
                  "the end." if bad else "So few say nothing.")  # fmt: skip
    return tell(
        "link_errors", file, figures, reason,
        "Set the counters to 0 (nvidia-smi nvlink -re) and see whether they grow under load; then "
        "look for Xid 74 and have the bridge or board seen to.",
        tuple(Evidence(file, line, f"GPU{card.number} Link {link}: {kind} {count}")
              for card, link, kind, count, line in worst[:4]),
        fault=bad, confidence=0.8, area="machine",
    )  # fmt: skip


def _peers(file: str, cards: Sequence[LinkedCard]) -> Finding | None:
    """What links can carry (-c); it does not say that they are up."""
    told = [card for card in cards if card.peers]
    if not told:
        return None
    fewest, most = (end(len(card.peers) for card in told) for end in (min, max))
    without = [f"GPU{c.number}" for c in told if not all(c.peers.values())]
    figures: Figures = {"cards": len(told), "without": names(without, 8),
                        "links": str(most) if fewest == most else f"{fewest}-{most}"}  # fmt: skip
    reason = ["{cards:card|cards} with {links} NVLinks, by what they are able to."]
    reason.append("Not every one carries peer access: {without}." if without else
                  "All of them carry peer access (P2P).")  # fmt: skip
    return tell(
        "links", file, figures, reason, "For what is up: nvidia-smi nvlink -s.",
        (Evidence(file, told[0].line, told[0].name),), confidence=0.85, area="machine",
    )  # fmt: skip


def _shown(file: str, cards: Sequence[LinkedCard]) -> Finding | None:
    listed = [card for card in cards if any(card.rates.values())]
    if not listed:
        counted = [card for card in cards if card.counted]
        if not counted or any(card.errors for card in counted):
            return None
        return tell(
            "links", file, {"cards": len(counted)},
            ["The counters of errors of the NVLinks of {cards:card|cards} are all 0."],
            "For what is up: nvidia-smi nvlink -s.",
            (Evidence(file, counted[0].line, counted[0].name),), confidence=0.9, area="machine",
        )  # fmt: skip
    ups = [sum(1 for rate in card.rates.values() if rate) for card in listed]
    rates = sorted({rate for card in listed for rate in card.rates.values() if rate})
    totals = [sum(card.rates.values()) for card in listed]
    figures: Figures = {
        "cards": len(listed), "links": _span(ups), "rate": " / ".join(f"{r:g}" for r in rates),
        "total_GBps": max(totals),
    }  # fmt: skip
    return tell(
        "links", file, figures,
        ["{cards:card|cards} with {links} NVLinks up, each at {rate} GB/s one way as signalled: "
         "{total_GBps} GB/s one way a card, twice that duplex.",
         "Links come up before the fabric is set up, so this does not show that NVSwitch forwards: "
         "nvidia-smi -q shows that (Fabric, State)."],
        "For which card is linked with which: nvidia-smi topo -m.",
        (Evidence(file, listed[0].line, listed[0].name),), confidence=0.9, area="machine",
    )  # fmt: skip


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts), max(counts)
    return str(low) if low == high else f"{low}-{high}"
