"""Where the time of a step goes, on each rank and in all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ...errors import RoundelayError
from ...timeline import UNKNOWN, Timeline, What
from ..pricing import PS
from .cards import Share
from .kinds import Kinds
from .tasks import Step

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

NS: Final = 1000
"""Picoseconds of a nanosecond."""
AT_ONCE: Final = 1 << 22
"""Tasks times ranks whose times are sorted at once."""
EVENTS_LIMIT: Final = 10**7
"""Events of a timeline, at most."""


class Moments(NamedTuple):
    """Moments of tasks, in ps.

    Attributes:
        ready: the rank could begin.
        begin: it begins; an exchange when all ranks of its group are ready.
        end: it ends.
    """

    ready: Ints
    begin: Ints
    end: Ints


T = TypeVar("T")


class Parts(NamedTuple, Generic[T]):
    """Where the time of a step goes, in seconds: one number, or one a rank.

    The first three add up to the time of the step.

    Attributes:
        compute: something is computed.
        exposed: nothing is computed, and something is exchanged.
        wait: neither: for ranks that come later, also at the end of the step.
        hidden: something is exchanged while something is computed.
    """

    compute: T
    exposed: T
    wait: T
    hidden: T


@dataclass(frozen=True, eq=False)
class StepTiming:
    """The time of a step.

    Attributes:
        step: its tasks.
        kinds: which ranks are alike.
        moments: [task, kind], in ps.
        cards: of a node.
        share: of the card that does communication; None: communication takes nothing.
    """

    step: Step
    kinds: Kinds
    moments: Moments
    cards: int
    share: Share | None = None

    @cached_property
    def time(self) -> float:
        """Seconds from the begin of the step until the last rank has ended."""
        return float(self.moments.end.max()) / PS

    @cached_property
    def by_kind(self) -> Parts[Floats]:
        """[kind] where its time goes."""
        exchanged = np.array([task.exchange is not None for task in self.step.tasks])
        computing, exchanging = self._covered(~exchanged), self._covered(exchanged)
        either = self._covered(np.ones_like(exchanged))
        hidden = computing + exchanging - either
        whole = int(self.moments.end.max())
        columns = (computing, either - computing, whole - either, hidden)
        return Parts(*(column / PS for column in columns))

    @property
    def by_rank(self) -> Parts[Floats]:
        """[rank] where its time goes."""
        return Parts(*(column[self.kinds.of] for column in self.by_kind))

    @property
    def mean(self) -> Parts[float]:
        """Where time goes, in the mean of all ranks."""
        counts = self.kinds.counts
        return Parts(*(float(np.average(column, weights=counts)) for column in self.by_kind))

    def _covered(self, some: npt.NDArray[np.bool_]) -> Ints:
        """[kind] how long at least one of some tasks is under way.

        The k-th end leaves a gap where it comes before the begin after the k-th.
        """
        begin, end = self.moments.begin[some], self.moments.end[some]
        found = np.zeros(begin.shape[1], np.int64)
        block = max(1, AT_ONCE // max(1, len(begin)))
        for first in range(0, len(found) if len(begin) else 0, block):
            here = slice(first, first + block)
            begins = np.sort(begin[:, here].T, axis=1, kind="stable")
            ends = np.sort(end[:, here].T, axis=1, kind="stable")
            gaps = np.maximum(begins[:, 1:] - ends[:, :-1], 0).sum(axis=1)
            found[here] = ends[:, -1] - begins[:, 0] - gaps
        return found

    def timeline(self, ranks: Sequence[int] | None = None) -> Timeline:
        """What happens, a call for each task, and one for each wait for other ranks.

        Participants are the streams of each rank. Times are cut to whole ns.

        Args:
            ranks: which; None: one of each kind.

        Raises:
            RoundelayError: no such rank, or more events than are of use.
        """
        shown = self.kinds.first if ranks is None else np.asarray(ranks, np.int64)
        if len(shown) and not 0 <= shown.min() <= shown.max() < len(self.kinds.of):
            raise RoundelayError(f"ranks: expected 0 to {len(self.kinds.of) - 1}")
        tasks, streams = len(self.step.tasks), self.step.streams
        if tasks * len(shown) > EVENTS_LIMIT:
            raise RoundelayError(f"{tasks * len(shown):,} events; expected at most "
                                 f"{EVENTS_LIMIT:,}; name fewer ranks")  # fmt: skip
        columns = (m[:, self.kinds.of[shown]] // NS for m in self.moments)
        ready, begin, end = (column.reshape(-1) for column in columns)
        task, rank = (i.reshape(-1) for i in np.indices((tasks, len(shown))))
        stream = np.array([streams.index(t.stream) for t in self.step])
        where = rank * len(streams) + stream[task]
        waited = begin > ready
        names = [t.name for t in self.step]
        return _calls(
            np.concatenate([where[waited], where]),
            np.concatenate([task[waited] + tasks, task]),
            (np.concatenate([ready[waited], begin]), np.concatenate([begin[waited], end])),
            [*names, *(f"{name}: waiting for others" for name in names)],
            [(f"rank {r}, {s}", r // self.cards) for r in shown.tolist() for s in streams],
        )


def _calls(
    participant: Ints,
    call: Ints,
    times: tuple[Ints, Ints],
    texts: Sequence[str],
    names: Sequence[tuple[str, int]],
) -> Timeline:
    """A timeline of calls, in the order in which they begin."""
    begin, end = times
    zero, unknown = np.zeros_like(begin), np.full_like(begin, UNKNOWN)
    found = Timeline(
        rank=participant, call=call, what=zero + What.CALL, peer=unknown, peers=zero,
        stage=unknown, slice=zero, bytes=zero, begin=begin, ready=begin, end=end, act=unknown,
        calls=dict(enumerate(texts)), names=[name for name, _ in names],
        nodes=[node for _, node in names],
    )  # fmt: skip
    return found.take(np.argsort(begin, kind="stable"))
