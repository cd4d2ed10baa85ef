"""What a rule has to say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from ..formats.nccl_log import Line
from ..i18n import Message, Translate, message
from ..units import format_size

Area: TypeAlias = Literal["hang", "machine", "speed", "time"]
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
        area: what it bears on.
    """

    kind: str
    subject: str
    figures: Mapping[str, float | int | str]
    evidence: tuple[Evidence, ...]
    reason: Message
    advice: Message
    confidence: float
    fault: bool
    area: Area = "speed"

    def as_json(self, translate: Translate) -> dict[str, Any]:
        """The value of `--json`, its sentences in the language of `translate`."""
        return {
            "kind": self.kind,
            "area": self.area,
            "fault": self.fault,
            "subject": self.subject,
            "figures": dict(self.figures),
            "evidence": [e._asdict() for e in self.evidence],
            "reason": self.reason.tell(translate),
            "try": self.advice.tell(translate),
            "confidence": self.confidence,
        }


def of_file(finding: Finding) -> Finding:
    """With the file in the subject, where the evidence is of one file alone."""
    files = {evidence.file for evidence in finding.evidence}
    file = files.pop() if len(files) == 1 else ""
    if file in finding.subject:
        return finding
    return replace(finding, subject=f"{finding.subject}, {file}")


def cited(file: str, *lines: Line | None) -> tuple[Evidence, ...]:
    """Lines of logs as evidence; those that do not say their file are of `file`."""
    return tuple(Evidence(x.file or file, x.number, x.text[:300]) for x in lines if x)


def tell(
    kind: str,
    subject: str,
    figures: Figures,
    reason: Sequence[str],
    advice: str,
    cited: tuple[Evidence, ...] = (),
    *,
    fault: bool = False,
    confidence: float = 0.8,
    area: Area = "speed",
) -> Finding:
    """A finding; sentences have the names of figures in braces, where their values go."""
    values = {name: shown(name, value) for name, value in figures.items()}
    sentences = [message(text, **values) for text in reason]
    told = sentences[0]
    for sentence in sentences[1:]:
        told = message("{first} {second}", first=told, second=sentence)
    rounded = {k: round(v, 4) if isinstance(v, float) else v for k, v in figures.items()}
    return Finding(
        kind, subject, rounded, cited, told, message(advice, **values), confidence, fault, area
    )


def shown(name: str, value: float | int | str) -> str:
    """A figure for people: sizes and shares as such, whole numbers whole, else four digits or more.

    A power of ten is written only where it is far from 1.
    """
    if isinstance(value, str):
        return value
    if name.endswith("bytes"):
        return format_size(int(value))
    if isinstance(value, int) and abs(value) < 10**15:
        return str(value)
    if name.endswith("share"):
        return f"{100 * value:.0f} %"
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


def names(found: Sequence[str], most: int = 16) -> str:
    """Names in a row; of many, the first ones and how many there are."""
    if len(found) <= most:
        return ", ".join(found)
    return f"{', '.join(found[:most])}, ... ({len(found)})"


def numbers(found: Iterable[int], most: int = 16) -> str:
    """Numbers, as of ranks, in a row; see `names`."""
    return names([str(number) for number in found], most)
