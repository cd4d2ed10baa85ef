"""A job from what its ranks were heard to exchange.

Of a step counts the mean over the steps that a file marks; where it marks none, all of it is one.
Calls of a group are taken together where their bytes lie between the same powers of two. Where only
some ranks were heard, groups of the others are those that repeat one of even steps, as every layout
of degrees has them; others are an error. Broadcasts and reductions to one rank go round rings as
all-gathers and reduce-scatters do, and count as these.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from ..errors import RoundelayError
from ..i18n import Message, message
from ..units import format_size
from .chains import chains
from .heard import Call, Heard, Ranks
from .job import RANKS_LIMIT, Exchange, Ints, Job, Pattern, layout_of

PATTERNS: Final[Mapping[str, Pattern]] = {
    "all_reduce": "all_reduce", "all_gather": "all_gather", "reduce_scatter": "reduce_scatter",
    "all_to_all": "all_to_all", "broadcast": "all_gather", "reduce": "reduce_scatter",
    "dispatch": "all_to_all", "combine": "all_to_all",
}  # fmt: skip
BETWEEN: Final = ("send", "recv")
NOTHING: Final = frozenset(("barrier", "wait", "init", "end", "coalesced"))
"""Calls that carry no bytes."""
SHOWN: Final = 4


class Volume(NamedTuple):
    """Of a step: calls, and bytes of all of them."""

    calls: float
    bytes: float

    def most(self, other: Volume | None) -> Volume:
        """The larger one by bytes, as the busiest rank decides."""
        return self if other is None or self.bytes > other.bytes else other


class Kind(NamedTuple):
    """Calls that are taken together: their name, and which power of two is above their bytes."""

    name: str
    power: int


def traced_job(name: str, heard: Sequence[Heard]) -> Job:
    """The job whose ranks were heard.

    Args:
        name: of the job.
        heard: by file; several of one rank are one after another.

    Raises:
        RoundelayError: a file without a rank, nothing that is exchanged, or groups of ranks that
            weren't heard and don't follow from those that were.
    """
    if any(h.rank < 0 for h in heard):
        raise RoundelayError(f"{name}: a file doesn't say which rank it is of; expected a number "
                             "at the end of its name, such as rank3.json")  # fmt: skip
    made = _per_step(heard)
    ranks = _world(name, heard)
    try:
        found = _Found(ranks, made)
        exchanges = tuple(found.exchanges())
    except RoundelayError as error:
        raise RoundelayError(f"{name}: {error}") from None
    if not exchanges:
        raise RoundelayError(f"{name}: no call in it whose ranks and bytes are known"
                             f"{_listed(found.left)}; expected some of "
                             f"{', '.join((*PATTERNS, *BETWEEN))}. Where a profiler doesn't name "
                             "their groups, dumps of the flight recorder do")  # fmt: skip
    notes = tuple(_notes(heard, len(made), found))
    return Job(name, ranks, exchanges, layout_of(exchanges, ranks), notes=notes)


def _per_step(heard: Sequence[Heard]) -> dict[int, dict[Call, float]]:
    """How often each rank makes each call in a step."""
    calls: dict[int, Counter[Call]] = defaultdict(Counter)
    steps: Counter[int] = Counter()
    for h in heard:
        calls[h.rank] += h.calls
        steps[h.rank] += h.steps or 1
    return {rank: {call: n / steps[rank] for call, n in own.items()} for rank, own in calls.items()}


def _world(name: str, heard: Sequence[Heard]) -> int:
    told = {h.world for h in heard} - {0}
    if len(told) > 1:
        raise RoundelayError(f"{name}: files of jobs of {', '.join(map(str, sorted(told)))} ranks; "
                             "expected those of one job")  # fmt: skip
    named = [rank for h in heard for call in h.calls for rank in (*call.ranks[-1:], call.peer)]
    highest = max(named + [h.rank for h in heard])
    ranks = told.pop() if told else highest + 1
    if highest >= ranks or ranks > RANKS_LIMIT:
        raise RoundelayError(f"{name}: rank {highest} in a job of {ranks} ranks; expected 0 to "
                             f"{ranks - 1}, and {RANKS_LIMIT:,} ranks at most")  # fmt: skip
    return ranks


class _Found:
    """Groups and messages of all ranks."""

    def __init__(self, ranks: int, made: Mapping[int, Mapping[Call, float]]) -> None:
        self.ranks, self.all = ranks, len(made) == ranks
        self.groups: dict[Kind, dict[Ranks, Volume]] = defaultdict(dict)
        self.messages: dict[Kind, dict[tuple[int, int], Volume]] = defaultdict(dict)
        self.left: Counter[str] = Counter()
        self.alike: set[Ranks] = set()
        for rank, calls in made.items():
            own: dict[tuple[Kind, Ranks, int], Volume] = {}
            for call, often in calls.items():
                if key := self._key(call):
                    calls_, bytes_ = own.get(key, (0.0, 0.0))
                    own[key] = Volume(calls_ + often, bytes_ + often * call.bytes)
            for (kind, group, peer), volume in own.items():
                if peer >= 0:
                    self._message(rank, kind, group, peer, volume)
                else:
                    self._call(rank, kind, group, volume)

    def _key(self, call: Call) -> tuple[Kind, Ranks, int] | None:
        """What a call is taken together by; None where it is left out."""
        between = call.name in BETWEEN
        if call.name in NOTHING or len(call.ranks) == 1 or call.bytes == 0:
            return None
        known = call.bytes > 0 and (call.peer >= 0 if between else call.ranks)
        if not known or not (between or call.name in PATTERNS):
            self.left[call.name[:40]] += 1
            return None
        return Kind(call.name, call.bytes.bit_length()), call.ranks, call.peer if between else -1

    def _call(self, rank: int, kind: Kind, group: Ranks, volume: Volume) -> None:
        known = self.groups[kind]
        for one in map(tuple, self._like(rank, kind, group).tolist()):
            known[one] = volume.most(known.get(one))

    def _message(self, rank: int, kind: Kind, group: Ranks, peer: int, volume: Volume) -> None:
        """Between two ranks, whichever sends; ranks that weren't heard have one as far away."""
        known = self.messages[kind._replace(name=BETWEEN[0])]
        pairs, every = [[rank, peer]], group or tuple(range(self.ranks))
        if rank == peer or not {rank, peer} <= {*every}:
            raise RoundelayError(f"rank {rank} and rank {peer}: {kind.name} in a group of "
                                 f"{_span(every)}; expected two of it")  # fmt: skip
        if not self.all:
            apart = abs(every.index(peer) - every.index(rank))
            groups = self._like(rank, kind, every)
            pairs = np.stack([groups[:, :-apart], groups[:, apart:]], 2).reshape(-1, 2).tolist()
        for a, b in map(sorted, pairs):
            known[a, b] = volume.most(known.get((a, b)))

    def _like(self, rank: int, kind: Kind, group: Ranks) -> Ints:
        """[group, member] it, and those of ranks that weren't heard."""
        if self.all or len(group) == self.ranks:
            return np.array([group])
        n, step = len(group), max(1, group[1] - group[0])
        even = group == tuple(range(group[0], group[0] + n * step, step))
        if not even or self.ranks % (n * step) or group[0] // step % n:
            raise RoundelayError(
                f"rank {rank}: {kind.name} among {_span(group)}, from which the groups of ranks "
                "whose traces aren't there don't follow; expected even steps that fill all "
                f"{self.ranks} ranks, or a folder with the traces of all of them"
            )
        self.alike.add(group)
        blocks = np.arange(self.ranks).reshape(-1, n, step)
        return blocks.swapaxes(1, 2).reshape(-1, n)

    def exchanges(self) -> Iterator[Exchange]:
        """Groups that don't overlap are one exchange; messages are chains."""
        for kind, found in sorted(self.groups.items()):
            for groups in _apart(found):
                most = max((found[one] for one in groups), key=lambda v: v.bytes)
                yield _exchange(kind.name, PATTERNS[kind.name], groups, most)
        for kind, pairs in sorted(self.messages.items()):
            for groups in chains(list(pairs)):
                ends = {tuple(sorted(p)) for g in groups for p in pairwise(g)}
                most = max((v for pair, v in pairs.items() if pair in ends), key=lambda v: v.bytes)
                yield _exchange(kind.name, "chain", groups, most)


