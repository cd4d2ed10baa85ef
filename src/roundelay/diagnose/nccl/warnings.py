"""What NCCL's warnings mean, and what to try."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

from ...formats.nccl_log import NcclLog, Warned
from ..finding import Figures, Finding, cited, tell
from .causes import ASKED, CAUSES, EXPLAINED, FOLLOWS, LATER, Cause, spelled
from .causes.cards import ONE_PROCESS
from .causes.places import place_of
from .hints import HINTS

_NAMES: Final = MappingProxyType(
    {"bytes": "needed_bytes", "needed": "needed_bytes", "came": "sent", "room": "wanted",
     "has": "has_bytes"}
)  # fmt: skip
"""Figures by the names of groups in patterns."""
_HEX: Final = re.compile(r"0x[0-9a-f]{1,15}")
LOST: Final = "peer_lost"
TORN_DOWN: Final = next(cause for cause in CAUSES if cause.kind == "torn_down")
"""What a closed connection is behind a sound start, where no rank has failed."""
ASIDE: Final = ("no_plugin", "retrying")
"""Kinds that need not be told beside anything else, or once a start is through."""


def warning_findings(file: str, log: NcclLog) -> list[Finding]:
    """A finding for each cause; warnings that have none are told as they stand, the first five."""
    through = not log.warned and not log.results and _through(log)
    found: dict[str, Finding] = {}
    plain: list[Finding] = []
    for count, warned in (*log.warned.values(), *log.noted.values()):
        if HINTS.search(warned.text):
            continue
        cause = next((c for c in CAUSES if c.pattern.search(_said(warned))), None)
        if through and cause is not None and cause.kind == LOST and not warned.warns:
            cause = TORN_DOWN
        if cause is not None:
            if cause.kind == ONE_PROCESS.kind and _alone(log):
                cause = next(c for c in (ONE_PROCESS, cause) if c.pattern.search(_said(warned)))
            if cause.kind not in found:
                found[cause.kind] = _caused(file, count, warned, cause)
        elif warned.warns:
            plain.append(_plain(file, count, warned))
    for kind in [k for seen in found for k in EXPLAINED.get(seen, ())]:
        found.pop(kind, None)
    telling = [kind for kind, f in found.items() if f.fault and kind not in LATER]
    full = found.get("out_of_memory")
    if full is not None and len(telling) > 1 and ASKED.search(full.evidence[0].text):
        found.pop("out_of_memory")
    first = [f for f in plain if not FOLLOWS.search(str(f.figures["text"]))]
    if first or any(f.fault and f.kind not in LATER for f in found.values()):
        found = {kind: f for kind, f in found.items() if kind not in LATER}
        plain = first
    elif found:
        plain = []
    if plain or len(found) > 1 or any(t.complete for t in log.threads.values()):
        found = {kind: f for kind, f in found.items() if kind not in ASIDE}
    return [*found.values(), *plain[:5]]


def _alone(log: NcclLog) -> bool:
    """Whether several ranks are threads of one process, and no other tells anything."""
    of = {(t.host, t.pid) for t in log.threads.values()}
    return len(of) == 1 and len({t.rank for t in log.ranks()}) > 1


def _through(log: NcclLog) -> bool:
    """Whether a start was completed and no thread gave up."""
    threads = log.threads.values()
    return any(t.complete for t in threads) and not any(t.failed for t in threads)


def _said(warned: Warned) -> str:
    """Where and what, as causes look for it."""
    return spelled(f"{warned.place} {warned.text}")


def _caused(file: str, count: int, warned: Warned, cause: Cause) -> Finding:
    match = cause.pattern.search(_said(warned))
    figures: Figures = {"times": count, "host": warned.host or "?"}
    for name, value in (match.groupdict() if match else {}).items():
        if value is None:
            continue
        text = value.strip()
        name = _NAMES.get(name, name)
        if name.endswith("_bytes") and text.startswith("0x"):
            text = str(int(text, 16)) if _HEX.fullmatch(text) else text
        figures[name] = int(text) if text.isdecimal() and len(text) < 16 else text[:200]
    return tell(cause.kind, warned.host or file, figures, cause.reason, cause.advice,
                cited(file, warned.line), fault=cause.fault, confidence=cause.confidence,
                area=cause.area)  # fmt: skip


def _plain(file: str, count: int, warned: Warned) -> Finding:
    figures: Figures = {"times": count, "place": warned.place, "text": warned.text[:200]}
    place = place_of(_said(warned))
    return tell(
        "nccl_warns", warned.host or file, figures,
        ["NCCL warns (times: {times}): {text}", *filter(None, (place.reason,))], place.advice,
        cited(file, warned.line), fault=True, confidence=0.6, area="machine",
    )  # fmt: skip
