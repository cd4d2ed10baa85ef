"""JOB of `place` and `order`: numbers, a job file, a trace, or a folder with one a rank."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from ..diagnose.given import Given
from ..diagnose.recognise import kinds_of
from ..errors import RoundelayError
from ..formats.chakra import read_chakra
from ..formats.chrome import read_chrome
from ..formats.flight import read_flight
from ..formats.kineto import read_kineto
from ..formats.timeline import HEAD, read_timeline
from ..place import Job, read_job
from ..place.heard import Heard, of_dump, of_graph, of_timeline, of_trace
from ..place.traced import traced_job

Reader = Callable[[Given, int], list[Heard]]


def read(text: str) -> Job:
    """The job that JOB names.

    Raises:
        RoundelayError: it is none; the message says what was found.
    """
    path = Path(text)
    if path.suffix == ".toml" or not _there(path):
        return read_job(text)
    files = sorted(p for p in path.iterdir() if p.is_file()) if path.is_dir() else [path]
    given = [(one, kind) for one in (Given(file.name, file) for file in files)
             if (kind := _kind(one))]  # fmt: skip
    if not given and not path.is_dir():
        return read_job(text)
    kinds = sorted({kind for _, kind in given})
    if len(kinds) != 1:
        raise RoundelayError(f"{text}: {', '.join(kinds) or 'nothing that tells of calls'}; "
                             f"expected files of one of these kinds: {', '.join(READ)}"
                             )  # fmt: skip
    return traced_job(path.stem, [h for one, kind in given for h in _heard(one, kind, len(given))])


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # many numbers are too long for a name
        return False


def _kind(given: Given) -> str:
    """What it is, if it tells of calls."""
    if given.head().startswith(HEAD):
        return "timeline"
    return next((kind for kind in kinds_of(given) if kind in READ), "")


def _heard(given: Given, kind: str, files: int) -> list[Heard]:
    try:
        return READ[kind](given, files)
    except RoundelayError as error:
        raise RoundelayError(f"{given.name}: {error}") from None


def _trace(given: Given, files: int) -> list[Heard]:
    with given.stream() as file:
        trace = read_kineto(file, given.name)
    other = trace.other.get("otherData")
    ours = not trace.calls and isinstance(other, Mapping) and "roundelay" in other
    return of_timeline(read_chrome(given.whole())) if ours else [of_trace(trace)]


READ: Final[Mapping[str, Reader]] = MappingProxyType({
    "trace": _trace,
    "flight": lambda given, files: [of_dump(d) for d in read_flight(given.whole(), given.name)],
    "execution_trace": lambda given, files: [
        of_graph(read_chakra(given.whole()), given.name, files)
    ],
    "timeline": lambda given, files: of_timeline(read_timeline(given.whole())),
})  # fmt: skip
"""How files that tell of calls are read, with the number of files, by their kind."""
