"""Jobs that arrive: from a trace, or by chance.

A trace is a CSV file with the columns arrival_s and gpus (or cards), and duration_s or steps, and
perhaps priority. Steps become seconds by their kind, where there is a column kind, since kinds
differ in what a step takes: half of the jobs of each kind last longer than `median`.
"""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ...errors import RoundelayError
from ...topology import Cluster
from .kinds import room_for

JOBS_LIMIT: Final = 1_000_000
SIZES: Final = ((8, 0.5), (16, 0.15), (32, 0.12), (64, 0.1), (128, 0.06), (256, 0.04), (512, 0.02),
                (1024, 0.01))  # fmt: skip
"""Cards, and their part of the jobs that come by chance."""
MEDIAN: Final = 3600.0
"""Seconds of a job, the middle of all."""
SPREAD: Final = 1.5
"""Of the logarithm of the seconds of jobs that come by chance."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job that arrives.

    Attributes:
        submit: seconds.
        cards: all at once (a gang).
        seconds: of work, where its exchange is as cheap as can be.
        priority: one that is higher may take the cards of others.
    """

    submit: float
    cards: int
    seconds: float
    priority: int = 0


def read_trace(text: str, name: str, median: float = MEDIAN) -> list[Arrival]:
    """The jobs of a trace, in the order of their arrival.

    Args:
        text: the file.
        name: of the file, for errors.
        median: seconds, where lengths are in steps.

    Raises:
        RoundelayError: a column is missing, or a line is no job; with its number.
    """
    rows = csv.DictReader(io.StringIO(text))
    try:
        columns, found = list(rows.fieldnames or ()), list(rows)
    except csv.Error as error:
        raise RoundelayError(f"{name}: no CSV: {error}") from None
    size = "gpus" if "gpus" in columns else "cards"
    length = "duration_s" if "duration_s" in columns else "steps"
    if not {"arrival_s", size, length} <= {*columns}:
        raise RoundelayError(f"{name}: columns {', '.join(columns) or 'none'}; expected arrival_s, "
                             "gpus or cards, and duration_s or steps")  # fmt: skip
    if not 1 <= len(found) <= JOBS_LIMIT:
        raise RoundelayError(f"{name}: {len(found):,} jobs; expected 1 to {JOBS_LIMIT:,}")
    jobs = [_job(row, (size, length), f"{name}, line {i}") for i, row in enumerate(found, 2)]
    if length == "steps":
        _check_median(median)
        jobs = _by_kind(jobs, [row.get("kind") or "" for row in found], median)
    return sorted(jobs, key=lambda job: job.submit)


def _job(row: dict[str, str], columns: tuple[str, str], where: str) -> Arrival:
    try:
        arrival, cards, length = (float(row[column]) for column in ("arrival_s", *columns))
        priority = int(row.get("priority") or 0)
    except (TypeError, ValueError):
        raise RoundelayError(f"{where}: {list(row.values())!s:.80}; expected numbers in arrival_s, "
                             f"{' and '.join(columns)}") from None  # fmt: skip
    good = 0 <= arrival < 1e12 and 1 <= cards < 2**31 and cards % 1 == 0 and 0 < length < 1e15
    if not good or abs(priority) > 10**6:
        raise RoundelayError(f"{where}: {arrival:g}, {cards:g}, {length:g}; expected a time from 0 "
                             "up, 1 card or more, and a length above 0")  # fmt: skip
    return Arrival(arrival, int(cards), length, priority)


def _check_median(median: float) -> None:
    if not 0 < median < 1e15:
        raise RoundelayError(f"a median of {median:g} s; expected more than 0")


def _by_kind(jobs: Sequence[Arrival], kinds: Sequence[str], median: float) -> list[Arrival]:
    steps = defaultdict(list)
    for job, kind in zip(jobs, kinds, strict=True):
        steps[kind].append(job.seconds)
    scale = {kind: median / float(np.median(some)) for kind, some in steps.items()}
    return [replace(job, seconds=job.seconds * scale[kind])
            for job, kind in zip(jobs, kinds, strict=True)]  # fmt: skip


def by_chance(count: int, seed: int, largest: int, median: float = MEDIAN) -> list[Arrival]:
    """Jobs that arrive by chance, one an hour in the mean; see `loaded`.

    Args:
        count: of jobs.
        seed: the same gives the same.
        largest: cards of a job.
        median: seconds of a job; lengths are log-normal, times between arrivals exponential.

    Raises:
        RoundelayError: no jobs, or too many.
    """
    if not 1 <= count <= JOBS_LIMIT:
        raise RoundelayError(f"{count:,} jobs; expected 1 to {JOBS_LIMIT:,}")
    _check_median(median)
    rng = np.random.default_rng(seed)
    submit = np.cumsum(rng.exponential(3600.0, count))
    sizes = np.array([cards for cards, _ in SIZES])
    cards = np.minimum(rng.choice(sizes, count, p=[part for _, part in SIZES]), largest)
    seconds = median * np.exp(SPREAD * rng.standard_normal(count))
    return [Arrival(float(t), int(n), float(s))
            for t, n, s in zip(submit, cards, seconds, strict=True)]  # fmt: skip


def loaded(jobs: Sequence[Arrival], cards: int, load: float) -> list[Arrival]:
    """The same jobs, closer together or further apart, so that they ask for a part of the cards.

    Args:
        jobs: in the order of their arrival.
        cards: of the cluster.
        load: card-seconds asked for, over those there are from the first arrival to the last.

    Raises:
        RoundelayError: a load that is none, or jobs that arrive all at once.
    """
    if not 0 < load <= 100:
        raise RoundelayError(f"load {load:g}; expected more than 0, such as 0.8, and 100 at most")
    first = jobs[0].submit
    span = jobs[-1].submit - first
    if not span:
        raise RoundelayError("all jobs arrive at once; leave out the load")
    factor = sum(job.cards * job.seconds for job in jobs) / (load * cards) / span
    return [replace(job, submit=(job.submit - first) * factor) for job in jobs]


def larger(jobs: Sequence[Arrival], times: int) -> list[Arrival]:
    """The same jobs with so many times the cards; the cards of older traces did less each."""
    return [replace(job, cards=job.cards * times) for job in jobs]


def fitting(jobs: Sequence[Arrival], cluster: Cluster) -> list[Arrival]:
    """The same jobs; those that fill no nodes, and so have no room, are cut to whole nodes."""
    each = cluster.cards
    return [job if job.cards <= room_for(job.cards, cluster)
            else replace(job, cards=job.cards // each * each) for job in jobs]  # fmt: skip


def urgent(jobs: Sequence[Arrival], part: float, seed: int) -> list[Arrival]:
    """The same jobs, a part of them, by chance, with a higher priority.

    Raises:
        RoundelayError: no part.
    """
    if not 0 <= part <= 1:
        raise RoundelayError(f"urgent: {part:g}; expected a part from 0 to 1")
    drawn = np.random.default_rng([seed, 1]).random(len(jobs)) < part
    return [replace(job, priority=job.priority + 1) if raised else job
            for job, raised in zip(jobs, drawn.tolist(), strict=True)]  # fmt: skip
