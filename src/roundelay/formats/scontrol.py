"""Nodes as `scontrol show node` prints them (Slurm 22.05 to 26.05)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .plain import text_of

_PAIR: Final = re.compile(r"(\w+)=(\S*)")
_GPU: Final = re.compile(r"\bgpu(?::[\w.-]+)?:(\d{1,6})(?:\(S:[^)]*\))?(?=,|$)")
_INDEX: Final = re.compile(r"IDX:([\d,-]+)")
_COUNT: Final = re.compile(r"gres/gpu=(\d{1,6})")
_SLICED: Final = re.compile(r"\b(?:shard|mps)\b|\bgpu:(?:\w+_)?\d+g\.")
"""Parts of a card: Slurm's shard and mps, and MIG's profiles, such as 1g.10gb."""


@dataclass(frozen=True)
class SlurmNode:
    """A node.

    Attributes:
        name: of the node.
        state: as it stands there, such as IDLE+DRAIN.
        cards: GPUs that it has; None where it says nothing of them.
        used: numbers of those in use; the lowest where only their count is known.
        sliced: whether it gives parts of cards.
        version: of its slurmd, such as "22.05.8"; "" where it isn't said.
    """

    name: str
    state: str
    cards: int | None
    used: tuple[int, ...]
    sliced: bool
    version: str

    @property
    def free(self) -> bool:
        """Whether it takes jobs: it answers, isn't drained or reserved, and has something left."""
        bases = ("IDLE", "MIXED") if self.cards else ("IDLE",)
        return self.state.replace("+CLOUD", "").replace("+DYNAMIC_NORM", "") in bases


def read_nodes(data: bytes) -> list[SlurmNode]:
    """The nodes of the output of `scontrol show node`, with or without -d and -o."""
    return [_node(fields) for fields in _records(text_of(data))]


def _records(text: str) -> Iterator[dict[str, str]]:
    record: dict[str, str] = {}
    for key, value in _PAIR.findall(text):
        if key == "NodeName" and record:
            yield record
            record = {}
        if record or key == "NodeName":
            record.setdefault(key, value)
    if record:
        yield record


def _node(fields: dict[str, str]) -> SlurmNode:
    gres = fields.get("Gres", "")
    cards = sum(int(count) for count in _GPU.findall(gres)) or None
    return SlurmNode(fields["NodeName"], fields.get("State", "").upper(), cards, _used(fields),
                     bool(_SLICED.search(gres)), fields.get("Version", ""))  # fmt: skip


def _used(fields: dict[str, str]) -> tuple[int, ...]:
    """Numbers of the cards in use, as in GresUsed=gpu:h100:2(IDX:0-1)."""
    found: list[int] = []
    for text in _INDEX.findall(fields.get("GresUsed", "")):
        for part in text.split(","):
            first, _, last = part.partition("-")
            if first.isdigit() and (last or first).isdigit() and len(last or first) < 6:
                found += range(int(first), int(last or first) + 1)
    count = _COUNT.search(fields.get("AllocTRES", ""))
    return tuple(found) or tuple(range(int(count[1]) if count else 0))
