"""From lines to tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ...i18n import Message, message
from ..note import Note
from .inference import PROGRAMS, hinted, infer, program
from .lines import Line
from .measured import Device, Row, Table
from .rows import (
    TIME_UNITS,
    Columns,
    Draft,
    Shape,
    begin,
    endless,
    is_figures,
    row,
    shape_of,
    tells,
    unit_of,
    wanted,
)

_DEVICE: Final = re.compile(
    r"\bRank\s+(\d+)\s+(?:Group\s+\d+\s+)?(?:Pid\s+\d+\s+)?on\s+(\S+)\s+device\s+(\d+)"
    r"\s+\[(\S+)\]\s*(.*)"
)
_AVERAGE: Final = re.compile(r"\bAvg bus bandwidth\s*:\s*(\d{1,300}(?:\.\d*)?|\.\d+)(?![\d.])")
_FAILED: Final = re.compile(r"\bOut of bounds values\s*:\s*(\d{1,15})\s+FAILED")
_BENCH: Final = re.compile(r"#\s*(\w+), n = (\d+)\s*$")
"""The title of `roundelay bench`, which may also be put before a table by hand."""
_SAYS: Final = re.compile(rf"{_DEVICE.pattern}|{_AVERAGE.pattern}|{_FAILED.pattern}")
"""What some print without a # before it."""
_LIBRARY: Final = re.compile(r"\b([NR]CCL|nccl-tests) version:? *(\d\S*)")
_HCAS: Final = re.compile(r"\bNCCL_IB_HCA[= ]=?([A-Za-z][\w:,.-]{0,400})")
_WORKERS: Final = re.compile(r"\bnccom-test\b.*\s(?:-r|--nworkers)[ =](\d{1,6})\b")
_NAMES: Final = re.compile(r"\b(?:size|bytes)\b.*\btime(?:_us)?\b.*\bbusbw\b", re.I)
_SETTING: Final = re.compile(r"\b(NCCL_[A-Z0-9_]{2,40})=([^\s,;\"']{1,99})")
_GIB: Final = 2**30 / 1e9
"""GB."""
_NO_HEADER: Final = Columns(0, False, "", (False, True))
_BEGINS: Final = ("# nThread", "# nthread", "Collective test starting")


