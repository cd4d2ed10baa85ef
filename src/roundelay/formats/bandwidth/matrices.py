"""Matrices of rates between cards, and between hosts and cards."""

from __future__ import annotations

import re
from typing import Final

from .measured import Matrix

CARDS: Final = 1024
"""Columns of a matrix that are read."""
_TITLE: Final = re.compile(
    r"P2P=(?:En|Dis)abled [\w ()]{0,30}(?:Matrix|Latency)|"
    r"memcpy (?:CE|SM) [CG]PU\(row\) ?<?-?>? ?[CG]PU\(column\) bandwidth|"
    r"(?:Uni|Bi)directional copy peak bandwidth GB/s|P2P Connectivity Matrix|"
    r"Inter-Device (?:Access|Numa)", re.I
)  # fmt: skip
_HEADER: Final = re.compile(r"\s*(?:D[\\/]D|GPU|CPU)?\s*\d+(?:\s+\d+)*\s*$")
_CELL: Final = re.compile(r"\d{1,9}(?:\.\d{1,6})?|N/A|X", re.I)
_DEVICE: Final = re.compile(r"\bDevice: *(\d{1,4}), *(.*)")


class Matrices:
    """Takes lines one by one."""

    def __init__(self) -> None:
        self._done: list[Matrix] = []
        self._title = (0, "")
        self._columns: list[int] = []
        self._cells: dict[tuple[int, int], float] = {}
        self._lines: list[tuple[int, str]] = []
        self._hosts: set[int] = set()
        self._side = ""

    def take(self, number: int, text: str) -> bool:
        """Whether the line is of a matrix."""
        if (device := _DEVICE.search(text)) and not re.search(r"Instinct|GPU-|gfx|NVIDIA|Tesla|RTX",
                                                              device[2]):  # fmt: skip
            self._hosts.add(int(device[1]))
        if _TITLE.search(text):
            self._close()
            self._title = (number, text.strip()[:120])
            return True
        if not self._title[1]:
            return False
        words = text.split()
        if _HEADER.match(text) and (not words[-1:] or words[-1].isdecimal()):
            numbers = [int(word) for word in words if word.isdecimal()]
            if numbers == list(range(len(numbers))) and len(numbers) <= CARDS:
                if self._cells and words[0] in ("GPU", "CPU"):
                    title = self._title
                    self._close()
                    self._title = title
                self._side = words[0] if words[0] in ("GPU", "CPU") else ""
                self._columns = numbers
                return True
        if not self._columns or not words:
            return False
        if not (words[0].isdecimal() and all(_CELL.fullmatch(word) for word in words[1:])):
            if not words[0].startswith(("SUM", "Device", "NOTE")):
                return False
            self._close()
            return False
        self._lines.append((number, text.strip()[:200]))
        for column, word in zip(self._columns, words[1:], strict=False):
            if word[0].isdigit():
                self._cells[int(words[0][:6]), column] = float(word)
        return True

    def done(self) -> tuple[Matrix, ...]:
        """All matrices of rates and times."""
        self._close()
        return tuple(self._done)

    def _close(self) -> None:
        (line, title), self._title = self._title, (0, "")
        cells, self._cells = self._cells, {}
        lines, self._lines = tuple(self._lines), []
        self._columns = []
        said = title.lower()
        if not cells or "connectivity" in said or "inter-device" in said or self._side == "CPU":
            self._side = ""
            return
        self._side = ""
        host = "cpu(" in said
        peers = True if "=enabled" in said else False if "=disabled" in said else None
        if not host:
            cells = {(a, b): rate for (a, b), rate in cells.items()
                     if a != b and not {a, b} & self._hosts}  # fmt: skip
        if cells:
            both = "bidirectional" in said or "<->" in said
            self._done.append(
                Matrix(line, title, host, both, peers, cells, "latency" in said, lines)
            )
