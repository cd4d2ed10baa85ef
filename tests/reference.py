"""What a schedule means, spelt out with loops: the oracle that tests compare the library with.

Nothing here asks how the library does it. A round is expanded by its definition, one move, one
repetition and one id at a time, and a place holds a tuple that says how often each rank's
contribution is in it, and the number of the tree of additions that made it.
"""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from roundelay import COPY, REDUCE, Round, Schedule

Place = tuple[int, int]
Held = tuple[tuple[int, ...], int]


class Event(NamedTuple):
    """One chunk of one move in one step."""

    src: int
    dst: int
    chunk: int
    op: int


class Moment(NamedTuple):
    """The events of one step of one round; `at` is the step of the schedule."""

    round: int
    at: int
    events: list[Event]


def each(field: Any, i: int) -> int:
    """Entry i of a field that may be one value for all moves."""
    return int(field[i]) if isinstance(field, np.ndarray) else int(field)


def expand_round(r: Round, chunks: int) -> Iterator[tuple[int, list[Event]]]:
    """(step of the round, its events), also where there are none."""
    block = r.wrap if r.wrap else chunks // r.unit
    moves = range(len(r.src))
    for t in range(max((each(r.start, i) for i in moves), default=0) + r.times):
        events = []
        for i in moves:
            k = t - each(r.start, i)
            if not 0 <= k < r.times:
                continue
            first = int(r.chunk[i])
            base = first // block * block
            for j in range(each(r.count, i)):
                name = base + (first - base + k * r.shift + j * r.stride) % block
                for u in range(r.unit):
                    chunk = name * r.unit + u
                    events.append(Event(int(r.src[i]), int(r.dst[i]), chunk, each(r.op, i)))
        yield t, events


def expand(schedule: Schedule) -> list[Moment]:
    """Every step of every round in which something moves."""
    return [
        Moment(number, r.begin + t, events)
        for number, r in enumerate(schedule)
        for t, events in expand_round(r, schedule.chunks)
        if events
    ]


