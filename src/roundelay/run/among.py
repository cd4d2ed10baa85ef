"""An exchange of some ranks, by one of all ranks that each makes equally often."""

from __future__ import annotations

from collections.abc import Sequence

from .group import Exchange, Group


class Among:
    """What a new group of some ranks tells one another, through a group of more."""

    def __init__(self, exchange: Exchange, members: Sequence[int]) -> None:
        """Among these ranks, by an exchange of all."""
        self._exchange, self._members, self._left = exchange, members, Group.EXCHANGES

    def __call__(self, data: bytes) -> list[bytes]:
        """What each of the ranks brings."""
        self._left -= 1
        every = self._exchange(data)
        return [every[r] for r in self._members]

    def finish(self) -> None:
        """Make the rest, where this rank belongs to no new group."""
        while self._left > 0:
            self(b"")
