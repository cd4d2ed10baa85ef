"""Jobs on a cluster over time: queues, failures, and what placing costs."""

from __future__ import annotations

from .arrivals import MEDIAN, Arrival, by_chance, fitting, larger, loaded, read_trace, urgent
from .clock import ClusterClock, Outcome, Settings
from .kinds import CUTS, POLICIES, Kind, cut_job
from .log import Log, make_log, read_log
from .rates import KINDS, Failure, Rates, failures, read_rates
from .results import PARTS, Checkpoint, Summary, checkpoints, compare, saving, summary
from .run import Run, Saving

__all__ = [
    "CUTS",
    "KINDS",
    "MEDIAN",
    "PARTS",
    "POLICIES",
    "Arrival",
    "Checkpoint",
    "ClusterClock",
    "Failure",
    "Kind",
    "Log",
    "Outcome",
    "Rates",
    "Run",
    "Saving",
    "Settings",
    "Summary",
    "by_chance",
    "checkpoints",
    "compare",
    "cut_job",
    "failures",
    "fitting",
    "larger",
    "loaded",
    "make_log",
    "read_log",
    "read_rates",
    "read_trace",
    "saving",
    "summary",
    "urgent",
]
