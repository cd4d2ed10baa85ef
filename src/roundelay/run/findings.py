"""What is wrong with a job, by what each of its ranks does: who has not arrived at which call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from ..units import format_size
from .members import ranks_text

LISTED: Final = 16
"""Runs of ranks that a sentence lists."""


class Doing(msgspec.Struct, array_like=True):
    """What a rank does in one group.

    Attributes:
        group: the group's name, for people.
        tag: what the job knows it by.
        ranks: its ranks, by their numbers in the job.
        call: its number in the group, from 1; 0: there was none yet.
        collective: of this call.
        size: its bytes; 0 where ranks have different counts, or it moves none.
        active: whether it is under way.
        seconds: since it began, or has ended.
    """

    group: str
    tag: str
    ranks: list[int]
    call: int = 0
    collective: str = ""
    size: int = 0
    active: bool = False
    seconds: float = 0.0

    def __str__(self) -> str:
        """Such as ``all_reduce #1042 (4 MiB, group dp)``."""
        size = f"{format_size(self.size)}, " if self.size else ""
        return f"{self.collective} #{self.call} ({size}group {self.group})"


class Finding(msgspec.Struct):
    """A call at which ranks wait.

    Attributes:
        tag, call: which.
        late: ranks that have not arrived; none where all have, and it gets nowhere all the same.
        waiting: those that wait.
        text: it all, for people.
    """

    tag: str
    call: int
    late: list[int]
    waiting: list[int]
    text: str


States = Mapping[int, Sequence[Doing] | None]
"""[rank] what it does in each of its groups; None where it does not answer."""


def findings(states: States, gone: Mapping[int, str], after: float) -> list[Finding]:
    """The calls that ranks have waited in for long; those first whose late ranks wait nowhere else.

    Args:
        states: of the ranks of the job.
        gone: [rank], how it was noticed that it has gone.
        after: seconds that a call may be under way.
    """
    groups: dict[str, dict[int, Doing]] = {}
    for rank, doing in states.items():
        for one in doing or ():
            groups.setdefault(one.tag, {})[rank] = one
    found = [
        finding
        for group in groups.values()
        if (finding := _of_group(group, states, gone, after)) is not None
    ]
    waiting = {rank for finding in found for rank in finding.waiting}
    return sorted(found, key=lambda f: not waiting.isdisjoint(f.late))


def _of_group(
    group: Mapping[int, Doing], states: States, gone: Mapping[int, str], after: float
) -> Finding | None:
    stuck = [d for d in group.values() if d.active and d.seconds >= after]
    if not stuck:
        return None
    call = max(d.call for d in stuck)
    here = next(d for d in stuck if d.call == call)
    waiting = [r for r, d in group.items() if d.active and d.call == call]
    late = [r for r in here.ranks if r not in group or group[r].call < call]
    if late:
        verb = "has" if len(late) == 1 else "have"
        text = f"{ranks_text(late)} {verb} not arrived at {here}; "
        text += "; ".join(_whereabouts(r, states.get(r), gone.get(r)) for r in late[:3])
        text += f"; waiting: {_runs(waiting)}"
    else:
        seconds = max(group[r].seconds for r in waiting)
        text = (
            f"all of group {here.group} have arrived at {here}, and it has not ended since "
            f"{seconds:.1f} s; waiting: {_runs(waiting)}. Is a link or a rank slow?"
        )
    return Finding(here.tag, call, late, waiting, text)


def _whereabouts(rank: int, doing: Sequence[Doing] | None, gone: str | None) -> str:
    """What a rank that is missed does instead."""
    if gone is not None:
        return f"rank {rank} has gone: {gone}"
    if doing is None:
        return f"rank {rank} does not answer: its process is stopped, or busy in native code"
    made = [d for d in doing if d.call]
    if not made:
        return f"rank {rank} has made no call yet"
    active = [d for d in made if d.active]
    if active:
        last = max(active, key=lambda d: d.seconds)
        return f"rank {rank} is in {last} since {last.seconds:.1f} s"
    last = min(made, key=lambda d: d.seconds)
    return f"rank {rank} is in no call; its last, {last}, ended {last.seconds:.1f} s ago"


def _runs(ranks: Sequence[int]) -> str:
    """``0-4, 6, 7``."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], rank]
        else:
            runs.append([rank])
    texts = [
        f"{r[0]}-{r[-1]}" if r[-1] - r[0] > 1 else ", ".join(map(str, sorted(set(r)))) for r in runs
    ]
    more = f" and {len(texts) - LISTED} more runs" if len(texts) > LISTED else ""
    return ", ".join(texts[:LISTED]) + more
