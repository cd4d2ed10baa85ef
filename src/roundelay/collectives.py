"""What a collective is: who contributes to a piece before, and who must hold its total after.

Seven of the collectives are one row-and-column of this table, and no algorithm is needed to
say so:

=================  ==================  ===========  ===================
from, to           everyone            root         owner of the piece
=================  ==================  ===========  ===================
everyone           all_reduce          reduce       reduce_scatter
root               broadcast           ..           scatter
owner of the piece all_gather          gather       ..
=================  ==================  ===========  ===================

The wanted value of a piece is the sum of its contributions; where only one rank contributes,
that is a copy.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .errors import RoundelayError
from .routing import Routing

Ints = npt.NDArray[np.integer[Any]]
Bools = npt.NDArray[np.bool_]


SHOWN: Final = 80
"""Characters of a name that a message repeats."""


class UnknownName(RoundelayError):
    """A name that nothing here answers to; the message offers the nearest ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        known = list(known)
        near = difflib.get_close_matches(name[:SHOWN], known, n=3, cutoff=0.55)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
        super().__init__(f"unknown {kind} {name!r:.{SHOWN}}; {hint if known else 'it has none'}")


class Setting(NamedTuple):
    """What a predicate may look at: the ranks, the root, and the rank that owns each piece.

    Of a dispatch to experts, also who wants which piece.
    """

    ranks: int
    root: int
    owner: Ints
    routing: Routing | None = None


Where = Callable[[Setting, Ints, Ints], Bools]
"""(setting, ranks, pieces) -> bool, elementwise on arrays of one shape or broadcastable."""


def everyone(at: Setting, rank: Ints, piece: Ints) -> Bools:
    """Every rank, but no helper: a switch neither gives nor wants anything."""
    return np.broadcast_to(rank < at.ranks, np.broadcast_shapes(rank.shape, piece.shape))


def root(at: Setting, rank: Ints, piece: Ints) -> Bools:
    """The root, of every piece."""
    return np.broadcast_to(rank == at.root, np.broadcast_shapes(rank.shape, piece.shape))


def owner(at: Setting, rank: Ints, piece: Ints) -> Bools:
    """The rank the piece belongs to."""
    return np.equal(rank, at.owner[piece])


