"""Stacks of processes that stand still, as py-spy, Python's faulthandler and gdb print them.

Of each process one stack is kept: that of the thread which is in a call between processes, else of
its main thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from .bare import bare
from .nccl_log import Line

FRAMES: Final = 200
"""Frames of a stack that are kept; stacks of a file, times ten."""
_PROCESS: Final = re.compile(r"^Process (\d{1,10}): (.{0,1000})")
_LOCAL: Final = re.compile(r"local[_-]rank[= ](\d{1,6})\b")
_THREAD: Final = re.compile(
    r"^(?:Thread (?:0x)?[\dA-Fa-f]{1,20} \((?:active|idle)[^)]{0,20}\)"
    r"(?:: \"(?P<name>[^\"]{0,80})\")?|"
    r"(?P<current>Current thread|Thread) 0x[\da-f]{1,20}.{0,40}\(most recent call first\):|"
    r"Thread (?P<number>\d{1,6}) \(.{0,80}\bLWP (?P<pid>\d{1,10})\b)"
)
_PY_SPY: Final = re.compile(
    r"^\s+(?P<name>[\w<>.\[\]:~*& ]{1,120}?) \((?P<file>[^()]{1,300}?)(?::(?P<line>\d{1,8}))?\)$"
)
_FAULT: Final = re.compile(
    r"^\s+File \"(?P<file>[^\"]{1,300})\", line (?P<line>\d{1,8}) in (?P<name>\S{1,120})"
)
_GDB: Final = re.compile(
    r"^#\d{1,4}\s+(?:0x[\da-f]{1,20} in )?(?P<name>[\w:~<>@.?]{1,200}) ?\(.{0,600}?\)"
    r"(?: (?:at|from) (?P<file>[^\s:]{1,300})(?::(?P<line>\d{1,8}))?)?"
)
_CRASH: Final = b"Fatal Python error"


class Frame(NamedTuple):
    """A function that has not come back yet; the line is 0 where it is not told."""

    name: str
    file: str
    line: int


@dataclass
class Stack:
    """The functions of a thread, the innermost first.

    Attributes:
        process: its number, "" where it is not told.
        local: its rank on its host, as its command line says.
        main: whether it is the main thread.
        line: where the stack begins.
        frames: the functions.
    """

    process: str
    local: int | None
    main: bool
    line: Line
    frames: list[Frame] = field(default_factory=list)


def read_stacks_lines(lines: Iterable[bytes], file: str = "") -> list[Stack]:
    """The stacks that lines of a file show; none of a process that has crashed."""
    found: list[Stack] = []
    process, local = "", None
    for number, raw in enumerate(lines, 1):
        if _CRASH in raw:
            return []
        text = bare(raw)
        if head := _PROCESS.match(text):
            rank = _LOCAL.search(head[2])
            process, local = head[1], int(rank[1]) if rank else None
        elif thread := _THREAD.match(text):
            if len(found) < 10 * FRAMES:
                line = Line(number, text[:400], file)
                main = thread["name"] == "MainThread" or thread["number"] == "1"
                own = thread["pid"] or process
                found.append(Stack(own, local, main or bool(thread["current"]), line))
        elif frame := _PY_SPY.match(text) or _FAULT.match(text) or _GDB.match(text):
            if not found or (text.startswith("#0 ") and found[-1].frames):
                found.append(Stack(process, local, True, Line(number, text[:400], file)))
            if len(found[-1].frames) < FRAMES:
                at = Frame(frame["name"], frame["file"] or "", int(frame["line"] or 0))
                found[-1].frames.append(at)
    return [stack for stack in found if stack.frames]
