"""What happens in a step and what it brings, in words, read off the moves and states alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..collectives import Bools, Ints, everyone
from ..i18n import Message, message
from ..schedule import Schedule
from .moves import Move
from .patterns import Pair, Traffic, recognise


def what_happens(schedule: Schedule, moves: tuple[Move, ...], complete: Bools) -> Message:
    """What happens in a step, for a reader who is new to it.

    Args:
        schedule: the schedule.
        moves: the step's moves.
        complete: which places hold the total before the step: (participants, chunks).
    """
    pairs: dict[Pair, list[int]] = {}
    for move in moves:
        if move.src != move.dst:
            pairs.setdefault((move.src, move.dst), []).extend(move.chunks)
    if not moves:
        return message("Nothing moves.")
    if not pairs:
        return message("Ranks only move data within themselves.")
    several = min(map(len, pairs.values())) < schedule.chunks and max(map(len, pairs.values())) > 1
    finished = schedule.kind.sums and all(complete[m.src, m.chunks].all() for m in moves)
    plain = _what(schedule, pairs, finished)
    words = {
        "what": _different(pairs, finished) or plain,
        "plain": plain,
        "who": _who(moves, several, into_switch=all(b >= schedule.ranks for _, b in pairs)),
        "fate": _fate(moves),
    }
    return recognise(Traffic(schedule.ranks, pairs, words))


def what_it_brings(
    schedule: Schedule, before: Bools, complete: Bools, grown: Ints
) -> Message | None:
    """How far the collective has come, or None where a step brings nothing one could count.

    Args:
        schedule: the schedule.
        before: which places held the total before the step: (participants, chunks).
        complete: which places hold it now.
        grown: number of contributions in every changed place that holds no total yet.
    """
    need = schedule.after()[: schedule.ranks]
    done = need & complete[: schedule.ranks]
    if done.sum() <= (need & before[: schedule.ranks]).sum():
        return _half_way(schedule, (complete.any(axis=0) & ~before.any(axis=0)).any(), grown)
    if done.sum() == need.sum():
        return message("Now everything is where it belongs.")
    has, wants = done.sum(axis=1), need.sum(axis=1)
    sums = schedule.kind.sums
    if len(set(has.tolist())) == len(set(wants.tolist())) == 1:
        both = {"k": int(has[0]), "m": int(wants[0])}
        if sums:
            return message("Every rank now has {k} of its {m} pieces finished.", **both)
        return message("Every rank now has {k} of the {m} pieces it needs.", **both)
    full = int(((has == wants) & (wants > 0)).sum())
    if full and schedule.kind.after is everyone:
        return message("Ranks that now have everything they need: {k} of {n}.", k=full, n=len(has))
    both = {"k": int(done.sum()), "m": int(need.sum())}
    if sums:
        return message("Pieces that are finished where they are needed: {k} of {m}.", **both)
    return message("Pieces that are where they are needed: {k} of {m}.", **both)


def _half_way(schedule: Schedule, elsewhere: np.bool_, grown: Ints) -> Message | None:
    """What a sum has gained that is not yet a finished one where it is needed."""
    if not schedule.kind.sums:
        return None
    if elsewhere:
        return message("A sum is finished, but not yet where it is needed.")
    if not len(grown):
        return None
    low, high, n = int(grown.min()), int(grown.max()), schedule.ranks
    if low == high:
        return message("Each sum it changed now covers {k} of {n} ranks.", k=low, n=n)
    return message("The sums it changed now cover {low} to {high} of {n} ranks.",
                   low=low, high=high, n=n)  # fmt: skip


def _what(schedule: Schedule, pairs: Mapping[Pair, list[int]], finished: bool) -> Message:
    """What goes from one place to another."""
    sizes = [len(chunks) for chunks in pairs.values()]
    low, high = min(sizes), max(sizes)
    if low == schedule.chunks:
        if not schedule.kind.sums:
            return message("all the data")
        return message("the finished total") if finished else message("all its data")
    if high == 1:
        return message("one finished piece") if finished else message("one piece")
    if low == high:
        return message("{k} finished pieces", k=low) if finished else message("{k} pieces", k=low)
    if finished:
        return message("{low} to {high} finished pieces", low=low, high=high)
    return message("{low} to {high} pieces", low=low, high=high)


def _different(pairs: Mapping[Pair, list[int]], finished: bool) -> Message | None:
    """What goes to each of several, where none of them gets the same."""
    sent = [(a, chunk) for (a, _), chunks in pairs.items() for chunk in chunks]
    sizes = {len(chunks) for chunks in pairs.values()}
    several = len(pairs) > len({a for a, _ in pairs})
    if not several or len(set(sent)) < len(sent) or len(sizes) > 1:
        return None
    k = sizes.pop()
    if k == 1:
        return message("a different finished piece") if finished else message("a different piece")
    if finished:
        return message("{k} different finished pieces", k=k)
    return message("{k} different pieces", k=k)


def _added(moves: tuple[Move, ...]) -> set[bool]:
    """Whether places are added to; a first arrival that is copied counts as added."""
    adds = {(m.dst, c): False for m in moves for c in m.chunks}
    adds.update({(m.dst, c): True for m in moves if m.add for c in m.chunks})
    return set(adds.values())


def _who(moves: tuple[Move, ...], several: bool, into_switch: bool) -> Message:
    added = _added(moves)
    if len(added) > 1:
        return message("some of it is added, some copied")
    if True in added:
        if into_switch:
            return message("which adds them") if several else message("which adds it")
        return message("who adds them") if several else message("who adds it")
    return message("which keeps a copy") if into_switch else message("who keeps a copy")


def _fate(moves: tuple[Move, ...]) -> Message:
    added = _added(moves)
    if len(added) > 1:
        return message("some added, some copied")
    return message("to be added") if True in added else message("to be copied")