def sender(at: Setting, rank: Ints, piece: Ints) -> Bools:
    """The rank that piece ``i * n + j`` comes from: owner i."""
    return np.equal(rank, at.owner[piece // at.ranks])


def receiver(at: Setting, rank: Ints, piece: Ints) -> Bools:
    """The rank that piece ``i * n + j`` is for: owner j."""
    return np.equal(rank, at.owner[piece % at.ranks])


def neighbour(at: Setting, rank: Ints, piece: Ints) -> Bools:
    """The owner of the next piece."""
    return np.equal(rank, at.owner[(piece + 1) % at.ranks])


def home(at: Setting, rank: Ints, piece: Ints) -> Bools:
    """The rank that a piece of a dispatch comes from."""
    assert at.routing is not None
    found: Bools = np.equal(rank, at.routing.home[piece])
    return found


def asker(at: Setting, rank: Ints, piece: Ints) -> Bools:
    """The home of a piece, if any rank has an expert for it."""
    assert at.routing is not None
    some: Bools = np.any(at.routing.wanted, axis=0)
    return home(at, rank, piece) & some[piece]


def expert(at: Setting, rank: Ints, piece: Ints) -> Bools:
    """The ranks that have an expert for the piece."""
    assert at.routing is not None
    found: Bools = at.routing.wanted[rank, piece]
    return found


class Collective(NamedTuple):
    """A collective: two predicates, and how its data is cut into pieces.

    Attributes:
        name: as in MPI, NCCL and torch, with underscores.
        before: who contributes to a piece.
        after: who must hold the piece's total.
        pieces: number of pieces as a power of n: 0 (one), 1 (one a rank), 2 (one a pair).
        volume: bytes of all pieces together, as a multiple of the size S that nccl-tests
            prints for this collective: 1 (S), "n" (n * S) or 0 (nothing but the signal).
        even: of an uneven collective, its even form; of others, empty.
    """

    name: str
    before: Where
    after: Where
    pieces: int
    volume: int | str = 1
    even: str = ""

    def piece_count(self, n: int) -> int:
        """Number of pieces over n ranks."""
        return int(n**self.pieces)

    def total_bytes(self, size: int, n: int) -> int:
        """Bytes of all pieces together for a size of `size` bytes in nccl-tests' sense."""
        return size * (n if self.volume == "n" else int(self.volume))

    def bus_factor(self, n: int) -> Fraction:
        """Bus over algorithm bandwidth over n ranks, by nccl-tests (doc/PERFORMANCE.md).

        It is 2 (n - 1) / n of an all-reduce, (n - 1) / n of those in which every rank has a piece,
        and 1 of the others.
        """
        if self.name == "all_reduce":
            return Fraction(2 * (n - 1), n)
        whole = self.pieces == 0 or self.volume == 0 or self.name == "send_recv"
        return Fraction(1) if whole else Fraction(n - 1, n)

    @property
    def opens(self) -> bool:
        """Whether it leaves every rank with a piece of its own (reduce_scatter, scatter)."""
        return self.after is owner and self.before is not owner

    @property
    def closes(self) -> bool:
        """Whether it starts from a piece on every rank (all_gather, gather)."""
        return self.before is owner and self.after in (everyone, root)

    @property
    def rooted(self) -> bool:
        """Whether one rank, the root, is special."""
        return root in (self.before, self.after)

    @property
    def sums(self) -> bool:
        """Whether contributions of all ranks are added up, rather than carried."""
        return self.before is everyone

    @property
    def routed(self) -> bool:
        """Whether a `Routing` says which pieces there are and who wants them."""
        return expert in (self.before, self.after)


COLLECTIVES: Final = MappingProxyType(
    {
        c.name: c
        for c in (
            Collective("all_reduce", everyone, everyone, 0),
            Collective("reduce", everyone, root, 0),
            Collective("broadcast", root, everyone, 0),
            Collective("all_gather", owner, everyone, 1),
            Collective("reduce_scatter", everyone, owner, 1),
            Collective("gather", owner, root, 1),
            Collective("scatter", root, owner, 1),
            Collective("all_to_all", sender, receiver, 2, "n"),
            Collective("send_recv", owner, neighbour, 1, "n"),
            Collective("barrier", owner, everyone, 1, 0),
            Collective("all_gather_v", owner, everyone, 1, even="all_gather"),
            Collective("reduce_scatter_v", everyone, owner, 1, even="reduce_scatter"),
            Collective("all_to_all_v", sender, receiver, 2, "n", even="all_to_all"),
        )
    }
)
"""Every collective by name. The uneven forms (`_v`) differ only in the weights that pieces get
at run time: their ids, and so their schedules and proofs, are those of the even form."""

ROUTED: Final = MappingProxyType(
    {
        c.name: c
        for c in (
            Collective("moe_dispatch", home, expert, 1),
            Collective("moe_combine", expert, asker, 1),
        )
    }
)
"""Collectives whose schedules depend on a `Routing`. They have no algorithms by name and n alone;
`roundelay.moe` makes their schedules."""


def collective(name: str) -> Collective:
    """The collective called `name`, such as ``"all_reduce"``.

    Raises:
        UnknownName: with the nearest known names.
    """
    if name in ROUTED:
        return ROUTED[name]
    if name not in COLLECTIVES:
        raise UnknownName("collective", name, COLLECTIVES)
    return COLLECTIVES[name]


def matching(before: Where, after: Where) -> Collective | None:
    """The collective with these two ends, if the table has one (the even form, not barrier)."""
    ends = (before, after)
    return next((c for c in COLLECTIVES.values() if (c.before, c.after) == ends), None)
