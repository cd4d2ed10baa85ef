"""What `nvidia-smi nvlink` prints of each card: state (-s) and counters of errors (-e)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from ..errors import RoundelayError
from .pasted import pasted_lines

_CARD: Final = re.compile(r"^\s*GPU (\d{1,4}): (.{1,80}?)(?: \(UUID.{0,80})?$")
_STATE: Final = re.compile(
    r"^\s*Link (\d{1,3}): (?:(\d{1,4}(?:\.\d{1,6})?) GB/s|<?(?:inactive|disabled|down)>?)\s*$", re.I
)
_PEERS: Final = re.compile(r"^\s*Link (\d{1,3}), P2P is supported: (true|false)", re.I)
_NONE: Final = re.compile(r"all links are in ?active", re.I)
_COUNT: Final = re.compile(
    r"^\s*Link (\d{1,3}): (Replay|Recovery|CRC(?: FLIT| Data)?|ECC(?: Data)?) Errors?(?: Counter)?"
    r":? *(\d{1,20})\s*$", re.I
)  # fmt: skip


@dataclass
class LinkedCard:
    """A card and its links.

    Attributes:
        number, name, line: of the card.
        rates: GB/s of each link as the command gives them, one way; 0 for one that is not up.
        lines: where each link stands.
        errors: counts by link and kind, such as "replay", with the line; those above 0.
        counted: whether any counter was listed.
        peers: whether each link carries peer access, where the command (-c) tells.
    """

    number: int
    name: str
    line: int
    rates: dict[int, float] = field(default_factory=dict)
    lines: dict[int, int] = field(default_factory=dict)
    errors: dict[tuple[int, str], tuple[int, int]] = field(default_factory=dict)
    counted: bool = False
    peers: dict[int, bool] = field(default_factory=dict)

    @property
    def down(self) -> tuple[int, ...]:
        """Links that are not up."""
        return tuple(link for link, rate in self.rates.items() if not rate)


def read_smi_links(data: bytes) -> tuple[LinkedCard, ...]:
    """The cards of a text, each with its links.

    Raises:
        RoundelayError: there are none.
    """
    cards: dict[int, LinkedCard] = {}
    card: LinkedCard | None = None
    for number, line in pasted_lines(data):
        if found := _CARD.match(line):
            card = cards.setdefault(int(found[1]), LinkedCard(int(found[1]), found[2], number))
        elif card is None:
            continue
        elif _NONE.search(line):
            card.rates[0], card.lines[0] = 0.0, number
        elif found := _STATE.match(line):
            card.rates[int(found[1])] = float(found[2] or 0)
            card.lines[int(found[1])] = number
        elif found := _PEERS.match(line):
            card.peers[int(found[1])] = found[2].lower() == "true"
        elif found := _COUNT.match(line):
            card.counted = True
            if count := int(found[3]):
                card.errors[int(found[1]), found[2].lower()] = count, number
    listed = tuple(card for card in cards.values() if card.rates or card.counted or card.peers)
    if not listed:
        raise RoundelayError("no links; expected the output of nvidia-smi nvlink -s or -e, such as "
                             "GPU 0: NVIDIA H100 and below it Link 0: 26.562 GB/s")  # fmt: skip
    return listed
