"""What is said of a schedule as a whole: its title, its purpose, and what it came to."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

import numpy as np

from ..collectives import Bools, everyone
from ..i18n import Message, message
from ..schedule import Schedule
from .frames import Frame, contributors

PURPOSE: Final = MappingProxyType(
    {
        "all_reduce": message("Every rank brings numbers; in the end every rank has their sum."),
        "reduce": message("Every rank brings numbers; in the end rank {root} has their sum."),
        "broadcast": message("Rank {root} brings data; in the end every rank has a copy."),
        "all_gather": message("Every rank brings one piece; in the end every rank has them all."),
        "reduce_scatter": message(
            "Every rank brings numbers for every piece; in the end each has the sum of one piece."
        ),
        "gather": message("Every rank brings one piece; in the end rank {root} has them all."),
        "scatter": message(
            "Rank {root} brings a piece for everybody; in the end each has its own."
        ),
        "all_to_all": message(
            "Every rank brings a piece for every rank; i>j is the one that goes from rank i to "
            "rank j."
        ),
        "send_recv": message("Every rank brings a piece for the rank after it."),
        "barrier": message(
            "Every rank learns that all have arrived; a piece is one rank's word that it has."
        ),
    }
)


def name(schedule: Schedule) -> str:
    """``all_reduce/rails (group=4, ...)``; without a name, the collective alone."""
    what = f"{schedule.collective}/{schedule.name}" if schedule.name else schedule.collective
    params = ", ".join(
        f"{k}={v.name or v.collective if isinstance(v, Schedule) else v}"
        for k, v in schedule.params.items()
    )
    whole = f"{what} ({params})" if params else what
    return "".join(c for c in whole if c.isprintable())


def title(schedule: Schedule) -> Message:
    """Name and figures, in a line."""
    figures = [
        message("1 rank") if schedule.ranks == 1 else message("{k} ranks", k=schedule.ranks),
        message("1 piece") if schedule.chunks == 1 else message("{k} pieces", k=schedule.chunks),
        message("1 step") if schedule.steps == 1 else message("{k} steps", k=schedule.steps),
    ]
    if schedule.helpers:
        k = schedule.helpers
        figures.append(message("1 switch") if k == 1 else message("{k} switches", k=k))
    listed = figures[0]
    for figure in figures[1:]:
        listed = message("{first}, {second}", first=listed, second=figure)
    return message("{name}: {figures}", name=name(schedule), figures=listed)


def purpose(schedule: Schedule) -> Message:
    """What the collective is for, in a sentence."""
    known = PURPOSE[schedule.collective.removesuffix("_v")]
    return Message(known.text, {"root": schedule.root})


def needed(schedule: Schedule) -> Bools:
    """Which ranks must hold the total of which chunk in the end: (ranks, chunks)."""
    return schedule.after()[: schedule.ranks]


def ticks(schedule: Schedule, frame: Frame) -> Bools:
    """Which places to mark as done: (participants, chunks).

    A finished sum, wherever it is; where nothing is summed, a piece that has arrived at one of
    the few places that want it. Where every rank wants every piece, to hold it says it all.
    """
    if schedule.kind.sums:
        return frame.complete
    arrived = frame.complete.copy()
    arrived[schedule.ranks :] = False
    arrived[: schedule.ranks] &= needed(schedule) & (schedule.kind.after is not everyone)
    return arrived


def outcome(schedule: Schedule, last: Frame) -> Message:
    """What every rank holds in the end, or the first place that does not hold what it should."""
    when = (
        message("Without a single step")
        if not schedule.steps
        else message("After 1 step")
        if schedule.steps == 1
        else message("After {k} steps", k=schedule.steps)
    )
    need = needed(schedule)
    wrong = need & ~last.complete[: schedule.ranks]
    what = _wrong(schedule, last, wrong, need) if wrong.any() else _right(schedule, need)
    return message("{when} {what}", when=when, what=what)


def _right(schedule: Schedule, need: Bools) -> Message:
    wants = need.sum(axis=1)
    holders = np.flatnonzero(wants)
    k, m = int(wants.max()), schedule.chunks
    if len(holders) == 1 < schedule.ranks:
        if m == 1:
            return message("rank {rank} holds the complete result.", rank=holders[0])
        return message("rank {rank} holds all {m} pieces complete.", rank=holders[0], m=m)
    if k == m == 1:
        return message("every rank holds the complete result.")
    if k == m:
        return message("every rank holds all {m} pieces complete.", m=m)
    if k == 1:
        return message("every rank holds the piece it wants, complete.")
    return message("every rank holds the {k} pieces it wants, complete.", k=k)


def _wrong(schedule: Schedule, last: Frame, wrong: Bools, need: Bools) -> Message:
    rank, chunk = (int(i) for i in np.argwhere(wrong)[0])
    counts, wanted = last.counts[rank, chunk], contributors(schedule)[chunk].astype(np.uint8)
    other = int(np.flatnonzero(counts != wanted)[0])
    place = {"k": int(wrong.sum()), "m": int(need.sum()), "rank": rank, "chunk": chunk,
             "other": other}  # fmt: skip
    if not counts[other]:
        return message("{k} of {m} places are wrong. The first is piece {chunk} of rank {rank}, "
                       "which lacks what rank {other} brought.", **place)  # fmt: skip
    if wanted[other]:
        return message("{k} of {m} places are wrong. The first is piece {chunk} of rank {rank}, "
                       "which holds twice what rank {other} brought.", **place)  # fmt: skip
    return message("{k} of {m} places are wrong. The first is piece {chunk} of rank {rank}, "
                   "which holds what rank {other} brought and should not.", **place)  # fmt: skip
