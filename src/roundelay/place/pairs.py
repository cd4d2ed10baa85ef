"""The order of ranks from what was measured between each two hosts.

A file has a row for each host that sends. In CSV the first line is the measure and all hosts, and
each row begins with its own::

    bytes_per_second,a,b
    a,,12e9
    b,11e9,

In JSON it is ``{"hosts": [...], "bytes_per_second": [[...]]}``, or "seconds" instead: of a message
that is the same for all pairs. What is from a host to itself isn't looked at.

The cost of an order is the time that the busiest host needs for its messages of a step, one after
another, at the rate of each pair. It says which order is better, not how long a step takes.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..errors import RoundelayError
from .job import Ints, Job
from .objective import EVEN
from .search import block_layout, group_orders, search
from .traffic import Floats, traffic

HOSTS: Final = 4096
"""Hosts of a file at most."""
CHANCE: Final = 200
"""Orders by chance from which the search begins, too."""
STARTS: Final = 32
"""Orders that are improved."""
MEASURES: Final = ("bytes_per_second", "seconds")


@dataclass(frozen=True, eq=False)
class Pairs:
    """What was measured.

    Attributes:
        hosts: their names.
        seconds: [from, to] of a byte, or of a message that is the same for all; 0 from a host to
            itself.
    """

    hosts: tuple[str, ...]
    seconds: Floats

    def only(self, names: Sequence[str]) -> Pairs:
        """Some of them, in this order.

        Raises:
            RoundelayError: one isn't there.
        """
        at = {name: i for i, name in enumerate(self.hosts)}
        for name in names:
            if name not in at:
                raise RoundelayError(f"no host {name!r:.80} among the pairs; expected such as "
                                     f"{self.hosts[0]}")  # fmt: skip
        rows = [at[name] for name in names]
        return Pairs(tuple(names), self.seconds[np.ix_(rows, rows)])


def read_pairs(data: bytes, name: str) -> Pairs:
    """The pairs of a file.

    Args:
        data: CSV, or JSON.
        name: of the file; JSON ends in .json.

    Raises:
        RoundelayError: an entry is missing, no number, or not above 0; hosts contradict.
    """
    try:
        text = data.decode("utf-8")
        return _from_json(text) if name.endswith(".json") else _from_csv(text)
    except (RoundelayError, ValueError, RecursionError, csv.Error) as error:
        raise RoundelayError(f"{name}: {error}") from None


def _from_csv(text: str) -> Pairs:
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines()) if row]
    if not rows or rows[0][0] not in MEASURES:
        raise RoundelayError("expected a first line of bytes_per_second or seconds, and the names "
                             "of all hosts, with commas between")  # fmt: skip
    (measure, *hosts), rows = rows[0], rows[1:]
    for row, host in zip(rows, hosts, strict=False):
        if row[0] != host:
            raise RoundelayError(f"a row of {row[0]!r:.80} where the columns have {host!r:.80}; "
                                 "expected rows and columns of the same hosts, in one order"
                                 )  # fmt: skip
    return _pairs(hosts, [row[1:] for row in rows], measure)


def _from_json(text: str) -> Pairs:
    tree: Any = json.loads(text)
    found = [key for key in MEASURES if isinstance(tree, dict) and key in tree]
    if len(found) != 1 or not isinstance(tree.get("hosts"), list):
        raise RoundelayError("expected an object with hosts, and one of bytes_per_second and "
                             "seconds")  # fmt: skip
    return _pairs(tree["hosts"], tree[found[0]], found[0])


def _pairs(names: Sequence[object], rows: object, measure: str) -> Pairs:
    hosts = [str(name) for name in names]
    n = len(hosts)
    if len({*hosts}) < n:
        raise RoundelayError(f"host {max(hosts, key=hosts.count)!r:.80} is there twice")
    if not 2 <= n <= HOSTS:
        raise RoundelayError(f"{n} hosts; expected 2 to {HOSTS:,}")
    if not isinstance(rows, list) or len(rows) != n:
        raise RoundelayError(f"{len(rows) if isinstance(rows, list) else 'no'} rows for {n} hosts; "
                             "expected a row and a column for each")  # fmt: skip
    seconds = np.zeros((n, n))
    for i, row in enumerate(rows):
        if not isinstance(row, list) or len(row) != n:
            raise RoundelayError(f"the row of {hosts[i]} has "
                                 f"{len(row) if isinstance(row, list) else 'no'} entries; expected "
                                 f"{n}")  # fmt: skip
        for j in {*range(n)} - {i}:
            value = _number(row[j], hosts[i], hosts[j])
            seconds[i, j] = 1 / value if measure == MEASURES[0] else value
    return Pairs(tuple(hosts), seconds)


def _number(entry: object, src: str, dst: str) -> float:
    try:
        value = float(entry) if isinstance(entry, str | int | float) else math.nan
    except (ValueError, OverflowError):
        value = math.nan
    if not 1e-300 < value < 1e300 or isinstance(entry, bool):
        raise RoundelayError(f"{src} to {dst}: {'nothing' if entry in ('', None) else repr(entry)}"
                             "; expected a number above 0")  # fmt: skip
    return value


@dataclass(frozen=True, eq=False)
class Ordered:
    """A job's ranks on hosts.

    Attributes:
        hosts: [rank] names.
        cost: of the busiest host's messages: seconds, where pairs have bytes a second.
        given: the same with hosts in the order in which they were given.
    """

    hosts: tuple[str, ...]
    cost: float
    given: float


class Cost:
    """Seconds of a step, of many orders at once."""

    def __init__(self, job: Job, block: int, pairs: Pairs) -> None:
        """For blocks of ranks, one a host."""
        n = job.ranks // block
        self.pairs, sent = pairs.seconds, np.zeros((n, n))
        for t in traffic(job, block):
            for s in t.stages:
                np.add.at(sent, (s.src // block, s.dst // block), s.bytes * t.calls)
        self.src, self.dst = np.nonzero(sent * (1 - np.eye(n)))
        self.bytes = sent[self.src, self.dst]

    def __call__(self, nodes: Ints, even: float = 0.0) -> Floats:
        """[order] seconds, of [order, block] hosts; with so much of the mean host's time."""
        k, n = nodes.shape
        times = self.bytes * self.pairs[nodes[:, self.src], nodes[:, self.dst]]
        first = np.arange(k)[:, None] * n
        out, into = (np.bincount((first + ends).ravel(), times.ravel(), k * n).reshape(k, n)
                     for ends in (self.src, self.dst))  # fmt: skip
        busy = np.maximum(out, into)
        found: Floats = busy.max(axis=1) + even * busy.mean(axis=1)
        return found


