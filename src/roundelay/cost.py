"""What a schedule costs, counted from its rounds, and the least that any could cost."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .algorithms.formulas import ceil_log
from .algorithms.registry import Algorithm, rank_count
from .collectives import Collective, Ints, collective, everyone, owner, root
from .errors import RoundelayError
from .rounds import REDUCE, Round, whole_numbers
from .schedule import Schedule

COUNT_LIMIT: Final = 1024
"""Ranks up to which algorithms with n * n moves are really counted; above, by their card."""
DEPTH_LIMIT: Final = 10**7
"""Chunk moves, and places, up to which the depth is worked out (it goes through each)."""
DEPTH_STEPS: Final = 4096
"""Steps up to which the depth is worked out."""
WEIGHT_MAX: Final = 2**38
"""Bytes of one uneven piece, so that sums over `WEIGHT_LIMIT` moves stay within 64 bits."""
WEIGHT_LIMIT: Final = 10**7
"""Chunk moves up to which uneven pieces are counted (each chunk has its own bytes)."""


class Cost(NamedTuple):
    """What a schedule costs; maxima are over ranks, helpers (switches) are counted apart.

    Attributes:
        steps: moments, where every move takes one.
        depth: the longest chain of moves that wait for one another; less than `steps` where
            parts overlap. None where it was not worked out.
        messages_max, messages_received_max: messages of the rank that sends, or receives, most
            (all moves between the same two ranks in one step of a round are one message).
        bytes_sent_max, bytes_received_max, bytes_reduced_max: bytes, exact.
        helper_bytes_max: bytes sent by the busiest helper, a multicast counted once.
        counted: False where messages, bytes and steps come from the algorithm's formulas.
    """

    steps: int
    depth: int | None
    messages_max: int
    messages_received_max: int | None
    bytes_sent_max: Fraction
    bytes_received_max: Fraction | None
    bytes_reduced_max: Fraction | None
    helper_bytes_max: Fraction | None
    counted: bool


class Bound(NamedTuple):
    """The least steps and bytes that any schedule needs, in a named model.

    Attributes:
        steps: least number of steps.
        bytes_sent_max: least bytes sent by the busiest rank.
        ports: "one" (a rank sends one message and receives one in a step) or "all".
        in_switch: whether switches may add and multicast.
    """

    steps: int
    bytes_sent_max: Fraction
    ports: str
    in_switch: bool


def cost(
    schedule: Schedule, size: int = 1, weights: Any = None, *, with_depth: bool = True
) -> Cost:
    """Count a schedule's cost from its rounds.

    Args:
        schedule: any schedule.
        size: bytes, in the sense of nccl-tests' size column.
        weights: bytes of each piece, for uneven collectives; then `size` is not used. In the
            order of the pieces: rank order, or i * n + j for the piece from i to j.
        with_depth: also work out `depth`, which takes longer than all the rest.

    Raises:
        RoundelayError: the number of weights is not that of the pieces, or uneven pieces of a
            schedule too large to go through.
    """
    schedule.whole()
    if not isinstance(size, int) or size < 0:
        raise RoundelayError(f"size = {size!r}; expected a whole number of bytes from 0 up")
    share, sent, received, reduced = _Share.of(schedule, size, weights), *_tallies(schedule)
    messages, arrivals = np.zeros_like(sent), np.zeros_like(sent)
    multicast = np.zeros_like(sent)
    for r in schedule:
        bytes_each = share.of_moves(r)
        away = r.src != r.dst
        _add(sent, r.src[away], bytes_each[away])
        _add(received, r.dst[away], bytes_each[away])
        adds = np.broadcast_to(r.op, len(r.src)) == REDUCE
        _add(reduced, r.dst[adds], bytes_each[adds])
        _add_messages(messages, arrivals, r, schedule.ranks + schedule.helpers)
        if schedule.helpers:
            _add(multicast, *_multicast(r, bytes_each, schedule.ranks))
    n, unit = schedule.ranks, share.unit
    return Cost(
        schedule.steps,
        depth(schedule) if with_depth and _can_trace(schedule) else None,
        int(messages[:n].max()),
        int(arrivals[:n].max()),
        int(sent[:n].max()) * unit,
        int(received[:n].max()) * unit,
        int(reduced[:n].max()) * unit,
        int(multicast[n:].max(initial=0)) * unit,
        True,
    )


def cost_of(algorithm: Algorithm, n: int, size: int = 1, **params: Any) -> Cost:
    """An algorithm's cost at n ranks: counted, or for a dense one above 1,024 by its card.

    Raises:
        RoundelayError: n or a parameter is out of range.
    """
    if algorithm.dense and rank_count(n) > COUNT_LIMIT:
        card = algorithm.card(n, size, **params)
        return Cost(int(card.steps), None, int(card.messages), None, card.bytes_sent,
                    None, None, None, False)  # fmt: skip
    return cost(algorithm(n, **params), size)


def depth(schedule: Schedule) -> int:
    """The least steps that any execution needs which keeps the dependences.

    Takes a table of 8 bytes a place, (ranks + helpers) x chunks.
    """
    shape = (schedule.ranks + schedule.helpers, schedule.chunks)
    written, read = np.zeros(shape, np.int32), np.full(shape, -1, np.int32)
    for step in schedule.moves():
        source = (step.src, step.col)
        level = written[source]
        np.maximum.at(read, source, level)
        to = (step.dst, step.col)
        np.maximum.at(written, to, np.maximum(level, read[to]) + 1)
    return int(written.max())


def _can_trace(schedule: Schedule) -> bool:
    places = (schedule.ranks + schedule.helpers) * schedule.chunks
    small = max(places, schedule.expanded()) <= DEPTH_LIMIT
    return small and schedule.steps <= DEPTH_STEPS


def bound(
    name: str,
    n: int,
    size: int = 1,
    *,
    weights: Any = None,
    ports: str = "one",
    in_switch: bool = False,
) -> Bound:
    """The least steps and bytes that a collective needs over n ranks.

    With one port, who has heard of a contribution at most doubles in a step; with all ports, one
    step reaches everybody. Bytes: what has to leave the busiest rank, whatever the ports; see
    Chan et al. 2007, doi:10.1002/cpe.1206. A switch adds and multicasts, so that a contribution
    and a total leave a rank once at most.

    Args:
        name: of the collective.
        n: number of ranks.
        size: bytes, in the sense of nccl-tests' size column.
        weights: bytes of each piece, for uneven collectives; then `size` is not used.
        ports: "one" or "all".
        in_switch: whether switches may add and multicast.

    Raises:
        RoundelayError: no such collective or one with a routing, no such port model, or n below 1.
    """
    kind = collective(name)
    if kind.routed:
        raise RoundelayError(f"the least of a {name} depends on its routing, not on n and a size")
    if ports not in ("one", "all"):
        raise RoundelayError(f"ports = {ports!r}; expected 'one' or 'all'")
    n = rank_count(n)
    if n == 1:
        return Bound(0, Fraction(0), ports, in_switch)
    steps = 1 if ports == "all" or name == "send_recv" else ceil_log(n)
    if in_switch:
        steps = min(steps, 2)
    if weights is not None:
        each = [Fraction(int(w)) for w in _weights(kind, n, weights)]
        least = _least_uneven(kind, n, each, in_switch)
        return Bound(steps, least, ports, in_switch)
    return Bound(steps, Fraction(size) * _least_share(name, n, in_switch), ports, in_switch)


def _least_uneven(kind: Collective, n: int, each: list[Fraction], in_switch: bool) -> Fraction:
    """Least bytes the busiest rank sends, where pieces have weights of their own."""
    total, rest = sum(each, Fraction(0)), Fraction(n - 1, n)
    if kind.pieces == 2:
        rows = [each[r * n : r * n + n] for r in range(n)]
        return max(sum(row, Fraction(0)) - row[r] for r, row in enumerate(rows))
    if kind.pieces == 0 or kind.volume == 0:
        return total * _least_share(kind.name, n, in_switch)
    if (
        kind.before is owner
    ):  # every piece leaves its owner; gathered by all, it is sent n - 1 times
        alone = in_switch or kind.after is not everyone
        return max(each) if alone else max(*each, total * rest)
    own = total - min(
        each
    )  # a rank keeps one piece at most, and sends on what it has of the others
    return own if in_switch or kind.before is root else max(own, total * rest)


def _weights(kind: Collective, n: int, weights: Any) -> Ints:
    pieces = kind.piece_count(n)
    each = whole_numbers("weights", weights)
    if each.shape != (pieces,) or (each < 0).any():
        raise RoundelayError(
            f"weights of shape {each.shape}; expected {pieces} sizes in bytes, one a piece"
        )
    if (most := int(each.max())) > WEIGHT_MAX:
        raise RoundelayError(f"a weight of {most:,} bytes; expected up to {WEIGHT_MAX:,}")
    return each if kind.volume else np.zeros_like(each)


def _least_share(name: str, n: int, in_switch: bool) -> Fraction:
    """Least bytes the busiest rank sends, as a multiple of the size."""
    kind = collective(name)
    if kind.volume == 0:
        return Fraction(0)
    rest = Fraction(n - 1, n)
    if kind.before is everyone and kind.after is everyone:
        return Fraction(1) if in_switch else 2 * rest
    if kind.before is owner and kind.pieces == 1 and name != "send_recv":
        only_own = in_switch or name == "gather"
        return Fraction(1, n) if only_own else rest
    whole = name in ("reduce", "broadcast", "send_recv")
    return Fraction(1) if whole else rest


class _Share(NamedTuple):
    """Bytes of a chunk: the same for all (`unit`), or the running total over chunks."""

    schedule: Schedule
    unit: Fraction
    totals: npt.NDArray[np.int64] | None

    @classmethod
    def of(cls, schedule: Schedule, size: int, weights: Any) -> _Share:
        n, chunks = schedule.ranks, schedule.chunks
        if weights is None:
            return cls(schedule, Fraction(schedule.kind.total_bytes(size, n), chunks), None)
        pieces, each = schedule.kind.piece_count(n), _weights(schedule.kind, n, weights)
        if schedule.expanded() > WEIGHT_LIMIT:
            raise RoundelayError(
                f"{schedule.expanded():,} chunk moves are too many to weigh one by one; "
                f"at most {WEIGHT_LIMIT:,}"
            )
        return cls(schedule, Fraction(1, chunks // pieces), np.repeat(each, chunks // pieces))

    def of_moves(self, r: Round) -> npt.NDArray[np.int64]:
        """What each move of a round carries, all its repetitions together, in `unit` bytes."""
        if self.totals is None:
            return np.broadcast_to(
                np.multiply(r.count, r.times * r.unit, dtype=np.int64), len(r.src)
            )
        carried = np.zeros(len(r.src), np.int64)
        for t in r.busy():
            move, chunk = r.active(t, self.schedule.chunks)
            _add(carried, move, self.totals[chunk])
        return carried


def _tallies(schedule: Schedule) -> tuple[Ints, Ints, Ints]:
    count = schedule.ranks + schedule.helpers
    return np.zeros(count, np.int64), np.zeros(count, np.int64), np.zeros(count, np.int64)


def _add(tally: Ints, who: Ints, what: Ints) -> None:
    """``tally[who] += what`` with repeats; exact, unlike bincount's floating-point weights."""
    if len(who) < 64:
        np.add.at(tally, who, what)
        return
    order = np.argsort(who, kind="stable")
    first = np.flatnonzero(np.diff(who[order], prepend=-1))
    tally[who[order][first]] += np.add.reduceat(np.asarray(what)[order], first)


