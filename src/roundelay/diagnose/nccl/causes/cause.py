"""What a line of NCCL's log stands for."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...finding import Area


class Cause(NamedTuple):
    """What a line stands for.

    Attributes:
        kind: of the finding.
        pattern: of the place in NCCL's source, a blank and the line's text; its named groups
            become figures.
        area: see `Finding`.
        reason, advice: sentences.
        fault: whether something is off.
        confidence: see `Finding`.
    """

    kind: str
    pattern: re.Pattern[str]
    area: Area
    reason: tuple[str, ...]
    advice: str
    fault: bool = True
    confidence: float = 0.9


def cause(
    kind: str, pattern: str, area: Area, reason: str, advice: str, *,
    fault: bool = True, confidence: float = 0.9,
) -> Cause:  # fmt: skip
    """A cause of one sentence, or several in one text."""
    return Cause(kind, re.compile(pattern, re.I), area, (reason,), advice, fault, confidence)
