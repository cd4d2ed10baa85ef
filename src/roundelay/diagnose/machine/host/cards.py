"""What the table of `nvidia-smi` shows: cards that fail, that wait, that are hot or parted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Final

from ....errors import RoundelayError
from ....formats.smi_table import SmiCard, SmiTable, read_smi_table, smi_messages
from ...finding import Evidence, Figures, Finding, names, tell

BUSY: Final = 0.95
"""Share of time from which a card counts as busy."""
WAITING: Final = 0.28
"""Share of the power limit below which a busy card computes hardly anything."""
HELD: Final = 0.1
"""Share of a card's memory from which it is held by something."""
HOT: Final = 85
"""Degrees Celsius at which clocks are lowered where power has fallen, too."""
HOTTEST: Final = 90
"""Degrees Celsius at which they are."""
FALLEN: Final = 0.75
"""Share of the others' power."""


def table_findings(file: str, data: bytes) -> list[Finding]:
    """What the table says.

    Raises:
        RoundelayError: there is none, and no message in place of one.
    """
    said = _said(file, data)
    try:
        table = read_smi_table(data)
    except RoundelayError:
        if not said:
            raise
        return said
    return [*said, *(found for rule in RULES if (found := rule(file, table)) is not None)]


def _said(file: str, data: bytes) -> list[Finding]:
    """Messages that stand in place of the table."""
    lines = list(smi_messages(data))
    if not lines:
        return []
    number, text = lines[0]
    lost = "device handle" in text or "GPU is lost" in text
    figures: Figures = {"text": text[:160]}
    if lost:
        reason = "The driver cannot reach a card ({text}): it has fallen off the bus or failed."
        advice = ("Look for Xid in dmesg (79: fallen off the bus), restart the host, then "
                  "reseat or replace the card; leave it out until then "
                  "(CUDA_VISIBLE_DEVICES).")  # fmt: skip
    elif "mismatch" in text:
        reason = ("The driver that runs and its libraries are of different versions ({text}), "
                  "mostly after an update without a restart.")  # fmt: skip
        advice = "Restart the host, or unload and load the driver's modules; in a container, too."
    else:
        reason = "nvidia-smi finds no driver or no card ({text})."
        advice = ("See that the driver's module is loaded (lsmod, dmesg) and, in a container, that "
                  "cards are passed to it (--gpus all).")  # fmt: skip
    kind = "card_failed" if lost else "driver_unfit" if "mismatch" in text else "no_cuda"
    return [tell(kind, file, figures, [reason], advice, (Evidence(file, number, text),),
                 fault=True, confidence=0.9, area="machine")]  # fmt: skip


def _who(cards: Sequence[SmiCard]) -> str:
    return names([f"GPU{card.number}" for card in cards], 16)


def _at(file: str, cards: Sequence[SmiCard]) -> tuple[Evidence, ...]:
    return tuple(Evidence(file, c.line, f"GPU{c.number} {c.name} {c.bus}") for c in cards[:4])


def _failed(file: str, table: SmiTable) -> Finding | None:
    bad = [card for card in table.cards if card.broken]
    if not bad:
        return None
    return tell(
        "card_failed", file, {"who": _who(bad), "others": len(table.cards) - len(bad)},
        ["{who}: the driver reads an error in place of values (ERR!); the card has fallen off the "
         "bus or failed, and what uses it fails or hangs. {others} others are read well."],
        "Look for Xid in dmesg, reset the card (nvidia-smi -r) or restart the host; leave it out "
        "until then, and have it replaced if it comes again.",
        _at(file, bad), fault=True, confidence=0.9, area="machine",
    )  # fmt: skip


def _errors(file: str, table: SmiTable) -> Finding | None:
    bad = [card for card in table.cards if card.errors]
    if not bad:
        return None
    figures: Figures = {
        "who": names([f"GPU{card.number} {card.errors}" for card in bad]),
    }
    return tell(
        "memory_errors", file, figures,
        ["Errors of memory that could not be corrected, since the driver was loaded: {who}. "
         "Programs on such a card are ended (Xid 48, 63, 94 or 95), and the other ranks then wait "
         "for it."],
        "End what runs there and reset the card (nvidia-smi -r), so that the rows are taken out "
        "of use; see nvidia-smi -q -d ECC,ROW_REMAPPER, and have it replaced if errors come again.",
        _at(file, bad), fault=True, confidence=0.9, area="machine",
    )  # fmt: skip


def _spends(card: SmiCard) -> float | None:
    return card.watts / card.cap if card.watts is not None and card.cap else None


def _holds(card: SmiCard) -> bool:
    return bool(card.used and card.total and card.used > HELD * card.total)


