"""What `ibnetdiscover` prints, and the networks of ibsim, which look the same without GUIDs."""

from __future__ import annotations

import re
from typing import Final

from ..errors import RoundelayError
from ..i18n import message
from .fabric import LANES, Cable, Fabric, both_ends, wired
from .note import Note
from .plain import text_of

_NODE: Final = re.compile(
    r'^(Switch|Ca|Rt|Hca)\s+(\d+)\s+"([^"]{1,200})"(?:\s*#\s*"([^"]*)")?', re.I
)
_PORT: Final = re.compile(r'^\[(\d+)\](?:\([^)]*\))?\s+"([^"]{1,200})"\[(\d+)\](?:\([^)]*\))?(.*)$')
_TITLE: Final = re.compile(r'"([^"]*)"')
_RATE: Final = re.compile(r"\b(\d{1,2})x(SDR|DDR|QDR|FDR10|FDR|EDR|HDR|NDR|XDR)\b")
MOST: Final = 2**20


class _Reader:
    def __init__(self) -> None:
        self.titles: dict[str, str] = {}
        self.switches: dict[str, str] = {}
        self.lines: dict[str, int] = {}
        self.ends: dict[str, str] = {}
        self.cables: dict[tuple[str, str, str, str], Cable] = {}
        self.differ: dict[tuple[str, str, str, str], str] = {}
        self.notes: list[Note] = []
        self.current = ""

    def take(self, number: int, text: str) -> None:
        if node := _NODE.match(text):
            name = node[3]
            self.current = name
            self.titles[name] = (node[4] or name).strip()
            if node[1].lower() == "switch":
                self.switches[name] = self.titles[name]
            else:
                self.ends[name] = self.titles[name]
            self.lines.setdefault(name, number)
        elif (port := _PORT.match(text)) and self.current and len(self.cables) < MOST:
            self._cable(port)
        elif text.startswith("[") and self.current:
            self.notes.append(Note(number, message("a port that is cut off: {text}",
                                                   text=text[:60])))  # fmt: skip

    def _cable(self, port: re.Match[str]) -> None:
        own, peer, rest = (self.current, port[1]), (port[2], port[3]), port[4]
        title, rate = _TITLE.search(rest), _RATE.search(rest)
        if title:
            self.titles.setdefault(port[2], title[1].strip())
        low, high = sorted((own, peer))
        cable = Cable(own[0], port[2], int(rate[1]) * LANES[rate[2]] if rate else None,
                      f"{rate[1]}x{rate[2]}" if rate else "")  # fmt: skip
        key = (*low, *high)
        told = both_ends(self.cables.get(key), cable)
        if told.label != cable.label and told.rate is None and rate:
            self.differ[key] = (f"{self.titles[own[0]]} [{own[1]}] {cable.label} - "
                                f"{self.titles.get(peer[0], peer[0])} [{peer[1]}] "
                                f"{self.cables[key].label}")  # fmt: skip
        self.cables[key] = told


def read_ibnetdiscover(data: bytes) -> Fabric:
    """The network that `ibnetdiscover` has found.

    Raises:
        RoundelayError: there is no switch and no network card in the text.
    """
    reader = _Reader()
    for number, line in enumerate(text_of(data).split("\n"), 1):
        reader.take(number, line.strip())
    if not reader.switches and not reader.ends:
        raise RoundelayError('no node; expected the output of ibnetdiscover, with lines such as '
                             'Switch 41 "S-0002c90300000001"')  # fmt: skip
    ends = {name: title for name, title in reader.titles.items() if not name.startswith("S-")}
    ends |= {name: name for cable in reader.cables.values() for name in (cable.a, cable.b)
             if name not in ends and not name.startswith("S-")}  # fmt: skip
    for name in reader.switches:
        ends.pop(name, None)
    bare = [name for name in ends if name not in reader.ends] if reader.ends else []
    return wired("ibnetdiscover", reader.switches, ends, reader.cables.values(), reader.lines,
                 reader.notes, differ=reader.differ.values(), bare=bare)  # fmt: skip
