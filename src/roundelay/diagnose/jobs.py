"""Which logs and messages are of one job: files of a rank or a host each make one picture."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Final, TypeVar

from ..formats.nccl_log import NcclLog
from ..formats.watchdog import Timeout, Watched
from .finding import Finding, names

T = TypeVar("T")
_RANK: Final = re.compile(r"rank[_.-]?(\d{1,7})(?!\d)", re.I)


@dataclass
class Job:
    """Files of one job and what each holds."""

    files: list[str] = field(default_factory=list)
    logs: list[NcclLog] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Of the file, or of the first ones."""
        return names(self.files, 3)

    def ranks(self) -> set[int]:
        """Of the largest communicator, as far as they are told."""
        size = self.size
        return {t.rank for log in self.logs for t in log.ranks()
                if t.rank is not None and t.ranks == size}  # fmt: skip

    @property
    def size(self) -> int | None:
        """Ranks of the largest communicator."""
        return max((log.size for log in self.logs if log.size), default=None)

    @property
    def ids(self) -> set[str]:
        """Of communicators."""
        return {t.job for log in self.logs for t in log.ranks()} - {""}

    def takes(self, other: Job) -> bool:
        """Whether another may be of the same job: no rank is in both, nothing speaks against."""
        apart = self.ids and other.ids and not self.ids & other.ids
        sizes = {self.size, other.size} - {None}
        return len(sizes) < 2 and not apart and not self.ranks() & other.ranks()

    def add(self, other: Job) -> None:
        """Take its files."""
        self.files += other.files
        self.logs += other.logs


def log_jobs(logs: Sequence[tuple[str, NcclLog]]) -> list[Job]:
    """The logs job by job."""
    jobs: list[Job] = []
    for file, log in logs:
        one = Job([file], [log])
        job = next((job for job in jobs if job.takes(one)), None)
        if job is None:
            jobs.append(one)
        else:
            job.add(one)
    return jobs


def said_jobs(said: Sequence[tuple[str, Watched]]) -> list[tuple[str, Watched]]:
    """Messages by what they are of, as one each; apart where a rank says two things at first."""
    if not said:
        return []
    known = [(file, _ranked(file, one)) for file, one in said]
    firsts: dict[int, tuple[int, str]] = {}
    for _, one in known:
        for rank, first in _firsts(one).items():
            if firsts.setdefault(rank, first) != first:
                return known
    whole = Watched(
        timeouts=_all(known, lambda w: w.timeouts), progress=_all(known, lambda w: w.progress),
        prints=_all(known, lambda w: w.prints), ras=_all(known, lambda w: w.ras),
        next_operation=next((w.next_operation for _, w in known if w.next_operation), ""),
        missing=tuple(dict.fromkeys(rank for _, w in known for rank in w.missing)),
        gloo=_all(known, lambda w: w.gloo), stuck=_all(known, lambda w: w.stuck),
        signals=_all(known, lambda w: w.signals), reports=_all(known, lambda w: w.reports),
        absent=_all(known, lambda w: w.absent),
        cut=next((w.cut for _, w in known if w.cut), None),
        saving=next((w.saving for _, w in known if w.saving), None) if len(known) == 1 else None,
    )  # fmt: skip
    return [(names([file for file, _ in known], 3), whole)]


def _all(said: Sequence[tuple[str, Watched]], get: Callable[[Watched], list[T]]) -> list[T]:
    return [item for _, one in said for item in get(one)]


def _ranked(file: str, said: Watched) -> Watched:
    """With the rank that the file's name tells, where lines do not."""
    found = _RANK.search(PurePath(file).name)
    if found is not None:
        rank = int(found[1])
        said.timeouts = [t._replace(rank=rank) if t.rank is None else t for t in said.timeouts]
        said.progress = [p._replace(rank=rank) if p.rank is None else p for p in said.progress]
        said.stuck = [s._replace(rank=rank) if s.rank is None else s for s in said.stuck]
        said.signals = [s._replace(rank=rank) if s.rank is None else s for s in said.signals]
    return said


def _firsts(said: Watched) -> dict[int, tuple[int, str]]:
    """Of each rank the first call that timed out."""
    first: dict[int, Timeout] = {}
    for timeout in said.timeouts:
        if timeout.rank is not None:
            known = first.setdefault(timeout.rank, timeout)
            if timeout.sequence < known.sequence:
                first[timeout.rank] = timeout
    return {rank: (t.sequence, t.operation) for rank, t in first.items()}


def resting_on(finding: Finding, files: str) -> Finding:
    """What is off in all files of a job, as said of those that it rests on."""
    known = list(dict.fromkeys(evidence.file for evidence in finding.evidence))
    if not finding.fault or finding.subject != files or not known:
        return finding
    return replace(finding, subject=names(known, 3))
