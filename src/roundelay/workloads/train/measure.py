"""Where the time of a step goes, from what its ranks have noted.

An exchange of a rank begins when it is issued and the one before has ended, for exchanges of a
group go one after another. It moves data from when the last rank has begun: what is before is
waiting for that rank. While a rank is blocked it does either; all other time it computes, and
exchanges that go on meanwhile are hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from .stamps import Noted, Span


class Parts(msgspec.Struct, frozen=True):
    """A step of one rank, in us; compute, exposed and wait add up to it.

    Attributes:
        rank: as it was called at the start.
        step_us: all of it.
        compute_us: it computes.
        hidden_us: data are moved while it computes.
        exposed_us: it waits for data that are being moved.
        wait_us: it waits for ranks that come later.
    """

    rank: int
    step_us: float
    compute_us: float
    hidden_us: float
    exposed_us: float
    wait_us: float


class Row(msgspec.Struct, frozen=True):
    """A step: the means of its ranks, and each of them; times as in `Parts`."""

    step: int
    loss: float
    ranks: int
    step_us: float
    compute_us: float
    hidden_us: float
    exposed_us: float
    wait_us: float
    by_rank: Sequence[Parts]


TIMES = ("step_us", "compute_us", "hidden_us", "exposed_us", "wait_us")


def row(notes: Sequence[Noted]) -> Row:
    """A step by what all its ranks have noted."""
    notes = sorted(notes, key=lambda note: note.rank)
    by_rank = parts(notes)
    means = {name: sum(getattr(p, name) for p in by_rank) / len(by_rank) for name in TIMES}
    first = notes[0]
    return Row(step=first.step, loss=first.loss, ranks=first.ranks, by_rank=by_rank, **means)


def parts(notes: Sequence[Noted]) -> list[Parts]:
    """[rank] where its time goes."""
    begun = [begins(note) for note in notes]
    arrived = [max(of_one) for of_one in zip(*begun, strict=True)]
    return [_of(note, b, arrived) for note, b in zip(notes, begun, strict=True)]


def begins(note: Noted) -> list[int]:
    """[exchange] when this rank began it, in ns."""
    free, found = 0, []
    for e in note.exchanges:
        found.append(max(e.issued, free))
        free = e.ended
    return found


def transfers(notes: Sequence[Noted]) -> list[list[int]]:
    """[exchange, rank] ns from when the last rank had begun until it ended."""
    arrived = [max(of_one) for of_one in zip(*map(begins, notes), strict=True)]
    ends = zip(*([e.ended for e in note.exchanges] for note in notes), strict=True)
    return [[end - a for end in of_one] for a, of_one in zip(arrived, ends, strict=True)]


def _of(note: Noted, begun: Sequence[int], arrived: Sequence[int]) -> Parts:
    whole = note.span[1] - note.span[0]
    if note.ranks == 1:  # which exchanges with nobody
        return Parts(note.rank, whole / 1000, whole / 1000, 0.0, 0.0, 0.0)
    ends = [e.ended for e in note.exchanges]
    moved = list(zip(arrived, ends, strict=True))
    waited = [(b, min(a, e)) for b, a, e in zip(begun, arrived, ends, strict=True)]
    blocked = _length(note.blocked)
    waiting = _common(note.blocked, waited)
    hidden = _length(moved) - _common(note.blocked, moved)
    times = (whole, whole - blocked, hidden, blocked - waiting, waiting)
    return Parts(note.rank, *(ns / 1000 for ns in times))


def _length(spans: Iterable[Span]) -> int:
    return sum(max(0, end - begin) for begin, end in spans)


def _common(some: Iterable[Span], others: Sequence[Span]) -> int:
    """Ns that are in both; neither has two spans that overlap."""
    return _length((max(a, c), min(b, d)) for a, b in some for c, d in others)
