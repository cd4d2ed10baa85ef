"""What NCCL's warnings mean, and what to try."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from ..formats.nccl_log import NcclLog, Warned
from .causes import CAUSES, FOLLOWS, Cause
from .finding import Figures, Finding, cited, tell
from .hints import HINTS

_NAMES: Final = MappingProxyType(
    {"bytes": "needed_bytes", "needed": "needed_bytes", "came": "sent", "room": "wanted",
     "has": "has_bytes"}
)  # fmt: skip
"""Figures by the names of groups in patterns."""
LATER: Final = ("flushed", "peer_lost")
"""Kinds that say nothing beside another one."""


def warning_findings(file: str, log: NcclLog) -> list[Finding]:
    """A finding for each cause; warnings that have none are told as they stand, the first five."""
    found: dict[str, Finding] = {}
    plain: list[Finding] = []
    for count, warned in (*log.warned.values(), *log.noted.values()):
        if HINTS.search(warned.text):
            continue
        cause = next((c for c in CAUSES if c.pattern.search(warned.text)), None)
        if cause is not None:
            if cause.kind not in found:
                found[cause.kind] = _caused(file, count, warned, cause)
        elif warned.warns:
            plain.append(_plain(file, count, warned))
    first = [f for f in plain if not FOLLOWS.search(str(f.figures["text"]))]
    if first or any(f.fault and f.kind not in LATER for f in found.values()):
        found = {kind: f for kind, f in found.items() if kind not in LATER}
        plain = first
    return [*found.values(), *plain[:5]]


def _caused(file: str, count: int, warned: Warned, cause: Cause) -> Finding:
    match = cause.pattern.search(warned.text)
    figures: Figures = {"times": count, "host": warned.host or "?"}
    for name, value in (match.groupdict() if match else {}).items():
        if value is None:
            continue
        text = value.strip()
        name = _NAMES.get(name, name)
        figures[name] = int(text) if text.isdecimal() and len(text) < 16 else text[:200]
    return tell(cause.kind, warned.host or file, figures, cause.reason, cause.advice,
                cited(file, warned.line), fault=cause.fault, confidence=cause.confidence,
                area=cause.area)  # fmt: skip


def _plain(file: str, count: int, warned: Warned) -> Finding:
    figures: Figures = {"times": count, "place": warned.place, "text": warned.text[:200]}
    return tell(
        "nccl_warns", warned.host or file, figures,
        ["NCCL warns (times: {times}): {text}"],
        "Look at the first warning of all ranks: later ones follow from it.",
        cited(file, warned.line), fault=True, confidence=0.6, area="machine",
    )  # fmt: skip
