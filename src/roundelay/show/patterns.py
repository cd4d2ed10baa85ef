"""The patterns that a step's moves may follow, and how each is said.

A pattern is a function of the step's `Traffic`; the first one that fits says what happens.
Patterns know nothing of algorithms, so they speak as well of a schedule nobody has named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Final

from ..i18n import Message, message
from .moves import spans

Pair = tuple[int, int]


class Traffic:
    """The moves of a step between different places, and the words for what they carry.

    Attributes:
        ranks: number of ranks that take part in the schedule, or in this group of them.
        pairs: (source, destination) to the chunks that go there, helpers from `ranks` on.
        words: what is put into a sentence: `what` goes from one place to another ("one piece",
            or "a different piece", in `plain` words "one piece" too), `who` is what becomes of
            it ("who adds it"), `fate` the same of a thing ("to be added").
    """

    def __init__(
        self, ranks: int, pairs: dict[Pair, list[int]], words: Mapping[str, Message]
    ) -> None:
        self.ranks, self.pairs, self.words = ranks, pairs, words

    @cached_property
    def to(self) -> dict[int, list[int]]:
        """Source to its destinations."""
        found: dict[int, list[int]] = {}
        for a, b in sorted(self.pairs):
            found.setdefault(a, []).append(b)
        return found

    @cached_property
    def since(self) -> dict[int, list[int]]:
        """Destination to its sources."""
        found: dict[int, list[int]] = {}
        for a, b in sorted(self.pairs):
            found.setdefault(b, []).append(a)
        return found

    @property
    def one_way(self) -> bool:
        """Whether nobody both sends and receives."""
        return not self.to.keys() & self.since.keys()

    def distances(self) -> set[int]:
        """How far moves go to the right, counted round the circle of ranks."""
        return {(b - a) % self.ranks for a, b in self.pairs}

    def say(self, text: Message) -> Message:
        """The message with this traffic's words put in."""
        return Message(text.text, {**text.values, **self.words})


def recognise(traffic: Traffic) -> Message:
    """What happens, by the first pattern that fits."""
    return next(found for pattern in PATTERNS if (found := pattern(traffic)))


def _with_switches(t: Traffic) -> Message | None:
    n = t.ranks
    if all(end < n for pair in t.pairs for end in pair):
        return None
    if all(a < n <= b for a, b in t.pairs):
        return _into_switches(t)
    if all(b < n <= a for a, b in t.pairs):
        return _out_of_switches(t)
    if all(a >= n and b >= n for a, b in t.pairs):
        return _between_switches(t)
    return t.say(
        message(
            "Ranks and switches send at once: {k} transfers, each of {plain}, {fate}.",
            k=len(t.pairs),
        )
    )


def _into_switches(t: Traffic) -> Message:
    if len(t.to) == 1:
        return t.say(message("Rank {a} sends {what} into the switch, {who}.", a=next(iter(t.to))))
    if len(t.to) < t.ranks:
        return t.say(message("Each of {k} ranks sends {what} into a switch, {who}.", k=len(t.to)))
    if len(t.since) == 1:
        return t.say(message("Every rank sends {what} into the switch, {who}."))
    return t.say(message("Every rank sends {what} into a switch, {who}."))


def _out_of_switches(t: Traffic) -> Message:
    sent = Counter((a, chunk) for (a, _), chunks in t.pairs.items() for chunk in chunks)
    alone, whole = len(t.to) == 1, len(t.since) == t.ranks
    if len(t.pairs) > len(t.to) and max(sent.values()) == 1:
        if alone and whole:
            return t.say(message("The switch sends {what} to every rank."))
        return t.say(message("Switches send {what} to every rank below them."))
    if alone and len(t.since) == 1:
        return t.say(message("The switch sends {what} to rank {b}.", b=next(iter(t.since))))
    if alone and whole:
        return t.say(message("The switch sends {what} to every rank at once, in one multicast."))
    if alone:
        return t.say(
            message("The switch sends {what} to {k} ranks at once, in one multicast.",
                    k=len(t.since))
        )  # fmt: skip
    return t.say(
        message("Each of {k} switches sends {what} to all its ranks at once, in one multicast.",
                k=len(t.to))
    )  # fmt: skip


def _between_switches(t: Traffic) -> Message:
    if len(t.pairs) == 1:
        return t.say(message("A switch passes {what} on to another, {who}."))
    if len(t.to) == 1:
        return t.say(message("A switch passes {what} on to {k} others.", k=len(t.since)))
    return t.say(message("Each of {k} switches passes {what} on to another, {who}.", k=len(t.to)))


def _single(t: Traffic) -> Message | None:
    if len(t.pairs) > 1:
        return None
    ((a, b),) = t.pairs
    return t.say(message("Rank {a} sends {what} to rank {b}, {who}.", a=a, b=b))


def _exchange(t: Traffic) -> Message | None:
    """Pairs that send to one another."""
    if any((b, a) not in t.pairs for a, b in t.pairs) or len(t.to) < len(t.pairs):
        return None
    low = sorted(pair for pair in t.pairs if pair[0] < pair[1])
    pairs = _listed([f"{a}↔{b}" for a, b in low])
    apart = {b - a for a, b in low}
    if len(apart) == 1:
        return t.say(
            message("Ranks {d} apart pair up ({pairs}); each sends {what} to its partner, {who}.",
                    d=apart.pop(), pairs=pairs)
        )  # fmt: skip
    return t.say(
        message("Ranks pair up ({pairs}); each sends {what} to its partner, {who}.", pairs=pairs)
    )


