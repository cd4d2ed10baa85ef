"""What `nvidia-smi -q` shows: fabric, PCIe, clocks, and memory that errs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ....formats.smi_query import Queried, Value, read_smi_query
from ...finding import Evidence, Figures, Finding, names, tell

CLOCKS: Final = ("Clocks Event Reasons", "Clocks Throttle Reasons")
SLOWED: Final = ("HW Slowdown", "HW Thermal Slowdown", "HW Power Brake Slowdown",
                 "SW Thermal Slowdown")  # fmt: skip
_Hits = list[tuple[Queried, Value]]


def query_findings(file: str, data: bytes) -> list[Finding]:
    """What stands out of the values.

    Raises:
        RoundelayError: there are none.
    """
    cards = read_smi_query(data)
    found = [rule(file, cards) for rule in RULES]
    return [finding for finding in found if finding is not None]


def _who(hits: _Hits) -> str:
    return names(list(dict.fromkeys(card.title or "GPU" for card, _ in hits)), 8)


def _at(file: str, hits: _Hits) -> tuple[Evidence, ...]:
    return tuple(Evidence(file, v.line, f"{v.under[-1] if v.under else ''}: {v.name}: {v.text}")
                 for _, v in hits[:4])  # fmt: skip


def _fabric(file: str, cards: Sequence[Queried]) -> Finding | None:
    hits: _Hits = [(c, v) for c in cards for v in c.find("Fabric", "State")
                   if v.text in ("In Progress", "Not Started")]  # fmt: skip
    failed: _Hits = [(c, v) for c in cards for v in c.find("Fabric", "Status")
                     if v.text not in ("Success", "N/A", "")]  # fmt: skip
    hits += failed
    if not hits:
        return None
    figures: Figures = {"who": _who(hits), "state": hits[0][1].text, "count": len(hits)}
    return tell(
        "fabric_not_ready", file, figures,
        ["The NVLink fabric of {who} is not set up ({state}): CUDA refuses to start on such a card "
         "(error 802, system not yet initialized), or goes without NVLink between cards."],
        "Start the fabric manager, of the very version of the driver: systemctl status "
        "nvidia-fabricmanager; on GB200 and later see nvidia-imex and NVLSM too, and in a virtual "
        "machine that the host has made a partition of these cards.",
        _at(file, hits), fault=True, confidence=0.9, area="machine",
    )  # fmt: skip


def _narrow(file: str, cards: Sequence[Queried]) -> Finding | None:
    hits: _Hits = []
    for card in cards:
        most = next(card.find("Link Width", "Max"), None)
        now = next(card.find("Link Width", "Current"), None)
        if most and now and 0 < _number(now.text) < _number(most.text):
            hits.append((card, now))
    if not hits:
        return None
    most = next(hits[0][0].find("Link Width", "Max"))
    figures: Figures = {"who": _who(hits), "now": hits[0][1].text, "most": most.text,
                        "share": _number(hits[0][1].text) / _number(most.text)}  # fmt: skip
    return tell(
        "pcie_narrow", file, figures,
        ["{who}: the PCIe link runs on {now} of {most} lanes, so {share} of its rate are left. "
         "Width doesn't fall to save power, as the generation does."],
        "Reseat the card or its riser, and see in the board's manual how many lanes the slot has.",
        _at(file, hits), fault=True, confidence=0.85, area="machine",
    )  # fmt: skip


def _number(text: str) -> int:
    digits = text.rstrip("xX ")
    return int(digits) if digits.isdecimal() and len(digits) < 4 else 0


def _slowed(file: str, cards: Sequence[Queried]) -> Finding | None:
    hits: _Hits = [(c, v) for c in cards for head in CLOCKS for name in SLOWED
                   for v in c.find(head, name) if v.text == "Active"]  # fmt: skip
    if not hits:
        return None
    why = list(dict.fromkeys(v.name for _, v in hits))
    figures: Figures = {"who": _who(hits), "why": names(why)}
    brake = any("Brake" in name for name in why)
    return tell(
        "throttled", file, figures,
        ["{who} runs at lowered clocks ({why}): it is slower than the others, and every "
         "collective waits for it."],
        "See to the power supply and to what limits it (power brake)." if brake else
        "See to fans, air and dust; compare the temperature with that of other cards.",
        _at(file, hits), fault=True, confidence=0.9, area="machine",
    )  # fmt: skip


def _memory(file: str, cards: Sequence[Queried]) -> Finding | None:
    hits: _Hits = [
        (c, v) for c in cards for v in c.values
        if ("Remapped Rows" in v.under and v.name in ("Pending", "Remapping Failure Occurred")
            and v.text == "Yes")
        or ("Retired Pages" in v.under and v.name.startswith("Pending") and v.text == "Yes")
        or ("Volatile" in v.under and ("Uncorrectable" in v.name or v.under[-1] == "Double Bit")
            and v.text.isdecimal() and int(v.text[:18]) > 0)
    ]  # fmt: skip
    if not hits:
        return None
    failed = any("Failure" in v.name for _, v in hits)
    what = list(dict.fromkeys(f"{v.under[-1]}: {v.name} {v.text}" for _, v in hits))
    figures: Figures = {"who": _who(hits), "what": names(what, 4)}
    return tell(
        "memory_errors", file, figures,
        ["The memory of {who} has had errors that cannot be corrected ({what})."],
        "Have the card replaced: it has no spare rows left." if failed else
        "End what runs on the card and reset it (nvidia-smi -r): the rows are taken out of use at "
        "the next start. If errors come again, have it replaced.",
        _at(file, hits), fault=True, confidence=0.9, area="machine",
    )  # fmt: skip


def _shown(file: str, cards: Sequence[Queried]) -> Finding | None:
    """What it says of links where nothing is off."""
    told = list(_links(cards))
    capped: _Hits = [(c, v) for c in cards for head in CLOCKS for v in c.find(head, "SW Power Cap")
                     if v.text == "Active"]  # fmt: skip
    figures: Figures = {"cards": len(cards), "links": names(told, 4) or "-",
                        "capped": _who(capped)}  # fmt: skip
    reason = ["Values of {cards:card|cards}; links: {links}."]
    if "Gen 1" in figures["links"] or "Gen 2" in str(figures["links"]):  # type: ignore[operator]
        reason.append("The generation of PCIe falls while nothing runs; look at it under load.")
    if capped:
        reason.append("{capped} is held at its power limit, which is usual under full load.")
    first = cards[0]
    return tell(
        "queried", file, figures, reason,
        "Compare the same values of all cards: what one has and the others have not.",
        (Evidence(file, first.line, first.title),), confidence=0.85, area="machine",
    )  # fmt: skip


def _links(cards: Sequence[Queried]) -> Iterator[str]:
    seen = set[str]()
    for card in cards:
        parts = []
        now, most = (next(card.find("PCIe Generation", name), None) for name in ("Current", "Max"))
        wide = next(card.find("Link Width", "Current"), None)
        if now and most:
            parts.append(f"PCIe Gen {now.text} of {most.text}")
        if wide:
            parts.append(wide.text)
        if state := next(card.find("Fabric", "State"), None):
            parts.append(f"fabric {state.text}")
        text = " ".join(parts)
        if text and text not in seen:
            seen.add(text)
            yield text


RULES: Final[tuple[Callable[[str, Sequence[Queried]], Finding | None], ...]] = (
    _fabric, _memory, _slowed, _narrow, _shown,
)  # fmt: skip
