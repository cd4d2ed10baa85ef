"""What PyTorch's watchdog, its collective fingerprints, Gloo and NCCL's RAS say of a hang.

Lines of any log are gone through one by one; those of other programs are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from io import BytesIO
from math import prod
from typing import Any, Final, NamedTuple

from ..errors import RoundelayError
from .desync import Desync, DesyncReader
from .nccl_log import Line, lines_of
from .plain import unpacked

KEPT: Final = 10**5
"""Messages of a kind."""
SPEAKS: Final = re.compile(
    rb"WorkNCCL\(|detected by watchdog|makeDeviceFor|CollectiveFingerPrint\(|RAS|gloo|"
    rb"Rank \d{1,15}:\s+_?[A-Z_]{3,40}, TensorShape=|"
    rb"onnectFullMesh|"
    rb"monitoredBarrier|Timed out waiting|next_op=|Connection closed by peer|does not support|"
    rb"Invalid scalar type|Address already in use|watchdog got stuck|loopback address|"
    rb"Timeout at NCCL work|SO_ERROR: |ot all ranks joining|missing ranks: \{|collective: |"
    rb"is running collective:|Received a dump signal due|\] Timeout at collective: |new_group\("
)
"""What stands in every message."""
LONGEST: Final = 2000
"""Bytes of a line that may have been broken in two."""
_BROKEN: Final = re.compile(rb"WorkNCCL\([^)]*$|is running (?:inconsistent )?collective:\s*$")
_SAVES: Final = re.compile(
    rb"(?<!load_)state_dict|[Ss]aving (?:model|checkpoint|the)|save_(?:model|check)"
)
WRAPPED: Final = 3
"""Lines that a message may go on for where a terminal or a pager has wrapped it."""
_BEGINS: Final = re.compile(
    rb"Watchdog caught |\(either an error|group watchdog thread terminated|Received a dump signal|"
    rb"Timeout at NCCL work"
)
"""How messages begin that a line of a terminal may be too short for."""
_RANK: Final = re.compile(
    r"\[Rank (\d{1,15})\]|(?:PG[^\]]*|\[)Rank (\d{1,15})\]|\[rank(\d{1,15})\]"
)
_WORK: Final = re.compile(
    r"WorkNCCL\((?:SeqNum=(\d{1,15}),\s*)?OpType=(\w+)"
    r"(?:,\s*Numel(?:In)?=(\d{1,20})(?:,\s*NumelOut=\d{1,20})?|"
    r",\s*TensorShape=\[([\d, ]{0,300})\])?"
    r"(?:,[^)]*?)?,\s*Timeout\(ms\)=(\d{1,15})\)(?:\s*ran\s+for\s+(\d{1,15}) milliseconds)?"
)
"""A call: SeqNum is there since torch 1.13, TensorShape up to 2.0."""
COUNTLESS: Final = 2**60
"""Elements of a call from which they are no number of elements (of coalesced calls it is -1)."""
_CUT: Final = re.compile(rb"WorkNCCL\(SeqNum=(\d{1,15}),")
_PROGRESS: Final = re.compile(
    r"(?:detected by watchdog at work|Timeout at NCCL work)(?: sequence id)?: "
    r"(-?\d{1,15}),?(?: PG status:)? last enqueued (?:NCCL )?work: (-?\d{1,15}), "
    r"last completed (?:NCCL )?work: (-?\d{1,15})"
)
_GROUP: Final = re.compile(r"PG(?: ID)? (\w+)(?: PG GUID (\S+?))? Rank \d+\]")
_PRINT: Final = re.compile(
    r"Rank (\d{1,15}) is running (?:inconsistent )?(?:collective: ?)?\s?CollectiveFingerPrint\("
    r"(?:SequenceNumber=(\d{1,15})(?:, )?)?OpType=(\w+)"
    r"(?:, TensorShape=\[([\d, ]*)\])?(?:, TensorDtypes=(\w+))?"
)
_MISMATCH: Final = re.compile(
    r"^\W*Rank (\d{1,15}):\s+(_?[A-Z][A-Z_]{2,40}), TensorShape=\[([\d, ]{0,300})\]"
)
"""A fingerprint as frameworks cut it down to a line of its own."""
_SIZE: Final = re.compile(r"\s*\d{1,15}\s*")
_RAS: Final = re.compile(r"rank=(\d{1,15}) (enqueued|completed|started)=(\d{1,15})")
_NEXT: Final = re.compile(r"next_op=(\S+)")
_MISSING: Final = re.compile(r"missing_ranks=([\d,]+)")
_SIGNAL: Final = re.compile(
    r"Received a dump signal due to a collective timeout from\s+(?:rank (\d{1,15})|this local rank)"
    r".{0,200}?Last enqueued NCCL work: (-?\d{1,15}), last completed NCCL work: (-?\d{1,15})"
)
_STUCK: Final = re.compile(r"watchdog got stuck for (\d{1,9}) seconds")
_ABSENT: Final = re.compile(r"ot all ranks joining collective\D{0,40}(\d{1,15})")
_ABSENT_CALL: Final = re.compile(r"^\s*collective: (?:\w+:)?(\w+)")
_ABSENT_RANKS: Final = re.compile(r"missing ranks: {([\d, ]{1,10000})}", re.I)


class Timeout(NamedTuple):
    """A call that took too long; sizes in elements, None where old versions do not say.

    Its sequence is 0 where versions before 1.13 do not say it.
    """

    rank: int | None
    sequence: int
    operation: str
    elements: int | None
    timeout_ms: int
    ran_ms: int | None
    line: Line


class Progress(NamedTuple):
    """How far a rank had got in a group when its watchdog gave up."""

    rank: int | None
    group: str
    at: int
    enqueued: int
    completed: int
    line: Line


class Print(NamedTuple):
    """A call as its fingerprint says."""

    rank: int
    sequence: int
    operation: str
    shape: tuple[int, ...]
    dtype: str
    line: Line


class Signal(NamedTuple):
    """How far a rank was when another (`by`; None: itself) had waited too long and told it."""

    rank: int | None
    group: str
    by: int | None
    enqueued: int
    completed: int
    line: Line


class Ras(NamedTuple):
    """How far a rank had got, by NCCL's RAS: "enqueued", "started" or "completed" so many."""

    rank: int
    state: str
    sequence: int
    line: Line


