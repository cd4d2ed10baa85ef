"""What a whole training says: where its time went, what a slow rank and checkpoints cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import Any, Final

from ...bench.machine import cores
from ...intervals import daly, young
from ...simulate.overlap import Parts as Predicted
from .job import Course
from .measure import TIMES, Row
from .predict import predict
from .settings import Settings
from .stamps import Event, Noted

WARM: Final = 2
"""Steps that are left out of means where there are enough others: plans are made in them."""


def summary(settings: Settings, course: Course, card_hours: float) -> dict[str, Any]:
    """The value of `--json`, but for the steps.

    Args:
        settings: of the training.
        course: what has become of it.
        card_hours: mean hours between failures of one rank.
    """
    rows = _usual(course)
    means = {name: _mean(rows, name) for name in TIMES}
    moved = means["hidden_us"] + means["exposed_us"]
    tokens = settings.batch * settings.context
    return {
        "ranks": settings.ranks,
        "by_ranks": _by_ranks(course),
        "times_of_ranks": rows[0].ranks if rows else None,
        "backend": settings.backend,
        "dtype": settings.dtype,
        "zero": settings.zero,
        "parameters": course.done.parameters if course.done else None,
        "steps": len(course.rows),
        "steps_made": course.made,
        "starts": course.starts,
        "first_loss": course.rows[min(course.rows)].loss if rows else None,
        "last_loss": course.rows[max(course.rows)].loss if rows else None,
        **means,
        "hidden_share": means["hidden_us"] / moved if moved else None,
        "median_step_us": median(r.step_us for r in rows) if rows else None,
        "tokens_per_s": tokens / means["step_us"] * 1e6 if rows else None,
        "by_rank": _by_rank(rows),
        "predicted": _predicted(settings, course, rows),
        "events": _events(course.events),
        "checkpoints": _checkpoints(settings, course, card_hours),
        "sample": course.done.sample if course.done else None,
    }


def _by_ranks(course: Course) -> list[dict[str, int]]:
    """How many steps were made by how many ranks, in the order in which they came."""
    counts = Counter(course.rows[step].ranks for step in sorted(course.rows))
    return [{"ranks": ranks, "steps": steps} for ranks, steps in counts.items()]


def _events(events: Sequence[Event]) -> list[dict[str, Any]]:
    """What has happened, and what it took: to notice that a rank has gone, and to go on."""
    found, killed = [], 0
    for e in events:
        if e.what == "killed":
            killed = e.at
        begun = e.noticed or killed
        known = e.what != "killed" and begun
        found.append({
            "what": e.what, "step": e.step, "rank": e.rank, "ranks": e.ranks,
            "notice_us": (e.noticed - killed) / 1e3 if e.noticed and killed else None,
            "took_us": (e.at - begun) / 1e3 if known else None,
        })  # fmt: skip
    return found


def _usual(course: Course) -> list[Row]:
    """Steps that as many ranks made as most others, without the first."""
    rows = [course.rows[step] for step in sorted(course.rows)]
    rows = rows[WARM:] if len(rows) > 2 * WARM else rows
    counts = [r.ranks for r in rows]
    most = max(counts, key=counts.count, default=0)
    return [r for r in rows if r.ranks == most]


def _mean(rows: Sequence[Any], name: str) -> float:
    return sum(getattr(r, name) for r in rows) / len(rows) if rows else 0.0


def _by_rank(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """The means of each rank."""
    found: dict[int, list[Any]] = {}
    for of_one in rows:
        for part in of_one.by_rank:
            found.setdefault(part.rank, []).append(part)
    return [{"rank": r, **{name: _mean(found[r], name) for name in TIMES}} for r in sorted(found)]


def _predicted(settings: Settings, course: Course, rows: Sequence[Row]) -> dict[str, Any] | None:
    """What the clock says, where a rank is slow."""
    names = {p.rank for r in rows for p in r.by_rank}
    if not any(s.rank in names for s in settings.slow):
        return None
    steps: list[list[Noted]] = [course.notes[r.step] for r in rows]
    same = [notes for notes in steps if len(notes) == len(steps[0])]
    timing, even = predict(same, settings.slow)
    ranks = [note.rank for note in same[0]]
    by_rank = [_micros(r, Predicted(*(float(c[k]) for c in timing.by_rank)))
               for k, r in enumerate(ranks)]  # fmt: skip
    return {"step_us": timing.time * 1e6, "even_step_us": even * 1e6, "by_rank": by_rank,
            "cores": cores()}  # fmt: skip


def _micros(rank: int, parts: Predicted[float]) -> dict[str, Any]:
    return {"rank": rank, **{f"{name}_us": s * 1e6 for name, s in parts._asdict().items()}}


def _checkpoints(settings: Settings, course: Course, card_hours: float) -> dict[str, Any] | None:
    """How often to save, by how long a save takes and how often a rank fails."""
    whole = [s for s in course.saved if not s.problem]
    problems = [{"step": s.step, "problem": s.problem} for s in course.saved if s.problem]
    if not whole:
        return {"count": 0, "problems": problems} if problems else None
    seconds, failures = median(s.seconds for s in whole), card_hours * 3600 / settings.ranks
    return {
        "count": len(whole),
        "last_step": max(s.step for s in whole),
        "bytes": whole[-1].bytes,
        "save_s": seconds,
        "between_failures_s": failures,
        "young_s": young(seconds, failures),
        "daly_s": daly(seconds, failures),
        "problems": problems,
    }
