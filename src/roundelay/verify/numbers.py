"""Run a schedule on random numbers, block of chunks by block of chunks."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..collectives import Ints
from ..schedule import Schedule, ScheduleError, Step, apply, occupy

CELLS: Final = 2**25
"""Places held in memory at a time: 17 bytes each, about 570 MB in all."""

PRIME: Final = 2**63 - 25
"""The modulus where none needs to be drawn: the largest prime below 2**63."""
MIXER: Final = 0xBF58476D1CE4E5B9
"""An odd multiplier with its bits well spread (from splitmix64, Steele et al. 2014)."""

Words = npt.NDArray[np.uint64]


class Totals(NamedTuple):
    """What a run came to.

    Attributes:
        wrong: (rank, chunk) of the first place that does not hold its total, or None.
        same_bits: whether all ranks that hold a total hold the same bits.
        summation: "rank", "tree" or "per_chunk".
    """

    wrong: tuple[int, int] | None
    same_bits: bool
    summation: str


def random_prime() -> int:
    """A prime between 2**62 and 2**63, drawn anew each time.

    Sums are taken modulo a prime that nobody can know beforehand: modulo a known number, a
    contribution counted that many times too often would vanish.
    """
    while True:
        candidate = 2**62 + 1 + 2 * secrets.randbelow(2**61)
        if _is_prime(candidate):
            return candidate


def _is_prime(n: int) -> bool:
    """Miller-Rabin; these bases decide every odd n below 2**64 (found by Jim Sinclair, 2011)."""
    if n % 2 == 0 or n < 3:
        return n == 2
    odd = (n - 1) // (n - 1 & 1 - n)
    for base in (2, 325, 9375, 28178, 450775, 9780504, 1795265022):
        power, exponent = pow(base, odd, n), odd
        while power not in (0, 1, n - 1) and exponent < n // 2:
            power, exponent = power * power % n, exponent * 2
        if power not in (0, n - 1) and (power != 1 or exponent != odd):
            return False
    return True


class AddAndMix:
    """Sums modulo a prime in [..., 0]; in [..., 1] a mixing that does not associate.

    Equal mixes mean equal trees of additions, but for the order of the two terms of each.
    """

    def __init__(self, prime: int = PRIME) -> None:
        self.prime = np.uint64(prime)

    def __call__(self, a: Words, b: Words) -> Words:
        """The two added, elementwise."""
        out = a + b
        total = out[..., 0]
        np.minimum(total, total - self.prime, out=total)  # below the prime, that wraps round
        mix = out[..., 1]
        mix ^= mix >> np.uint64(29)
        mix *= np.uint64(MIXER)
        return out


def words(rng: np.random.Generator, shape: tuple[int, ...]) -> Words:
    """Random words, below every prime that may be drawn."""
    return rng.integers(0, 2**62, shape, np.uint64)


def start(schedule: Schedule, columns: Ints, rng: np.random.Generator) -> tuple[Words, Any]:
    """Values [participant, column, 2] and who holds something, before the first round.

    The mixing starts from one word a rank, the same in all columns, so that equal trees can be
    told across chunks.
    """
    shape = (schedule.ranks + schedule.helpers, len(columns))
    held = schedule.before(columns)
    rank, col = np.nonzero(held)
    values = np.zeros((*shape, 2), np.uint64)
    values[rank, col, 0] = words(rng, rank.shape)
    values[rank, col, 1] = words(np.random.default_rng(0), (shape[0],))[rank]
    return values, held


class Clock:
    """When each place was last written and read, where rounds are said to overlap in time.

    Rounds are executed as listed, so only this shows whether the steps they begin at are true.
    """

    def __init__(self, places: int) -> None:
        self.written = np.full(places, -1, np.int64)
        self.read = np.full(places, -1, np.int64)

    def check(self, step: Step, columns: Ints) -> None:
        """Note a step, and refuse it if an earlier-listed round does not let it be so early.

        Raises:
            ScheduleError: it reads what is written no earlier, or writes what is read later.
        """
        early = self.written[step.source] >= step.at
        over = np.maximum(self.written[step.target], self.read[step.target]) > step.at
        for bad, rank in ((early, step.src), (over, step.dst)):
            if bad.any():
                i = int(np.argmax(bad))
                raise ScheduleError(
                    f"round {step.round}, step {step.at}: it begins too early, for rank {rank[i]} "
                    f"is not yet done with chunk {columns[step.col[i]]} in a round before it"
                )
        self.read[step.source] = np.maximum(self.read[step.source], step.at)
        self.written[step.target] = step.at


def in_rank_order(n: int) -> int:
    """The mix of one word a rank, added in rank order."""
    mine = words(np.random.default_rng(0), (n,))
    total = np.array([0, mine[0]], np.uint64)
    for word in mine[1:]:
        total = AddAndMix()(total, np.array([0, word], np.uint64))
    return int(total[1])


def run(schedule: Schedule, columns: Ints | None, rng: np.random.Generator) -> Totals:
    """Run the schedule on the chunks `columns`, or on all of them.

    Raises:
        ScheduleError: at the first illegal move.
    """
    same_bits, trees, add = True, set[int](), AddAndMix(random_prime())
    for block in _blocks(schedule, columns):
        everything = columns is None and len(block) == schedule.chunks
        values, held = start(schedule, block, rng)
        wanted = _totals(values[..., 0], int(add.prime))
        clock = Clock(held.size) if schedule.overlaps else None
        for step in schedule.moves(None if everything else block):
            occupy(step, held, block)
            if clock is not None:
                clock.check(step, block)
            apply(step, values, add)
        rank, col = np.nonzero(schedule.after(block))
        bad = ~held[rank, col] | (values[rank, col, 0] != wanted[col])
        if bad.any():
            worst = np.lexsort((rank[bad], col[bad]))[0]
            place = int(rank[bad][worst]), int(block[col[bad][worst]])
            return Totals(place, False, "per_chunk")
        mixes = values[rank, col, 1]
        one = np.zeros(len(block), np.uint64)
        one[col] = mixes
        same_bits &= bool((mixes == one[col]).all())
        trees |= set(np.unique(one)[:2].tolist())
    if len(trees) > 1:
        return Totals(None, same_bits, "per_chunk")
    by_rank = schedule.kind.sums and trees == {in_rank_order(schedule.ranks)}
    return Totals(None, same_bits, "rank" if by_rank else "tree")


def _totals(values: Words, prime: int) -> Words:
    """Column sums modulo the prime, of the upper and lower halves so that neither overflows."""
    halves = values >> np.uint64(32), values & np.uint64(2**32 - 1)
    upper, lower = (half.sum(axis=0).astype(object) for half in halves)
    return np.asarray((upper * 2**32 + lower) % prime, np.uint64)


def _blocks(schedule: Schedule, columns: Ints | None) -> Iterator[Ints]:
    size = max(1, CELLS // (schedule.ranks + schedule.helpers))
    if columns is not None:
        yield from (columns[i : i + size] for i in range(0, len(columns), size))
    else:
        for i in range(0, schedule.chunks, size):
            yield np.arange(i, min(i + size, schedule.chunks))


def sample(schedule: Schedule, count: int, rng: np.random.Generator) -> Ints:
    """Chunks worth looking at: the borders of blocks of ids, powers of two, and random ones."""
    chunks = schedule.chunks
    if chunks <= count:
        return np.arange(chunks)
    borders = {0, chunks - 1}
    for number, r in enumerate(schedule):
        for edge in (r.unit, r.unit * r.block(chunks)):
            borders |= {edge - 1, edge, chunks - edge} if edge < chunks else set()
        if number > 100:
            break
    few = sorted(b for b in borders if 0 <= b < chunks)
    powers = [1 << k for k in range(chunks.bit_length()) if 1 << k < chunks]
    chosen = set(rng.permutation(few)[: count // 2].tolist()) | {0, chunks - 1}
    chosen |= set(rng.permutation(powers)[: count // 4].tolist())
    while len(chosen) < count:
        chosen.add(int(rng.integers(chunks)))
    return np.array(sorted(chosen))
