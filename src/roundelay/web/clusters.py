"""The clusters of files that the page may be asked for, beside the machines that are known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ..clusters import cluster, names
from ..errors import RoundelayError
from ..topology import Cluster

Clusters = Mapping[str, Cluster]
"""By the name that stands in the file."""
NO_FILES: Final[Clusters] = MappingProxyType({})


def open_clusters(paths: Iterable[Path]) -> Clusters:
    """The clusters of files.

    Raises:
        RoundelayError: no such file, a file that describes no possible cluster, or a name that a
            known machine or another file has.
    """
    found: dict[str, Cluster] = {}
    for path in paths:
        one = cluster(str(path.absolute()))
        if one.name in (*names(), *found) or ":" in one.name:
            raise RoundelayError(
                f"{path}: name = {one.name!r}; expected one without a colon that no known machine "
                "and no other file has, such as 'mine'"
            )
        found[one.name] = one
    return MappingProxyType(found)
