"""Roundelay: describe a collective once as a schedule; prove, count, run, time and watch it.

>>> import roundelay as rl
>>> ring = rl.build("all_reduce/ring", 4)
>>> rl.verify(ring).ok
True
"""

import importlib
from typing import TYPE_CHECKING, Any

from .algorithms import Algorithm, algorithm, algorithms, build, find
from .cost import bound, cost
from .errors import (
    Broken,
    BytesChanged,
    CallsDiffer,
    ExchangeError,
    Interrupted,
    PeerLost,
    RoundelayError,
    TooLate,
)
from .schedule import COPY, REDUCE, Round, Schedule
from .show import html, svg
from .show import show as _as_text
from .verbs import on, reverse, split, then
from .verify import Verdict, prove, verify

if TYPE_CHECKING:
    from .clusters import cluster
    from .communicator import Communicator, init
    from .simulate import Clock
    from .web.shown import Page

# Notebooks draw a schedule. The layer that draws stands above it, so they are joined here.
Schedule._repr_html_ = html  # type: ignore[attr-defined]


class _Show:
    """The schedule as text for a terminal: what every step does, and who holds what after it.

    Up to 16 pieces and 32 ranks and switches, every step has a table; above, a summary.

    `show.page("cluster", ...)` is a view of the page.

    Raises:
        RoundelayError: the schedule is too large to show, or there is no such language.
        ScheduleError: the schedule is illegal.
    """

    __call__ = staticmethod(_as_text)

    @staticmethod
    def page(view: str = "player", **state: object) -> "Page":
        """A view of the page, to save, to open in the browser, or for a notebook to show.

        Args:
            view: its name, such as "player", "cluster" or "curves".
            **state: what the page's address has behind it, such as algorithm, n, size, cluster.

        Raises:
            RoundelayError: no such view, or a state that is none.
        """
        from .web.shown import page

        return page(view, **state)


show = _Show()


def __getattr__(name: str) -> Any:
    """What is loaded when asked for.

    `init` and `Communicator`, for they need the native core; `Clock` and `cluster`, which take
    longer to load than all the rest; and `__version__`, whose look-up takes a fifth of the import.
    """
    if name in _LATER:
        return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("roundelay")
        except PackageNotFoundError:  # run from a source tree that is not installed
            return "0+unknown"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_LATER = {
    "Clock": "simulate",
    "Communicator": "communicator",
    "cluster": "clusters",
    "init": "communicator",
}

__all__ = [
    "COPY",
    "REDUCE",
    "Algorithm",
    "Broken",
    "BytesChanged",
    "CallsDiffer",
    "Clock",
    "Communicator",
    "ExchangeError",
    "Interrupted",
    "PeerLost",
    "Round",
    "RoundelayError",
    "Schedule",
    "TooLate",
    "Verdict",
    "algorithm",
    "algorithms",
    "bound",
    "build",
    "cluster",
    "cost",
    "find",
    "init",
    "on",
    "prove",
    "reverse",
    "show",
    "split",
    "svg",
    "then",
    "verify",
]
