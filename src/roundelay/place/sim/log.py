"""A file of what happened on a cluster, by policy: written by `cluster-sim`, shown by the page."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Annotated, Final

import msgspec
import numpy as np

from ...errors import RoundelayError
from ...topology import Cluster
from .record import NODES, Event, Name, Some, Time
from .results import Summary
from .run import Saving

CARDS: Final = 2**24
EVENTS: Final = 1_000_000


class Above(msgspec.Struct):
    """A level of switches.

    Attributes:
        name: such as "leaf".
        nodes: below one of its domains.
    """

    name: Name
    nodes: Some


class Listed(msgspec.Struct, omit_defaults=True):
    """A job.

    Attributes:
        kind: how it is cut.
        cards, block: of it, and of it in one node.
        submit_s: when it arrives, from the first arrival.
        work_s: how long it works where its exchange is cheapest.
        priority: one that is higher may take the cards of others.
        interval_s: of work between saves; 0: never.
    """

    kind: Name
    cards: Some
    block: Some
    submit_s: Time
    work_s: Time
    priority: int = 0
    interval_s: Time = 0.0


class Told(msgspec.Struct):
    """What happened under one policy."""

    policy: Name
    events: Annotated[list[Event], msgspec.Meta(max_length=EVENTS)]


class Log(msgspec.Struct):
    """All of a file.

    Attributes:
        cluster: its name.
        nodes, cards: how many, and of each.
        levels: that have links up, from the leaves.
        jobs: in the order of their arrival.
        policies: each with its events, in their order.
    """

    cluster: Name
    nodes: Annotated[int, msgspec.Meta(ge=1, le=NODES)]
    cards: Annotated[int, msgspec.Meta(ge=1, le=1024)]
    levels: Annotated[list[Above], msgspec.Meta(max_length=8)]
    jobs: Annotated[list[Listed], msgspec.Meta(min_length=1, max_length=EVENTS)]
    policies: Annotated[list[Told], msgspec.Meta(min_length=1, max_length=8)]


def make_log(cluster: Cluster, found: Sequence[Summary], saving: Saving) -> Log:
    """What was recorded; see `compare`.

    Args:
        cluster: on which it happened.
        found: one a policy.
        saving: of the jobs.
    """
    jobs, first = [], min(run.arrival.submit for run in found[0].outcome.runs)
    for run in found[0].outcome.runs:
        one, each = run.arrival, saving.interval[run.arrival.cards]
        jobs.append(Listed(run.kind.job.name, one.cards, run.kind.block,
                           round(one.submit - first, 1), round(one.seconds, 1), one.priority,
                           round(each, 1) if each < inf else 0.0))  # fmt: skip
    levels = [Above(level.name, level.nodes) for level in cluster.levels]
    told = [Told(one.policy, one.outcome.events) for one in found]
    return Log(cluster.name, cluster.nodes, cluster.cards, levels, jobs, told)


def read_log(data: bytes) -> Log:
    """What a file says.

    Raises:
        RoundelayError: it is no such file, or what it tells cannot have happened.
    """
    try:
        found = msgspec.json.decode(data, type=Log)
        _check(found)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise RoundelayError(f"no jobs over time: {error}; expected a file that "
                             "roundelay cluster-sim --events has written") from None  # fmt: skip
    return found


def _check(log: Log) -> None:
    """Raise ValueError where it cannot have happened."""
    for i, job in enumerate(log.jobs):
        if job.block > log.cards or job.cards % job.block:
            raise ValueError(f"job {i} has {job.cards} cards, {job.block} a node of {log.cards}")
    if len({told.policy for told in log.policies}) < len(log.policies):
        raise ValueError("a policy is told twice")
    for told in log.policies:
        _follow(log, told)


def _check_above(log: Log, event: Event, where: str) -> None:
    """Raise ValueError where it names switches that aren't there."""
    if len(event.above) > len(log.levels):
        raise ValueError(f"{where}: {len(event.above)} levels of switches, of {len(log.levels)}")
    for level, domains in zip(log.levels, event.above, strict=False):
        there = -(-log.nodes // level.nodes)
        for domain, _ in domains:
            if domain >= there:
                raise ValueError(f"{where}: {level.name} {domain} of {there}")


def _follow(log: Log, told: Told) -> None:
    free = np.full(log.nodes, log.cards)
    held: dict[int, list[int]] = {}
    ended, now = set(), 0.0
    for k, event in enumerate(told.events):
        where = f"{told.policy}, event {k}"
        if event.at_s < now:
            raise ValueError(f"{where}: at {event.at_s:g} s, after {now:g} s")
        now = event.at_s
        if max(event.nodes, default=0) >= log.nodes:
            raise ValueError(f"{where}: node {max(event.nodes)} of {log.nodes}")
        _check_above(log, event, where)
        if event.what not in ("start", "stop", "end"):
            continue
        if not 0 <= event.job < len(log.jobs):
            raise ValueError(f"{where}: job {event.job} of {len(log.jobs)}")
        job, runs = log.jobs[event.job], event.job in held
        if runs is (event.what == "start") or event.job in ended:
            raise ValueError(f"{where}: {event.what} of job {event.job}, which isn't there for it")
        if event.what == "start":
            if len(event.nodes) * job.block != job.cards or now < job.submit_s:
                raise ValueError(f"{where}: job {event.job} starts on {len(event.nodes)} parts")
            held[event.job] = event.nodes
            np.subtract.at(free, event.nodes, job.block)
            if free[event.nodes].min() < 0:
                raise ValueError(f"{where}: more cards are taken than there are")
        else:
            np.add.at(free, held.pop(event.job), job.block)
        if event.what == "end":
            ended.add(event.job)
