"""Prove that a schedule computes its collective, by running it on numbers.

`verify` runs the rounds on random numbers and compares every place that must hold a total with
that total, modulo a prime drawn anew each time. A wrong total passes with a probability of about
2**-62; of chunks that were not looked at (above 1,024 ranks a sample is) nothing is said. In the
same run a commutative but not associative mixing shows what sums cannot: whether all ranks get the
same bits, and in which order they add.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..algorithms.registry import Algorithm
from ..cost import COUNT_LIMIT, cost
from ..i18n import Message, message, translator
from ..schedule import Schedule, ScheduleError
from .exact import Counterexample, explain
from .numbers import Totals, run, sample
from .orders import any_order

DENSE_LIMIT = 16384
"""Ranks up to which an algorithm with n * n moves is checked at all."""
COMPLETE_LIMIT = 1024
"""Ranks up to which every chunk is checked, unless told otherwise."""
PLACES_LIMIT = 2**31
"""Places (ranks and helpers x chunks) up to which every chunk is checked, unless told otherwise."""
MOMENTS_LIMIT = 10**6
"""Steps of rounds up to which every chunk is checked, unless told otherwise."""
ORDERS_LIMIT = 400
"""Chunk moves up to which random orders of execution are tried as well."""


@dataclass(frozen=True)
class Verdict:
    """What came of checking a schedule.

    Attributes:
        ok: whether every place holds what it must, all ranks the same bits where they must,
            in every order tried, and the cost is what the card says.
        collective, algorithm, ranks, params: what was checked.
        chunks: number of chunks there are.
        sampled: number of chunks looked at, where not all were; None: all.
        same_bits: whether all ranks end with the same bits; None where nothing is added.
        summation: "rank" (in rank order), "tree" (one tree for all chunks) or "per_chunk".
        counterexample: the first place that is wrong, at the smallest n that fails.
        why: what is wrong, in words; None where nothing is.
    """

    ok: bool
    collective: str
    algorithm: str
    ranks: int
    params: dict[str, Any]
    chunks: int
    sampled: int | None = None
    same_bits: bool | None = None
    summation: str | None = None
    counterexample: Counterexample | None = None
    why: Message | None = None

    def __bool__(self) -> bool:
        """Whether it is proved, so that ``assert verify(schedule)`` means what it says."""
        return self.ok

    def __str__(self) -> str:
        """The outcome in a line."""
        name = f"{self.collective}/{self.algorithm or '?'}, {self.ranks} ranks"
        seen = "" if self.sampled is None else f" on {self.sampled} of {self.chunks:,} chunks"
        return f"{name}: proved{seen}" if self.ok else f"{name}: not proved: {self.reason}"

    @property
    def reason(self) -> str:
        """What is wrong, in English; empty where nothing is."""
        return self.told("en")

    def told(self, lang: str) -> str:
        """What is wrong, in a language ("en" or "zh"); empty where nothing is."""
        return self.why.tell(translator(lang)) if self.why else ""


def verify(
    schedule: Schedule,
    *,
    complete: bool | None = None,
    samples: int = 16,
    orders: int = 1,
    seed: int = 0,
) -> Verdict:
    """Check one schedule.

    Args:
        schedule: any schedule over all its ranks.
        complete: check every chunk (in blocks, where memory is short); None: up to 1,024 ranks,
            and a sample of chunks above. Samples take in the borders of every block of ids.
        samples: size of such a sample.
        orders: random orders of execution to try on schedules of up to 400 chunk moves.
        seed: of the random numbers.

    Raises:
        ScheduleError: the schedule is illegal: it reads or adds to a place that holds nothing,
            copies over what the same step wrote, or names an id out of range.
    """
    schedule.whole()
    if samples < 1:
        raise ScheduleError(f"samples = {samples}; expected at least 1")
    if complete is None:
        places = (schedule.ranks + schedule.helpers) * schedule.chunks
        few = schedule.ranks <= COMPLETE_LIMIT and places <= PLACES_LIMIT
        complete = few and schedule.moments() <= MOMENTS_LIMIT
    rng = np.random.default_rng(seed)
    columns = None if complete else sample(schedule, samples, rng)
    totals = run(schedule, columns, rng)
    verdict = _verdict(
        schedule,
        ok=totals.wrong is None,
        sampled=None if columns is None or len(columns) == schedule.chunks else len(columns),
        same_bits=totals.same_bits if schedule.kind.sums else None,
        summation=totals.summation if schedule.kind.sums else None,
    )
    if totals.wrong is not None:
        found, why = explain(schedule, *totals.wrong)
        return replace(verdict, counterexample=found, why=why)
    return _further(schedule, verdict, totals, orders, rng)


def _verdict(schedule: Schedule, *, ok: bool, **found: Any) -> Verdict:
    return Verdict(
        ok, schedule.collective, schedule.name, schedule.ranks, dict(schedule.params),
        chunks=schedule.chunks, **found,
    )  # fmt: skip


def _further(
    schedule: Schedule, verdict: Verdict, totals: Totals, orders: int, rng: np.random.Generator
) -> Verdict:
    if not totals.same_bits:
        why = message("ranks end with different bits: each adds in an order of its own")
        return replace(verdict, ok=False, why=why)
    if schedule.expanded() <= ORDERS_LIMIT:
        for _ in range(orders):
            if not any_order(schedule, rng):
                why = message("an order of execution that keeps all dependences gives other bits")
                return replace(verdict, ok=False, why=why)
    return verdict


def prove(
    algorithm: Algorithm, n: int, *, root: int = 0, params: Any = None, **options: Any
) -> Verdict:
    """Check an algorithm at n: its schedule, and its cost against its card.

    On failure, looks for the smallest n that fails too and reports that one. An illegal schedule
    is a failure. Where `inner` or `outer` are chosen the card is left out: it adds up the cards of
    the parts, whose busiest ranks need not be the same.

    Args:
        algorithm: from `find`, or of one's own.
        n: number of ranks.
        root: for rooted collectives.
        params: the algorithm's parameters.
        **options: see `verify`.

    Raises:
        ScheduleError: the algorithm cannot be built at n.
    """
    params = params or {}
    if algorithm.dense and n > DENSE_LIMIT:
        raise ScheduleError(
            f"{algorithm.collective}/{algorithm.name} over {n:,} ranks has more than "
            f"{DENSE_LIMIT:,}**2 moves to go through; prove it at a smaller n"
        )
    verdict = _prove(algorithm, n, root, params, options)
    if verdict.ok or params:
        return verdict
    for smaller in range(1, min(n, 64)):
        try:
            first = _prove(algorithm, smaller, min(root, smaller - 1), params, options)
        except ScheduleError:  # there are algorithms for even n only, and the like
            continue
        if not first.ok:
            why = message("already at n = {smaller}: {why}", smaller=smaller, why=first.why)
            return replace(first, ranks=n, why=why)
    return verdict


def _prove(algorithm: Algorithm, n: int, root: int, params: Any, options: Any) -> Verdict:
    schedule = algorithm(n, root, **params)
    try:
        verdict = verify(schedule, **options)
    except ScheduleError as error:
        return _verdict(schedule, ok=False, why=message("illegal: {error}", error=error))
    if not verdict.ok or {"inner", "outer"} & set(params):
        return verdict
    if algorithm.dense and n > COUNT_LIMIT:
        return verdict
    counted, card = cost(schedule, with_depth=False), algorithm.card(n, **params)
    pairs = {
        "messages": (counted.messages_max, card.messages),
        "bytes_sent": (counted.bytes_sent_max, card.bytes_sent),
        "steps": (counted.steps, card.steps),
    }
    for what, (found, said) in pairs.items():
        if found != said:
            why = message(
                "{what}: counted {found}, the cost card {formula} says {said}",
                what=what, found=found, formula=getattr(algorithm, what), said=said,
            )  # fmt: skip
            return replace(verdict, ok=False, why=why)
    return verdict
