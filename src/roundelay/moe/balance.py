"""How even the work of cards is, and what redundant experts make of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from .bench import Figure, Load


@dataclass(frozen=True)
class Balance:
    """A placement of the experts, and what comes of it.

    Attributes:
        load: with its redundant experts.
        slots: experts of a card.
        mean: rows that the experts of a card compute, a token once for each; of all cards.
        most: those of the busiest card.
        figures: of each scheme; their times are those of the slowest card.
    """

    load: Load
    slots: int
    mean: float
    most: float
    figures: list[Figure]


def balances(
    load: Load, figures: Callable[[Load], Iterable[Figure]], sample: int | None = None
) -> list[Balance]:
    """Every expert once; and after it what is asked for, if that has redundant experts.

    Args:
        load: what is asked for.
        figures: measures one.
        sample: tokens that stand for all.
    """
    loads = [load] if load.redundant is None else [replace(load, redundant=None), load]
    return [_balance(each, list(figures(each)), sample) for each in loads]


def _balance(load: Load, figures: list[Figure], sample: int | None) -> Balance:
    layout = load.layout(sample)
    work = layout.work()
    mean = float(load.tokens * load.top_k)
    return Balance(load, layout.slots, mean, mean * work.max() / work.mean(), figures)
