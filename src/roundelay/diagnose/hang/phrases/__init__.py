"""What lines of launchers, schedulers, frameworks and torch stand for, and what to try."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from ....formats.bare import bare, plain, rank_of
from ....formats.nccl_log import Line
from ...finding import Figures, Finding, cited, numbers, tell
from .frameworks import FRAMEWORKS
from .host import HOST
from .launchers import LAUNCHERS
from .phrase import BELOW, Phrase
from .schedulers import SCHEDULERS
from .torch import TORCH

__all__ = ["LATER", "PHRASES", "phrase_findings", "speaks"]

PHRASES: Final = (*SCHEDULERS, *HOST, *TORCH, *FRAMEWORKS, *LAUNCHERS)
ANCHORS: Final = (
    b"rror", b"arrier", b"CANCELLED", b"ailed", b"ailure", b"xception", b"MPI", b"ssert",
    b"tasks", b"subset of", b"heartbeat", b"died", b"dead", b"reliably", b"illed", b"vict",
    b"nodes are", b"imed out", b"imeout", b"slots", b"ancdata", b"emory", b"o space", b"ermission",
    b"signal", b"in store", b"NOT been", b"unknown", b"Guessing", b"raining graph", b"stuck",
    b"not been", b"open files", b"new thread", b"quota", b"broadcast block", b"isabled",
    b"sigquit", b"shut down", b"longer than", b"reempted", b"shutdown", b"specified", b"ivisible",
    b"not set", b"Mismatched", b"ssh: ", b"olled an", b"occupied", b"doesn't have", b"not part",
    b"nconsistent", b"appears not", b"ready only", b"equested", b"unreachable", b"o backend",
    b"not in group", b"lost", b"xec", b"KeyboardI", b"retry:", b"hape", b"unable", b"not find",
    b"xitCode", b"xit Code", b"fulfill", b"scheduled", b"HYDU", b"bad_alloc", b"xhausted",
    b"uneven", b"twice", b"show up", b"topologies", b"issing proc",
    b"Fatal Python", b"[mori]",
)  # fmt: skip
"""One of which stands in every line that a phrase is looked for in."""
_NCCL: Final = (b"CCL INFO ", b"CCL WARN ")
"""What lines of NCCL have, of which a log may hold millions; their causes are told elsewhere."""
LATER: Final = frozenset({"cancelled", "coordinator_lost", "engine_failed", "worker_died"})
"""Kinds that say nothing beside what has ended or failed first."""
_EXPLAINED: Final = MappingProxyType({
    "unstuck": ("slow_to_join",), "ranks_missing": ("slow_to_join",),
    "worker_stuck": ("worker_busy",), "index_out_of_range": ("kernel_failed",),
})  # fmt: skip
"""Kinds that another makes needless."""
_anchored: Final = re.compile(b"|".join(map(re.escape, ANCHORS)))
LISTED: Final = 4


@dataclass
class _Said:
    """A phrase that was found: the first line of it, what its groups hold, and who says it."""

    phrase: Phrase
    groups: dict[str, str]
    lines: list[Line] = field(default_factory=list)
    ranks: set[int] = field(default_factory=set)
    wants: int = 0


def speaks(text: bytes) -> bool:
    """Whether there is a phrase in it."""
    return any(_may_speak(line) and _first(bare(line)) for line in text.split(b"\n"))


def _may_speak(line: bytes) -> bool:
    if _NCCL[0] in line or _NCCL[1] in line:
        return False
    return _anchored.search(line) is not None


def _first(text: str) -> tuple[Phrase, re.Match[str]] | None:
    for phrase in PHRASES:
        if said := phrase.pattern.search(text):
            return phrase, said
    return None


class Spoken(NamedTuple):
    """One finding for each kind; the lines that tell a cause, and those that only follow."""

    findings: list[Finding]
    told: set[int]
    later: set[int]


def phrase_findings(file: str, lines: Iterable[bytes]) -> Spoken:
    """What phrases stand in lines."""
    found: dict[str, _Said] = {}
    told, later = set[int](), set[int]()
    open_: list[_Said] = []
    for number, raw in enumerate(lines, 1):
        if open_:
            open_ = [said for said in open_ if _adds(said, raw)]
        if not _may_speak(raw):
            continue
        text = bare(raw)
        hit = _first(text)
        if hit is None:
            continue
        if hit[0].fault:
            (later if hit[0].kind in LATER else told).add(number)
        said = _keep(found, *hit, rank_of(raw), Line(number, text[:400], file))
        if said.wants:
            open_.append(said)
    late = found["never_called"].groups.get("late") if "never_called" in found else None
    if late:  # rank 0 names who did not come; the others only name rank 0
        found.pop("broke_off", None)
    for kind in [k for seen in found for k in _EXPLAINED.get(seen, ())]:
        found.pop(kind, None)
    order = sorted(found.values(), key=lambda said: said.lines[0].number)
    return Spoken([_told(file, said) for said in order], told, later)


def _keep(
    found: dict[str, _Said], phrase: Phrase, match: re.Match[str], rank: int | None, line: Line,
) -> _Said:  # fmt: skip
    """The phrase of its kind that is told, with this line of it."""
    said = found.setdefault(phrase.kind, _Said(phrase, {}))
    if not said.lines or PHRASES.index(phrase) < PHRASES.index(said.phrase):
        said.phrase = phrase
        said.groups = {k: v for k, v in match.groupdict().items() if v is not None}
        said.wants = BELOW if phrase.below else 0
    own = match.groupdict().get("rank") if phrase is said.phrase else None
    if own is not None or rank is not None:
        said.ranks.add(int(own) if own is not None else rank or 0)
    if len(said.lines) < LISTED:
        said.lines.append(line)
    return said


def _adds(said: _Said, raw: bytes) -> bool:
    """Take what a line below adds; whether more is to be looked for."""
    said.wants -= 1
    below = said.phrase.below
    if below is not None and (more := below.search(plain(raw))):
        said.groups |= {k.rstrip("2"): v for k, v in more.groupdict().items() if v is not None}
        said.ranks |= {int(more["rank"])} if "rank" in more.groupdict() else set()
        said.wants = 0
    return said.wants > 0


def _told(file: str, said: _Said) -> Finding:
    phrase = said.phrase
    groups = [*phrase.pattern.groupindex, *(phrase.below.groupindex if phrase.below else ())]
    figures: Figures = {name.rstrip("2"): "?" for name in groups}
    for name, value in said.groups.items():
        text = value.strip(" .,")
        figures[name] = int(text) if text.isdecimal() and len(text) < 16 else text[:200]
    figures["rank"] = numbers(sorted(said.ranks), 8) or "?"
    return tell(phrase.kind, file, figures, [phrase.reason], phrase.advice,
                cited(file, *said.lines), fault=phrase.fault, confidence=phrase.confidence,
                area=phrase.area)  # fmt: skip
