"""How quick an instance is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import RoundelayError


@dataclass(frozen=True)
class Speed:
    """What an instance takes, in seconds.

    Attributes:
        prefill: for a token of a prompt.
        steps: [requests - 1] for a step in which each of the requests that run makes a token.
        start: until a new instance is ready.
    """

    prefill: float
    steps: Sequence[float]
    start: float

    def __post_init__(self) -> None:
        wrong = min((self.prefill, self.start, *self.steps), default=0) < 0
        if wrong or not self.steps or min(self.steps) <= 0:
            raise RoundelayError("times of an instance that are not above 0; expected a prefill "
                                 "and a start of 0 s or more, and longer steps")  # fmt: skip

    @property
    def places(self) -> int:
        """Requests that run at once."""
        return len(self.steps)

    @property
    def share(self) -> float:
        """Seconds of a full instance that a token of one request takes."""
        return self.steps[-1] / self.places

    @classmethod
    def between(cls, prefill: float, one: float, full: float, places: int, start: float) -> Speed:
        """By two measured steps: with one request, and with all places taken; a line between.

        Args:
            prefill: see the class.
            one: seconds of a step with one request.
            full: seconds of a step with all places taken.
            places: requests that run at once.
            start: see the class.

        Raises:
            RoundelayError: times that are not above 0, or no places.
        """
        slope = (full - one) / max(1, places - 1)
        return cls(prefill, tuple(one + slope * n for n in range(places)), start)