def _everybody(t: Traffic) -> Message | None:
    if len(t.pairs) < t.ranks * (t.ranks - 1):
        return None
    return t.say(message("Every rank sends {what} to every other rank, {who}."))


def _shifts(t: Traffic) -> Message | None:
    """All ranks send equally far round the circle."""
    far = sorted(t.distances())
    if len(t.pairs) != t.ranks * len(far):
        return None
    if far == [1]:
        return t.say(message("Every rank passes {what} to its right neighbour, {who}."))
    if far == [t.ranks - 1]:
        return t.say(message("Every rank passes {what} to its left neighbour, {who}."))
    if far == [1, t.ranks - 1]:
        return t.say(message("Every rank passes {what} to each of its two neighbours, {who}."))
    if len(far) > 1:
        return t.say(
            message("Every rank sends {what} to each of {k} other ranks, {who}.", k=len(far))
        )
    d = far[0]
    if 2 * d <= t.ranks:
        return t.say(message("Every rank sends {what} to the rank {d} further on, {who}.", d=d))
    return t.say(
        message("Every rank sends {what} to the rank {d} before it, {who}.", d=t.ranks - d)
    )


def _to_leaders(t: Traffic) -> Message | None:
    """Many to one, once or in several groups."""
    leaders = sorted(t.since)
    if not t.one_way or len(t.to) < len(t.pairs) or len(t.to) == len(leaders):
        return None
    if len(leaders) > 1:
        return t.say(
            message("Each of {k} ranks sends {what} to the leader of its group ({leaders}), {who}.",
                    k=len(t.to), leaders=spans(leaders))
        )  # fmt: skip
    if len(t.to) == t.ranks - 1:
        return t.say(message("Every other rank sends {what} to rank {a}, {who}.", a=leaders[0]))
    return t.say(
        message("Each of {k} ranks sends {what} to rank {a}, {who}.", k=len(t.to), a=leaders[0])
    )


def _from_leaders(t: Traffic) -> Message | None:
    """One to many, once or in several groups."""
    leaders = sorted(t.to)
    if not t.one_way or len(t.since) < len(t.pairs) or len(t.since) == len(leaders):
        return None
    if len(leaders) > 1:
        return t.say(
            message("Each of {k} leaders ({leaders}) sends {what} to all its group, {who}.",
                    k=len(leaders), leaders=spans(leaders))
        )  # fmt: skip
    if len(t.since) == t.ranks - 1:
        return t.say(message("Rank {a} sends {what} to every other rank, {who}.", a=leaders[0]))
    return t.say(
        message("Rank {a} sends {what} to each of {k} ranks, {who}.", a=leaders[0], k=len(t.since))
    )


def _groups(t: Traffic) -> Message | None:
    """Several groups that do not meet, and all do the same."""
    members = _components(t.pairs)
    if len(members) == 1 or len({len(m) for m in members}) > 1:
        return None
    said = []
    for ranks in members:
        number = {rank: i for i, rank in enumerate(sorted(ranks))}
        inside = {(number[a], number[b]): c for (a, b), c in t.pairs.items() if a in number}
        group = Traffic(len(ranks), inside, t.words)
        said.append(next((m for p in (_everybody, _shifts) if (m := p(group))), None))
    if said[0] is None or any(m != said[0] for m in said):
        return None
    return message("{g} groups of {k} ranks work by themselves. {inner}",
                   g=len(members), k=len(members[0]), inner=said[0])  # fmt: skip


def _one_each(t: Traffic) -> Message | None:
    """Nobody sends to two, nobody hears from two."""
    if len(t.to) < len(t.pairs) or len(t.since) < len(t.pairs):
        return None
    pairs = _listed([f"{a}→{b}" for a, b in sorted(t.pairs)])
    return t.say(
        message("Each of {k} ranks sends {what} to one other rank ({pairs}), {who}.",
                k=len(t.to), pairs=pairs)
    )  # fmt: skip


def _anything(t: Traffic) -> Message:
    return t.say(
        message("{k} transfers at once, from {a} ranks to {b}, each of {plain}, {fate}.",
                k=len(t.pairs), a=len(t.to), b=len(t.since))
    )  # fmt: skip


def _listed(parts: list[str], most: int = 4) -> str:
    return ", ".join(parts[:most] + ["..."] * (len(parts) > most))


def _components(pairs: Iterable[Pair]) -> list[set[int]]:
    """The groups of places that the pairs connect, in order of their lowest member."""
    group: dict[int, set[int]] = {}
    for a, b in pairs:
        if b not in group.setdefault(a, {a}):
            joined = group[a] | group.get(b, {b})
            group.update(dict.fromkeys(joined, joined))
    return sorted({id(g): g for g in group.values()}.values(), key=min)


PATTERNS: Final[tuple[Callable[[Traffic], Message | None], ...]] = (
    _with_switches, _single, _exchange, _everybody, _shifts, _to_leaders, _from_leaders, _groups,
    _one_each, _anything,
)  # fmt: skip
