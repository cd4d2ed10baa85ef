"""Questions to the clock in plain values, and their answers as rows of JSON."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import msgspec

import roundelay

from ..clusters import read
from ..errors import RoundelayError
from ..schedule import Schedule
from ..simulate.candidates import Candidate, fitted
from ..simulate.clock import Clock
from ..simulate.disturb import Jitter
from ..simulate.nccl import predict
from ..simulate.rows import Question, Row, nccl_row, row_json
from ..topology import Cluster
from .stragglers import Straggler, find_link, find_rank
from .targets import load


class Point(msgspec.Struct, frozen=True, kw_only=True):
    """One question, as another process takes it.

    Attributes:
        collective: its name.
        by: "auto" for the quickest of our algorithms, "nccl" for NCCL's choice, or what names an
            algorithm or a schedule, as `load` takes it.
        cluster: the text of a cluster file.
        ranks: cards that take part.
        size: bytes, as in nccl-tests' size column.
        protocol: by which messages go; None for the quickest.
        params, root: of the algorithm.
        stragglers: what is slow.
        jitter: what differs from time to time, as `Jitter.parse` takes it; empty for nothing.
        samples, seed: of that.
    """

    collective: str
    by: str
    cluster: str
    ranks: int
    size: int
    protocol: str | None = None
    params: tuple[tuple[str, Any], ...] = ()
    root: int = 0
    stragglers: tuple[Straggler, ...] = ()
    jitter: str = ""
    samples: int = 1
    seed: int = 1

    def key(self, source: bytes = b"") -> str:
        """What tells it from every other question, and from the same to another version.

        Args:
            source: the file that `by` names, if it names one.
        """
        asked = msgspec.json.encode((roundelay.__version__, self))
        return hashlib.blake2b(asked + source, digest_size=12).hexdigest()


def answer(point: Point, threads: int = 1) -> dict[str, Any]:
    """The row of a point; where it has none, its size and an `error` that says why.

    Args:
        point: the question.
        threads: that draw what differs from time to time; they don't change the answer.
    """
    try:
        return row_json(_row(point, threads))
    except RoundelayError as error:
        return {"bytes": point.size, "error": str(error)}


def _row(point: Point, threads: int) -> Row:
    size, protocol = point.size, point.protocol
    question, name, clock = _prepared(
        msgspec.structs.replace(point, size=0, protocol=None), threads
    )
    if clock is not None:
        return question.of(name, clock, size, protocol)
    if point.by == "auto":
        return question.quickest(size)[0][1]
    n = question.ranks
    return nccl_row(predict(question.cluster, question.collective, size, n, protocol=protocol))


@lru_cache(maxsize=1)
def _prepared(point: Point, threads: int) -> tuple[Question, str, Clock | None]:
    """What the points of a sweep share that differ in their size: most of the work."""
    where = read(point.cluster, "the cluster")
    slow = [(find_rank(which), f) for what, which, f in point.stragglers if what == "rank"]
    links = {find_link(where, which): f for what, which, f in point.stragglers if what == "link"}
    jitter = Jitter.parse(point.jitter) if point.jitter else None
    question = Question(point.collective, where, point.ranks, slow, links, jitter, point.samples,
                        point.seed, threads)  # fmt: skip
    if point.by in ("auto", "nccl"):
        return question, point.by, None
    name, schedule = _schedule(point, where)
    return question, name, question.clock(schedule)


def _schedule(point: Point, where: Cluster) -> tuple[str, Schedule]:
    loaded = load(point.by)
    if isinstance(loaded, Schedule):
        return loaded.name or "?", loaded
    algorithm = loaded[0]
    params = fitted(algorithm, dict(point.params), where, point.ranks)
    return Candidate(algorithm, params).name, algorithm(point.ranks, point.root, **params)
