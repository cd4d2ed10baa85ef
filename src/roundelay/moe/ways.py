"""Who gets what: every rank tells the others, hop by hop, before tokens go."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from ..communicator import Communicator
from ..errors import RoundelayError
from .hops import Handle, Hop, Ints, move
from .layout import marked, nodes
from .schemes import SCHEMES, limited

PARTS: Final = 4
"""Parts of the tokens that follow one another through two hops."""
LEAST: Final = 64
"""Tokens of a part: fewer are not worth a step."""


def exchange(
    comm: Communicator,
    targets: npt.ArrayLike,
    slots: int,
    scheme: str = "two_hop",
    *,
    group: int | None = None,
    max_nodes: int | None = None,
    parts: int | None = None,
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
        parts: of the tokens; the second hop of each goes together with the first of the next.
            Without it, by the number of tokens.

    Raises:
        RoundelayError: a target that there is not, or what does not go together; nothing has been
            exchanged.
        ExchangeError: the exchange failed.
    """
    if scheme not in SCHEMES:
        raise RoundelayError(f"no scheme {scheme!r}; expected one of {', '.join(SCHEMES)}")
    if parts is not None and (not isinstance(parts, int | np.integer) or parts < 1):
        raise RoundelayError(f"parts = {parts!r}; expected a whole number from 1 up")
    chosen = _targets(targets, comm.ranks * slots)
    cards = np.where(chosen < 0, -1, chosen // slots)
    in_rank = marked(cards, comm.ranks)
    if scheme == "two_hop" or max_nodes is not None:
        group = _group(comm, group)
        shape = len(chosen), comm.ranks // group, group
        in_node = limited(np.asarray(in_rank.reshape(shape).any(axis=2)), max_nodes)
    two = scheme == "two_hop" and 1 < (group or 1) < comm.ranks
    way = _Way(comm, len(chosen), parts if two else 1)
    if scheme == "flat_expert":
        arrived = _by_choice(way, chosen, cards)
    elif scheme == "flat_card":
        arrived = way.masked(in_rank, chosen)
    else:
        assert group is not None
        arrived = _two_hops(way, slots, chosen, in_node, group)
    here = np.where(arrived // slots == comm.rank, arrived % slots, -1)
    return Handle(comm, tuple(way.hops), tuple(way.held), here)


def _two_hops(
    way: _Way, slots: int, chosen: Ints, in_node: npt.NDArray[np.bool_], group: int
) -> Ints:
    """To the card with this one's index in every node, then to the others of its node."""
    ranks = way.comm.ranks
    node, index = divmod(way.comm.rank, group)
    there = np.zeros((len(chosen), ranks), np.bool_)
    there[:, index::group] = in_node
    arrived = way.masked(there, chosen)
    inside = marked(np.where(arrived < 0, -1, arrived // slots), ranks)
    inside[:, : node * group] = inside[:, (node + 1) * group :] = False
    return way.masked(inside, arrived)


def _by_choice(way: _Way, chosen: Ints, cards: Ints) -> Ints:
    """A row for each choice, which is the only target it brings."""
    token, choice = np.nonzero(cards >= 0)
    alone = np.full((len(token), chosen.shape[1]), -1)
    alone[np.arange(len(token)), choice] = chosen[token, choice]
    return way.hop(token, cards[token, choice], alone)


class _Way:
    """The hops of a way, as they are found one after another.

    Attributes:
        comm: the ranks.
        hops, held: as in `Handle`.
    """

    def __init__(self, comm: Communicator, tokens: int, parts: int | None) -> None:
        """For so many tokens of this rank in so many parts; None is for by their number."""
        self.comm, self.hops, self.held = comm, list[tuple[Hop, ...]](), [tokens]
        self._parts, self._part = parts, np.zeros(tokens, np.int64)
        if parts:
            self._cut(parts)

    def _cut(self, parts: int) -> None:
        """Tokens in so many equal runs."""
        self._parts, tokens = parts, self.held[0]
        self._part = np.arange(tokens) * parts // max(1, tokens)

    def masked(self, goes: npt.NDArray[np.bool_], targets: Ints) -> Ints:
        """The hop of rows that go to ranks by a mask, [row, rank]; see `hop`."""
        to, rows = np.nonzero(goes.T)
        return self.hop(rows, to, targets[rows])

    def hop(self, rows: Ints, to: Ints, targets: Ints) -> Ints:
        """One more hop.

        Args:
            rows: [row sent], which it is of those before the hop; rising for each rank.
            to: [row sent], the rank it goes to.
            targets: [row sent, k], those that it brings along.

        Returns:
            [row, k], the targets of what this rank has after the hop, part by part.
        """
        comm, me, everyone = self.comm, self.comm.rank, np.arange(self.comm.ranks)
        order = np.argsort(np.where(to == me, -1, to), kind="stable")  # this rank's own first
        rows, to, targets = rows[order], to[order], targets[order]
        got = self._counts(np.bincount(to, minlength=comm.ranks), targets.shape[1])
        ranks = np.argsort(everyone != me, kind="stable")
        source = np.repeat(ranks, got[ranks])
        told = np.column_stack([targets, self._part[rows]])
        after = np.empty((len(source), told.shape[1]), np.int64)
        ahead = self._hop(np.arange(len(rows)), to, source, 0)
        move(comm, [(ahead.packed(told, after), ahead.sent)], [(ahead.arrived(after), ahead.got)])
        came, part = after[:, -1], told[:, -1]
        turn = np.argsort(came, kind="stable")
        assert self._parts is not None
        self.hops.append(tuple(
            self._hop(rows[part == p], to[part == p], source[came == p], int((came < p).sum()))
            for p in range(self._parts)
        ))  # fmt: skip
        self.held.append(len(after))
        self._part = came[turn]
        return after[turn, :-1]

    def _hop(self, rows: Ints, to: Ints, source: Ints, at: int) -> Hop:
        me, ranks = self.comm.rank, self.comm.ranks
        sent, got = (np.bincount(each, minlength=ranks) for each in (to, source))
        own = int(sent[me])
        sent[me] = got[me] = 0
        return Hop(rows, own, sent, got, at)

    def _counts(self, sent: Ints, width: int) -> Ints:
        """[rank], rows that come from there; the number of parts is settled by the way."""
        mine = np.array([0, width, self.held[0]]) + np.outer(sent, [1, 0, 0])
        got, widths, tokens = self.comm.all_to_all(mine).reshape(-1, 3).T
        if (widths != width).any():
            other = int(np.argmax(widths != width))
            raise RoundelayError(f"{width} targets a token here and {widths[other]} on rank "
                                 f"{other}; expected as many on all ranks")  # fmt: skip
        if self._parts is None:
            self._cut(int(np.clip(tokens.max() // LEAST, 1, PARTS)))
        return np.ascontiguousarray(got)


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
