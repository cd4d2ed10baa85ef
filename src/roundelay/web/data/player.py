"""What the player shows of a schedule over up to 64 ranks: every move, every place, every step."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

import msgspec
import numpy as np

from ...algorithms import Algorithm, find
from ...collectives import Bools
from ...i18n import LANGUAGES, Message, translator
from ...schedule import Schedule, ScheduleError
from ...show import Frame, words
from ...show.frames import walk
from ...simulate import Clock, step_ends
from ..clusters import NO_FILES, Clusters
from .breaking import Drop, impossible, read_drop, verdict, without
from .machines import named
from .parameters import Reader, of_schedule
from .places import places

MOST: Final = 64
"""Ranks up to which every card is shown."""
READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    of_schedule(MOST)
    | {
        "cluster": str,
        "drop": read_drop,
    }
)
Said = dict[str, str]
"""A text by language."""


class State(msgspec.Struct, omit_defaults=True):
    """A state, by what differs from the one before, and the moves that led to it.

    Attributes:
        moves: (source, destination, pieces, whether they are added).
        changes: (place, piece, contributions, mark): 1 a total that is complete, 2 something
            counted twice, 0 neither.
        said: what happens, and what it brings.
    """

    moves: list[tuple[int, int, list[int], bool]]
    changes: list[tuple[int, int, int, int]]
    said: Said


class Played(msgspec.Struct, omit_defaults=True):
    """A schedule to play.

    Attributes:
        name, purpose, outcome: in words; the outcome that of the last state.
        collective, algorithm, ranks, helpers, size: what was asked for.
        pieces: their names.
        wanted: contributions of which each piece's total is made.
        sums: whether contributions are added up.
        piece_bytes: bytes of each piece.
        layout, places: see `places`.
        states: the start, and the state after each step.
        parts: (first step, last step, what they do), such as (1, 7, "reduce_scatter").
        card: quantity to its formula and its value at n and this size.
        right: whether every place that must hold a total does, at the end.
        needs: [rank] pieces whose total it must hold.
        seconds: [step] when it has ended on the cluster, from the first step's begin.
        cluster, timing: the cluster's name, and the clock's total for the schedule.
        dropped, broken: a move that was left out, and what the verifier finds then.
    """

    name: str
    purpose: Said
    outcome: Said
    collective: str
    algorithm: str
    ranks: int
    helpers: int
    size: int
    pieces: list[str]
    wanted: list[int]
    sums: bool
    piece_bytes: float
    layout: str
    places: list[tuple[float, float]]
    states: list[State]
    parts: list[tuple[int, int, str]]
    card: dict[str, tuple[str, float]]
    right: bool
    needs: list[list[int]]
    seconds: list[float] = []
    cluster: str = ""
    timing: dict[str, Any] = {}
    dropped: Drop | None = None
    broken: Said = {}


def player(
    collective: str = "all_reduce",
    algorithm: str = "ring",
    n: int = 4,
    params: Mapping[str, Any] = MappingProxyType({}),
    root: int = 0,
    size: int = 1 << 20,
    cluster: str = "",
    drop: Drop | None = None,
    clusters: Clusters = NO_FILES,
) -> Played:
    """A schedule of an algorithm over n ranks, to play.

    Args:
        collective: its name.
        algorithm: its name.
        n: ranks, 2 to 64.
        params: of the algorithm.
        root: of a rooted collective.
        size: bytes, as in nccl-tests' size column.
        cluster: where to time it, such as "dgx-h100:8"; empty: nowhere.
        drop: (step, source, destination, piece), a move to leave out.
        clusters: of files.

    Raises:
        RoundelayError: nothing of that name, or too large to be shown.
    """
    chosen = find(collective, algorithm)
    schedule = chosen(n, root, **params)
    shown = schedule if drop is None else without(schedule, drop)
    states, parts, last, illegal = _states(shown)
    pairs = {p for r in schedule for p in zip(r.src.tolist(), r.dst.tolist(), strict=True)}
    layout, where = places(schedule, pairs)
    need = words.needed(schedule)
    right = bool(last is not None and last.complete[:n][need].all())
    played = Played(
        words.name(schedule), said(words.purpose(schedule)),
        said(words.outcome(shown, last.counts)) if last else {},
        collective, algorithm, n, schedule.helpers, size,
        [words.piece_name(schedule, c) for c in range(schedule.chunks)],
        words.contributors(schedule).sum(axis=1).tolist(), schedule.kind.sums,
        schedule.kind.total_bytes(size, n) / schedule.chunks, layout, where, states, parts,
        card_of(chosen, n, size, params), right and not illegal,
        [np.flatnonzero(row).tolist() for row in need],
    )  # fmt: skip
    if drop is not None:
        played.dropped = drop
        why = impossible(len(states)) if illegal else verdict(shown, last)
        played.broken = said(why)
    if cluster and not illegal:
        _time(played, Clock(shown, named(cluster, clusters)))
    return played


def said(what: Message) -> Said:
    """A message in every language."""
    return {lang: what.tell(translator(lang)) for lang in LANGUAGES}


def _states(
    schedule: Schedule,
) -> tuple[list[State], list[tuple[int, int, str]], Frame | None, bool]:
    """All states, what runs of steps do, the last state, and whether the next is impossible."""
    states: list[State] = []
    kinds: list[str] = []
    last, illegal, ended = None, False, "start"
    try:
        for last in walk(schedule):
            states.append(_state(last))
            adds = {m.add for m in last.moves}
            if adds:
                kinds.append({1: "adding" if True in adds else "copying"}.get(len(adds), "both"))
            elif states[1:]:
                kinds.append(kinds[-1] if kinds else "both")
            if kinds and kinds[-1] == "adding":
                ended = _what_sums_do(schedule, last.complete)
    except ScheduleError:
        illegal = True
    return states, _parts(schedule, kinds, ended), last, illegal


def _state(frame: Frame) -> State:
    place, piece = np.nonzero(frame.changed if frame.step else frame.counts.any(axis=-1))
    held = frame.counts[place, piece]
    mark = np.where((held > 1).any(axis=-1), 2, frame.complete[place, piece])
    columns = (place, piece, (held > 0).sum(axis=-1), mark)
    changes = list(zip(*(c.tolist() for c in columns), strict=True))
    return State(
        [(m.src, m.dst, m.chunks, m.add) for m in frame.moves], changes, said(frame.sentence)
    )


def _what_sums_do(schedule: Schedule, complete: Bools) -> str:
    """What has been done where nothing but adding was: sums spread evenly, or all at one rank."""
    each = complete[: schedule.ranks].sum(axis=1)
    if (each == schedule.chunks).all():
        return "all_reduce"
    if each.sum() == schedule.chunks == each.max():
        return "reduce"
    return "reduce_scatter" if each.sum() == schedule.chunks and np.ptp(each) == 0 else "adding"


def _parts(schedule: Schedule, kinds: list[str], ended: str) -> list[tuple[int, int, str]]:
    """Runs of steps of one kind; an all-reduce of two runs is known by its halves."""
    found, step = [], 1
    for kind, run in groupby(kinds):
        length = len(list(run))
        found.append((step, step + length - 1, kind))
        step += length
    halves = {"reduce_scatter": "all_gather", "reduce": "broadcast"}
    if schedule.collective == "all_reduce" and [p[2] for p in found] == ["adding", "copying"]:
        second = halves.get(ended, "copying")
        return [(*found[0][:2], ended), (*found[1][:2], second)]
    return found


def card_of(
    chosen: Algorithm, n: int, size: int, params: Mapping[str, Any]
) -> dict[str, tuple[str, float]]:
    """Each quantity's formula, and its value at n and a size in bytes."""
    volume = Fraction(size)
    card = chosen.card(n, volume, **params)
    return {
        name: (getattr(chosen, name), float(getattr(card, name)))
        for name in ("steps", "messages", "bytes_sent")
    }


def _time(played: Played, clock: Clock) -> None:
    """Add the clock's times."""
    timing = clock.time(played.size)
    played.seconds = step_ends(clock, played.size).tolist()
    played.cluster = clock.cluster.name
    played.timing = {
        "time": timing.time,
        "protocol": timing.protocol,
        "slices": timing.slices,
        "binding_link": timing.binding_link,
        "link_time": timing.link_time,
    }
