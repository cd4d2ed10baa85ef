"""What NCCL's RAS says of a job: text of `ncclras` since 2.24, and its JSON since 2.28.7.

The shapes are those of NCCL's user guide, Troubleshooting, RAS.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from ..errors import RoundelayError
from ..i18n import message
from .note import Note
from .plain import text_of

KEPT: Final = 10**5
"""Communicators and processes of a report."""
_COMMA: Final = re.compile(r'("nvml_dev":\s*-?\d+)(\s*"status":)')
"""NCCL 2.28 leaves a comma out here."""
_HEAD: Final = re.compile(r"#(\d{1,9}-\d{1,9}) \(([0-9a-f]{1,32})\) (\w+)")
_COUNT: Final = re.compile(
    r"(\d{1,9}) ranks? ha(?:ve|s) (?:launched up to operation (\d{1,15})|not launched (any)|"
    r"status (\w+))|Rank (\d{1,9}) has (?:launched up to operation (\d{1,15})|not launched (any)|"
    r"status (\w+))"
)
_MEMBER: Final = re.compile(
    r"Rank (\d{1,9}).*-- GPU (\S+) managed by process (\d{1,15}) on node (\S+)"
)
_PROCESS: Final = re.compile(r"Process (\d{1,15}) on node (\S+) managing GPUs? (.+)")
_MISSING: Final = re.compile(r"The missing ranks?: ([\d, -]{1,10000})")
_DIFFERENT: Final = re.compile(r"Communicator ranks have different (.{1,80})")
_ROW: Final = re.compile(
    r"\s*\d+\s+(\d{1,9})\s+[\d-]+\s+[\d-]+\s+[\d-]+\s+(\d{1,9})\s+(\w+)\s+(OK|MISMATCH|INCOMPLETE)"
)


class Member(NamedTuple):
    """A rank, or a process where `rank` is None; -1 and "" for what is not told."""

    rank: int | None
    host: str = ""
    pid: int = -1
    device: str = ""
    dead: bool = False


class Part(NamedTuple):
    """So many ranks have the same value; those that are named."""

    value: str
    ranks: int
    members: tuple[Member, ...]


class Spread(NamedTuple):
    """Ranks of a communicator that differ in `what`, such as "AllReduce operation counts"."""

    what: str
    parts: tuple[Part, ...]
    line: int


@dataclass
class Comm:
    """A communicator: its number in text, its hash, and what is wrong with it."""

    name: str
    hash: str
    size: int = 0
    missing: list[Member] = field(default_factory=list)
    spreads: list[Spread] = field(default_factory=list)
    line: int = 0


@dataclass
class Ras:
    """One report.

    Attributes:
        version, time: as it says.
        communicators: how many there are.
        ranks: in all of them.
        comms: of text, those with something wrong; of JSON, all.
        lost: processes that do not answer; `dead` if they are given up.
        timeouts: while it was gathered.
        line: where it begins.
        texts: its lines, for evidence, by number.
    """

    version: str = ""
    time: str = ""
    communicators: int = 0
    ranks: int = 0
    comms: dict[str, Comm] = field(default_factory=dict)
    lost: list[Member] = field(default_factory=list)
    timeouts: int = 0
    line: int = 1
    texts: dict[int, str] = field(default_factory=dict)

    @property
    def hosts(self) -> set[str]:
        """Names and addresses of hosts that it names."""
        members = [*self.lost]
        for comm in self.comms.values():
            members += comm.missing
            members += [m for s in comm.spreads for part in s.parts for m in part.members]
        return {member.host for member in members} - {""}


def read_ras(data: bytes) -> tuple[tuple[Ras, ...], tuple[Note, ...]]:
    """The reports in a file, one after another, and what was odd.

    Raises:
        RoundelayError: there is none.
    """
    text = text_of(data)
    notes: list[Note] = []
    reports = _of_json(text, notes) if text.lstrip()[:1] == "{" else _of_text(text.split("\n"))
    if not reports:
        raise RoundelayError(
            "no report of NCCL's RAS; expected the output of ncclras, as text or JSON"
        )
    return tuple(reports), tuple(notes)


# JSON.


def _of_json(text: str, notes: list[Note]) -> list[Ras]:
    mended = _COMMA.sub(r"\1,\2", text)
    decoder, at = json.JSONDecoder(), 0
    found: list[Ras] = []
    while (at := len(mended) - len(mended[at:].lstrip())) < len(mended):
        line = mended.count("\n", 0, at) + 1
        try:
            value, at = decoder.raw_decode(mended, at)
        except (ValueError, RecursionError) as error:
            if not found:
                raise RoundelayError(f"no sound JSON: {error}; is the file whole?") from None
            what = message("the rest cannot be read: {why}", why=str(error))
            notes.append(Note(line, what))
            break
        if isinstance(value, dict) and isinstance(value.get("communicators"), list):
            found.append(_report(value, line))
        elif isinstance(value, dict) and value.get("event") == "PEER_DEAD" and found:
            peer = value.get("peer")
            found[-1].lost.append(_member(peer, dead=True)._replace(rank=None))
    return found


def _report(value: Mapping[str, Any], line: int) -> Ras:
    version, stamp = (str(value.get(name, ""))[:40] for name in ("nccl_version", "timestamp"))
    comms = [_comm(c, line) for c in value["communicators"][:KEPT] if isinstance(c, dict)]
    ras = value.get("ras")
    timeouts = ras.get("timeouts_count") if isinstance(ras, dict) else 0
    report = Ras(version, stamp, len(comms), sum(c.size for c in comms),
                 {c.hash: c for c in comms}, line=line)  # fmt: skip
    report.timeouts = _whole(timeouts, 0)
    return report


def _comm(value: Mapping[str, Any], line: int) -> Comm:
    listed = [r for r in _list(value.get("ranks")) if isinstance(r, dict)]
    counts: dict[str, dict[int, list[Member]]] = {}
    for rank in listed:
        made = rank.get("collective_counts")
        for name, count in made.items() if isinstance(made, dict) else ():
            by = counts.setdefault(str(name)[:40], {})
            by.setdefault(_whole(count, 0), []).append(_member(rank))
    spreads = [
        Spread(name, tuple(Part(str(n), len(m), tuple(m)) for n, m in sorted(by.items())), line)
        for name, by in counts.items() if len(by) > 1
    ]  # fmt: skip
    missing = [_member(r) for r in _list(value.get("missing_ranks")) if isinstance(r, dict)]
    hash_ = str(value.get("hash", ""))[:40]
    return Comm("", hash_, _whole(value.get("size"), len(listed)), missing, spreads, line)


def _member(value: Any, dead: bool = False) -> Member:
    if not isinstance(value, dict):
        return Member(None, dead=dead)
    status = value.get("status")
    dead |= isinstance(status, dict) and status.get("considered_dead") is True
    device = value.get("cuda_dev", value.get("cuda_devs", ""))
    rank = _whole(value.get("rank"), -1)
    return Member(rank if rank >= 0 else None, str(value.get("host", ""))[:200],
                  _whole(value.get("pid"), -1), str(device)[:40].strip("[]"), dead)  # fmt: skip


def _list(value: Any) -> list[Any]:
    return value[:KEPT] if isinstance(value, list) else []


def _whole(value: Any, other: int) -> int:
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62
    return value if whole else other


# Text.


def _of_text(lines: Iterable[str]) -> list[Ras]:
    reports: list[Ras] = []
    reader = _Text()
    for number, line in enumerate(lines, 1):
        starts = "Job summary" in line or (
            "Communicators..." in line and reader.report.communicators
        )
        if starts and (reader.seen or reader.report.communicators):
            reports.append(reader.report)
            reader = _Text()
        reader.take(number, line)
    if reader.seen or reader.report.communicators:
        reports.append(reader.report)
    return reports


class _Text:
    """Reads one report, line by line."""

    def __init__(self) -> None:
        self.report, self.seen = Ras(line=0), False
        self._comm: Comm | None = None
        self._what, self._dead = "", False
        self._parts: list[tuple[str, int, list[Member]]] = []
        self._line = 0

    def take(self, number: int, line: str) -> None:
        """Understand a line, or leave it out."""
        text, report = line.strip(), self.report
        known = True
        if head := _HEAD.search(text):
            self._comm = report.comms.setdefault(head[2], Comm(head[1], head[2], line=number))
            self.seen = True
        elif text in ("DEAD", "INCOMPLETE"):
            self._comm, self._dead, self.seen = None, text == "DEAD", True
        elif row := _ROW.match(line):
            report.communicators += int(row[1])
            report.ranks += int(row[2])
        elif process := _PROCESS.search(text):
            member = Member(None, process[2], int(process[1]), process[3][:40], self._dead)
            report.lost.append(member)
        elif self._comm is not None:
            known = self._of_comm(number, text)
        else:
            known = False
        if known and len(report.texts) < KEPT:
            report.line = report.line or number
            report.texts[number] = text[:300]

    def _of_comm(self, number: int, text: str) -> bool:
        comm = self._comm
        assert comm is not None
        if different := _DIFFERENT.search(text):
            self._what, self._parts, self._line = different[1], [], number
            return True
        if missing := _MISSING.search(text):
            comm.missing += [Member(rank) for rank in _ranks(missing[1])]
            return True
        if told := _COUNT.search(text):
            several = told[1] is not None
            value = next(filter(None, (told[2], told[4], told[6], told[8])), "0")
            members = [] if several else [_named(text, int(told[5]))]
            self._parts.append((value, int(told[1]) if several else 1, members))
        elif (member := _MEMBER.search(text)) and self._parts:
            self._parts[-1][2].append(_named(text, int(member[1])))
        else:
            return False
        spread = Spread(self._what, tuple(Part(v, n, tuple(m)) for v, n, m in self._parts),
                        self._line)  # fmt: skip
        comm.spreads = [s for s in comm.spreads if s.line != self._line] + [spread]
        return True


def _named(text: str, rank: int) -> Member:
    found = _MEMBER.search(text)
    return Member(rank, found[4], int(found[3]), found[2]) if found else Member(rank)


def _ranks(text: str) -> Iterator[int]:
    """Of "21", "1, 3" and "4-7"."""
    for first, last in re.findall(r"(\d{1,9})(?:-(\d{1,9}))?", text)[:KEPT]:
        yield from range(int(first), min(int(last or first), int(first) + KEPT) + 1)
