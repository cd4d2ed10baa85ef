"""The time of a step: every task begins when its stream is free and what it waits for has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...errors import RoundelayError
from ...topology import Cluster
from ..clock import SLOWEST
from ..disturb import SAMPLES_LIMIT, Jitter, Table
from ..pricing import PS
from .cards import Card, Share
from .kinds import Kinds, kinds
from .prices import Price, price
from .tasks import LONGEST, Exchange, Step
from .timing import Moments, StepTiming

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

AT_ONCE: Final = 1 << 18
"""Ranks times samples that are worked at at once, so that they stay in the cache."""


class Shares(NamedTuple):
    """What a step takes, by the share of the card that does communication.

    Attributes:
        sms: [tried] multiprocessors of communication.
        times: [tried] seconds of the step.
        best: the fewest of those with the least time.
    """

    sms: Ints
    times: Floats
    best: Share


class StepClock:
    """A step of training on a cluster.

    Exchanges of different streams are taken not to slow one another.
    """

    def __init__(
        self,
        step: Step,
        cluster: Cluster,
        ranks: int | None = None,
        slow_ranks: Sequence[tuple[int, float]] = (),
        algorithm: str = "nccl",
        *,
        shortcuts: bool = True,
        prices: Mapping[Exchange, Price] | None = None,
    ) -> None:
        """Rank r drives card r.

        Args:
            step: its tasks.
            cluster: with a card for every rank.
            ranks: how many; None: all cards.
            slow_ranks: ranks, and how many times longer they compute.
            algorithm: "nccl", NCCL's choice for each exchange, or "auto", our quickest.
            shortcuts: time one rank of each kind. The result is equal without.
            prices: what exchanges take, where that was measured; None: what the clock says.

        Raises:
            RoundelayError: not so many cards, no such rank, groups into which ranks do not fall, or
                an exchange that the clock cannot time.
        """
        self.step, self.cluster = step, cluster
        self.ranks = cluster.size if ranks is None else ranks
        if not 1 <= self.ranks <= cluster.size:
            raise RoundelayError(f"{self.ranks:,} ranks; expected 1 to {cluster.size:,}, the cards "
                                 f"of {cluster.name}; more nodes are {cluster.name}:N")  # fmt: skip
        self.slower = np.ones(self.ranks)
        for rank, times in slow_ranks:
            self.slower[_rank(rank, self.ranks)] = _times(rank, times)
        self._shortcuts = shortcuts
        self._alike = self._kinds(self.slower)
        self.prices: Mapping[Exchange, Price] = prices or {
            exchange: price(exchange, cluster, self.ranks, algorithm) for exchange in step.exchanges
        }

    def time(self, share: Share | None = None, *, evenly: bool = False) -> StepTiming:
        """The time of the step.

        Args:
            share: of every card, that does communication and nothing else; None: communication
                takes nothing from computing.
            evenly: as if no rank were slower.
        """
        alike, slower = self._kinds(np.ones(self.ranks)) if evenly else self._alike
        slower = slower * (share.slower if share else 1.0)
        exchanged = {e: np.full(slower.shape, p.seconds(share)) for e, p in self.prices.items()}
        steps = list(self._run(alike, self._durations(slower, exchanged)))
        moments = Moments(*(np.stack(column) for column in zip(*steps, strict=True)))
        return StepTiming(self.step, alike, moments, self.cluster.cards, share)

    def best_share(self, card: Card) -> Shares:
        """The share of the card that makes the step the shortest, and what others do.

        Args:
            card: of which communication gets 1, 2, ... multiprocessors; all but one at most.
        """
        tried = [Share(sms, card) for sms in range(1, card.sms)]
        alike, slower = self._alike
        slower = slower * np.array([[share.slower] for share in tried])
        exchanged = {
            e: np.broadcast_to([[p.seconds(share)] for share in tried], slower.shape)
            for e, p in self.prices.items()
        }
        times = _last(self._run(alike, self._durations(slower, exchanged))).max(axis=-1) / PS
        return Shares(np.arange(1, card.sms), times, tried[int(times.argmin())])

    def samples(
        self, jitter: Jitter, count: int, share: Share | None = None, *, seed: int = 1
    ) -> Floats:
        """[sample] seconds of the step, where computing differs from time to time.

        Args:
            jitter: `card`: factors on all computing of a card, drawn once a step; `step`: on that
                of each task.
            count: of samples.
            share: see `time`.
            seed: the same gives the same samples.

        Raises:
            RoundelayError: no such number, or a jitter of links.
        """
        if not 1 <= count <= SAMPLES_LIMIT:
            raise RoundelayError(f"{count} samples; expected 1 to {SAMPLES_LIMIT:,}")
        if len(jitter.link):
            raise RoundelayError("jitter of links is of messages, not of a step's tasks; expected "
                                 "card or step, such as card=normal:0.05")  # fmt: skip
        every = kinds(self.step.groups, np.arange(self.ranks, dtype=float))
        rng = np.random.default_rng(seed)
        block = max(1, AT_ONCE // self.ranks)
        found = []
        for first in range(0, count, block):
            durations = self._drawn(jitter, (min(block, count - first), self.ranks), share, rng)
            found.append(_last(self._run(every, durations)).max(axis=-1))
        return np.concatenate(found) / PS

    def _kinds(self, slower: Floats) -> tuple[Kinds, Floats]:
        """Which ranks are alike, and [kind] how many times slower they are."""
        speed = slower if self._shortcuts else np.arange(self.ranks, dtype=float)
        found = kinds(self.step.groups, speed)
        return found, slower[found.first]

    def _drawn(
        self,
        jitter: Jitter,
        shape: tuple[int, int],
        share: Share | None,
        rng: np.random.Generator,
    ) -> Iterator[Ints]:
        """For each task, [sample, rank] what it takes."""
        usual = self.slower * (share.slower if share else 1.0)
        by_card = usual * _factors(jitter.card, shape, rng)
        exchanged = {e: np.full(shape, p.seconds(share)) for e, p in self.prices.items()}

        def slower() -> Floats:
            return by_card * _factors(jitter.step, shape, rng)

        return self._durations(slower if len(jitter.step) else by_card, exchanged)

    def _durations(
        self, slower: Floats | Callable[[], Floats], exchanged: Mapping[Exchange, Floats]
    ) -> Iterator[Ints]:
        """For each task, [..., kind] what it takes.

        Raises:
            RoundelayError: more than can be counted.
        """
        most = LONGEST / len(self.step.tasks)
        for task in self.step:
            if isinstance(task.work, Exchange):
                seconds = exchanged[task.work]
            else:
                seconds = task.work * (slower() if callable(slower) else slower)
            if not seconds.max() < most:
                raise RoundelayError(f"task {task.name!r} takes {seconds.max():g} s; expected "
                                     f"less than {most:g} s")  # fmt: skip
            yield np.rint(seconds * PS).astype(np.int64)

    def _run(self, kinds: Kinds, durations: Iterable[Ints]) -> Iterator[Moments]:
        """The moments of one task after the other, [..., kind]."""
        streams: dict[str, Ints] = {}
        ends: dict[str, Ints] = {}
        for task, duration in zip(self.step, durations, strict=True):
            ready = np.zeros_like(duration)
            for earlier in (streams.get(task.stream, ready), *(ends[name] for name in task.after)):
                np.maximum(ready, earlier, out=ready)
            exchange = task.exchange
            begin = kinds.members[exchange.group].last(ready) if exchange else ready
            end = begin + duration
            streams[task.stream] = ends[task.name] = end
            for name in self.step.forgotten.get(task.name, ()):
                del ends[name]
            yield Moments(ready, begin, end)


def _last(steps: Iterable[Moments]) -> Ints:
    """[..., kind] when the last task has ended."""
    last = np.zeros((), np.int64)
    for moments in steps:
        last = np.maximum(last, moments.end)
    return last


def _factors(table: Table, shape: tuple[int, int], rng: np.random.Generator) -> Floats:
    """[sample, rank] factors drawn from a table; ones where it is empty."""
    if not len(table):
        return np.ones((shape[0], 1))
    return table[rng.integers(len(table), size=shape, dtype=np.uint32)].astype(float)


def _rank(rank: int, ranks: int) -> int:
    if not 0 <= rank < ranks:
        raise RoundelayError(f"slow rank {rank}; expected 0 to {ranks - 1}")
    return rank


def _times(rank: int, times: float) -> float:
    if not 1 <= times <= SLOWEST:
        raise RoundelayError(f"slow rank {rank}: {times:g} times slower; expected 1 to "
                             f"{SLOWEST:g}, such as 1.10 for 10 %")  # fmt: skip
    return times
