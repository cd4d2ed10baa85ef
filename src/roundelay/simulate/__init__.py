"""The clock: how long a schedule takes on a cluster."""

from __future__ import annotations

from .candidates import Candidate, candidates, quickest
from .clock import Clock, Timing
from .disturb import Jitter, Spread, expected_most, spread
from .moments import step_ends

__all__ = [
    "Candidate",
    "Clock",
    "Jitter",
    "Spread",
    "Timing",
    "candidates",
    "expected_most",
    "quickest",
    "spread",
    "step_ends",
]