def order_by_pairs(job: Job, pairs: Pairs) -> Ordered:
    """The order of ranks on all hosts of the pairs, as many ranks on each.

    Raises:
        RoundelayError: ranks that hosts can't have alike.
    """
    n = len(pairs.hosts)
    if job.ranks % n:
        raise RoundelayError(f"{job.name}: {job.ranks} ranks on {n} hosts; expected a multiple, as "
                             "each has as many")  # fmt: skip
    block = job.ranks // n
    cost, near = Cost(job, block, pairs), _near(pairs.seconds)
    chance = np.random.default_rng(1).permuted(np.tile(np.arange(n), (CHANCE, 1)), axis=1)
    found = search(np.ones(n, np.int64), n, [1, n], block_layout(job, block),
                   lambda nodes: cost(near[nodes], EVEN), max(1, len(cost.src)),
                   more=[*group_orders(job, block), *chance], order_only=True,
                   starts=STARTS)  # fmt: skip
    tried = np.array([near[found], np.arange(n)])
    seconds = cost(tried)
    best = tried[int(np.argmin(seconds))]
    hosts = tuple(pairs.hosts[i] for i in np.repeat(best, block).tolist())
    return Ordered(hosts, float(seconds.min()), float(seconds[1]))


def _near(seconds: Floats) -> Ints:
    """Hosts so that those which are near one another follow one another: single-link groups."""
    apart = np.maximum(seconds, seconds.T)
    groups = [[i] for i in range(len(seconds))]
    a, b = np.triu_indices(len(seconds), 1)
    where = list(range(len(seconds)))
    for k in np.argsort(apart[a, b], kind="stable").tolist():
        one, other = sorted((where[a[k]], where[b[k]]))
        if one != other:
            for host in groups[other]:
                where[host] = one
            groups[one] += groups[other]
    return np.array(groups[where[0]], np.int64)
