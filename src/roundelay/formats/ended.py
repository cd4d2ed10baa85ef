"""How processes of a job have ended, by what they, their launchers and the kernel write.

Errors that only follow from another rank's end are left out: aborted communicators, connections
that were closed, and the signals by which launchers and watchdogs end what is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from .nccl_log import Line

Cause = Literal["memory", "killed", "crashed", "raised", "xid", "sxid", "left"]
KEPT: Final = 10**4
"""Ends that are kept."""
WORDS: Final = (b"OutOfMemoryError", b"oom_kill", b"oom-kill", b"Out Of Memory",
                b"exited on signal", b"NVRM: Xid", b"SXid", b"exitcode", b"Error: ", b"Exception: ",
                b"Traceback (", b"Killed", b"Segmentation fault", b"Bus error")  # fmt: skip
"""One of which stands in every line that tells an end."""
_RANK: Final = re.compile(
    r"\[rank(\d{1,7})\]|^\s*(\d{1,7}): |\brank (\d{1,7})\b|\btasks? (\d{1,7})[:,-]"
)
_RAISED: Final = re.compile(
    r"^(?:\[rank(?P<rank>\d{1,7})\]:)?\s*(?:\[\d+\]:\s*|\d{1,7}: +)?"
    r"(?P<name>(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception)): ?(?P<said>.*)"
)
_SIGNAL: Final = re.compile(
    r"exitcode *: *-(\d{1,2})\b|exited on signal (\d{1,2})\b|Signal (\d{1,2}) \(SIG"
)
_NAMED: Final = re.compile(
    r"(?:\btasks? [\d,-]+: |\bline \d+: +\d+ |Fatal Python error: )"
    r"(Killed|Segmentation fault|Bus error)"
)
_CODES: Final = MappingProxyType({"Killed": 9, "Segmentation fault": 11, "Bus error": 7})
_LEFT: Final = re.compile(r"exitcode *: *([1-9]\d{0,2})\b")
_LOCAL: Final = re.compile(r"\blocal_rank: *(\d{1,7})\b")
_XID: Final = re.compile(r"NVRM: Xid \((?:PCI:)?([\w:.]+)\)?: (\d{1,4})")
_SXID: Final = re.compile(r"(\S*nvswitch\d*): SXid \((?:PCI:)?([\w:.]+)\): (\d{1,6}),? ?(.{0,120})")
_OOM: Final = re.compile(r"oom[-_]kill|Out Of Memory\b")
_OWN_RANK: Final = re.compile(r"^\s*(?:\[[^\]]*\]:\s*)?rank *: *(\d{1,7})\b")
_FOLLOWS: Final = re.compile(
    r"DistBackendError|DistNetworkError|ChildFailedError|SignalException|BrokenPipe|"
    r"ConnectionReset|Connection (?:closed|reset)|closed by peer|NCCL (?:error|communicator)|"
    r"[Cc]ollective|monitoredBarrier|[Tt]imed? ?out|TimeoutError|aborted|Process group|gloo|"
    r"HTTPError"
)
_NEAR: Final = 300
"""Lines from a traceback's head to its error, at most."""
_LATER: Final = (6, 15)
"""Signals by which a watchdog (abort) and a launcher (terminate) end others."""
_CRASHES: Final = (4, 7, 8, 11)


class End(NamedTuple):
    """A process that has ended.

    Attributes:
        rank: None if it is not told.
        cause: "memory" of a card, "killed" (signal 9, or by the kernel for want of memory),
            "crashed" (a signal such as 11), "raised" (an exception), "xid" (a card's error), "sxid"
            (an NVSwitch's) or "left" (an exit code, which its launcher tells and nothing else).
        code: of the signal or the Xid; 0 for others.
        said: the error in its own words.
        line: which tells it.
        local: its number on its host; None if it is not told.
        first: whether the launcher names it as the first to end.
    """

    rank: int | None
    cause: Cause
    code: int
    said: str
    line: Line
    local: int | None = None
    first: bool = False


def read_ended_lines(lines: Iterable[bytes], file: str = "") -> list[End]:
    """The ends that lines of a file tell, which are not held."""
    found: list[End] = []
    rank: int | None = None
    head, first = -_NEAR, False
    for number, raw in enumerate(lines, 1):
        if b"rank " in raw and (own := _OWN_RANK.match(raw[:200].decode("utf-8", "replace"))):
            rank = int(own[1])  # of torchrun's report, whose lines are of one rank
        first = first or raw.startswith(b"Root Cause")
        if len(found) < KEPT and any(map(raw.__contains__, WORDS)):
            text = raw[:2000].decode("utf-8", "replace").rstrip()
            head = number if "Traceback (" in text else head
            near = number - head < _NEAR
            ends = _ends(text, Line(number, text.strip()[:400], file), rank, near)
            local = _LOCAL.search(text)
            found += [end._replace(local=int(local[1]) if local else None, first=first)
                      for end in ends]  # fmt: skip
    return found


def _full(raised: re.Match[str]) -> bool:
    """Whether it is a card's memory that was full, which needs no traceback to be believed."""
    return "OutOfMemory" in raised["name"] or "out of memory" in raised["said"]


def _ends(text: str, line: Line, reported: int | None, near: bool) -> Iterator[End]:
    """At most one: `reported` is the rank of torchrun's report, `near` whether a traceback is."""
    told = _RANK.search(text)
    rank = int(next(filter(None, told.groups()))) if told else None
    raised = _RAISED.match(text)
    if xid := _XID.search(text):
        yield End(None, "xid", int(xid[2]), f"{xid[1]}: Xid {xid[2]}", line)
    elif sxid := _SXID.search(text):
        yield End(None, "sxid", int(sxid[3]), f"{sxid[2]}: SXid {sxid[3]}, {sxid[4]}", line)
    elif (signal := _SIGNAL.search(text)) or (signal := _NAMED.search(text)):
        word = next(filter(None, signal.groups()))
        code = _CODES.get(word) or int(word)
        rank = reported if rank is None and "exitcode" in text else rank
        if code == 9 or code in _CRASHES:
            yield End(rank, "killed" if code == 9 else "crashed", code, f"signal {code}", line)
    elif (
        raised is not None
        and (near or raised["rank"] or _full(raised))
        and not _FOLLOWS.search(raised[0])
    ):
        memory = _full(raised)
        said = f"{raised['name']}: {raised['said']}"[:200]
        yield End(int(raised["rank"]) if raised["rank"] else rank, "memory" if memory else "raised",
                  0, said, line)  # fmt: skip
    elif left := _LEFT.search(text):
        yield End(reported if rank is None else rank, "left", int(left[1]), f"exit code {left[1]}",
                  line)  # fmt: skip
    elif _OOM.search(text):
        yield End(rank, "killed", 9, "out of memory of the host", line)