class Reader:
    """Takes lines one by one.

    Attributes:
        tables: those that are complete.
        versions: of libraries.
        notes: what was odd.
        devices: the ranks' cards, as last listed.
        apart, averages: see `Measured`.
    """

    def __init__(self) -> None:
        self.tables: list[Table] = []
        self.apart: list[Device] = []
        self.averages: list[tuple[int, float]] = []
        self.devices: dict[int, Device] = {}
        self.versions: dict[str, None] = {}
        self.notes: list[Note] = []
        self._columns = _NO_HEADER
        self._drafts: list[Draft] = []
        self._before: dict[int, Device] = {}
        self._used = False
        self._failed = 0
        self._hint: str | None = None
        self._collective: str | None = None
        self._ranks: int | None = None
        self._forms: tuple[bool, ...] = ()
        self._named: tuple[str, ...] = ()
        self._settings: dict[str, str] = {}

    def read(self, lines: Iterable[Line]) -> None:
        """Take all lines, to the end of the text."""
        for line in lines:
            self._take(line)
        self._close(None)

    def _take(self, line: Line) -> None:
        text = line.text
        self._learn(text)
        if _NAMES.search(text):
            self._head(line)
            return
        if "#" in text or _SAYS.search(text):
            self._comment(text[max(text.find("#"), 0) :], line.number)
            return
        words = text.split()
        draft = self._drafts[-1] if self._drafts else None
        if draft is not None and is_figures(words) and self._lacks(draft):
            draft.cells += words
            return
        found = begin(line.number, text, self._columns)
        if found is None:
            self._units(text)
            return
        if self._drafts and found.size < self._drafts[-1].size:
            self._again()  # sizes grow in a table
        self._drafts.append(found)

    def _lacks(self, draft: Draft) -> bool:
        if self._columns.line:
            return len(draft.cells) < wanted(self._columns) and draft.dtype is not None
        return len(draft.cells) < 8 and draft.dtype is not None

    def _learn(self, text: str) -> None:
        """What any line may say: the program, and versions."""
        named = program(text)
        workers = _WORKERS.search(text)
        if workers and named:
            self._ranks = int(workers[1])
        if named is not None:
            self._settings = dict(_SETTING.findall(text))
            if self._drafts and "concluded" not in text:
                self._close(None)
            self._collective = named
        self._hint = hinted(text) or self._hint
        if cards := _HCAS.search(text):
            self._named = tuple(filter(None, cards[1].split(",")))
        for name, version in _LIBRARY.findall(text):
            self.versions[f"{name} {version}"] = None

    def _again(self) -> None:
        """Another table begins under the same header, such as that of the next type."""
        columns, collective, ranks = self._columns, self._collective, self._ranks
        self._close(None)
        self._columns, self._collective, self._ranks = columns, collective, ranks

    def _comment(self, text: str, number: int) -> None:
        device = _DEVICE.search(text)
        average = _AVERAGE.search(text)
        title = _BENCH.match(text)
        failed = _FAILED.search(text)
        if any(begins in text for begins in _BEGINS):
            self._close(None)
        elif "Using devices" in text:
            self._close(None)
            if not self._used:
                self._before |= self.devices
            self.devices, self._used = {}, False
        elif device:
            self._device(Device(int(device[1]), device[2], int(device[3]), device[4],
                                device[5].strip()))  # fmt: skip
        elif failed:
            self._failed = int(failed[1])
        elif average:
            if not self._drafts:
                self.averages.append((number, float(average[1])))
            self._close(float(average[1]))
        elif title:
            self._close(None)
            name = title[1].removesuffix("_perf")
            self._collective = name if name in PROGRAMS.values() else PROGRAMS.get(name)
            self._ranks = int(title[2])
        elif "-place" in text:
            self._forms = tuple("in" in m for m in re.findall(r"(out-of|in)-place", text))
        else:
            self._units(text)

    def _device(self, device: Device) -> None:
        """A rank's card; one of another host for the same rank is of a job of its own."""
        if self._used:
            self.devices, self._used = {}, False
        known = self.devices.get(device.rank) or self._before.get(device.rank)
        if known is not None and known.host != device.host:
            self.apart += [known, device]
        self.devices[device.rank] = device

    def _head(self, line: Line) -> None:
        self._close(None)
        words = re.findall(r"[a-z_]+", line.text.lower())
        check = ""
        if {"wrong", "error", "res", "delta"} & set(words):
            check = "wrong" if "wrong" in words else "error"
        groups = words.count("busbw")
        forms = self._forms if len(self._forms) == groups else (False, True)[:groups]
        self._columns = Columns(line.number, "root" in words, check, forms)

    def _units(self, text: str) -> None:
        """The line of units under a header."""
        found = re.search(r"\((us|ms|s)\)", text)
        if found and self._columns.line and not self._drafts:
            self._columns = self._columns._replace(unit=found[1])

    def _close(self, average: float | None) -> None:
        """The table ends here."""
        drafts, self._drafts = self._drafts, []
        columns, self._columns = self._columns, _NO_HEADER
        rows = self._rows(drafts, columns)
        if not rows:
            if columns.line and not drafts:
                self._columns = columns  # a header, and then its units
            return
        stated, self._collective = self._collective, None
        ranks = len(self.devices) or self._ranks
        if self.devices and max(self.devices) >= len(self.devices):
            ranks = None  # lines of ranks are missing
        guess = infer(rows, stated, ranks, self._hint)
        names = guess.collectives
        self.tables.append(
            Table(columns.line or rows[0].line, names[0] if names else None, names,
                  stated is not None, guess.ranks, guess.ranks_from,
                  tuple(self.devices.values()), tuple(rows), average, self._failed, self._named,
                  tuple(self._settings.items()))
        )  # fmt: skip
        self._ranks, self._before, self._failed, self._hint = None, {}, 0, None
        self._used = True
        self._remark(self.tables[-1])

    def _rows(self, drafts: list[Draft], columns: Columns) -> list[Row]:
        shaped: list[tuple[Draft, Shape]] = []
        for draft in drafts:
            if odd := endless(draft):
                text = "this cannot be: {found}; expected numbers, so it is left out"
                self._note(draft.line, message(text, found=", ".join(odd[:4])))
            shape = shape_of(draft, columns)
            if shape is None:
                self._note(draft.line, message("this row is cut short and left out"))
            else:
                shaped.append((draft, shape))
        if shaped and not columns.line:
            self._note(drafts[0].line, message("no header: columns are told by their figures"))
        found = unit_of(shaped)
        if found and columns.unit and found != columns.unit:
            text = "times are in {found}, though the header says {said}"
            self._note(columns.line, message(text, found=found, said=columns.unit))
        unit = TIME_UNITS[found or columns.unit or "us"]
        rows = [row(draft, shape, columns, unit) for draft, shape in shaped]
        return [r for r in rows if r is not None]

    def _remark(self, table: Table) -> None:
        """What is guessed, and what does not agree."""
        if not table.stated and table.collective:
            text = "the text does not name the collective; its figures are those of {names}"
            names = " / ".join(table.collectives)
            self._note(table.line, message(text, names=names))
        if table.collective is None:
            self._note(table.line, message("the figures are those of no collective that is known"))
        if table.ranks_from == "factor":
            text = "{n:rank|ranks}, by the ratio of busbw to algbw"
            if table.devices:
                text = "{n:rank|ranks}, by the ratio of busbw to algbw, though {k} are listed"
            self._note(table.line, message(text, n=table.ranks, k=len(table.devices)))
        for r in table.rows:
            for _, timing in r.timings():
                if not tells(r, timing):
                    rate = r.size / timing.time_us / 1e3 if timing.time_us else 0.0
                    text = "algbw is {said:.2f} GB/s, but size over time is {found:.2f} GB/s"
                    if timing.algbw and abs(rate / timing.algbw - _GIB) < 0.005:
                        text = "algbw is {said:.2f} GiB/s, that is {found:.2f} GB/s"
                    self._note(r.line, message(text, said=timing.algbw, found=rate))

    def _note(self, line: int, what: Message) -> None:
        self.notes.append(Note(line, what))
