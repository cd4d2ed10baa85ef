"""Links as InfiniBand's tools list them, a line each: `iblinkinfo`, and `ibnetdiscover -p`."""

from __future__ import annotations

import re
from typing import Final

from ..errors import RoundelayError
from ..i18n import message
from .fabric import LANES, Cable, Fabric, both_ends, wired
from .note import Note
from .plain import text_of

_HEAD: Final = re.compile(r"^(Switch|CA):\s+(?:0x[0-9a-f]+\s+)?(.{1,200}?):\s*$", re.I)
_LINK: Final = re.compile(
    r"^\s*(?:0x[0-9a-f]+\s+)?(\d{1,6})\s+(\d{1,4})\[[^\]]*\]\s*==\(\s*(?:(\d{1,2})X\s+([\d.]{1,12})"
    r"\s+Gbps)?([^)]*)\)==>\s*(?:(\d{1,6})\s+(\d{1,4}))?\s*\[[^\]]*\]\s*\"([^\"]{0,200})\"", re.I
)  # fmt: skip
_FLAT: Final = re.compile(
    r"^(CA|SW|RT)\s+\d{1,6}\s+(\d{1,4})\s+(0x[0-9a-f]{1,16})\s+(\d{1,2})x\s+([A-Z]{3}\d{0,2})\s*"
    r"(?:-\s+(CA|SW|RT)\s+\d{1,6}\s+(\d{1,4})\s+(0x[0-9a-f]{1,16})\s+)?"
    r"(?:\(\s*'([^']{0,200})'\s+-\s+'([^']{0,200})'\s*\)|'([^']{0,200})')", re.I
)  # fmt: skip
_COULD: Final = re.compile(r"\(\s*((?:Could be|could be)[^)]{1,60}?)\s*\)\s*$")
SIGNALS: Final = (
    (2.5, "SDR"), (5.0, "DDR"), (10.0, "QDR"), (10.3125, "FDR10"), (14.0625, "FDR"),
    (25.78125, "EDR"), (53.125, "HDR"), (106.25, "NDR"), (212.5, "XDR"),
)  # fmt: skip
"""Gb/s of signals on a lane, with what it carries of coding, and the name of the speed."""
MOST: Final = 2**20


class _Links:
    """Switches, other ends and cables, each cable once."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.switches: dict[str, str] = {}
        self.ends: dict[str, str] = {}
        self.lines: dict[str, int] = {}
        self.cables: dict[tuple[tuple[str, str], ...], Cable] = {}
        self.differ: dict[tuple[tuple[str, str], ...], str] = {}
        self.notes: list[Note] = []
        self.could: list[tuple[str, str, int]] = []

    def node(self, is_switch: bool, name: str, title: str, number: int) -> None:
        if is_switch:
            self.switches[name] = title
            self.lines.setdefault(name, number)
        else:
            self.ends[name] = title

    def cable(self, a: tuple[str, str], b: tuple[str, str], width: str, speed: str) -> None:
        rate = int(width) * LANES[speed] if width and speed in LANES else None
        label = f"{width}x{speed}" if width and speed else ""
        key = tuple(sorted((a, b)))
        first, own = self.cables.get(key), Cable(a[0], b[0], rate, label)
        if len(self.cables) >= MOST:
            return
        self.cables[key] = both_ends(first, own)
        if first and first.label and label and first.label != label:
            titles = self.ends | self.switches
            self.differ[key] = (f"{titles.get(a[0], a[0])} [{a[1]}] {label} - "
                                f"{titles.get(b[0], b[0])} [{b[1]}] {first.label}")  # fmt: skip

    def fabric(self) -> Fabric:
        """What came together.

        Raises:
            RoundelayError: nothing did.
        """
        if not self.switches and not self.ends:
            raise RoundelayError("no link; expected the output of iblinkinfo or ibnetdiscover -p")
        for name in self.switches:
            self.ends.pop(name, None)
        return wired(self.source, self.switches, self.ends, self.cables.values(), self.lines,
                     self.notes, self.could, self.differ.values())  # fmt: skip


def read_iblinkinfo(data: bytes) -> Fabric:
    """The network that `iblinkinfo` lists; a node is known by its local id (LID).

    Raises:
        RoundelayError: there is no such line in the text.
    """
    links = _Links("iblinkinfo")
    head: tuple[bool, str, int] | None = None
    expected: dict[str, str] = {}
    for number, line in enumerate(text_of(data).split("\n"), 1):
        if found := _HEAD.match(line):
            head = found[1].lower() == "switch", found[2].strip(), number
            continue
        if not (link := _LINK.match(line)):
            if "==(" in line:
                links.notes.append(Note(number, message("a link that is cut off: {text}",
                                                        text=line.strip()[:60])))  # fmt: skip
            continue
        if head is None:
            head = True, "", number
        links.node(head[0], link[1], head[1] or link[1], head[2])
        if (could := _COULD.search(line)) and len(links.could) < MOST:
            links.could.append((link[8].strip() or link[1], could[1], number))
        if link[6]:
            expected.setdefault(link[6], link[8].strip() or link[6])
            if head[0]:
                links.ends.setdefault(link[6], expected[link[6]])
            links.cable((link[1], link[2]), (link[6], link[7]), link[3] or "", _speed(link[4]))
    return links.fabric()


def _speed(signals: str | None) -> str:
    """The name of a speed by its signals."""
    try:
        rate = float(signals or "")
    except ValueError:
        return ""
    near, name = min(SIGNALS, key=lambda pair: abs(pair[0] - rate))
    return name if abs(near - rate) < 0.02 * near else ""


def read_ibnet_flat(data: bytes) -> Fabric:
    """The network that `ibnetdiscover -p` lists; a node is known by its GUID.

    Raises:
        RoundelayError: there is no such line in the text.
    """
    links = _Links("ibnetdiscover")
    for number, line in enumerate(text_of(data).split("\n"), 1):
        found = _FLAT.match(line)
        if not found:
            continue
        name, peer = found[3].lower(), (found[8] or "").lower()
        links.node(found[1].upper() == "SW", name, (found[9] or found[11] or name).strip(), number)
        if peer:
            title = (found[10] or peer).strip()
            if found[6].upper() != "SW":
                links.ends.setdefault(peer, title)
            elif peer not in links.switches:
                links.node(True, peer, title, number)
            links.cable((name, found[2]), (peer, found[7]), found[4], found[5].upper())
    return links.fabric()