class Stuck(NamedTuple):
    """A watchdog that has itself not moved for so many seconds."""

    rank: int | None
    seconds: int
    line: Line


@dataclass
class Absent:
    """A call that torch's analyser of flight recorder dumps says not all ranks have joined."""

    sequence: int
    line: Line
    operation: str = "?"
    ranks: tuple[int, ...] = ()


@dataclass
class Watched:
    """All messages of a log.

    Attributes:
        cut: rank and sequence of a call that took too long, whose message the end cuts off.
        saving: the last line before such messages that is of saving or of a state dict.
    """

    timeouts: list[Timeout] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)
    prints: list[Print] = field(default_factory=list)
    ras: list[Ras] = field(default_factory=list)
    next_operation: str = ""
    missing: tuple[int, ...] = ()
    gloo: list[Line] = field(default_factory=list)
    stuck: list[Stuck] = field(default_factory=list)
    signals: list[Signal] = field(default_factory=list)
    reports: list[Desync] = field(default_factory=list)
    absent: list[Absent] = field(default_factory=list)
    cut: tuple[int | None, int] | None = None
    saving: Line | None = None

    def __bool__(self) -> bool:
        """Whether there is any."""
        return any((self.timeouts, self.progress, self.prints, self.ras, self.gloo, self.stuck,
                    self.absent, self.signals, self.reports))  # fmt: skip

    def group_of(self, timeout: Timeout) -> str:
        """The process group of a call that took too long, "" where no line tells."""
        same = (p.group for p in self.progress
                if p.rank == timeout.rank and p.at == timeout.sequence)  # fmt: skip
        return next(same, "")


def read_watchdog(data: bytes) -> Watched:
    """The messages of a log.

    Raises:
        RoundelayError: there are none.
    """
    found = read_watchdog_lines(lines_of(BytesIO(unpacked(data))))
    if not found:
        raise RoundelayError(
            "no message of a watchdog; expected a line such as [Rank 0] Watchdog caught collective "
            "operation timeout: WorkNCCL(SeqNum=...)"
        )
    return found


def read_watchdog_lines(lines: Iterable[bytes], file: str = "") -> Watched:
    """The messages among lines of a file, which are not held; of one broken in two, both parts."""
    found, broken = Watched(), b""
    held: list[bytes] | None = None
    speaks, reports = SPEAKS.search, DesyncReader(file)
    for number, raw in enumerate(lines, 1):
        if reports.takes(number, raw):
            continue
        if held is not None:
            held, raw = _longer(held, raw)
            if not raw:
                continue
        elif not broken and _BEGINS.search(raw) and not _whole(raw) and len(raw) < LONGEST:
            held = [raw]
            continue
        if not found.timeouts and _SAVES.search(raw):
            found.saving = Line(number, raw.decode("utf-8", "replace").strip()[:400], file)
        whole = broken + raw
        broken = b""
        if speaks(whole):
            if _BROKEN.search(whole) and len(whole) < LONGEST:
                broken = whole.rstrip(b"\r\n")
            else:
                _take(found, number, whole.decode("utf-8", "replace"), file)
    if held is not None and speaks(b"".join(held)):
        broken = b"".join(part.rstrip(b"\r\n") for part in held)
    found.reports = reports.found
    if last := _CUT.search(broken):
        found.cut = _rank(broken.decode("utf-8", "replace")), int(last[1])
    return found


