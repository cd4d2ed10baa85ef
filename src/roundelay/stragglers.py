"""Who is late: which rank came last to calls, how often, by how much, and who waited for whom.

The engine always keeps when the last calls began and ended. A report gathers that from all ranks
and puts it on one clock. A rank is *last* in a call when it came last, and later than the median
of the others by more than noise and the error of clocks. What the others waited for it is the time
that they were inside the call before it came, so a rank that comes last to a broadcast which the
others have left already costs nobody anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt

from .counting import waits
from .run.group import Group
from .timeline import Column
from .tracing import Clocks, Ranks, compare, lead
from .units import format_time

NOISE: Final = 20_000
"""Ns by which a rank may be later than others without being last."""
FEWEST: Final = 20
"""Calls from which it can be told whether somebody stands out."""
DEVIATIONS: Final = 3
"""Standard deviations above an even share of the calls with a last rank."""
SHARE: Final = 0.05
"""Of the others' time inside calls, that a straggler costs them at least."""
SHOWN: Final = 10
"""Ranks and links of a printed report."""
DRIFT: Final = 1e-5
"""How fast clocks of two machines may part, where they have been compared only once."""


@dataclass(frozen=True, slots=True)
class Lateness:
    """How late a rank came.

    Attributes:
        rank: of the communicator.
        last: calls in which it was last.
        median_seconds, p90_seconds, max_seconds: in these, behind the median of the others.
        waited_seconds: that all the others together waited for it in these.
        stands_out: whether that is more than chance, and costs the others something.
    """

    rank: int
    last: int
    median_seconds: float
    p90_seconds: float
    max_seconds: float
    waited_seconds: float
    stands_out: bool


@dataclass(frozen=True, slots=True)
class Wait:
    """Long waits of one rank for messages of another.

    Attributes:
        rank: that waited.
        peer: for whom.
        waits: how many; see `WaitCount` for which.
        seconds: of all of them.
    """

    rank: int
    peer: int
    waits: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Stragglers:
    """A report: the same on all ranks.

    Attributes:
        group: the communicator's name.
        calls: looked at, at most the last 1,024 since the report before.
        inside_seconds: that all ranks together were inside them.
        error_seconds: by which clocks of different machines may be wrong.
        ranks: all of them, those first for which the others waited longest.
        links: pairs of ranks, those first that waited longest.
    """

    group: str
    calls: int
    inside_seconds: float
    error_seconds: float
    ranks: list[Lateness]
    links: list[Wait]

    def sentences(self) -> list[str]:
        """Who stands out, a sentence each; or that nobody does."""
        calls = f"{self.calls:,} calls of group {self.group}"
        late = [r for r in self.ranks if r.stands_out]
        if late:
            return [f"rank {r.rank} was last in {r.last:,} of {calls}, by "
                    f"{format_time(r.median_seconds)} (median); the others waited "
                    f"{format_time(r.waited_seconds)} for it in all" for r in late]  # fmt: skip
        if self.calls < FEWEST:
            return [f"{calls} are too few to tell who is late; expected {FEWEST} or more"]
        return [f"nobody stands out in {calls}"]

    def __str__(self) -> str:
        """The sentences, and a table of ranks and one of links."""
        lines = self.sentences()
        times = [(r.median_seconds, r.p90_seconds, r.max_seconds, r.waited_seconds)
                 for r in self.ranks]  # fmt: skip
        ranks = [[f"rank {r.rank}", f"{r.last:,}", *map(format_time, t)]
                 for r, t in zip(self.ranks, times, strict=True) if r.last]  # fmt: skip
        if ranks:
            lines += ["", *_table([["", "last", "by median", "p90", "max", "others waited"],
                                   *ranks[:SHOWN]])]  # fmt: skip
        links = [[f"rank {w.rank}", f"rank {w.peer}", f"{w.waits:,}", format_time(w.seconds)]
                 for w in self.links[:SHOWN]]  # fmt: skip
        if links:
            lines += ["", *_table([["waiting", "for", "times", "in all"], *links])]
        return "\n".join(lines)

    def to_json(self) -> str:
        """All of it, with the sentences, as JSON."""
        plain = msgspec.to_builtins(self)
        return msgspec.json.encode(plain | {"sentences": self.sentences()}).decode()


