"""What a rule has to say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..i18n import Message, Translate

Figures = dict[str, float | int | str]


class Evidence(NamedTuple):
    """A line that a finding rests on; line 0 stands for the whole file."""

    file: str
    line: int
    text: str


@dataclass(frozen=True)
class Finding:
    """One thing found.

    Attributes:
        kind: a short name, the same for all findings of a rule's kind.
        subject: what it is about, such as "all_reduce, n = 16".
        figures: numbers it rests on; their names end in the unit (GBps is 1e9 bytes a second, one
            way unless the name says duplex).
        evidence: lines of the file.
        reason: what is so, and why.
        advice: what to try.
        confidence: 0 to 1.
        fault: whether something is off; else a figure is explained that may look so.
    """

    kind: str
    subject: str
    figures: Mapping[str, float | int | str]
    evidence: tuple[Evidence, ...]
    reason: Message
    advice: Message
    confidence: float
    fault: bool

    def as_json(self, translate: Translate) -> dict[str, Any]:
        """The value of `--json`, its sentences in the language of `translate`."""
        return {
            "kind": self.kind,
            "fault": self.fault,
            "subject": self.subject,
            "figures": dict(self.figures),
            "evidence": [e._asdict() for e in self.evidence],
            "reason": self.reason.tell(translate),
            "try": self.advice.tell(translate),
            "confidence": self.confidence,
        }
