"""The jobs over time that the page shows: an example that comes with it, and those from files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ..files import read_file
from ..place.sim import Log, read_log
from .named import with_files

EXAMPLE: Final = "two-pods"
"""40 jobs by chance on 256 cards under leaves of 4 nodes and two pods, with more failures than
Llama 3 had, by three policies."""
SIZE_LIMIT: Final = 2**26
"""Bytes of a file."""

Logs = Mapping[str, Log]
"""By the name that the page's address has for it."""


@cache
def examples() -> Logs:
    """Those that come with the page."""
    data = files(__package__).joinpath("examples", "jobs.json").read_bytes()
    return MappingProxyType({EXAMPLE: read_log(data)})


def open_logs(paths: Iterable[Path]) -> Logs:
    """The example, and those of files, each named after its file.

    Args:
        paths: files of `roundelay cluster-sim --events`.

    Raises:
        RoundelayError: a file that cannot be read, or two of one name.
    """
    return with_files(examples(), paths, lambda path: read_log(read_file(path, SIZE_LIMIT)))
