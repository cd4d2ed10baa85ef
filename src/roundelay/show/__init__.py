"""Watch a schedule: as text for a terminal, as a picture, or as data for other programs.

>>> from roundelay.algorithms import build
>>> print(show(build("all_reduce/star", 2)).splitlines()[0])
all_reduce/star: 2 ranks, 1 piece, 2 steps
"""

from __future__ import annotations

from html import escape
from typing import Any, Final

from ..errors import RoundelayError
from ..i18n import message, translator
from ..schedule import Schedule
from .frames import Frame, Move, frames, walk
from .panels import Panels
from .spacetime import Spacetime
from .text import show
from .words import name

__all__ = ["Frame", "Move", "frames", "html", "show", "steps", "svg", "walk"]

MOST_RANKS: Final = 64
"""Ranks up to which a schedule is drawn."""
IN_FULL: Final = 16
"""Ranks, pieces and steps up to which every place is drawn; above, who sends to whom."""

SMALL: Final = (("ranks", 16), ("chunks", 256), ("helpers", 16))
"""What a schedule has at most to be drawn unasked, in a notebook."""
SMALL_ROUNDS: Final = 1000
SMALL_MOVES: Final = 4000


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
        return Panels(schedule, seen, tell).svg()
    return Spacetime(schedule, seen, tell).svg()


def steps(schedule: Schedule, lang: str = "en") -> list[dict[str, Any]]:
    """What `show` says, as plain values that can be written as JSON; the first is the start.

    Each has `step`, `sentence`, `moves` (source, destination, chunks, and whether they are added;
    switches count on from the last rank) and `contributions`, how many ranks' numbers are in
    what every rank and switch holds of every chunk.

    Raises:
        RoundelayError: as `show`.
        ScheduleError: as `show`.
    """
    tell = translator(lang)
    return [
        {
            "step": frame.step,
            "sentence": frame.sentence.tell(tell),
            "moves": [move._asdict() for move in frame.moves],
            "contributions": frame.holds.sum(axis=-1).tolist(),
        }
        for frame in frames(schedule)
    ]


def html(schedule: Schedule, lang: str = "en") -> str:
    """What a notebook displays: the picture of a small schedule, a line about any other.

    Quick for every schedule that is large, and no error where it cannot be drawn.
    """
    if _is_small(schedule):
        try:
            return f'<div style="overflow-x:auto">{svg(schedule, lang)}</div>'
        except RoundelayError as error:
            return f"<pre>{escape(name(schedule))}: {escape(str(error))}</pre>"
    said = message(
        "{name}: {n} ranks, {m} pieces; too large to be drawn here. Try fewer ranks.",
        name=name(schedule), n=f"{schedule.ranks:,}", m=f"{schedule.chunks:,}",
    )  # fmt: skip
    return f"<pre>{escape(said.tell(translator(lang)))}</pre>"


def _is_small(schedule: Schedule) -> bool:
    if any(getattr(schedule, what) > most for what, most in SMALL):
        return False
    if callable(schedule.rounds):  # no telling how many without making them all
        return True
    listed = tuple(schedule.rounds)
    return len(listed) <= SMALL_ROUNDS and schedule.expanded() <= SMALL_MOVES