def report(group: str, begun: Column, ended: Column, waits: Column,
           error: npt.ArrayLike = 0, fewest: int = FEWEST) -> Stragglers:  # fmt: skip
    """Who is late, by when calls began and ended.

    Args:
        group: name of the communicator.
        begun: [rank, call], ns of one clock.
        ended: [rank, call], too.
        waits: [rank, peer, 2], number and ns of the long waits of a rank for a peer.
        error: [rank], ns by which the rank's times may be wrong.
        fewest: calls from which somebody may stand out.
    """
    ranks, calls = begun.shape
    errors = np.broadcast_to(np.asarray(error, np.int64), (ranks,))
    inside = (ended - begun).sum(axis=1)
    last, behind, waited = _late(begun, ended, errors)
    chance = _chance(int((last >= 0).sum()), ranks) if calls >= fewest else inf
    found = [_lateness(r, last == r, behind, waited, chance, SHARE * (inside.sum() - inside[r]))
             for r in range(ranks)]  # fmt: skip
    found.sort(key=lambda late: (-late.waited_seconds, -late.last, late.rank))
    pairs = np.argwhere(waits[..., 0] > 0).tolist()
    links = [Wait(r, p, int(waits[r, p, 0]), int(waits[r, p, 1]) / 1e9) for r, p in pairs]
    links.sort(key=lambda wait: -wait.seconds)
    return Stragglers(group, calls, float(inside.sum()) / 1e9, float(errors.max()) / 1e9,
                      found, links)  # fmt: skip


def _late(begun: Column, ended: Column, errors: Column) -> tuple[Column, Column, Column]:
    """[call]: the last rank or -1, ns behind the median of the others, ns that these waited."""
    ranks, calls = begun.shape
    every = np.arange(calls)
    order = np.argsort(begun, axis=0, kind="stable")
    last, middle = order[-1], order[max(0, ranks - 2) // 2]
    came = begun[last, every]
    behind = came - begun[middle, every]
    waited = (np.minimum(came, ended) - begun).clip(0).sum(axis=0)
    noticed = behind > NOISE + errors[last] + errors[middle]
    return np.where(noticed, last, -1), behind, waited


def _chance(times: int, ranks: int) -> float:
    """How often one rank may be last by chance, where somebody was so often."""
    share = 1 / ranks
    return times * share + DEVIATIONS * sqrt(times * share * (1 - share))


def _lateness(rank: int, mine: npt.NDArray[np.bool_], behind: Column, waited: Column,
              chance: float, little: float) -> Lateness:  # fmt: skip
    """Of one rank, which was last in the calls `mine`; less than `little` ns cost nobody much."""
    count, cost = int(mine.sum()), float(waited[mine].sum())
    median, p90, most = np.quantile(behind[mine], (0.5, 0.9, 1)) if count else (0, 0, 0)
    behind_by = float(median) / 1e9, float(p90) / 1e9, float(most) / 1e9
    return Lateness(rank, count, *behind_by, cost / 1e9, bool(count > chance and cost > little))


def _table(rows: list[list[str]]) -> list[str]:
    """Columns, the first to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]),
                       *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows]  # fmt: skip


class Watch:
    """Makes the reports of one communicator, each of the calls since the one before."""

    def __init__(self, rank: int, ranks: int, groups: Sequence[Group]) -> None:
        """For a rank, and the groups of its communicator's recorder."""
        self._rank, self._ranks, self._groups = rank, ranks, groups
        self._since: dict[int, int] = {}  # [group], calls that are not looked at any more
        self._waits = np.zeros((ranks, 2), np.int64)
        self._clocks: Clocks | None = None

    def report(self, name: str, comm: Ranks,
               in_order: Callable[[Callable[[], Any]], Any]) -> Stragglers:  # fmt: skip
        """Who was late; every rank must call it, and gets the same.

        Args:
            name: of the communicator.
            comm: the communicator, which this object does not keep alive.
            in_order: does something after all calls made before.
        """
        spans, totals = in_order(self._taken)
        after, n = compare(comm), self._ranks
        # All ranks have made the same calls, so the rings hold the same ones.
        every = comm.all_gather(spans).reshape(n, -1, 2)
        waited = comm.all_gather((totals - self._waits).ravel()).reshape(n, n, 2)
        before = self._clocks or after
        for r in range(n):
            every[r] -= lead(every[r], r, before, after)
        error = np.maximum(before.error, after.error)
        if self._clocks is None and every.size:
            age = max(0, after.at - int(every.min()))
            error = error + np.where(error > 0, int(age * DRIFT), 0)
        self._clocks = after
        in_order(self._forget)
        return report(name, every[..., 0], every[..., 1], waited, error)

    def _taken(self) -> tuple[Column, Column]:
        """[call, 2] flat, when calls of this rank began and ended; [peer, 2], its waits."""
        rings = []
        for g, group in enumerate(self._groups):
            count, ring = group.endpoints[self._rank].spans()
            fresh = min(count - self._since.get(g, 0), len(ring) // 16)
            rings.append(np.frombuffer(ring, np.int64)[len(ring) // 8 - 2 * fresh :])
        return np.concatenate(rings), self._waited()

    def _waited(self) -> Column:
        found = np.zeros((self._ranks, 2), np.int64)
        for w in waits(self._groups, self._rank):
            found[w.peer] = w.waits, round(w.seconds * 1e9)
        return found

    def _forget(self) -> None:
        """What has been reported, and the calls that the report itself has made."""
        for g, group in enumerate(self._groups):
            self._since[g] = group.endpoints[self._rank].spans()[0]
        self._waits = self._waited()
