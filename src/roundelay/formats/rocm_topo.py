"""The matrices of `rocm-smi --showtopo` and `amd-smi topology`: weight, hops, type of links."""

from __future__ import annotations

import re
from typing import Final

from ..errors import RoundelayError
from ..i18n import message
from .machine import Card, Machine
from .note import Note
from .plain import text_of

_TITLE: Final = re.compile(r"=*\s*(Weight|Hops|Link Type|Accessible|Access) between two GPUs", re.I)
_NUMA: Final = re.compile(
    r"GPU\[(\d{1,15})\]\s*:.*\(?(?:Topology\) )?Numa Node\s*:\s*(-?\d{1,15})", re.I
)
_TABLE: Final = re.compile(r"^\W*(\w[\w ]{1,30}) TABLE\b", re.I)
_NAME: Final = re.compile(r"GPU\d{1,9}")
_BUS: Final = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]", re.I)


def read_rocm_topo(data: bytes) -> Machine:
    """The machine that the matrices describe.

    Raises:
        RoundelayError: there are none.
    """
    matrices, numas, notes, lines = _matrices(text_of(data))
    kinds = matrices.get("link type", {})
    names = sorted({name for matrix in matrices.values() for pair in matrix for name in pair},
                   key=lambda name: int(name[3:]))  # fmt: skip
    names = names or sorted(numas, key=lambda name: int(name[3:]))
    if not names:
        raise RoundelayError(
            "no matrix of `rocm-smi --showtopo`; expected a title such as Link Type between two "
            "GPUs, and rows GPU0, GPU1, ..."
        )
    if not kinds and matrices:
        notes.append(Note(0, message("no matrix of link types; the ways are not known")))
    between, links = {}, dict[str, dict[str, int]]()
    for (a, b), kind in kinds.items():
        if a != b and kind in ("XGMI", "PCIE"):
            between[a, b] = "NVL" if kind == "XGMI" else _way(matrices, a, b)
            if kind == "XGMI":
                links.setdefault(a, {})[b] = 1
    missing = [name for name in names if (name, name) not in kinds] if kinds else []
    notes += [Note(0, message("{name} has no row", name=name)) for name in missing]
    cards = tuple(
        Card(name, lines.get(name, 0), numa=numas.get(name), device=int(name[3:]),
             links=links.get(name, {}), kind="xgmi")
        for name in names
    )  # fmt: skip
    return Machine("rocm-smi", cards, (), between, missing=tuple(missing), cut=bool(missing),
                   notes=tuple(notes))  # fmt: skip


_Matrix = dict[tuple[str, str], str]


def _matrices(
    text: str,
) -> tuple[dict[str, _Matrix], dict[str, int], list[Note], dict[str, int]]:
    """The matrices by title, NUMA nodes, what was odd, and the line of each card's last row."""
    found: dict[str, _Matrix] = {}
    numas: dict[str, int] = {}
    notes: list[Note] = []
    lines: dict[str, int] = {}
    current: _Matrix | None = None
    buses: dict[str, str] = {}
    columns: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        if title := (_TITLE.search(line) or _TABLE.match(line)):
            current, columns = found.setdefault(title[1].lower(), {}), []
            continue
        if numa := _NUMA.search(line):
            numas[f"GPU{numa[1]}"] = int(numa[2])
            lines.setdefault(f"GPU{numa[1]}", number)
            continue
        words = [_named(buses, word) for word in line.replace("|", " ").split()]
        if current is None or not words or not _NAME.fullmatch(words[0]):
            continue
        if all(_NAME.fullmatch(word) for word in words) and not columns:
            columns = words
            continue
        lines[words[0]] = number
        if len(words) - 1 < len(columns):
            what = message("the row of {name} ends after {found} of {wanted} columns",
                           name=words[0], found=len(words) - 1, wanted=len(columns))  # fmt: skip
            notes.append(Note(number, what))
        for column, cell in zip(columns, words[1:], strict=False):
            current[words[0], column] = cell.upper()
    return found, numas, notes, lines


def _named(buses: dict[str, str], word: str) -> str:
    """A word; an address as the name of its card, in the order in which they come."""
    if not _BUS.fullmatch(word):
        return word
    return buses.setdefault(word.lower(), f"GPU{len(buses)}")


def _way(matrices: dict[str, _Matrix], a: str, b: str) -> str:
    """PCIe by weight: a card's link to its processor counts 20, so more than 40 crosses sockets."""
    weight = matrices.get("weight", {}).get((a, b), "")
    return "SYS" if weight.isdecimal() and len(weight) < 6 and int(weight) > 40 else "PHB"
