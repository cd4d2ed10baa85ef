"""Dispatch and combine between processes.

    handle = moe.exchange(comm, targets, slots)      # who gets what: counts and targets only
    rows = handle.dispatch(x)                        # tokens of all ranks, for the experts here
    y = handle.combine(expert_outputs)               # added up where the tokens came from

A hop is an all-to-all with counts. The two directions are transposes of one another: the gradient
of a dispatch is a combine of gradients, by the same handle, and the other way round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..communicator import Communicator
from ..errors import RoundelayError
from .fp8 import BLOCK, from_fp8, to_fp8
from .layout import marked, nodes
from .schemes import SCHEMES, limited

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[Any]

SUMMED: Final = ("float32", "float64")
"""Types that a combine adds up in."""


class Hop(NamedTuple):
    """One hop of the way, as one rank sees it.

    Attributes:
        rows: [row sent], which of the rows here it is, in the order of the ranks it goes to.
        sent, got: [rank], how many rows go there and come from there.
        had: how many rows are here before.
    """

    rows: Ints
    sent: Ints
    got: Ints
    had: int

    def forward(self, comm: Communicator, x: Rows) -> Rows:
        """[row got, ...] from [row here, ...]."""
        width = x.shape[1]
        out = np.empty((int(self.got.sum()), width), x.dtype)
        comm.all_to_all(x[self.rows], out, send_counts=(self.sent * width).tolist(),
                        receive_counts=(self.got * width).tolist())  # fmt: skip
        return out

    def backward(self, comm: Communicator, y: Rows) -> Rows:
        """[row here, ...]: the sum of what comes back for each, in the order of ranks."""
        width = y.shape[1]
        parts = np.empty((len(self.rows), width), y.dtype)
        comm.all_to_all(np.ascontiguousarray(y), parts,
                        send_counts=(self.got * width).tolist(),
                        receive_counts=(self.sent * width).tolist())  # fmt: skip
        out = np.zeros((self.had, width), y.dtype)
        ends = np.cumsum(self.sent)
        for first, last in zip(ends - self.sent, ends, strict=True):
            _add(out, self.rows[first:last], parts[first:last])
        return out


@dataclass(frozen=True, eq=False)
class Handle:
    """A dispatch whose ways are known.

    Every rank makes the same calls, in the same order.

    Attributes:
        comm: the ranks.
        hops: of the way there.
        slots: [row, k], the experts here, as slots of this rank, that want each row which comes
            with a dispatch; -1 for none.
            A column is one of the token's choices, as in the targets given.
    """

    comm: Communicator
    hops: tuple[Hop, ...]
    slots: Ints

    @property
    def tokens(self) -> int:
        """Rows that this rank gives."""
        return self.hops[0].had

    @property
    def received(self) -> int:
        """Rows that this rank gets."""
        return len(self.slots)

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
        if fp8:
            return self._dispatch_fp8(rows)
        for hop in self.hops:
            rows = hop.forward(self.comm, rows)
        return rows

    def combine(self, y: npt.ArrayLike) -> Rows:
        """[token, column]: the sums of what experts have made of each token, 0 where none has.

        Where the way has two hops the cards of a node add up first.

        Args:
            y: [received, column], float32 or float64, of equal type and columns on all ranks.

        Raises:
            RoundelayError: another shape or type; nothing has been exchanged.
            ExchangeError: the exchange failed.
        """
        rows = _rows(y, self.received, "y", SUMMED)
        for hop in reversed(self.hops):
            rows = hop.backward(self.comm, rows)
        return rows

    def _dispatch_fp8(self, x: Rows) -> Rows:
        codes, scales = to_fp8(x)
        rows: Rows = np.concatenate([codes, scales.view(np.uint8)], axis=1)
        for hop in self.hops:
            rows = hop.forward(self.comm, rows)
        columns = x.shape[1]
        scales = np.ascontiguousarray(rows[:, columns:]).view(np.float32)
        return from_fp8(rows[:, :columns], scales.reshape(len(rows), -(-columns // BLOCK)))


def exchange(
    comm: Communicator,
    targets: npt.ArrayLike,
    slots: int,
    scheme: str = "two_hop",
    *,
    group: int | None = None,
    max_nodes: int | None = None,
) -> Handle:
    """Tell every card what it will get; every rank calls it with tokens of its own, or none.

    Args:
        comm: the ranks.
        targets: [token, k], slots of experts, numbered rank by rank; -1 for none. See
            `Placement.targets`. k is the same on all ranks.
        slots: experts of each rank.
        scheme: flat_expert, flat_card or two_hop.
        group: ranks that are a node, one after another; without it, as the communicator's nodes
            are. For two_hop nodes must be of one size.
        max_nodes: nodes that a token may go to at most.

    Raises:
        RoundelayError: a target that there is not, or what does not go together; nothing has been
            exchanged.
        ExchangeError: the exchange failed.
    """
    if scheme not in SCHEMES:
        raise RoundelayError(f"no scheme {scheme!r}; expected one of {', '.join(SCHEMES)}")
    chosen = _targets(targets, comm.ranks * slots)
    cards = np.where(chosen < 0, -1, chosen // slots)
    in_rank = marked(cards, comm.ranks)
    if scheme == "two_hop" or max_nodes is not None:
        group = _group(comm, group)
        shape = len(chosen), comm.ranks // group, group
        in_node = limited(np.asarray(in_rank.reshape(shape).any(axis=2)), max_nodes)
    if scheme == "flat_expert":
        return _through(comm, slots, _by_choice(comm, chosen, cards))
    if scheme == "flat_card":
        return _through(comm, slots, _hop(comm, in_rank, chosen))
    assert group is not None
    return _two_hops(comm, slots, chosen, in_node, group)


def _two_hops(
    comm: Communicator, slots: int, chosen: Ints, in_node: npt.NDArray[np.bool_], group: int
) -> Handle:
    """To the card with this one's index in every node, then to the others of its node."""
    node, index = divmod(comm.rank, group)
    there = np.zeros((len(chosen), comm.ranks), np.bool_)
    there[:, index::group] = in_node
    first, arrived = _hop(comm, there, chosen)
    cards = np.where(arrived < 0, -1, arrived // slots)
    inside = marked(cards, comm.ranks)
    inside[:, : node * group] = inside[:, (node + 1) * group :] = False
    second, arrived = _hop(comm, inside, arrived)
    return Handle(comm, (first, second), _own(comm, slots, arrived))


def _through(comm: Communicator, slots: int, way: tuple[Hop, Ints]) -> Handle:
    hop, arrived = way
    return Handle(comm, (hop,), _own(comm, slots, arrived))


def _own(comm: Communicator, slots: int, arrived: Ints) -> Ints:
    """Targets that are here, as slots of this rank."""
    return np.where(arrived // slots == comm.rank, arrived % slots, -1)


def _hop(comm: Communicator, goes: npt.NDArray[np.bool_], targets: Ints) -> tuple[Hop, Ints]:
    """Rows that go to ranks by a mask [row, rank]; what comes brings its targets with it."""
    _, rows = np.nonzero(goes.T)
    return _sent(comm, rows, goes.sum(axis=0), targets[rows], len(goes))


def _by_choice(comm: Communicator, chosen: Ints, cards: Ints) -> tuple[Hop, Ints]:
    """A row for each choice, which is the only target it brings."""
    token, choice = np.nonzero(cards >= 0)
    order = np.argsort(cards[token, choice], kind="stable")
    token, choice = token[order], choice[order]
    alone = np.full((len(token), chosen.shape[1]), -1)
    alone[np.arange(len(token)), choice] = chosen[token, choice]
    counts = np.bincount(cards[token, choice], minlength=comm.ranks)
    return _sent(comm, token, counts, alone, len(chosen))


def _sent(
    comm: Communicator, rows: Ints, counts: Ints, targets: Ints, had: int
) -> tuple[Hop, Ints]:
    sent = np.asarray(counts, np.int64)
    width = targets.shape[1]
    told = comm.all_to_all(np.stack([sent, np.full_like(sent, width)], axis=1))
    got, widths = told.reshape(-1, 2).T
    if (widths != width).any():
        other = int(np.argmax(widths != width))
        raise RoundelayError(f"{width} targets a token here and {widths[other]} on rank {other}; "
                             "expected as many on all ranks")  # fmt: skip
    hop = Hop(rows, sent, np.ascontiguousarray(got), had)
    ahead = Hop(np.arange(len(rows)), hop.sent, hop.got, len(rows))
    return hop, ahead.forward(comm, targets)


def _targets(targets: npt.ArrayLike, count: int) -> Ints:
    chosen = np.asarray(targets)
    if chosen.ndim != 2 or chosen.dtype.kind not in "iu" or not chosen.shape[1]:
        raise RoundelayError(f"targets is {chosen.dtype} of shape {chosen.shape}; expected whole "
                             "numbers of shape (tokens, k)")  # fmt: skip
    low, high = chosen.min(initial=0), chosen.max(initial=-1)
    if low < -1 or high >= count:
        raise RoundelayError(f"target {low if low < -1 else high}; expected slots 0 to "
                             f"{count - 1}, or -1 for none")  # fmt: skip
    return np.asarray(chosen, np.int64)


def _group(comm: Communicator, group: int | None) -> int:
    """Ranks of a node."""
    if group is None:
        sizes = {len(ranks) for ranks in comm.nodes}
        rising = [r for ranks in comm.nodes for r in ranks] == list(range(comm.ranks))
        if len(sizes) > 1 or not rising:
            raise RoundelayError(
                f"nodes have ranks {', '.join(str(list(ranks)) for ranks in comm.nodes)}; expected "
                "nodes of one size, numbered one after another. Take flat_card, or say what group "
                "of ranks is a node"
            )
        group = sizes.pop()
    nodes(comm.ranks, group)
    return group


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
    if len(rows) and (rows[1:] == rows[:-1]).any():
        first = np.flatnonzero(np.diff(rows, prepend=-1))
        parts, rows = np.add.reduceat(parts, first, axis=0), rows[first]
    out[rows] += parts
