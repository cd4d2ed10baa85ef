"""What `squeue` and `sinfo` print in their usual columns: jobs with reasons, nodes with states."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ..errors import RoundelayError
from .pasted import pasted_lines

_QUEUE: Final = re.compile(r"^\s*JOBID\s.*NODELIST\(REASON\)", re.I)
_NODES: Final = re.compile(r"^\s*PARTITION\s+AVAIL\s+TIMELIMIT\s+NODES\s+STATE\s+NODELIST", re.I)
_LONG: Final = re.compile(r"^\s*NODELIST\s+NODES\s+PARTITION\s+STATE\b", re.I)
_NODE: Final = re.compile(
    r"^\s*(\S{1,400})\s+(\d{1,7})\s+(\S{1,80})\s+([a-z_]{2,20})([*~#!%$@+^-]{0,2})(?:\s|$)"
)
_WHY: Final = re.compile(r"^\s*REASON\s+USER\s+TIMESTAMP\s+NODELIST", re.I)
_JOB: Final = re.compile(
    r"^\s*(\d{1,12}(?:_\S{1,40}|\+\d{1,6})?)\s+(\S{1,80})\s.{0,200}?\s([A-Z]{1,2}|[A-Z]{6,20})\s+"
    r"((?:\d{1,5}-)?[\d:]{4,8}|INVALID)(?:\s+(?:[\d:-]{4,14}|UNLIMITED|INVALID))?\s+(\d{1,7})\s+(?:\((.{1,300})\)|(\S{0,300}))\s*$"
)
_STATE: Final = re.compile(
    r"^\s*(\S{1,80})\s+(up|down|drain|inact)\S{0,2}\s+(\S{1,20})\s+(\d{1,7})\s+([a-z_]{2,20})([*~#!%$@+^-]{0,2})"
    r"\s+(\S{1,400})(?:\s|$)"
)
_TOLD: Final = re.compile(
    r"^\s*(\S.{0,120}?)\s{1,40}(\S{1,40})\s{1,9}(\d{4}-\d\d-\d\dT[\d:]{8})\s{1,9}(\S{1,400})\s*$"
)
MOST: Final = 2**16
"""Rows of a list."""
WORDS: Final = 100
"""Words of a row."""


class Queued(NamedTuple):
    """A job: its number, partition, state (such as PD), nodes, reason or nodes it has, and line."""

    job: str
    partition: str
    state: str
    nodes: int
    reason: str
    where: str
    line: int


class NodeState(NamedTuple):
    """Nodes of a partition in one state; `marks` are behind it, such as * for no answer."""

    partition: str
    open: bool
    number: int
    state: str
    marks: str
    nodes: str
    line: int


class Reason(NamedTuple):
    """Why somebody has taken nodes out (`sinfo -R`)."""

    why: str
    who: str
    when: str
    nodes: str
    line: int


class SlurmLists(NamedTuple):
    """The rows of all lists of a text."""

    jobs: tuple[Queued, ...]
    nodes: tuple[NodeState, ...]
    reasons: tuple[Reason, ...]


def read_slurm_lists(data: bytes) -> SlurmLists:
    """The lists of a text, each behind its head.

    Raises:
        RoundelayError: there is none with a row.
    """
    jobs: list[Queued] = []
    nodes: list[NodeState] = []
    reasons: list[Reason] = []
    kind = ""
    for number, raw in pasted_lines(data):
        line = " ".join(raw.lstrip("#/ \t").split()[:WORDS])
        if _QUEUE.match(line):
            kind = "jobs"
        elif _NODES.match(line):
            kind = "nodes"
        elif _LONG.match(line):
            kind = "each"
        elif _WHY.match(line):
            kind = "reasons"
        elif len(jobs) + len(nodes) + len(reasons) > MOST:
            break
        elif kind == "jobs" and (row := _JOB.match(line)):
            jobs.append(Queued(row[1], row[2], row[3], int(row[5]), row[6] or "", row[7] or "",
                               number))  # fmt: skip
        elif kind == "nodes" and (row := _STATE.match(line)):
            nodes.append(NodeState(row[1], row[2] == "up", int(row[4]), row[5], row[6], row[7],
                                   number))  # fmt: skip
        elif kind == "each" and (row := _NODE.match(line)):
            nodes.append(NodeState(row[3], True, int(row[2]), row[4], row[5], row[1], number))
        elif kind == "reasons" and (row := _TOLD.match(line)):
            reasons.append(Reason(row[1], row[2], row[3], row[4], number))
    if not jobs and not nodes and not reasons:
        raise RoundelayError(
            "no row of squeue or sinfo; expected them behind the head, such as "
            "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)"
        )
    return SlurmLists(tuple(jobs), tuple(nodes), tuple(reasons))
