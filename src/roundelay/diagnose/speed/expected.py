"""Rows of a table beside what the model expects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

from ...errors import RoundelayError
from ...formats.nccl_tests import Row, Table, Timing, bus_factor
from ...i18n import Message, message
from ...topology import Cluster


class Prediction(Protocol):
    """What the model says of one call."""

    @property
    def time_s(self) -> float:
        """Seconds."""

    @property
    def algorithm(self) -> str:
        """That NCCL chooses."""

    @property
    def protocol(self) -> str:
        """That NCCL chooses."""

    @property
    def binding_link(self) -> str:
        """What takes most of the time."""

    @property
    def band(self) -> tuple[float, float]:
        """Factors on the time between which nine of ten measured times lie."""


Predict = Callable[[Cluster, str, int, int], Prediction]
"""The model: the time of a collective of some bytes over n ranks of a cluster."""


@dataclass(frozen=True)
class Judged:
    """One form of a row, beside what is expected.

    Attributes:
        row: of the table.
        in_place: which form.
        timing: what was measured.
        expected: what the model says.
        collective, ranks: of the table.
    """

    row: Row
    in_place: bool
    timing: Timing
    expected: Prediction
    collective: str
    ranks: int

    @property
    def low_us(self) -> float:
        """The least time that is as expected."""
        return self.expected_us * self.expected.band[0]

    @property
    def high_us(self) -> float:
        """The longest time that is as expected."""
        return self.expected_us * self.expected.band[1]

    @property
    def expected_us(self) -> float:
        """Microseconds."""
        return self.expected.time_s * 1e6

    @property
    def expected_busbw(self) -> float:
        """GB/s."""
        factor = float(bus_factor(self.collective, self.ranks))
        return self.row.size / self.expected.time_s / 1e9 * factor

    @property
    def ratio(self) -> float:
        """Measured over expected time."""
        return self.timing.time_us / self.expected_us

    @property
    def verdict(self) -> str:
        """Whether it is as expected."""
        if self.timing.time_us > self.high_us:
            return "slower"
        return "faster" if self.timing.time_us < self.low_us else "as expected"

    def as_json(self) -> dict[str, Any]:
        """A row of `--json`."""
        return {
            "line": self.row.line,
            "collective": self.collective,
            "ranks": self.ranks,
            "bytes": self.row.size,
            "in_place": self.in_place,
            "time_us": self.timing.time_us,
            "expected_us": self.expected_us,
            "error_band": [self.low_us, self.high_us],
            "busbw_GBps": self.timing.busbw,
            "expected_busbw_GBps": self.expected_busbw,
            "algorithm": self.expected.algorithm,
            "protocol": self.expected.protocol,
            "verdict": self.verdict,
        }


def fitted(cluster: Cluster, table: Table) -> Cluster:
    """The cluster with as many nodes and cards a node as the table has ranks on.

    Raises:
        RoundelayError: it cannot have that many.
    """
    ranks, hosts = table.ranks or cluster.size, table.nodes
    if hosts is None or cluster.hosts > 1 or ranks % hosts or ranks // hosts > cluster.cards:
        return cluster.scaled(max(cluster.nodes, -(-ranks // cluster.cards)))
    cards = ranks // hosts
    if cards == cluster.cards or cluster.inside.kind != "switch" or hosts == 1:
        return cluster.scaled(hosts)
    nics = replace(cluster.nics, count=max(1, cluster.nics.count * cards // cluster.cards))
    return replace(cluster, nodes=hosts, cards=cards, nics=nics)


def judge(
    table: Table, cluster: Cluster, predict: Predict
) -> tuple[tuple[Judged, ...], Message | None]:
    """Every form of every row that has data; and what to say if not all is known.

    If the number of ranks is not known, it is taken to be that of the cluster's cards.
    """
    if table.collective is None:
        return (), message("rows are not compared: put a line such as `# all_reduce, n = 16`, with "
                           "what was measured, before the table")  # fmt: skip
    ranks = cluster.size if table.ranks is None else table.ranks
    note = None
    if table.ranks is None:
        note = message("{n:rank|ranks}, as the cluster has cards", n=ranks)
    if ranks < 2:
        return (), note
    found = []
    try:
        for row in table.rows:
            if row.size:
                expected = predict(cluster, table.collective, row.size, ranks)
                found += [
                    Judged(row, in_place, timing, expected, table.collective, ranks)
                    for in_place, timing in row.timings()
                ]
    except RoundelayError as error:
        return (), message("rows are not compared: {why}", why=str(error))
    return tuple(found), note
