"""What the page may be asked for by name and was given when it was started."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from . import clusters, jobs, runs, walks


class Known(NamedTuple):
    """Real runs, walks along a request, clusters of files, and jobs over time, by name.

    A request names one; it never names a file.
    """

    runs: runs.Runs
    walks: walks.Walks
    clusters: clusters.Clusters = clusters.NO_FILES
    logs: jobs.Logs = MappingProxyType({})


def known(
    traces: Iterable[Path] = (), requests: Iterable[Path] = (), machines: Iterable[Path] = (),
    events: Iterable[Path] = (),
) -> Known:  # fmt: skip
    """What comes with the page, and what is in files.

    Args:
        traces: of real runs; see `open_runs`.
        requests: walks along one; see `open_walks`.
        machines: clusters; see `open_clusters`.
        events: jobs on a cluster over time; see `open_logs`.

    Raises:
        RoundelayError: a file that cannot be read, or two of one name.
    """
    return Known(
        runs.open_runs(traces), walks.open_walks(requests), clusters.open_clusters(machines),
        jobs.open_logs(events),
    )  # fmt: skip


@cache
def nothing_given() -> Known:
    """What comes with the page."""
    return known()
