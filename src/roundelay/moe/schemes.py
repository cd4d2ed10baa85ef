"""The ways to the experts, as schedules of tokens.

- `flat_expert`: a copy for each expert, straight to its card.
- `flat_card`: a copy for each card, straight there.
- `two_hop`: a copy for each node, to the card with the sender's index, which forwards it inside the
  node. What comes back is added up at that card, so it goes over the network once a node, too.

A piece is a token, or for `flat_expert` a token for one of its experts. The transpose of a
dispatch, `combine`, adds up each card's part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from ..collectives import Bools, Ints
from ..errors import RoundelayError
from ..rounds import COPY, REDUCE, Round
from ..routing import Routing
from ..schedule import Schedule
from .layout import Layout, nodes


class Copies(NamedTuple):
    """Copies of a token that a scheme makes, in the mean.

    Attributes:
        between: over the network.
        inside: within nodes.
    """

    between: float
    inside: float


def flat_expert(layout: Layout) -> Schedule:
    """A copy of a token for each of its experts.

    Raises:
        RoundelayError: there is no token.
    """
    cards = layout.cards.ravel()
    home = np.repeat(layout.home, layout.targets.shape[1])
    wanted = np.arange(layout.ranks)[:, None] == cards
    return _schedule("flat_expert", Routing(home, wanted), [_away(home, wanted)])


def flat_card(layout: Layout) -> Schedule:
    """A copy of a token for each card that has experts for it.

    Raises:
        RoundelayError: there is no token.
    """
    wanted = layout.in_rank.T
    return _schedule("flat_card", Routing(layout.home, wanted), [_away(layout.home, wanted)])


def two_hop(layout: Layout, group: int, max_nodes: int | None = None) -> Schedule:
    """A copy for each node, to the card with the sender's index, and from there to the others.

    Args:
        layout: who gets what.
        group: cards of a node.
        max_nodes: nodes that a token goes to at most.

    Raises:
        RoundelayError: the group does not divide the ranks, or a token goes to more nodes.
    """
    count = nodes(layout.ranks, group)
    in_node = limited(layout.in_node(group), max_nodes)
    home, index = layout.home, layout.home % group
    node, token = np.nonzero(in_node.T)
    first = Round(home[token], node * group + index[token], token)
    first = _moving(first)
    rank, piece = np.nonzero(layout.in_rank.T)
    second = _moving(Round(rank // group * group + index[piece], rank, piece))
    params = {"group": int(group), "max_nodes": count if max_nodes is None else int(max_nodes)}
    return _schedule("two_hop", Routing(home, layout.in_rank.T), [first, second], **params)


def combine(dispatch: Schedule) -> Schedule:
    """The way back: every card's part of a token is added up on the way to the token's home.

    What comes first to a card that has no part of its own is copied, what follows is added.

    Args:
        dispatch: one of the schedules above.

    Raises:
        RoundelayError: it is the schedule of something else.
    """
    if dispatch.collective != "moe_dispatch" or dispatch.routing is None:
        raise RoundelayError(f"a combine of {dispatch!r}; expected the schedule of a dispatch")
    held = dispatch.routing.wanted.copy()
    rounds = [_arriving(Round(r.dst, r.src, r.chunk), held) for r in reversed(list(dispatch))]
    return replace(dispatch, collective="moe_combine", rounds=rounds)


SCHEMES: Final = MappingProxyType(
    {"flat_expert": flat_expert, "flat_card": flat_card, "two_hop": two_hop}
)
"""Every scheme by name; two_hop takes the cards of a node as well."""


def build(name: str, layout: Layout, group: int = 1, max_nodes: int | None = None) -> Schedule:
    """The dispatch by a scheme's name; `group` and `max_nodes` as in `two_hop`.

    Raises:
        RoundelayError: no such scheme, or a token that goes to more nodes.
    """
    if name not in SCHEMES:
        raise RoundelayError(f"no scheme {name!r}; expected one of {', '.join(SCHEMES)}")
    if name == "two_hop":
        return two_hop(layout, group, max_nodes)
    limited(layout.in_node(group), max_nodes)
    flat: Callable[[Layout], Schedule] = flat_expert if name == "flat_expert" else flat_card
    return flat(layout)


def copies(schedule: Schedule, tokens: int, group: int) -> Copies:
    """How many copies of a token go between nodes of `group` ranks and inside them, in the mean."""
    between = moves = 0
    for r in schedule:
        between += int((r.src // group != r.dst // group).sum())
        moves += len(r.src)
    return Copies(between / tokens, (moves - between) / tokens)


def limited(in_node: Bools, max_nodes: int | None) -> Bools:
    """The mask itself, [token, node], if no token goes to more nodes than it may.

    Raises:
        RoundelayError: one does, or the limit is below 1.
    """
    if max_nodes is None:
        return in_node
    if not isinstance(max_nodes, int | np.integer) or max_nodes < 1:
        raise RoundelayError(f"max_nodes = {max_nodes!r}; expected a whole number from 1 up")
    many = in_node.sum(axis=1)
    if (many > max_nodes).any():
        token = int(np.argmax(many > max_nodes))
        raise RoundelayError(
            f"token {token} goes to {many[token]} nodes; expected {max_nodes} at most. Let the "
            f"gate keep to it: choose(scores, top_k, groups=NODES, max_groups={max_nodes})"
        )
    return in_node


def _away(home: Ints, wanted: Bools) -> Round:
    rank, piece = np.nonzero(wanted)
    return _moving(Round(home[piece], rank, piece))


def _moving(r: Round) -> Round:
    """Without what is there already."""
    some = r.src != r.dst
    return Round(r.src[some], r.dst[some], r.chunk[some])


def _arriving(r: Round, held: Bools) -> Round:
    """COPY for the first arrival at a place that holds nothing, REDUCE for all others.

    `held`, [rank, piece], is brought up to date.
    """
    place = r.dst.astype(np.int64) * held.shape[1] + r.chunk
    first = np.zeros(len(place), np.bool_)
    first[np.unique(place, return_index=True)[1]] = True
    op = np.where(first & ~held[r.dst, r.chunk], COPY, REDUCE)
    held[r.dst, r.chunk] = True
    return replace(r, op=op)


def _schedule(name: str, routing: Routing, rounds: list[Round], **params: int) -> Schedule:
    if not routing.pieces:
        raise RoundelayError("no token to dispatch; expected at least one on some rank")
    return Schedule(
        "moe_dispatch", routing.ranks, routing.pieces, rounds, name=name, params=params,
        routing=routing,
    )  # fmt: skip
