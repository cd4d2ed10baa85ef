"""Which expert is on which card, some of them on several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import RoundelayError

Ints = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Placement:
    """The experts of every card.

    Attributes:
        slots: [rank, slot], the expert there. Every expert is somewhere.
    """

    slots: Ints

    def __post_init__(self) -> None:
        slots = np.asarray(self.slots)
        if slots.ndim != 2 or slots.dtype.kind not in "iu" or not slots.size:
            raise RoundelayError(f"slots is {slots.dtype} of shape {slots.shape}; expected the "
                                 "expert of each (rank, slot)")  # fmt: skip
        found = np.unique(slots)
        if found[0] or found[-1] != len(found) - 1:
            raise RoundelayError("slots lack an expert; expected each, 0 up, at least once")
        object.__setattr__(self, "slots", slots)

    @classmethod
    def even(cls, experts: int, ranks: int) -> Placement:
        """Every expert once, in order, the same number on every card."""
        if ranks < 1 or experts < 1 or experts % ranks:
            raise RoundelayError(f"{experts} experts on {ranks} ranks; expected a multiple of the "
                                 "ranks")  # fmt: skip
        return cls(np.arange(experts).reshape(ranks, -1))

    @classmethod
    def balanced(cls, load: npt.ArrayLike, ranks: int, slots: int, nodes: int = 1) -> Placement:
        """Balance a measured load: the busiest experts get several slots.

        Each slot beyond one an expert goes to the expert whose copies carry most, as long as some
        card has none. Then copies are put on cards, those that carry most first, each on the card
        that carries least and has room, if it can be on one that has no copy of the same expert
        (as EPLB does, github.com/deepseek-ai/EPLB).

        Args:
            load: [expert], tokens that went there, or another measure.
            ranks: cards.
            slots: experts on each card.
            nodes: equal runs of cards; each keeps its run of experts to itself, so that a gate
                which limits the nodes of a token limits them still.

        Raises:
            RoundelayError: fewer slots than experts, or a load that is none.
        """
        each = np.asarray(load, np.float64)
        if each.ndim != 1 or not np.isfinite(each).all() or (each < 0).any():
            raise RoundelayError("load must be a number from 0 up for each expert")
        if nodes > 1:
            if ranks % nodes or len(each) % nodes:
                raise RoundelayError(f"{ranks} ranks and {len(each)} experts in {nodes} nodes; "
                                     "expected multiples of the nodes")  # fmt: skip
            parts = [cls.balanced(part, ranks // nodes, slots) for part in np.split(each, nodes)]
            first = len(each) // nodes
            return cls(np.concatenate([p.slots + i * first for i, p in enumerate(parts)]))
        if ranks < 1 or slots < 1 or ranks * slots < len(each) or not len(each):
            raise RoundelayError(f"{ranks} ranks of {slots} slots for {len(each)} experts; "
                                 "expected at least a slot an expert")  # fmt: skip
        copies = np.ones(len(each), np.int64)
        for _ in range(ranks * slots - len(each)):
            copies[np.argmax(np.where(copies < ranks, each / copies, -1))] += 1
        return cls(_packed(np.repeat(np.arange(len(each)), copies), each / copies, ranks, slots))

    @property
    def ranks(self) -> int:
        """How many cards there are."""
        return len(self.slots)

    @property
    def experts(self) -> int:
        """How many experts there are."""
        return int(self.slots.max()) + 1

    def targets(self, experts: Ints, home: Ints) -> Ints:
        """[token, k], the slot each choice goes to, numbered rank by rank; -1 for none.

        Where an expert has several slots, as many runs of ranks take one each, so that tokens
        rather stay near.

        Args:
            experts: [token, k], -1 where a token has fewer.
            home: [token], the rank it comes from.

        Raises:
            RoundelayError: an expert that there is not, or shapes that do not go together.
        """
        chosen, home = np.asarray(experts), np.asarray(home)
        if chosen.ndim != 2 or chosen.dtype.kind not in "iu" or home.shape != chosen.shape[:1]:
            raise RoundelayError(
                f"experts is {chosen.dtype} of shape {chosen.shape}; expected whole numbers of "
                f"shape ({len(home) if home.ndim else 'tokens'}, k)"
            )
        low, high = chosen.min(initial=0), chosen.max(initial=-1)
        if low < -1 or high >= self.experts:
            raise RoundelayError(f"expert {low if low < -1 else high}; expected 0 to "
                                 f"{self.experts - 1}, or -1 for none")  # fmt: skip
        order = np.argsort(self.slots, axis=None, kind="stable")
        copies = np.bincount(self.slots.ravel(), minlength=self.experts)
        first = np.cumsum(copies) - copies
        known = np.maximum(chosen, 0)
        which = home[:, None] * copies[known] // self.ranks
        return np.where(chosen < 0, -1, order[first[known] + which])


def _packed(copies: Ints, carried: Floats, ranks: int, slots: int) -> Ints:
    """[rank, slot] from the experts' copies; `carried` is what one copy of each carries."""
    placed: list[list[int]] = [[] for _ in range(ranks)]
    burden = np.zeros(ranks)
    for expert in copies[np.argsort(-carried[copies], kind="stable")].tolist():
        there = [(len(on) == slots, expert in on) for on in placed]
        card = min(range(ranks), key=lambda r: (*there[r], burden[r], r))
        placed[card].append(expert)
        burden[card] += carried[expert]
    return np.array([sorted(on) for on in placed])
