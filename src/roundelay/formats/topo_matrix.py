"""The table of `nvidia-smi topo -m` (or -mp), also quoted, as Markdown, wrapped or cut off.

Columns are told by their names, so that every driver's table is read: with and without affinities,
with NIC0 or mlx5_0 for a network card.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from ..errors import RoundelayError
from ..i18n import message
from .machine import PATHS, Card, Machine, Nic
from .note import Note
from .plain import ESCAPES, text_of

_QUOTE: Final = re.compile(r"^(?:[>#*\s]|//)+")
_CARD: Final = re.compile(r"GPU\d{1,9}")
_BEHIND: Final = ("CPU", "NUMA", "CPU_Affinity", "NUMA_Affinity", "GPU_NUMA_ID", "Affinity")
"""Columns that are no devices."""
_LEGEND: Final = re.compile(r"^\s*(NIC\d+)\s*[:=]\s*(\S+)")
_LINKS: Final = re.compile(r"NV(\d{1,6})")
_CELLS: Final = MappingProxyType({"X": "LOC", "SOC": "SYS", "QPI": "SYS", "NS": "", "N/A": ""})
"""Cells that are not the name of a class: a drive's own, old drivers', not supported."""
_GLUED: Final = re.compile(r"((?:GPU|NIC|mlx5_)\d{1,9})(?=(?:GPU|NIC|mlx5_)\d)")
_GLUED_CELLS: Final = re.compile(r"(?<!\S)(?:NODE|SYS|PHB|PXB|PIX|NV\d{1,2}){2,4}(?!\S)")
_IN_CELLS: Final = re.compile(r"NODE|SYS|PHB|PXB|PIX|NV\d{1,2}")
"""Names and cells between which a terminal or a page has lost the space."""
_RULE: Final = re.compile(r"[\s|:+-]+")
_PEERS: Final = frozenset(("X", "OK", "CNS", "GNS", "TNS", "NS", "DR", "U"))
"""Cells of `nvidia-smi topo -p2p`."""
MOST_TABLES: Final = 16
"""Tables of a text."""
MOST_LINKS: Final = 18
"""Links of a card; where the table says more in all, a switch gives each pair the same ones."""
WIDEST: Final = 1024
"""Columns."""


@dataclass
class _Row:
    name: str
    line: int
    cells: list[str]
    rest: list[str] = field(default_factory=list)


@dataclass
class _Table:
    """What is read so far."""

    columns: list[str] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    line: int = 0
    rows: dict[str, _Row] = field(default_factory=dict)
    legend: dict[str, str] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    prefix: bool = False
    last: _Row | None = None
    second: int = 0


def read_topo_matrix(data: bytes) -> Machine:
    """The machine that a table describes.

    Raises:
        RoundelayError: there is no such table.
    """
    table = _Table()
    for number, raw in enumerate(text_of(data).split("\n"), 1):
        _take(table, number, ESCAPES.sub("", raw).rstrip("\r"))
    if not table.columns:
        table = _without_head(data)
    if not table.columns or not (table.rows or (table.fields and len(table.columns) > 1)):
        raise RoundelayError(
            "no table of `nvidia-smi topo -m`: expected a head such as GPU0 GPU1 CPU Affinity, and "
            "a row for every name in it"
        )
    return _machine(table)


def tables_of(data: bytes) -> list[tuple[int, bytes]]:
    """The tables of a text one by one, each with its line, and the lines before it empty."""
    lines = text_of(data).split("\n")
    begins = [1]
    while len(begins) < MOST_TABLES:
        table = _Table()
        for number in range(begins[-1], len(lines) + 1):
            _take(table, number, ESCAPES.sub("", lines[number - 1]).rstrip("\r"))
            if table.second:
                break
        else:
            break
        begins.append(table.second)
    ends = [begin - 1 for begin in begins[1:]] + [len(lines)]
    return [(begin, ("\n" * (begin - 1) + "\n".join(lines[begin - 1 : end])).encode())
            for begin, end in zip(begins, ends, strict=True)]  # fmt: skip


def read_peers(data: bytes) -> dict[tuple[str, str], tuple[str, int]]:
    """The table of `nvidia-smi topo -p2p`: of two cards the state, and its line; {} if none."""
    found: dict[tuple[str, str], tuple[str, int]] = {}
    for number, raw in enumerate(text_of(data).split("\n"), 1):
        words = _words(_QUOTE.sub("", ESCAPES.sub("", raw)))
        cells = words[1:]
        if not words or not _CARD.fullmatch(words[0]) or not {"X"} <= set(cells) <= _PEERS:
            continue
        for at, cell in enumerate(cells[:WIDEST]):
            if cell != "X":
                found[words[0], f"GPU{at}"] = cell, number
    return found


def _without_head(data: bytes) -> _Table:
    """A table whose head was not copied: rows of cards tell how many columns there are.

    NVLinks join cards alone, and every card that has a row has a column.
    """
    rows: list[list[str]] = []
    for raw in text_of(data).split("\n"):
        words = _words(_QUOTE.sub("", ESCAPES.sub("", raw)))
        at = int(words[0][3:]) if words and _CARD.fullmatch(words[0]) else -1
        if 0 <= at < WIDEST and at == len(rows) and words[at + 1 : at + 2] == ["X"]:
            rows.append(words[1:])
    table = _Table()
    if len(rows) < 2:
        return table
    wide = max(next((i for i, w in enumerate(r) if not _cell(w)), len(r)) for r in rows)
    linked = [i + 1 for r in rows for i, word in enumerate(r[:wide]) if _LINKS.fullmatch(word)]
    cards = max(len(rows), *linked) if linked else len(rows)
    table.columns = [f"GPU{i}" for i in range(cards)]
    table.columns += [f"NIC{i}" for i in range(max(0, wide - cards))]
    table.notes.append(
        Note(
            0,
            message(
                "no head: {n:card|cards} and {m:network card|network cards} are told by the rows",
                n=cards,
                m=max(0, wide - cards),
            ),
        )
    )
    for number, raw in enumerate(text_of(data).split("\n"), 1):
        _take(table, number, ESCAPES.sub("", raw).rstrip("\r"))
    return table


def _words(text: str) -> list[str]:
    text = re.sub(r"(CPU|NUMA|GPU NUMA) (Affinity|ID)", r"\1_\2", text)
    text = _GLUED_CELLS.sub(lambda glued: " ".join(_IN_CELLS.findall(glued[0])),
                            _GLUED.sub(r"\1 ", text))  # fmt: skip
    return text.replace("GPU NUMA_ID", "GPU_NUMA_ID").replace("|", " ").split()


def _take(table: _Table, number: int, text: str) -> None:
    if re.search(r"topo +-(?:mp|p)\b|--matrix_pci", text):
        table.prefix = True
    words = _words(_QUOTE.sub("", text))
    if not words or _RULE.fullmatch(text):
        return
    if found := _LEGEND.match(_QUOTE.sub("", text)):
        table.legend[found[1]] = found[2]
    elif words[0] in table.columns and len(words) > 1 and (_cell(words[1]) or words[1] in _BEHIND):
        _begin(table, number, words)
    elif _is_head(table, words):
        _head(table, number, words)
    elif table.columns and _CARD.fullmatch(words[0]) and len(words) > 1 and _cell(words[1]):
        what = message("{name} is no column of the table", name=words[0])
        table.notes.append(Note(number, what))
        table.last = None
    elif table.last is not None and len(table.last.cells) < len(table.columns):
        _continue(table, words)
    elif len(words) == 1 and table.rows and words[0] in ("GPU", "NIC", "mlx5_"):
        table.notes.append(Note(number, message("a row that is cut off: {text}", text=words[0])))


def _is_head(table: _Table, words: Sequence[str]) -> bool:
    """Whether these name columns: the first line that begins with a card, or more of the same."""
    if any(map(_cell, words)):
        return False
    if _CARD.fullmatch(words[0]):
        return len(words) > 1
    return bool(table.columns) and not table.rows and words[0] not in table.columns


def _head(table: _Table, number: int, words: Sequence[str]) -> None:
    """The names of columns; what follows directly belongs to a head that is wrapped."""
    names = [word for word in words if word not in _BEHIND][:WIDEST]
    fields = [word for word in words if word in _BEHIND]
    if table.rows and set(names) & set(table.columns):
        table.second = table.second or number
        what = message("a second table; only the first one is read")
        table.notes.append(Note(number, what))
        return
    table.line = table.line or number
    table.columns += [name for name in names if name not in table.columns]
    table.fields += fields


def _begin(table: _Table, number: int, words: Sequence[str]) -> None:
    row = table.rows.get(words[0])
    if row is None:
        row = table.rows[words[0]] = _Row(words[0], number, [])
    table.last = row
    _continue(table, words[1:])


def _continue(table: _Table, words: Sequence[str]) -> None:
    """Put cells into the row that is being read, and affinities behind them."""
    row = table.last
    if row is None:
        return
    for at, word in enumerate(words):
        if len(row.cells) >= len(table.columns) or not _cell(word):
            row.rest += words[at:]
            return
        row.cells.append(word)


def _cell(word: str) -> bool:
    return word in PATHS or word in _CELLS or bool(_LINKS.fullmatch(word))


def _machine(table: _Table) -> Machine:
    cards = tuple(_card(table, name) for name in table.columns if _CARD.fullmatch(name))
    nics = tuple(_nic(table, name) for name in table.columns if not _CARD.fullmatch(name))
    missing = []
    for name in table.columns:
        row = table.rows.get(name)
        if row is None:
            missing.append(name)
            table.notes.append(Note(table.line, message("{name} has no row", name=name)))
        elif len(row.cells) < len(table.columns):
            missing.append(name)
            what = message("the row of {name} ends after {found} of {wanted} columns", name=name,
                           found=len(row.cells), wanted=len(table.columns))  # fmt: skip
            table.notes.append(Note(row.line, what))
    between = _between(table)
    shown = not table.prefix or any(card.links for card in cards)
    return Machine(
        "nvidia-smi", cards, nics, between, links_shown=shown, missing=tuple(missing),
        cut=bool(missing), unequal=_unequal(table),
        notes=tuple(sorted(table.notes, key=lambda note: note.line)), numa_hidden=_bare(table),
    )  # fmt: skip


def _bare(table: _Table) -> bool:
    """Whether the columns of affinity are there, and nothing in them."""
    whole = [row for row in table.rows.values()
             if _CARD.fullmatch(row.name) and len(row.cells) == len(table.columns)]  # fmt: skip
    named = {"CPU_Affinity", "NUMA_Affinity"} <= set(table.fields)
    return named and bool(whole) and not any(set(row.rest) - {"N/A"} for row in whole)


def _between(table: _Table) -> dict[tuple[str, str], str]:
    """Ways by pair of names; what a missing row would say is taken from the column."""
    found: dict[tuple[str, str], str] = {}
    for row in table.rows.values():
        for column, cell in zip(table.columns, row.cells, strict=False):
            way = "NVL" if _LINKS.fullmatch(cell) else _CELLS.get(cell, cell)
            if not way or column == row.name:
                continue
            if found.setdefault((row.name, column), way) != way:
                what = message("{a} to {b} is {x} here, and {y} elsewhere", a=row.name, b=column,
                               x=way, y=found[row.name, column])  # fmt: skip
                table.notes.append(Note(row.line, what))
            found.setdefault((column, row.name), way)
    return found


def _unequal(table: _Table) -> tuple[tuple[str, str, str, str, int], ...]:
    """Pairs of cards whose two cells differ, one of which is of NVLinks."""
    at = {name: i for i, name in enumerate(table.columns)}
    found = []
    for row in table.rows.values():
        for other in table.rows.values():
            if at[row.name] >= at[other.name]:
                continue
            cells = [one.cells[at[two.name]] if at[two.name] < len(one.cells) else ""
                     for one, two in ((row, other), (other, row))]  # fmt: skip
            if all(cells) and cells[0] != cells[1] and any(map(_LINKS.fullmatch, cells)):
                found.append((row.name, other.name, *cells, other.line))
    return tuple(found[:WIDEST])  # type: ignore[arg-type]


def _links(table: _Table, name: str) -> dict[str, int]:
    """NVLinks by the other's name; by "switch" where all are reached by the same links."""
    found: dict[str, int] = {}
    at = table.columns.index(name)
    for row in table.rows.values():
        own = row.name == name
        cells = zip(table.columns, row.cells, strict=False) if own else [
            (row.name, cell) for cell in row.cells[at : at + 1]
        ]  # fmt: skip
        for other, cell in cells:
            if count := _LINKS.fullmatch(cell):
                found[other] = int(count[1])
    each = set(found.values())
    if len(found) > 1 and len(each) == 1 and len(found) * max(each) > MOST_LINKS:
        return {"switch": each.pop()}
    return found


def _card(table: _Table, name: str) -> Card:
    row = table.rows.get(name)
    return Card(
        name, row.line if row else table.line, numa=_numa(table, row),
        device=int(name[3:]) if len(name) < 12 else None, links=_links(table, name),
        c2c=int(_field(table, row, "GPU_NUMA_ID") is not None),  # only cards of Grace have one
    )  # fmt: skip


def _nic(table: _Table, name: str) -> Nic:
    row = table.rows.get(name)
    device = table.legend.get(name, "" if name.startswith("NIC") else name)
    return Nic(name, row.line if row else table.line, device=device)


def _numa(table: _Table, row: _Row | None) -> int | None:
    """The NUMA node of its processor."""
    return _field(table, row, "NUMA_Affinity")


def _field(table: _Table, row: _Row | None, name: str) -> int | None:
    """A number by the position of its column, since no column is empty in a card's row."""
    if row is None or name not in table.fields:
        return None
    at = table.fields.index(name)
    value = row.rest[at] if at < len(row.rest) else ""
    return int(value) if value.isdecimal() and len(value) < 6 else None
