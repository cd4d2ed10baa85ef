"""What happens in a step and what it brings, in words, read off the moves and states alone.

A route names both ends of a step's moves, in a phrase for the senders and one for the receivers;
the first that fits is taken. Routes know nothing of algorithms, so they speak as well of a
schedule nobody has named.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from ..collectives import Bools, Ints, everyone
from ..i18n import Message, Translate, message
from ..schedule import Schedule
from .words import needed, place, shortened, spans

if TYPE_CHECKING:
    from .frames import Move

Pairs = Mapping[tuple[int, int], list[int]]
"""(source, destination) to the chunks that go there; switches count on from the last rank."""
Route = tuple[Message, Message]

SEAM: Final = re.compile("(?<=[一-鿿])(?=[a-z0-9])|(?<=[a-z0-9])(?=[一-鿿])")
"""Where a Chinese character meets a Latin one."""
NEIGHBOURS: Final = (
    message("the next rank"),
    message("the rank before it"),
    message("each of its two neighbours"),
)


class Sentence(Message):
    """A message put together from phrases: English begins with a capital, Chinese has no seams."""

    __slots__ = ()

    def tell(self, translate: Translate) -> str:
        """The text in the language of `translate`."""
        said = super().tell(translate)
        english = translate(self.text) == self.text
        return said[0].upper() + said[1:] if english else SEAM.sub(" ", said)


def what_happens(schedule: Schedule, moves: Sequence[Move], complete: Bools | None) -> Message:
    """What happens in a step, for a reader who is new to it.

    Args:
        schedule: the schedule.
        moves: the step's moves.
        complete: which places hold the total before the step: (participants, chunks); None
            where that is not known, and then finished pieces are not told from others.
    """
    if not moves:
        return message("Nothing moves.")
    pairs: dict[tuple[int, int], list[int]] = {}
    for move in moves:
        if move.src != move.dst:
            pairs.setdefault((move.src, move.dst), []).extend(move.chunks)
    if not pairs:
        return message("Ranks only move data within themselves.")
    n = schedule.ranks
    routes = ROUTES if max(map(max, pairs)) < n else (_fan, _anything)
    who, to = next(found for route in routes if (found := route(n, pairs)))
    finished = False
    if schedule.kind.sums and complete is not None:
        finished = all(complete[m.src, m.chunks].all() for m in moves)
    words = {"who": who, "what": _what(schedule, pairs, finished), "to": to,
             "fate": _fate(schedule, pairs, moves)}  # fmt: skip
    if to in NEIGHBOURS:
        return Sentence(*message("{who} passes {what} to {to}, {fate}.", **words))
    return Sentence(*message("{who} sends {what} to {to}, {fate}.", **words))


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
    need, sums = needed(schedule), schedule.kind.sums
    done = need & complete[: schedule.ranks]
    k, m = int(done.sum()), int(need.sum())
    if k <= (need & before[: schedule.ranks]).sum():
        return _half_way(schedule, (complete.any(axis=0) & ~before.any(axis=0)).any(), grown)
    if k == m:
        return message("Now everything is where it belongs.")
    has, wants = done.sum(axis=1), need.sum(axis=1)
    if np.ptp(has) == np.ptp(wants) == 0:
        both = {"k": int(has[0]), "m": int(wants[0])}
        if sums:
            return message("Every rank now has {k} of its {m} pieces finished.", **both)
        return message("Every rank now has {k} of the {m} pieces it needs.", **both)
    full = int(((has == wants) & (wants > 0)).sum())
    if full and schedule.kind.after is everyone:
        return message("Ranks that now have everything they need: {k} of {n}.", k=full, n=len(has))
    if sums:
        return message("Pieces that are finished where they are needed: {k} of {m}.", k=k, m=m)
    return message("Pieces that are where they are needed: {k} of {m}.", k=k, m=m)


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
        return message("Each piece that changed now has the numbers of {k} of {n} ranks in it.",
                       k=low, n=n)  # fmt: skip
    return message("The pieces that changed now have the numbers of {low} to {high} of {n} ranks "
                   "in them.", low=low, high=high, n=n)  # fmt: skip


def _what(schedule: Schedule, pairs: Pairs, finished: bool) -> Message:
    """What goes from one place to another."""
    sizes = [len(chunks) for chunks in pairs.values()]
    k, high = min(sizes), max(sizes)
    if k == schedule.chunks:
        if not schedule.kind.sums:
            return message("all the data")
        return message("the finished total") if finished else message("all its data")
    if k < high:
        return message("{low} to {high} pieces", low=k, high=high)
    if min(Counter(a for a, _ in pairs).values()) > 1 and not _repeats(pairs):
        return message("a different piece") if k == 1 else message("{k} different pieces", k=k)
    if finished:
        return message("one finished piece") if k == 1 else message("{k} finished pieces", k=k)
    return message("one piece") if k == 1 else message("{k} pieces", k=k)


def _repeats(pairs: Pairs) -> bool:
    """Whether a place sends the same to several."""
    sent = [(a, chunk) for (a, _), chunks in pairs.items() for chunk in chunks]
    return len(set(sent)) < len(sent)


def _fate(schedule: Schedule, pairs: Pairs, moves: Sequence[Move]) -> Message:
    """What becomes of what is sent; a first arrival that is copied counts as added."""
    if min(pairs)[0] >= schedule.ranks and _repeats(pairs):
        return message("in one multicast")
    added = {(m.dst, c) for m in moves for c in m.chunks if m.add}
    if added and added < {(m.dst, c) for m in moves for c in m.chunks}:
        return message("some of it is added, some copied")
    sizes = [len(chunks) for chunks in pairs.values()]
    several = min(sizes) < schedule.chunks and max(sizes) > 1
    if all(b >= schedule.ranks for _, b in pairs):
        if not added:
            return message("which keeps a copy")
        return message("which adds them") if several else message("which adds it")
    if not added:
        return message("who keeps a copy")
    return message("who adds them to its own") if several else message("who adds it to its own")


def _ends(n: int, ends: set[int], but: Iterable[int] = ()) -> Message:
    """Some places: ``every rank``, ``rank 3``, ``each of 4 ranks``, ``switch 0`` ..."""
    k = len(ends)
    if k == 1:
        return place(n, *ends)
    if min(ends) >= n:
        return message("each of {k} switches", k=k)
    if max(ends) >= n:
        return message("each of {k} ranks and switches", k=k)
    if k == n:
        return message("every rank")
    if ends.union(but) == set(range(n)):
        return message("every other rank")
    return message("each of {k} ranks", k=k)


def _exchange(n: int, pairs: Pairs) -> Route | None:
    """Pairs that send to one another."""
    out = {a for a, _ in pairs}
    if len(out) < len(pairs) or any((b, a) not in pairs for a, b in pairs):
        return None
    listed = shortened([f"{a}↔{b}" for a, b in sorted(pairs) if a < b])
    return _ends(n, out), message("its partner ({pairs})", pairs=listed)


def _shift(n: int, pairs: Pairs) -> Route | None:
    """All ranks send equally far round the circle, or do so in groups that do not meet."""
    if to := _round(range(n), pairs):
        return message("every rank"), to
    groups = _groups(pairs)
    k, first = len(groups[0]), _round(sorted(groups[0]), pairs)
    if (
        not first
        or len(groups) == 1
        or any(len(g) != k or _round(sorted(g), pairs) != first for g in groups)
    ):
        return None
    return message("in each of {g} groups of {k} ranks, every rank", g=len(groups), k=k), first


def _round(ranks: Sequence[int], pairs: Pairs) -> Message | None:
    """Where all these ranks send to, if it is equally far round the circle of them."""
    n, number = len(ranks), {rank: i for i, rank in enumerate(ranks)}
    inside = [(number[a], number[b]) for a, b in pairs if a in number]
    far = sorted({(b - a) % n for a, b in inside})
    right, left, both = NEIGHBOURS
    d = far[0]
    if len(inside) != n * len(far):
        return None
    if len(far) > 1:
        if len(far) == n - 1:
            return message("every other rank")
        return both if far == [1, n - 1] else message("each of {k} other ranks", k=len(far))
    if d in (1, n - 1):
        return right if d == 1 else left
    if 2 * d <= n:
        return message("the rank {d} further on", d=d)
    return message("the rank {d} before it", d=n - d)


def _groups(pairs: Pairs) -> list[set[int]]:
    """The groups of places that the pairs connect."""
    group: dict[int, set[int]] = {}
    for a, b in pairs:
        ends = group.setdefault(a, {a}), group.setdefault(b, {b})
        if ends[0] is not ends[1]:
            small, large = sorted(ends, key=len)
            large |= small
            group.update(dict.fromkeys(small, large))
    return list({id(g): g for g in group.values()}.values())


def _fan(n: int, pairs: Pairs) -> Route | None:
    """Many to one or one to many, once or in several groups."""
    out, into = {a for a, _ in pairs}, {b for _, b in pairs}
    if out & into or len(pairs) > max(len(out), len(into)):
        return None
    if min(len(out), len(into)) == 1:
        return _ends(n, out, into), _ends(n, into, out)
    if min(into) >= n:
        return _ends(n, out), message("its switch")
    if len(out) > len(into):
        return _ends(n, out), message("the leader of its group ({a})", a=spans(sorted(into)))
    if min(out) >= n:
        return _ends(n, out), message("all its ranks")
    if len(into) > len(out):
        return message("each leader ({a})", a=spans(sorted(out))), message("all its group")
    return None


def _one_each(n: int, pairs: Pairs) -> Route | None:
    """Nobody sends to two, nobody hears from two."""
    out, into = {a for a, _ in pairs}, {b for _, b in pairs}
    if not len(out) == len(into) == len(pairs):
        return None
    listed = shortened([f"{a}→{b}" for a, b in sorted(pairs)])
    return _ends(n, out), message("one other rank ({pairs})", pairs=listed)


def _anything(n: int, pairs: Pairs) -> Route:
    out, into = {a for a, _ in pairs}, {b for _, b in pairs}
    if len(out) == len(pairs):
        return _ends(n, out), message("one of {k} others", k=len(into))
    to = message("one or more of {k} others ({m} transfers)", k=len(into), m=len(pairs))
    return _ends(n, out), to


ROUTES: Final[tuple[Callable[[int, Pairs], Route | None], ...]] = (
    _exchange, _shift, _fan, _one_each, _anything,
)  # fmt: skip