def _waiting(file: str, table: SmiTable) -> Finding | None:
    """Kernels that run and spend no power: they wait for data, as those of NCCL do."""
    waits = [card for card in table.cards if (card.busy or 0) >= BUSY and _holds(card)
             and (spent := _spends(card)) is not None and spent < WAITING]  # fmt: skip
    works = [card for card in table.cards if (spent := _spends(card)) is not None
             and spent >= WAITING]  # fmt: skip
    if len(waits) < 2 or len(works) >= len(waits):
        return None
    still = [card for card in table.cards if (card.busy or 0) < 0.05 and _holds(card)]
    figures: Figures = {
        "who": _who(waits), "watts": median(card.watts or 0 for card in waits),
        "cap": max(card.cap or 0 for card in waits), "still": _who(still), "works": _who(works),
    }  # fmt: skip
    reason = ["{who} are busy all the time and draw about {watts} of {cap} W: their kernels run "
              "without computing, as NCCL's do while they wait for another rank."]  # fmt: skip
    if still:
        reason.append("{still} holds memory and runs nothing: its process is the one that hasn't "
                      "come.")  # fmt: skip
    elif works:
        reason.append("{works} draws more: it still computes, and the others wait for it.")
    else:
        reason.append("All of them wait, so the one that is missing is on another host, or the "
                      "ranks wait for one another.")  # fmt: skip
    return tell(
        "waiting_cards", file, figures, reason,
        "See where the process that does not come is (py-spy dump --pid ...), and what the "
        "flight recorder of each rank says; if it goes on after a while, a rank is slow, not lost.",
        _at(file, [*still, *waits]), fault=True, confidence=0.75 if still else 0.6, area="hang",
    )  # fmt: skip


def _hot(file: str, table: SmiTable) -> Finding | None:
    busy = [card.watts for card in table.cards if card.watts and (card.busy or 0) > 0.5]
    usual = median(busy) if busy else 0.0
    hot = [card for card in table.cards if (degrees := card.celsius) is not None
           and (degrees >= HOTTEST
                or (degrees >= HOT and (card.watts or usual) < FALLEN * usual))]  # fmt: skip
    if not hot:
        return None
    figures: Figures = {
        "who": names([f"GPU{c.number} {c.celsius} C {c.watts or 0:g} W" for c in hot]),
        "usual_W": usual,
    }  # fmt: skip
    reason = ["Hot: {who}. At such temperatures the card lowers its clocks."]
    if len(hot) < len(busy):
        reason.append("Others under load draw about {usual_W} W: this card is slower than they "
                      "are, and every collective waits for it.")  # fmt: skip
    return tell(
        "throttled", file, figures, reason,
        "See nvidia-smi -q -d PERFORMANCE (thermal slowdown), and look at fans, air and dust; "
        "leave the card out of jobs that span it until then.",
        _at(file, hot), fault=True, confidence=0.8, area="machine",
    )  # fmt: skip


def _unlisted(file: str, table: SmiTable) -> Finding | None:
    """Memory that no process in the list holds."""
    if table.holders is None:
        return None
    odd = [card for card in table.cards if _holds(card) and not card.busy
           and card.number not in table.holders and not card.parted]  # fmt: skip
    if not odd:
        return None
    figures: Figures = {
        "who": names([f"GPU{c.number} {c.used} of {c.total} MiB" for c in odd]),
    }
    return tell(
        "memory_held", file, figures,
        ["Memory is held and no process is listed for it: {who}. It belongs to a process that "
         "this view doesn't show (of another container, or outside of this one), or to one that "
         "has been left over; what starts here gets only the rest."],
        "On the host itself: fuser -v /dev/nvidia*, or look for processes of python that have no "
        "parent; end those that are left over.",
        _at(file, odd), confidence=0.8, area="machine",
    )  # fmt: skip


def _parted(file: str, table: SmiTable) -> Finding | None:
    parted = [card for card in table.cards if card.parted]
    if not parted:
        return None
    return tell(
        "parted", file, {"who": _who(parted), "count": len(parted)},
        ["{who}: MIG is on. A part of a card reaches no other part and no other card's memory, "
         "over NVLink or PCIe, so that NCCL goes through the host's memory there, and does not "
         "take two ranks on parts of one card unless its version allows for it."],
        "For jobs of several ranks switch MIG off (nvidia-smi -mig 0, then reset), and leave it "
        "on for jobs of one.",
        _at(file, parted), confidence=0.85, area="machine",
    )  # fmt: skip


def _shown(file: str, table: SmiTable) -> Finding | None:
    """What there is, in short."""
    models = list(dict.fromkeys(card.name for card in table.cards))
    used = [100 * c.used / c.total for c in table.cards if c.used is not None and c.total]
    busy = [100 * c.busy for c in table.cards if c.busy is not None]
    asleep = [card for card in table.cards if card.persistent is False]
    figures: Figures = {
        "cards": len(table.cards), "models": names(models, 4), "driver": table.driver or "?",
        "cuda": table.cuda or "?", "used": _span(used), "busy": _span(busy), "asleep": _who(asleep),
    }  # fmt: skip
    reason = ["{cards:card|cards} ({models}), driver {driver}, CUDA up to {cuda}; memory in use: "
              "{used} %, busy: {busy} %. How they are connected is not in this table."]  # fmt: skip
    if len(models) > 1:
        reason.append("They are of different models, and a collective goes at the rate of the "
                      "slowest.")  # fmt: skip
    if asleep:
        reason.append("Persistence mode is off ({asleep}): when nothing runs the driver lets go "
                      "of the card, and the next program starts seconds later.")  # fmt: skip
    return tell(
        "cards", file, figures, reason, "For links and network cards: nvidia-smi topo -m.",
        _at(file, table.cards[:1]), confidence=0.9, area="machine",
    )  # fmt: skip


def _span(shares: Sequence[float]) -> str:
    if not shares:
        return "?"
    low, high = f"{min(shares):.0f}", f"{max(shares):.0f}"
    return low if low == high else f"{low}-{high}"


RULES: Final[tuple[Callable[[str, SmiTable], Finding | None], ...]] = (
    _failed, _errors, _waiting, _hot, _unlisted, _parted, _shown,
)  # fmt: skip
