"""What a line stands for that a launcher, a scheduler, a framework or torch itself writes."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...finding import Area

BELOW = 6
"""Lines under a phrase in which the rest of it is looked for."""


class Phrase(NamedTuple):
    """What a line stands for.

    Attributes:
        kind: of the finding.
        pattern: of the line; its named groups become figures, and "rank" is gathered over lines.
        below: of one of the next lines, whose groups are added; None where one line says all.
        area: see `Finding`.
        reason, advice: sentences; a group that is not there is shown as "?".
        fault: whether something is off.
        confidence: see `Finding`.
    """

    kind: str
    pattern: re.Pattern[str]
    below: re.Pattern[str] | None
    area: Area
    reason: str
    advice: str
    fault: bool = True
    confidence: float = 0.9


def phrase(
    kind: str, pattern: str, area: Area, reason: str, advice: str, *, below: str = "",
    fault: bool = True, confidence: float = 0.9,
) -> Phrase:  # fmt: skip
    """A phrase; its patterns heed no capitals."""
    return Phrase(
        kind, re.compile(pattern, re.I), re.compile(below, re.I) if below else None, area, reason,
        advice, fault, confidence,
    )  # fmt: skip
