"""Nodes and jobs as `scontrol show` prints them (Slurm 22.05 to 26.05)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from .pasted import pasted_lines
from .plain import text_of

_PAIR: Final = re.compile(r"(\w+)=(\S*)")
_BEGIN: Final = re.compile(r"\b(NodeName|JobId)=(\S{1,200})")
_STATE: Final = re.compile(r"\b(?:JobState|State)=(\S{1,100})")
_REASON: Final = re.compile(r"\bReason=(.{1,300}?)(?:\s*\[\w[^\]]{0,80}\])?\s*$")
_JOB_REASON: Final = re.compile(r"\bReason=(\S{1,200})")
MOST: Final = 2**14
"""Records."""
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


@dataclass(frozen=True)
class Shown:
    """A node or job with its state, and the reason that stands beside it ("" if none)."""

    name: str
    job: bool
    state: str
    reason: str
    line: int


def read_shown(data: bytes) -> list[Shown]:
    """The records of `scontrol show node` and `scontrol show job` that tell a state."""
    found: list[Shown] = []
    name, job, state, reason, at = "", False, "", "", 0

    def close() -> None:
        if name and state and len(found) < MOST:
            found.append(Shown(name, job, state, reason, at))

    for number, line in pasted_lines(data):
        if begun := _BEGIN.search(line):
            close()
            name, job, state, reason, at = begun[2], begun[1] == "JobId", "", "", number
        if said := _STATE.search(line):
            state = said[1].upper()
        if told := (_JOB_REASON if job else _REASON).search(line):
            reason = told[1].strip()
    close()
    return found


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
