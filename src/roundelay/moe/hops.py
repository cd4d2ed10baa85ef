"""Dispatch and combine between processes, once it is known who gets what.

    handle = moe.exchange(comm, targets, slots)      # who gets what: counts and targets only
    rows = handle.dispatch(x)                        # tokens of all ranks, for the experts here
    y = handle.combine(expert_outputs)               # added up where the tokens came from

A step is an all-to-all with counts. Where the way has two hops, tokens go in parts: the second hop
of a part goes together with the first of the next, so that the network and the links inside nodes
are busy at the same time. The two directions are transposes of one another: the gradient of a
dispatch is a combine of gradients, by the same handle, and the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..communicator import Communicator
from ..errors import RoundelayError
from .fp8 import BLOCK, from_fp8, to_fp8

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[Any]
Load = tuple[Rows, Ints]
"""Rows in the order of ranks, and how many of each."""

SUMMED: Final = ("float32", "float64")
"""Types that a combine adds up in."""


class Hop(NamedTuple):
    """What one rank does for a part of the tokens in one hop of their way.

    Rows lie in the order of the ranks they go to or come from, this rank's own first.

    Attributes:
        rows: [row sent], which of the rows before the hop it is.
        own: rows that stay here.
        sent, got: [rank], rows that go there and come from there, without those that stay.
        at: where what arrives begins among the rows after the hop.
    """

    rows: Ints
    own: int
    sent: Ints
    got: Ints
    at: int

    def packed(self, before: Rows, after: Rows) -> Rows:
        """What is to be sent; what stays is put into its place."""
        after[self.at : self.at + self.own] = before[self.rows[: self.own]]
        return before[self.rows[self.own :]]

    def arrived(self, after: Rows) -> Rows:
        """The place of what comes from others."""
        first = self.at + self.own
        return after[first : first + int(self.got.sum())]

    def add(self, before: Rows, after: Rows, back: Rows) -> None:
        """Add what has come back to the rows it belongs to, in the order of ranks."""
        _add(before, self.rows[: self.own], after[self.at : self.at + self.own])
        ends = np.cumsum(self.sent)
        for first, last in zip(ends - self.sent, ends, strict=True):
            _add(before, self.rows[self.own + first : self.own + last], back[first:last])


@dataclass(frozen=True, eq=False)
class Handle:
    """A dispatch whose ways are known.

    Every rank makes the same calls, in the same order.

    Attributes:
        comm: the ranks.
        hops: [hop][part], of the way there.
        held: [hop], rows that this rank has before the first hop and after each.
        slots: [row, k], the experts here, as slots of this rank, that want each row which comes
            with a dispatch; -1 for none.
            A column is one of the token's choices, as in the targets given.
    """

    comm: Communicator
    hops: tuple[tuple[Hop, ...], ...]
    held: tuple[int, ...]
    slots: Ints

    @property
    def tokens(self) -> int:
        """Rows that this rank gives."""
        return self.held[0]

    @property
    def received(self) -> int:
        """Rows that this rank gets."""
        return self.held[-1]

    def dispatch(self, x: npt.ArrayLike, *, fp8: bool = False) -> Rows:
        """[received, column]: the tokens that experts here want.

        Args:
            x: [token, column], of equal type and columns on all ranks.
            fp8: send E4M3 with a scale for each 128 numbers, and return float32.

        Raises:
            RoundelayError: another shape; nothing has been exchanged.
            ExchangeError: the exchange failed.
        """
        rows = _rows(x, self.tokens, "x", None)
        return self._dispatch_fp8(rows) if fp8 else self._forward(rows)

    def combine(self, y: npt.ArrayLike) -> Rows:
        """[token, column]: the sums of what experts have made of each token, 0 where none has.

        Where the way has two hops the cards of a node add up first.

        Args:
            y: [received, column], float32 or float64, of equal type and columns on all ranks.

        Raises:
            RoundelayError: another shape or type; nothing has been exchanged.
            ExchangeError: the exchange failed.
        """
        y = _rows(y, self.received, "y", SUMMED)
        room = [np.zeros((n, y.shape[1]), y.dtype) for n in self.held[:-1]] + [y]
        for step in self._steps([*reversed(range(len(self.hops)))]):
            moving = [(self.hops[i][part], room[i], room[i + 1]) for i, part in step]
            back = [np.empty((hop.sent.sum(), y.shape[1]), y.dtype) for hop, *_ in moving]
            move(
                self.comm,
                [(hop.arrived(after), hop.got) for hop, _, after in moving],
                [(to, hop.sent) for to, (hop, *_) in zip(back, moving, strict=True)],
            )
            for (hop, before, after), came in zip(moving, back, strict=True):
                hop.add(before, after, came)
        return room[0]

    def _forward(self, x: Rows) -> Rows:
        room = [x] + [np.empty((n, x.shape[1]), x.dtype) for n in self.held[1:]]
        for step in self._steps([*range(len(self.hops))]):
            moving = [(self.hops[i][part], room[i], room[i + 1]) for i, part in step]
            move(
                self.comm,
                [(hop.packed(*rows), hop.sent) for hop, *rows in moving],
                [(hop.arrived(after), hop.got) for hop, _, after in moving],
            )
        return room[-1]

    def _steps(self, order: list[int]) -> Iterator[list[tuple[int, int]]]:
        """What moves together, as (hop, part), for hops in some order."""
        parts = len(self.hops[0])
        for step in range(parts + len(order) - 1):
            yield [(hop, step - k) for k, hop in enumerate(order) if 0 <= step - k < parts]

    def _dispatch_fp8(self, x: Rows) -> Rows:
        codes, scales = to_fp8(x)
        rows = self._forward(np.concatenate([codes, scales.view(np.uint8)], axis=1))
        columns = x.shape[1]
        scales = np.ascontiguousarray(rows[:, columns:]).view(np.float32)
        return from_fp8(rows[:, :columns], scales.reshape(len(rows), -(-columns // BLOCK)))


def move(comm: Communicator, sends: list[Load], gets: list[Load]) -> None:
    """One all-to-all for one hop, or for several whose peers are different ranks."""
    width = sends[0][0].shape[1]
    sent, got = (np.sum([counts for _, counts in side], axis=0) for side in (sends, gets))
    x, out = sends[0][0], gets[0][0]
    if len(sends) > 1:
        x, out = (np.empty((n.sum(), width), x.dtype) for n in (sent, got))
        for rows, counts in sends:
            x[np.repeat(counts > 0, sent)] = rows
    comm.all_to_all(x, out, send_counts=(sent * width).tolist(),
                    receive_counts=(got * width).tolist())  # fmt: skip
    if len(gets) > 1:
        for rows, counts in gets:
            rows[...] = out[np.repeat(counts > 0, got)]


def _rows(x: npt.ArrayLike, count: int, what: str, dtypes: tuple[str, ...] | None) -> Rows:
    rows = np.asarray(x)
    if rows.ndim != 2 or len(rows) != count or not rows.shape[1]:
        raise RoundelayError(f"{what} has shape {rows.shape}; expected ({count}, columns)")
    if dtypes and rows.dtype.name not in dtypes:
        raise RoundelayError(f"{what} is of {rows.dtype}; expected {' or '.join(dtypes)}, which "
                             "can be added up")  # fmt: skip
    return rows


def _add(out: Rows, rows: Ints, parts: Rows) -> None:
    """``out[rows] += parts``; rows rise, and repeat where a token has gone choice by choice."""
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    again = np.arange(len(rows)) - np.repeat(first, np.diff(first, append=len(rows)))
    for k in range(again.max(initial=-1) + 1):
        some = again == k if len(first) < len(rows) else slice(None)
        out[rows[some]] += parts[some]
