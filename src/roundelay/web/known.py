"""What the page may be asked for by name and was given when it was started."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from . import clusters, runs, walks


class Known(NamedTuple):
    """Real runs, walks along a request, and clusters of files, by name.

    A request names one; it never names a file.
    """

    runs: runs.Runs
    walks: walks.Walks
    clusters: clusters.Clusters = clusters.NO_FILES


def known(
    traces: Iterable[Path] = (), requests: Iterable[Path] = (), machines: Iterable[Path] = ()
) -> Known:
    """What comes with the page, and what is in files.

    Args:
        traces: of real runs; see `open_runs`.
        requests: walks along one; see `open_walks`.
        machines: clusters; see `open_clusters`.

    Raises:
        RoundelayError: a file that cannot be read, or two of one name.
    """
    return Known(
        runs.open_runs(traces), walks.open_walks(requests), clusters.open_clusters(machines)
    )


@cache
def nothing_given() -> Known:
    """What comes with the page."""
    return known()
