"""The report that torch prints with TORCH_NCCL_DESYNC_DEBUG=1 when a collective takes too long.

It is of several lines: who reports, who is behind, and where each rank was (torch/csrc/distributed/
c10d/TraceUtils.h).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from .nccl_log import Line

KEPT: Final = 10**3
"""Reports, and parts of one."""
LINES: Final = 40
"""Lines of a report between two that belong to it."""
_HEAD: Final = re.compile(r"\[(\d{1,7})\] Timeout at collective: (\w{1,60}), #(\d{1,15})")
_NEVER: Final = re.compile(r"ranks \[([\d, ]{1,20000})\] are the lagging ranks")
_JOINED: Final = re.compile(
    r"\[([\d, ]{1,20000})\] joined but didn't finish collective #(\d{1,15})"
)
_ENDED: Final = re.compile(
    r"\[([\d, ]{1,20000})\] finished collective #(\d{1,15}), but didn't join collective #"
)
_AT: Final = re.compile(r"#(\d{1,15}) (started|finished) ranks:")
_STATE: Final = re.compile(r"\[([\d, ]{1,20000})\] (?:started|finished) (\w{1,60})")


@dataclass
class Desync:
    """What one rank reports.

    Attributes:
        rank: who does, and waits in a call.
        operation, sequence: that call.
        line: where it begins.
        never: ranks that have made no call.
        joined: ranks that are in a call which is behind, and its sequence.
        ended: ranks that have ended a call and not come to the next, and its sequence.
        states: by sequence, "started" or "finished", and operation: the ranks.
    """

    rank: int
    operation: str
    sequence: int
    line: Line
    never: tuple[int, ...] = ()
    joined: tuple[tuple[int, ...], int] = ((), 0)
    ended: tuple[tuple[int, ...], int] = ((), 0)
    states: dict[tuple[int, str, str], tuple[int, ...]] = field(default_factory=dict)


class DesyncReader:
    """Takes lines one by one, and knows which belong to a report."""

    def __init__(self, file: str) -> None:
        self.found: list[Desync] = []
        self._file, self._left, self._at = file, 0, (0, "")

    def takes(self, number: int, raw: bytes) -> bool:
        """Whether the line is of a report."""
        if b"] Timeout at collective: " in raw:
            text = raw[:2000].decode("utf-8", "replace")
            if (head := _HEAD.search(text)) and len(self.found) < KEPT:
                line = Line(number, text.strip()[:400], self._file)
                self.found.append(Desync(int(head[1]), head[2], int(head[3]), line))
                self._left = LINES
                return True
        if not self._left:
            return False
        self._left -= 1
        if b"ranks" not in raw and b"[" not in raw:
            return False
        mine = self._adds(self.found[-1], raw.decode("utf-8", "replace"))
        self._left = LINES if mine else self._left
        return mine

    def _adds(self, report: Desync, text: str) -> bool:
        if never := _NEVER.search(text):
            report.never = _ranks(never[1])
        elif joined := _JOINED.search(text):
            report.joined = _ranks(joined[1]), int(joined[2])
        elif ended := _ENDED.search(text):
            report.ended = _ranks(ended[1]), int(ended[2])
        elif at := _AT.search(text):
            self._at = int(at[1]), at[2]
        elif (state := _STATE.search(text)) and len(report.states) < KEPT:
            report.states[(*self._at, state[2])] = _ranks(state[1])
        else:
            return False
        return True


def _ranks(text: str) -> tuple[int, ...]:
    return tuple(
        int(n) for n in text.split(",") if 0 < len(n.strip()) < 8 and n.strip().isdecimal()
    )