def _apart(found: Mapping[Ranks, Volume]) -> list[list[Ranks]]:
    """Groups of one size in lots without a rank in two of them; those of like steps together."""
    lots: list[tuple[list[Ranks], set[int]]] = []
    for group in sorted(found, key=lambda g: (len(g), np.diff(g).tolist(), g)):
        for lot, ranks in lots:
            if len(lot[0]) == len(group) and not ranks & {*group}:
                lot.append(group)
                ranks |= {*group}
                break
        else:
            lots.append(([group], {*group}))
    return [lot for lot, _ in lots]


def _exchange(what: str, pattern: Pattern, groups: Sequence[Ranks], volume: Volume) -> Exchange:
    calls = max(1, round(volume.calls))
    size = volume.bytes / calls
    text = f"{what} of {format_size(round(size))} among {_span(groups[0])}"
    return Exchange(text, pattern, np.array(groups, np.int64), size, calls)


def _span(ranks: Sequence[int]) -> str:
    if len(ranks) > 2 and ranks[-1] - ranks[0] == len(ranks) - 1:
        return f"{ranks[0]}-{ranks[-1]}"
    return ",".join(map(str, ranks)) if len(ranks) <= SHOWN else (
        f"{ranks[0]},{ranks[1]}..{ranks[-1]}")  # fmt: skip


def _notes(heard: Sequence[Heard], known: int, found: _Found) -> Iterator[Message]:
    steps = min(h.steps for h in heard)
    yield message("what it exchanges is told by the traces of {known} of {ranks} ranks",
                  known=known, ranks=found.ranks)  # fmt: skip
    if steps:
        yield message("of a step counts the mean of {steps}", steps=steps)
    else:
        yield message("no steps are marked, so all of a file is taken for one")
    if found.alike:
        groups = "; ".join(map(_span, sorted(found.alike)[:SHOWN]))
        yield message("groups of the other ranks are taken to repeat these: {groups}",
                      groups=groups)  # fmt: skip
    if found.left:
        yield message("left out, as their ranks or bytes aren't told or they have no form here: "
                      "{calls}", calls=_listed(found.left).strip(" ()"))  # fmt: skip


def _listed(left: Counter[str]) -> str:
    """Kinds of calls in brackets, the most frequent first."""
    names = ", ".join(" ".join(name.split()) or "?" for name, _ in left.most_common(SHOWN))
    return f" ({names})" if left else ""
