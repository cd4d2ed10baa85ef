"""Files that Roundelay itself writes or takes: what they are, and what is to be said of them."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Final

from ..finding import Finding
from .files import (
    arrival_findings,
    cluster_findings,
    job_findings,
    log_findings,
    report_findings,
    table_findings,
)
from .runs import (
    bench_findings,
    read_own_timeline,
    schedule_findings,
    timeline_findings,
    walk_findings,
)
from .tuner import tuner_findings

__all__ = ["TOLD", "timeline_findings"]

TOLD: Final[MappingProxyType[str, Callable[[str, bytes], list[Finding]]]] = MappingProxyType(
    {
        "tuner": tuner_findings, "cluster": cluster_findings, "job": job_findings,
        "arrivals": arrival_findings, "jobs_log": log_findings, "algorithms": table_findings,
        "report": report_findings, "schedule": schedule_findings, "timeline": read_own_timeline,
        "bench": bench_findings, "walk": walk_findings,
    }
)  # fmt: skip
"""By kind of file: takes its name and bytes, and raises RoundelayError where it is none."""
