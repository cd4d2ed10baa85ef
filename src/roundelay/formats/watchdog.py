"""What PyTorch's watchdog, its collective fingerprints, Gloo and NCCL's RAS say of a hang.

Lines of any log are gone through one by one; those of other programs are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from io import BytesIO
from typing import Final, NamedTuple

from ..errors import RoundelayError
from .nccl_log import Line, lines_of
from .plain import unpacked

KEPT: Final = 10**5
"""Messages of a kind."""
SPEAKS: Final = re.compile(
    rb"WorkNCCL\(|detected by watchdog|CollectiveFingerPrint\(|RAS|gloo|onnectFullMesh|"
    rb"monitoredBarrier|Timed out waiting|next_op=|Connection closed by peer|does not support|"
    rb"Invalid scalar type|Address already in use"
)
"""What stands in every message."""
_RANK: Final = re.compile(
    r"\[Rank (\d{1,15})\]|(?:PG[^\]]*|\[)Rank (\d{1,15})\]|\[rank(\d{1,15})\]"
)
_WORK: Final = re.compile(
    r"WorkNCCL\(SeqNum=(\d{1,15}), OpType=(\w+)(?:, NumelIn=(\d{1,15}), NumelOut=(\d{1,15}))?"
    r"(?:,[^)]*?)?, Timeout\(ms\)=(\d{1,15})\)(?: ran for (\d{1,15}) milliseconds)?"
)
_PROGRESS: Final = re.compile(
    r"detected by watchdog at work: (-?\d{1,15}), last enqueued NCCL work: (-?\d{1,15}), "
    r"last completed NCCL work: (-?\d{1,15})"
)
_GROUP: Final = re.compile(r"PG(?: ID)? (\w+)(?: PG GUID (\S+?))? Rank \d+\]")
_PRINT: Final = re.compile(
    r"Rank (\d{1,15}) is running (?:collective: )?CollectiveFingerPrint\("
    r"SequenceNumber=(\d{1,15}), OpType=(\w+)"
    r"(?:, TensorShape=\[([\d, ]*)\])?(?:, TensorDtypes=(\w+))?"
)
_SIZE: Final = re.compile(r"\s*\d{1,15}\s*")
_RAS: Final = re.compile(r"rank=(\d{1,15}) (enqueued|completed|started)=(\d{1,15})")
_NEXT: Final = re.compile(r"next_op=(\S+)")
_MISSING: Final = re.compile(r"missing_ranks=([\d,]+)")


class Timeout(NamedTuple):
    """A call that took too long; sizes in elements, None where old versions do not say."""

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


class Ras(NamedTuple):
    """How far a rank had got, by NCCL's RAS: "enqueued", "started" or "completed" so many."""

    rank: int
    state: str
    sequence: int
    line: Line


@dataclass
class Watched:
    """All messages of a log."""

    timeouts: list[Timeout] = field(default_factory=list)
    progress: list[Progress] = field(default_factory=list)
    prints: list[Print] = field(default_factory=list)
    ras: list[Ras] = field(default_factory=list)
    next_operation: str = ""
    missing: tuple[int, ...] = ()
    gloo: list[Line] = field(default_factory=list)

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.timeouts or self.progress or self.prints or self.ras or self.gloo)


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
    """The messages among lines of a file, which are not held."""
    found = Watched()
    speaks = SPEAKS.search
    for number, raw in enumerate(lines, 1):
        if speaks(raw):
            _take(found, number, raw.decode("utf-8", "replace"), file)
    return found


def _take(found: Watched, number: int, text: str, file: str) -> None:
    line = Line(number, text.strip()[:400], file)
    if work := _WORK.search(text):
        sequence, operation, elements, _, limit, ran = work.groups()
        _keep(found.timeouts, Timeout(
            _rank(text), int(sequence), operation, None if elements is None else int(elements),
            int(limit), None if ran is None else int(ran), line,
        ))  # fmt: skip
    elif told := _PROGRESS.search(text):
        group = _GROUP.search(text)
        name = (group[2] or group[1]) if group else ""
        _keep(
            found.progress,
            Progress(_rank(text), name, int(told[1]), int(told[2]), int(told[3]), line),
        )
    elif "CollectiveFingerPrint(" in text:
        for rank, sequence, operation, shape, dtype in _PRINT.findall(text):
            sizes = tuple(int(n) for n in shape.split(",") if _SIZE.fullmatch(n))
            _keep(found.prints, Print(int(rank), int(sequence), operation, sizes, dtype, line))
    elif "RAS" in text or "next_op=" in text:
        _ras(found, text, line)
    else:
        _keep(found.gloo, line)


def _ras(found: Watched, text: str, line: Line) -> None:
    for rank, state, sequence in _RAS.findall(text):
        _keep(found.ras, Ras(int(rank), state, int(sequence), line))
    if operation := _NEXT.search(text):
        found.next_operation = operation[1].partition(":")[2] or operation[1]
    if missing := _MISSING.search(text):
        found.missing = tuple(int(n) for n in missing[1].split(",") if 0 < len(n) < 16)


def _keep(kept: list[object] | list[Timeout] | list[Progress] | list[Print] | list[Ras]
          | list[Line], item: object) -> None:  # fmt: skip
    if len(kept) < KEPT:
        kept.append(item)  # type: ignore[arg-type]


def _rank(text: str) -> int | None:
    found = _RANK.search(text)
    return int(next(filter(None, found.groups()))) if found else None