def _add_messages(sent: Ints, received: Ints, r: Round, participants: int) -> None:
    """Add the messages of a round: per pair of ranks, the steps in which some move is under way."""
    away = np.flatnonzero(r.src != r.dst)
    src, dst = r.src[away], r.dst[away]
    start = np.broadcast_to(r.start, len(r.src))[away]
    pair = src.astype(np.int64) * participants + dst
    if np.all(pair[1:] > pair[:-1]):
        new = np.full(len(pair), r.times, np.int64)
    else:
        order = np.lexsort((start, pair))
        src, dst, pair, start = src[order], dst[order], pair[order], start[order]
        same = np.diff(pair, prepend=-1) == 0
        new = np.where(same, np.minimum(r.times, np.diff(start, prepend=0)), r.times)
    _add(sent, src, new)
    _add(received, dst, new)


def _multicast(r: Round, bytes_each: Ints, ranks: int) -> tuple[Ints, Ints]:
    """What helpers send in a round, copies of one place to several ranks in a step counted once."""
    some = np.flatnonzero(r.src >= ranks)
    fields = (r.src, r.chunk, r.count, r.start)
    rows = np.stack([np.broadcast_to(f, len(r.src))[some] for f in fields])
    _, first = np.unique(rows, axis=1, return_index=True)
    return r.src[some][first], bytes_each[some][first]