def _whole(raw: bytes) -> bool:
    """Whether a message that begins so has its figures in it."""
    text = raw.decode("utf-8", "replace")
    return any(known.search(text) for known in (_WORK, _PROGRESS, _SIGNAL))


def _longer(held: list[bytes], raw: bytes) -> tuple[list[bytes] | None, bytes]:
    """What is still held of a message that is wrapped, and the text that is now to be taken."""
    if _BEGINS.search(raw):
        return ([raw], b"") if not _whole(raw) and len(raw) < LONGEST else (None, raw)
    parts = [*held, raw]
    for between in (b"", b" "):
        whole = between.join(part.strip(b"\r\n" if not between else None) for part in parts)
        if _whole(whole):
            return None, whole
    over = len(parts) > WRAPPED or sum(map(len, parts)) > LONGEST
    return (None, raw) if over or SPEAKS.search(raw) else (parts, b"")


def _take(found: Watched, number: int, text: str, file: str) -> None:
    line = Line(number, text.strip()[:400], file)
    if work := _WORK.search(text):
        sequence, operation, elements, shape, limit, ran = work.groups()
        _keep(found.timeouts, Timeout(
            _rank(text), int(sequence or 0), operation, _elements(elements, shape), int(limit),
            None if ran is None else int(ran), line,
        ))  # fmt: skip
    elif told := _PROGRESS.search(text):
        group = _GROUP.search(text)
        name = (group[2] or group[1]) if group else ""
        at, enqueued, completed = (int(n) for n in told.groups())
        if completed > enqueued:
            completed = -1  # torch 2.3 and 2.4 print what was never set
        _keep(found.progress, Progress(_rank(text), name, at, enqueued, completed, line))
    elif "CollectiveFingerPrint(" in text:
        for rank, sequence, operation, shape, dtype in _PRINT.findall(text):
            sizes = tuple(int(n) for n in shape.split(",") if _SIZE.fullmatch(n))
            _keep(found.prints, Print(int(rank), int(sequence or 0), operation, sizes, dtype, line))
    elif cut := _MISMATCH.search(text):
        sizes = tuple(int(n) for n in cut[3].split(",") if _SIZE.fullmatch(n))
        _keep(found.prints, Print(int(cut[1]), 0, cut[2], sizes, "", line))
    elif signal := _SIGNAL.search(text):
        group = _GROUP.search(text)
        by = None if signal[1] is None else int(signal[1])
        _keep(found.signals, Signal(_rank(text), (group[2] or group[1]) if group else "", by,
                                    int(signal[2]), int(signal[3]), line))  # fmt: skip
    elif stuck := _STUCK.search(text):
        _keep(found.stuck, Stuck(_rank(text), int(stuck[1]), line))
    elif absent := _ABSENT.search(text):
        _keep(found.absent, Absent(int(absent[1]), line))
    elif found.absent and _joined(found.absent[-1], text):
        pass
    elif "RAS" in text or "next_op=" in text:
        _ras(found, text, line)
    elif "collective: " not in text and "missing ranks: {" not in text:
        _keep(found.gloo, line)


def _elements(count: str | None, shape: str | None) -> int | None:
    if shape is not None:
        sizes = [int(n) for n in shape.split(",") if _SIZE.fullmatch(n)]
        return prod(sizes) if sizes else None
    return int(count) if count is not None and int(count) < COUNTLESS else None


def _joined(absent: Absent, text: str) -> bool:
    """Take what a line below says of a call that not all have joined."""
    if call := _ABSENT_CALL.search(text):
        absent.operation = call[1]
    elif ranks := _ABSENT_RANKS.search(text):
        absent.ranks = tuple(int(n) for n in ranks[1].split(",") if _SIZE.fullmatch(n))
    return bool(call or ranks)


def _ras(found: Watched, text: str, line: Line) -> None:
    for rank, state, sequence in _RAS.findall(text):
        _keep(found.ras, Ras(int(rank), state, int(sequence), line))
    if operation := _NEXT.search(text):
        found.next_operation = operation[1].partition(":")[2] or operation[1]
    if missing := _MISSING.search(text):
        found.missing = tuple(int(n) for n in missing[1].split(",") if 0 < len(n) < 16)


def _keep(kept: list[Any], item: object) -> None:
    if len(kept) < KEPT:
        kept.append(item)


def _rank(text: str) -> int | None:
    found = _RANK.search(text)
    return int(next(filter(None, found.groups()))) if found else None
