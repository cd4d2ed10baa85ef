"""A schedule as one SVG picture: time goes from left to right, then on in the next line."""

from __future__ import annotations

from typing import Final

from ..errors import RoundelayError
from ..i18n import translator
from ..schedule import Schedule
from .frames import frames
from .panels import Panels
from .spacetime import spacetime

MOST_RANKS: Final = 64
"""Ranks up to which a schedule is drawn."""
IN_FULL: Final = 16
"""Ranks, pieces and steps up to which every place is drawn; above, who sends to whom."""


def svg(schedule: Schedule, lang: str = "en") -> str:
    """The schedule as a self-contained SVG.

    Up to 16 ranks, pieces and steps, every step has a panel that shows what each rank holds of
    each piece, with arrows from panel to panel. Above, a diagram of ranks and steps.

    Raises:
        RoundelayError: the schedule is too large to draw, or there is no such language.
        ScheduleError: the schedule is illegal.
    """
    tell = translator(lang)
    if schedule.ranks > MOST_RANKS:
        raise RoundelayError(
            f"{schedule.ranks:,} ranks are too many for a picture; at most {MOST_RANKS} can be "
            "drawn: try a smaller n, such as -n 8, or show it as text"
        )
    seen = frames(schedule)
    if max(schedule.ranks, schedule.chunks, schedule.steps, schedule.helpers) <= IN_FULL:
        return Panels(schedule, seen, tell).picture()
    return spacetime(schedule, seen, tell)
