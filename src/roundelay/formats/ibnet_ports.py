"""What `ibnetdiscover -p` prints: a port on each line, with what it is linked to."""

from __future__ import annotations

import re
from typing import Final

from ..errors import RoundelayError
from ..i18n import message
from .fabric import Cable, Fabric
from .ibnet import LANES, MOST
from .note import Note
from .plain import text_of

PORT: Final = re.compile(
    r"\s*(CA|SW|RT)\s+(\d{1,9})\s+(\d{1,4})\s+(0x[0-9a-fA-F]{1,16})\s+(\d{1,2})x\s+(\w{3,5})"
    r"(?:\s+-\s+(CA|SW|RT)\s+(\d{1,9})\s+(\d{1,4})\s+(0x[0-9a-fA-F]{1,16}))?\s*(.*)"
)
_BOTH: Final = re.compile(r"\(\s*'([^']{0,200})'\s*-\s*'([^']{0,200})'\s*\)")
_ONE: Final = re.compile(r"'([^']{0,200})'")


class _Ports:
    def __init__(self) -> None:
        self.switches: dict[str, str] = {}
        self.lines: dict[str, int] = {}
        self.ends: dict[str, str] = {}
        self.cables: dict[tuple[tuple[str, str], ...], Cable] = {}
        self.blanks = self.unlinked = 0

    def take(self, number: int, line: str) -> None:
        """Understand a line, or leave it out."""
        found = PORT.match(line)
        if found is None or len(self.cables) >= MOST:
            return
        kind, _, port, guid, width, speed, other, _, there, peer, rest = found.groups()
        both, one = _BOTH.search(rest), _ONE.search(rest)
        self._node(kind, guid, both[1] if both else one[1] if one else "", number)
        if other is None:
            self.unlinked += 1
            return
        self._node(other, peer, both[2] if both else "", number)
        lane = LANES.get(speed.upper())
        cable = Cable(guid, peer, int(width) * lane if lane else None, f"{width}x{speed}")
        self.cables.setdefault(tuple(sorted(((guid, port), (peer, there)))), cable)

    def _node(self, kind: str, guid: str, title: str, number: int) -> None:
        plain = title.strip()
        self.blanks += plain != title
        names = self.switches if kind == "SW" else self.ends
        names[guid] = names.get(guid) or plain or guid
        if kind == "SW":
            self.lines.setdefault(guid, number)

    def fabric(self) -> Fabric:
        """All of it."""
        hosts: dict[str, list[str]] = {name: [] for name in self.switches}
        between, ends, left_out = [], [], []
        for cable in self.cables.values():
            near = [name for name in (cable.a, cable.b) if name in self.switches]
            far = [name for name in (cable.a, cable.b) if name not in self.switches]
            if len(near) == 2:
                between.append(cable)
            elif near and "Aggregation Node" in self.ends[far[0]]:
                left_out.append(self.ends[far[0]])
            elif near:
                hosts[near[0]].append(self.ends[far[0]])
                ends.append(cable)
        return Fabric(
            "ibnetdiscover", "network", self.switches, {k: tuple(v) for k, v in hosts.items()},
            tuple(between), tuple(ends), left_out=tuple(left_out), lines=self.lines,
            notes=tuple(self._notes()),
        )  # fmt: skip

    def _notes(self) -> list[Note]:
        notes = []
        if self.blanks:
            notes.append(Note(0, message("names with blanks before or behind them, which are taken "
                                         "away: {n}", n=self.blanks)))  # fmt: skip
        if self.unlinked:
            notes.append(Note(0, message("ports that are linked to nothing, whose speed is none: "
                                         "{n}", n=self.unlinked)))  # fmt: skip
        return notes


def read_ibnetdiscover_ports(data: bytes) -> Fabric:
    """The network, from a list of its ports.

    Raises:
        RoundelayError: there is no port in the text.
    """
    ports = _Ports()
    for number, line in enumerate(text_of(data).split("\n"), 1):
        ports.take(number, line)
    if not ports.switches and not ports.ends:
        raise RoundelayError("no port; expected the output of ibnetdiscover -p, with lines such as "
                             "CA 78 1 0xa0 4x HDR - SW 51 81 0xa2 ( 'host' - 'leaf' )")  # fmt: skip
    return ports.fabric()
