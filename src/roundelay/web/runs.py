"""The real runs that the page shows: two that come with it, and those from files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ..errors import RoundelayError
from ..files import read_file
from ..formats.chrome import read_chrome
from ..formats.timeline import HEAD, read_timeline
from ..timeline import Timeline
from .named import with_files

Runs = Mapping[str, Timeline]
"""By the name that the page's address has for it."""

EXAMPLES: Final = ("even", "late")
"""Four ranks of one machine: four times a ring all-reduce of 1 MiB and an all-gather of 64 KiB.
In the second, rank 2 sleeps for 2 ms before each."""


@cache
def examples() -> Runs:
    """The runs that come with the page; see `EXAMPLES`."""
    folder = files(__package__).joinpath("examples")
    return MappingProxyType(
        {n: read_timeline(folder.joinpath(f"{n}.timeline").read_bytes()) for n in EXAMPLES}
    )


def open_runs(paths: Iterable[Path]) -> Runs:
    """The examples, and the runs of files, each named after its file.

    Args:
        paths: files of `write_timeline` or `write_chrome`; or folders of `ROUNDELAY_TRACE`, whose
            ranks are put together.

    Raises:
        RoundelayError: a file that cannot be read, or two of one name.
    """
    return with_files(examples(), paths, read_run)


def read_run(path: Path) -> Timeline:
    """The run of a file, or of a folder of them; see `open_runs`.

    Raises:
        RoundelayError: it is none.
        OSError: it cannot be read.
    """
    if path.is_dir():
        parts = sorted(path.glob("rank-*.json"))
        if not parts:
            raise RoundelayError("a folder without rank-N.json; expected one of ROUNDELAY_TRACE")
        return Timeline.joined(map(read_run, parts))
    data = read_file(path)
    return read_timeline(data) if data.startswith(HEAD) else read_chrome(data)