def in_range(r: Round, participants: int, chunks: int) -> bool:
    """Whether the fields of a round that moves something are what the law asks for."""
    if r.unit < 1 or chunks % r.unit or r.wrap < 0 or (r.wrap and chunks // r.unit % r.wrap):
        return False
    ids = chunks // r.unit
    block = r.wrap or ids
    different = len({j * r.stride % block for j in range(block)})
    return all(
        0 <= r.src[i] < participants
        and 0 <= r.dst[i] < participants
        and 0 <= r.chunk[i] < ids
        and each(r.op, i) in (COPY, REDUCE)
        and 1 <= each(r.count, i) <= different
        and each(r.start, i) >= 0
        for i in range(len(r.src))
    )


# Who gives and who wants a piece: f(rank, piece, n, root, owner).
Ends = Callable[[int, int, int, int, list[int]], bool]
EVERYONE: Ends = lambda rank, piece, n, root, owner: rank < n  # noqa: E731
ROOT: Ends = lambda rank, piece, n, root, owner: rank == root  # noqa: E731
OWNER: Ends = lambda rank, piece, n, root, owner: rank == owner[piece]  # noqa: E731
FROM: Ends = lambda rank, piece, n, root, owner: rank == owner[piece // n]  # noqa: E731
TO: Ends = lambda rank, piece, n, root, owner: rank == owner[piece % n]  # noqa: E731
NEXT: Ends = lambda rank, piece, n, root, owner: rank == owner[(piece + 1) % n]  # noqa: E731
MEANING: dict[str, tuple[Ends, Ends, int]] = {
    "all_reduce": (EVERYONE, EVERYONE, 0),
    "reduce": (EVERYONE, ROOT, 0),
    "broadcast": (ROOT, EVERYONE, 0),
    "all_gather": (OWNER, EVERYONE, 1),
    "reduce_scatter": (EVERYONE, OWNER, 1),
    "gather": (OWNER, ROOT, 1),
    "scatter": (ROOT, OWNER, 1),
    "all_to_all": (FROM, TO, 2),
    "send_recv": (OWNER, NEXT, 1),
    "barrier": (OWNER, EVERYONE, 1),
}


def ends(schedule: Schedule, rank: int, chunk: int) -> tuple[bool, bool]:
    """Whether the rank gives, and whether it wants, the chunk."""
    n = schedule.ranks
    gives, wants, power = MEANING[schedule.collective.removesuffix("_v")]
    piece = chunk // (schedule.chunks // n**power)
    owner = list(range(n)) if schedule.owner is None else [int(r) for r in schedule.owner]
    return (
        gives(rank, piece, n, schedule.root, owner),
        wants(rank, piece, n, schedule.root, owner),
    )


class Outcome(NamedTuple):
    """What came of it.

    `illegal` says what law was broken first (then the rest says nothing); `wrong` gives missing
    and doubled ranks by place; `trees` the tree of additions by place that wants a total.
    """

    illegal: str
    wrong: dict[Place, tuple[list[int], list[int]]]
    trees: dict[Place, int]

    @property
    def same_bits(self) -> bool:
        by_chunk = defaultdict(set)
        for (_, chunk), tree in self.trees.items():
            by_chunk[chunk].add(tree)
        return all(len(trees) == 1 for trees in by_chunk.values())

    def summation(self, n: int) -> str:
        """By the first rank of every chunk that wants it."""
        first: dict[int, int] = {}
        for (_, chunk), tree in sorted(self.trees.items(), key=lambda item: item[0]):
            first.setdefault(chunk, tree)
        if len(set(first.values())) > 1:
            return "per_chunk"
        in_order = plus_all(range(n))
        return "rank" if set(first.values()) == {in_order} else "tree"


_SUMS: dict[tuple[int, int], int] = {}


def plus(a: int, b: int) -> int:
    """The number of a tree of additions: a leaf is its rank, every sum met has its own below 0.

    a + b and b + a are one tree; sums that are nested otherwise are not.
    """
    return _SUMS.setdefault((min(a, b), max(a, b)), -1 - len(_SUMS))


def plus_all(leaves: Iterable[int]) -> int:
    """Added up from the left."""
    return functools.reduce(plus, leaves)


def run(
    schedule: Schedule, watch: Callable[[Moment, dict[Place, Held]], None] | None = None
) -> Outcome:
    """Do the schedule, counting exactly.

    `watch` is called after every moment with what all places hold: (counts, tree).
    """
    n, chunks = schedule.ranks, range(schedule.chunks)
    held: dict[Place, Held] = {}
    wanted, places = {}, []
    for chunk in chunks:
        both = [ends(schedule, rank, chunk) for rank in range(n)]
        wanted[chunk] = tuple(int(gives) for gives, _ in both)
        for rank, (gives, wants) in enumerate(both):
            if gives:
                held[rank, chunk] = (tuple(int(r == rank) for r in range(n)), rank)
            if wants:
                places.append((rank, chunk))
    clock = Clock()
    for moment in expand(schedule):
        broken = _do(moment, held) or clock.check(moment)
        if broken:
            return Outcome(f"round {moment.round}, step {moment.at}: {broken}", {}, {})
        if watch:
            watch(moment, held)
    wrong = {}
    for rank, chunk in places:
        counts, _ = held.get((rank, chunk), ((0,) * n, None))
        if counts != wanted[chunk]:
            pairs = list(enumerate(zip(counts, wanted[chunk], strict=True)))
            missing = [r for r, (has, wants) in pairs if has < wants]
            doubled = [r for r, (has, wants) in pairs if has > wants]
            wrong[rank, chunk] = (missing, doubled)
    return Outcome("", wrong, {} if wrong else {p: held[p][1] for p in places})


def _do(moment: Moment, held: dict[Place, Held]) -> str:
    """All reads of a moment, then its writes in listed order; what law is broken, if any."""
    buffers = []
    for e in moment.events:
        if (e.src, e.chunk) not in held:
            return f"rank {e.src} sends chunk {e.chunk}, which it does not hold"
        buffers.append(held[e.src, e.chunk])
    written = set()
    for e, (counts, tree) in zip(moment.events, buffers, strict=True):
        place = (e.dst, e.chunk)
        if e.op == COPY:
            if place in written:
                return f"a second write into chunk {e.chunk} of rank {e.dst} copies"
            held[place] = (counts, tree)
        else:
            if place not in held:
                return f"a reduce into chunk {e.chunk} of rank {e.dst}, which holds nothing"
            has, old = held[place]
            added = tuple(a + b for a, b in zip(has, counts, strict=True))
            held[place] = (added, plus(old, tree))
        written.add(place)
    return ""


class Clock:
    """Rounds that overlap: no half-move is earlier in time than one that it must not overtake.

    Time is counted in halves of a step, reads in the first and writes in the second.
    """

    def __init__(self) -> None:
        self.writes: dict[Place, list[int]] = defaultdict(list)
        self.all: dict[Place, list[int]] = defaultdict(list)

    def check(self, moment: Moment) -> str:
        for e in moment.events:
            place, time = (e.src, e.chunk), 2 * moment.at
            if any(earlier > time for earlier in self.writes[place]):
                return f"rank {e.src} reads chunk {e.chunk} before it is written"
            self.all[place].append(time)
        for e in moment.events:
            place, time = (e.dst, e.chunk), 2 * moment.at + 1
            if any(earlier > time for earlier in self.all[place]):
                return f"rank {e.dst} gets chunk {e.chunk} before it may"
            self.all[place].append(time)
            self.writes[place].append(time)
        return ""


class Counted(NamedTuple):
    """What the busiest rank, or the busiest helper, does."""

    messages_max: int
    messages_received_max: int
    bytes_sent_max: Fraction
    bytes_received_max: Fraction
    bytes_reduced_max: Fraction
    helper_bytes_max: Fraction


def count(schedule: Schedule, chunk_bytes: Callable[[int], Fraction]) -> Counted:
    """What a schedule costs, event by event."""
    n = schedule.ranks
    messages: Counter[int] = Counter()
    arrivals: Counter[int] = Counter()
    sent: Counter[int] = Counter()
    received: Counter[int] = Counter()
    reduced: Counter[int] = Counter()
    multicast: Counter[int] = Counter()
    for moment in expand(schedule):
        for src, dst in {(e.src, e.dst) for e in moment.events if e.src != e.dst}:
            messages[src] += 1
            arrivals[dst] += 1
        for e in moment.events:
            if e.src != e.dst:
                sent[e.src] += chunk_bytes(e.chunk)
                received[e.dst] += chunk_bytes(e.chunk)
            if e.op == REDUCE:
                reduced[e.dst] += chunk_bytes(e.chunk)
        for src, chunk in {(e.src, e.chunk) for e in moment.events if e.src >= n}:
            multicast[src] += chunk_bytes(chunk)
    tallies = (messages, arrivals, sent, received, reduced)
    ranks = [max(tally[rank] for rank in range(n)) for tally in tallies]
    return Counted(*ranks, max(multicast.values(), default=0))


def depth(schedule: Schedule) -> int:
    """The longest chain of half-moves, each against all earlier ones at its place.

    A read happens at the beginning of a step, a write at its end. A read waits for earlier
    writes; a write waits for its own read, and for earlier reads and writes, of its place.
    """
    reads: dict[Place, list[int]] = defaultdict(list)
    writes: dict[Place, list[int]] = defaultdict(list)
    for moment in expand(schedule):
        began = []
        for e in moment.events:
            began.append(max(writes[e.src, e.chunk], default=0))
            reads[e.src, e.chunk].append(began[-1])
        for e, own in zip(moment.events, began, strict=True):
            place = (e.dst, e.chunk)
            waits = [own, *reads[place]]
            writes[place].append(max([1 + w for w in waits] + writes[place]))
    return max((max(times) for times in writes.values() if times), default=0)


def ports(schedule: Schedule) -> str:
    """ "one" where no rank sends to two or receives from two in a step, else "all"."""
    peers = defaultdict(set)
    for moment in expand(schedule):
        for e in moment.events:
            if e.src != e.dst:
                peers[moment.at, "from", e.src].add(e.dst)
                peers[moment.at, "to", e.dst].add(e.src)
    ranks = (who for (_, _, who), others in peers.items() if len(others) > 1)
    return "all" if any(who < schedule.ranks for who in ranks) else "one"
