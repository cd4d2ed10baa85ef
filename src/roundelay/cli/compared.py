"""What `cluster-sim` prints and draws: policies beside one another."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from ..place.sim import KINDS, Checkpoint, Run, Summary
from ..sweep.chart import Chart, Line, Scale, Spot
from ..topology import Cluster
from .base import say
from .output import table

NAMES: Final = MappingProxyType({
    "first_fit": "first fit",
    "best_fit": "best fit, as Kueue and KAI",
    "order": "best fit, ranks in our order",
    "ours": "ours",
})  # fmt: skip
WHAT: Final = MappingProxyType({
    "exchange": "an exchange over the cheapest",
    "wait": "hours of waiting",
})  # fmt: skip
"""What is drawn over the jobs."""
SPOTS: Final = 50
"""Points of a line."""
SIZES_SHOWN: Final = 6
SPANS: Final = (("days", 86400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0))


def span(seconds: float) -> str:
    """A time for people, from seconds to days.

    >>> span(11124), span(817), span(0)
    ('3.09 h', '13.6 min', '0 s')
    """
    for unit, worth in SPANS:
        if abs(seconds) >= 2 * worth:
            count = seconds / worth
            return f"{count:.3g} {say(unit)}" if count < 1000 else f"{count:,.0f} {say(unit)}"
    return f"{seconds:.2g} s"


def entry(found: Sequence[Summary], advice: Sequence[Checkpoint], cluster: Cluster) -> Any:
    """All as JSON."""
    return {
        "cluster": cluster.name,
        "cards": cluster.size,
        "policies": [_policy(one) for one in found],
        "checkpoints": [
            {
                "cards": c.cards,
                "between_failures_s": c.between_failures,
                "young_s": c.young,
                "daly_s": c.daly,
                "waste": c.waste,
                "effective": c.effective,
            }
            for c in advice
        ],
    }


def _policy(one: Summary) -> dict[str, Any]:
    runs = one.outcome.runs
    return {
        "policy": one.policy,
        "wait_s": one.wait_s,
        "makespan_s": one.makespan_s,
        "fragmentation": one.fragmentation,
        "exchange_slowdown": one.exchange_slowdown,
        "exchange_crowding": one.crowding,
        "lost_card_hours": one.lost_card_hours,
        "recomputed_card_hours": one.card_hours["again"],
        "card_hours": dict(one.card_hours),
        "effective": one.effective,
        "failures": one.outcome.failures,
        "jobs": [_job(run) for run in runs],
    }


def _job(run: Run) -> dict[str, Any]:
    return {
        "job": run.number,
        "kind": run.kind.job.name,
        "cards": run.arrival.cards,
        "submit_s": run.arrival.submit,
        "start_s": run.started,
        "end_s": run.ended,
        "exchange": run.exchanged / run.held if run.held else 1.0,
        "crowding": run.shared / run.exchanged if run.exchanged else 1.0,
        "failures": run.failures,
        "preempted": run.preempted,
        "moved": run.moved,
    }


def told(found: Sequence[Summary], advice: Sequence[Checkpoint], cluster: Cluster) -> str:
    """All for people."""
    runs = found[0].outcome.runs
    sizes = [run.arrival.cards for run in runs]
    arrive = runs[-1].arrival.submit - runs[0].arrival.submit
    crowded = ["shared links"] if found[0].crowding is not None else []
    head = ["policy", "waiting", "all done", "fragments", "exchange", *crowded, "saving",
            "restarting", "done again", "slow nodes", "work"]  # fmt: skip
    rows = [[say(NAMES[one.policy]), span(one.wait_s), span(one.makespan_s),
             f"{one.fragmentation:.1%}", f"{one.exchange_slowdown - 1:+.1%}",
             *([] if one.crowding is None else [f"{one.crowding - 1:+.1%}"]),
             *(_part(one, key) for key in ("saving", "restarting", "again", "slowed", "work"))]
            for one in found]  # fmt: skip
    return "\n\n".join([
        say("{jobs} jobs of {least} to {most} cards, arriving over {time}, on {cluster} of {cards} "
            "cards", jobs=f"{len(runs):,}", least=f"{min(sizes):,}", most=f"{max(sizes):,}",
            time=span(arrive), cluster=cluster.name, cards=f"{cluster.size:,}"),
        table([say(word) for word in head], rows, right="bcdefghijk"),
        _met(found),
        _advice(advice),
    ])  # fmt: skip


def _part(one: Summary, key: str) -> str:
    return f"{one.card_hours[key] / sum(one.card_hours.values()):.1%}"


def _met(found: Sequence[Summary]) -> str:
    """What failures and preemption did."""
    kinds = [k for k in KINDS if any(k in one.outcome.failures for one in found)]
    head = ["policy", "lost card-hours", "done again", *kinds, "preempted", "moved"]
    rows = [[say(NAMES[one.policy]), f"{one.lost_card_hours:,.0f}",
             f"{one.card_hours['again']:,.0f}",
             *(f"{one.outcome.failures.get(kind, 0):,}" for kind in kinds),
             *(f"{sum(getattr(r, what) for r in one.outcome.runs):,}"
               for what in ("preempted", "moved"))]
            for one in found]  # fmt: skip
    return table([say(word) for word in head], rows, right="bcdefghijk")


def _advice(advice: Sequence[Checkpoint]) -> str:
    """The largest jobs: how often they should save."""
    if not advice:
        return say("Nothing fails, so no saves are needed.")
    head = ["cards", "between failures", "a save every (Young)", "work between saves (Daly)",
            "that costs"]  # fmt: skip
    rows = [[f"{c.cards:,}", span(c.between_failures), span(c.young), span(c.daly),
             f"{1 - c.effective:.2%}"] for c in advice[-SIZES_SHOWN:]]  # fmt: skip
    return table([say(word) for word in head], rows, right="abcde")


def chart(found: Sequence[Summary], what: str, cluster: Cluster) -> Chart:
    """A line for each policy over its jobs, the least first."""
    x = Scale(say("jobs, least first, %"), False, "{:g}".format)
    y = Scale(say(WHAT[what]), False, "{:.3g}".format)
    jobs = len(found[0].outcome.runs)
    title = say("{jobs} jobs on {cluster}, {cards} cards", jobs=f"{jobs:,}", cluster=cluster.name,
                cards=f"{cluster.size:,}")  # fmt: skip
    lines = [_line(one, what) for one in found]
    return Chart(title, say("predicted, not measured"), x, y, lines)


def _line(one: Summary, what: str) -> Line:
    runs = one.outcome.runs
    if what == "wait":
        values = [(run.started - run.arrival.submit) / 3600 for run in runs]
    else:
        values = [run.exchanged / run.held for run in runs if run.held]
    values = [value for value in values if isfinite(value)] or [0.0]
    name = say(NAMES[one.policy])
    at = np.linspace(0, 100, SPOTS + 1)
    spots = [Spot(float(x), float(y), f"{name}, {x:g} %, {y:.3g}")
             for x, y in zip(at, np.percentile(values, at), strict=True)]  # fmt: skip
    return Line(name, spots)
