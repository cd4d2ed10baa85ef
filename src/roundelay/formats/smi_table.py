"""The table that `nvidia-smi` prints by itself: a card in two or three lines, then processes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from ..errors import RoundelayError
from .pasted import pasted_lines

_VERSIONS: Final = re.compile(
    r"Driver Version: ?([\w.]{1,40})(?:\s{1,40}CUDA Version: ?([\w.]{1,40}))?"
)
_FIRST: Final = re.compile(
    r"^\|\s{1,9}(\d{1,3})\s{1,9}(\S.{0,60}?)\s{1,40}(On|Off|N/A|ERR!)?\s*"
    r"\|\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s{1,9}\S{1,9}\s*"
    r"\|\s*(\S{1,12}(?: Error!?)?)\s*\|"
)
_SECOND: Final = re.compile(
    r"^\|\s*(\S{1,9}|Unknown Error)\s{1,9}(\S{1,9})\s{1,9}(\S{1,9})\s{1,20}"
    r"(\S{1,9})\s{0,3}/\s{0,4}(\S{1,9})\s*"
    r"\|\s*(?:(\d{1,9})MiB\s{0,3}/\s{0,9}(\d{1,9})MiB|.{0,40}?)\s*\|\s*(\S{1,9}|Unknown Error)\s"
)
_MIG: Final = re.compile(r"^\|\s*\|\s*\|\s*(Enabled|Disabled|N/A|ERR!)\*?\s*\|")
_PROCESS: Final = re.compile(
    r"^\|\s{1,9}(\d{1,3})\s{1,9}(?:\S{1,5}\s{1,9}\S{1,5}\s{1,9})?(\d{1,9})\s{1,9}([CGM+]{1,3})\s"
)
BROKEN: Final = frozenset(("ERR!", "Unknown"))


@dataclass(frozen=True)
class SmiCard:
    """A card as the table shows it; None for what it doesn't tell.

    Attributes:
        number, name, bus: of the card.
        line: where it stands.
        persistent: whether persistence mode is on.
        errors: uncorrected ones of memory since the driver was loaded.
        celsius, watts, cap: temperature, power, and what power may be.
        used, total: MiB of memory.
        busy: share of time in which a kernel ran, 0 to 1.
        parted: whether MIG is on.
        broken: whether the driver could not read it.
    """

    number: int
    name: str
    bus: str
    line: int
    persistent: bool | None = None
    errors: int | None = None
    celsius: int | None = None
    watts: float | None = None
    cap: float | None = None
    used: int | None = None
    total: int | None = None
    busy: float | None = None
    parted: bool = False
    broken: bool = False


@dataclass(frozen=True)
class SmiTable:
    """The table.

    Attributes:
        cards: in its order.
        driver, cuda: versions.
        holders: numbers of cards of each process that is listed; None where there's no such part.
    """

    cards: tuple[SmiCard, ...]
    driver: str = ""
    cuda: str = ""
    holders: tuple[int, ...] | None = None


def read_smi_table(data: bytes) -> SmiTable:
    """The first table of a text.

    Raises:
        RoundelayError: there is none.
    """
    cards: dict[int, SmiCard] = {}
    last: SmiCard | None = None
    driver = cuda = ""
    holders: list[int] | None = None
    for number, raw in pasted_lines(data):
        line = raw.lstrip("#/ \t")
        if not line.startswith("|"):
            continue
        if found := _VERSIONS.search(line):
            if cards:
                break  # the next table, as of `watch`
            driver, cuda = found[1], found[2] or ""
        elif found := _FIRST.match(line):
            last = _card(found, number)
            cards.setdefault(last.number, last)
        elif last is not None and (found := _SECOND.match(line)) and last.watts is None:
            last = cards[last.number] = _more(last, found)
        elif last is not None and (found := _MIG.match(line)):
            cards[last.number] = replace(last, parted=found[1] == "Enabled")
            last = None
        elif "Processes:" in line:
            holders, last = [], None
        elif holders is not None and (found := _PROCESS.match(line)):
            holders.append(int(found[1]))
    if not cards:
        raise RoundelayError("no table of nvidia-smi; expected lines such as "
                             "| 0  NVIDIA H100 ... On | 00000000:1B:00.0 Off | 0 |")  # fmt: skip
    return SmiTable(tuple(cards.values()), driver, cuda,
                    None if holders is None else tuple(holders))  # fmt: skip


def _card(found: re.Match[str], line: int) -> SmiCard:
    errors = found[5]
    return SmiCard(
        int(found[1]), found[2], found[4].lower(), line,
        persistent={"On": True, "Off": False}.get(found[3] or ""),
        errors=int(errors) if errors.isdecimal() else None, broken=errors.split()[0] in BROKEN,
    )  # fmt: skip


def _more(card: SmiCard, found: re.Match[str]) -> SmiCard:
    busy = _number(found[8], "%")
    cells = (found[2], found[4], found[8])  # a fan may fail and the card be well
    return replace(
        card, celsius=_whole(_number(found[2], "C")), watts=_number(found[4], "W"),
        cap=_number(found[5], "W"), used=_whole(_number(found[6] or "", "")),
        total=_whole(_number(found[7] or "", "")), busy=None if busy is None else busy / 100,
        broken=card.broken or any(word.split()[0].startswith(bad) for word in cells
                                  for bad in BROKEN),
    )  # fmt: skip


def _number(text: str, unit: str) -> float | None:
    digits = text.removesuffix(unit)
    return float(digits) if digits.replace(".", "", 1).isdecimal() else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def smi_messages(data: bytes) -> Iterator[tuple[int, str]]:
    """Lines by which nvidia-smi says that it cannot read a card, or none at all."""
    for number, line in pasted_lines(data):
        if MESSAGES.search(line):
            yield number, line.strip()[:300]


MESSAGES: Final = re.compile(
    r"Unable to determine the device handle for|GPU is lost|"
    r"couldn't communicate with the NVIDIA driver|Driver/library version mismatch|"
    r"^No devices were found$"
)
