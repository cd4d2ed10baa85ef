"""Even parts of something that may not divide."""

from __future__ import annotations

from itertools import pairwise


def shares(count: int, ranks: int) -> list[slice]:
    """[rank] which of so many things each has; they differ by one at most."""
    ends = [count * r // ranks for r in range(ranks + 1)]
    return [slice(a, b) for a, b in pairwise(ends)]
