"""Roundelay: describe a collective once as a schedule, then prove it, count it, watch it.

>>> import roundelay as rl
>>> ring = rl.build("all_reduce/ring", 4)
>>> rl.verify(ring).ok
True
"""

from .algorithms import Algorithm, algorithm, algorithms, build, find
from .cost import bound, cost
from .errors import (
    Broken,
    CallsDiffer,
    ExchangeError,
    Interrupted,
    PeerLost,
    RoundelayError,
    TooLate,
)
from .schedule import COPY, REDUCE, Round, Schedule
from .show import html, show, svg
from .verbs import on, reverse, split, then
from .verify import Verdict, prove, verify

# Notebooks draw a schedule. The layer that draws stands above it, so they are joined here.
Schedule._repr_html_ = html  # type: ignore[attr-defined]


def __getattr__(name: str) -> str:
    """`__version__`, looked up when asked for: the look-up takes a fifth of the import."""
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("roundelay")
        except PackageNotFoundError:  # run from a source tree that is not installed
            return "0+unknown"
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "COPY",
    "REDUCE",
    "Algorithm",
    "Round",
    "RoundelayError",
    "Schedule",
    "Verdict",
    "algorithm",
    "algorithms",
    "bound",
    "build",
    "cost",
    "find",
    "on",
    "prove",
    "reverse",
    "show",
    "split",
    "svg",
    "then",
    "verify",
]
