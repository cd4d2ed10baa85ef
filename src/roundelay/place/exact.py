"""The cheapest placement there is, by integer programming: for small jobs, to measure others by.

A block b is in domain d or not: x[b, d]. A message from b to c leaves d if x[b, d] - x[c, d] = 1,
so q >= x[b, d] - x[c, d] counts it on d's links upwards, and with b and c exchanged on those down.
An exchange takes at least as long as each of these links, plus its steps over the highest level
that it crosses. HiGHS minimises the sum (Huangfu and Hall 2018, doi:10.1007/s12532-017-0130-5).
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import RoundelayError
from ..simulate.protocols import Protocol
from .cost import usable
from .job import Ints
from .objective import Edges, Objective, Whole
from .traffic import Floats

Terms = dict[int, float]
"""Column to coefficient."""
SECONDS = 1e6
"""Of the objective: microseconds, so that tolerances suit."""


class _Program:
    """Columns and rows, gathered."""

    def __init__(self) -> None:
        self.columns: list[tuple[float, float, float, bool]] = []  # cost, lower, upper, integer
        self.rows: list[tuple[float, float, Terms]] = []

    def column(self, cost: float = 0.0, upper: float = np.inf, *, integer: bool = False) -> int:
        self.columns.append((cost, 0.0, upper, integer))
        return len(self.columns) - 1

    def row(self, terms: Terms, lower: float = -np.inf, upper: float = np.inf) -> None:
        self.rows.append((lower, upper, terms))

    def solve(self, limit: float) -> Floats:
        """[column] values at the optimum."""
        highspy = _highspy()
        solver = highspy.Highs.__base__()  # Highs itself prints a line before it can be told not to
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("time_limit", limit)
        solver.setOptionValue("mip_rel_gap", 1e-6)
        for cost, lower, upper, integer in self.columns:
            solver.addCol(cost, lower, upper, 0, np.empty(0, np.int32), np.empty(0))
            if integer:
                last = solver.getNumCol() - 1
                solver.changeColIntegrality(last, highspy.HighsVarType.kInteger)
        for lower, upper, terms in self.rows:
            solver.addRow(lower, upper, len(terms), np.array([*terms], np.int32),
                          np.array([*terms.values()], float))  # fmt: skip
        solver.run()
        status = solver.getModelStatus()
        if status != highspy.HighsModelStatus.kOptimal:
            raise RoundelayError(f"no optimum within {limit:g} s ({status.name}); take a smaller "
                                 "job, or fewer free nodes")  # fmt: skip
        return np.array(solver.getSolution().col_value)


def _highspy() -> Any:
    try:
        return importlib.import_module("highspy")
    except ImportError:
        raise RoundelayError("the exact optimum needs HiGHS: pip install 'roundelay[place]'"
                             ) from None  # fmt: skip


def optimum(objective: Objective, room: Ints, blocks: int, limit: float = 60.0) -> Ints:
    """[block] the node of each, where the exchange is cheapest of all.

    Args:
        objective: of the job's blocks; on a tree.
        room: [node] slots.
        blocks: how many.
        limit: seconds of the search.

    Raises:
        RoundelayError: HiGHS isn't installed, or took too long.
    """
    cells = _cells(objective, room)
    program = _Program()
    x = [[program.column(upper=1.0, integer=True) for _ in cells] for _ in range(blocks)]
    for b in range(blocks):
        program.row(dict.fromkeys(x[b], 1.0), 1.0, 1.0)
    for s, nodes in enumerate(cells):
        program.row({x[b][s]: 1.0 for b in range(blocks)}, upper=float(room[nodes].sum()))
    model = _Crossings(program, x, cells, objective)
    for whole in objective.wholes:
        model.exchange(whole)
    values = program.solve(limit)
    left = room.copy()
    found = np.empty(blocks, np.int64)
    for b in range(blocks):
        cell = int(np.argmax([values[column] for column in x[b]]))
        node = int(next(n for n in cells[cell] if left[n]))
        left[node] -= 1
        found[b] = node
    return found


def _cells(objective: Objective, room: Ints) -> list[Ints]:
    """Nodes that are alike, of those with room: a leaf's, or each alone where it holds several."""
    nodes = np.flatnonzero(room)
    within = objective.tiers[1].nodes if len(objective.tiers) > 1 else len(room)
    key = nodes if (room > 1).any() else nodes // within
    return [nodes[key == k] for k in np.unique(key)]


class _Crossings:
    """The rows of exchanges."""

    def __init__(
        self, program: _Program, x: list[list[int]], cells: Sequence[Ints], objective: Objective
    ) -> None:
        self.program, self.x, self.objective = program, x, objective
        self.domain = [np.array([int(nodes[0]) // t.nodes for nodes in cells])
                       for t in objective.tiers]  # fmt: skip
        self.alone = len(cells) > 0 and all(len(c) == 1 for c in cells)
        self._known: dict[tuple[int, int, int, int], int] = {}

    def inside(self, height: int, block: int, domain: int) -> Terms:
        """Whether a block is in a domain."""
        where = np.flatnonzero(self.domain[height] == domain)
        return {self.x[block][s]: 1.0 for s in where}

    def leaves(self, height: int, src: int, dst: int, domain: int) -> int:
        """The column that says whether a message leaves a domain."""
        key = (height, src, dst, domain)
        if key not in self._known:
            q = self._known[key] = self.program.column(upper=1.0)
            row = {q: 1.0}
            for sign, block in ((-1.0, src), (1.0, dst)):
                for column, one in self.inside(height, block, domain).items():
                    row[column] = row.get(column, 0.0) + sign * one
            self.program.row(row, lower=0.0)
        return self._known[key]

    def exchange(self, whole: Whole) -> None:
        """A column of its seconds, under one of its protocols."""
        objective, program = self.objective, self.program
        seconds = program.column(SECONDS * whole.calls)
        found = usable(objective.protocols, whole.size)
        pick = [program.column(upper=1.0, integer=True) for _ in found]
        program.row(dict.fromkeys(pick, 1.0), 1.0, 1.0)
        links = list(self._links(whole))
        tops = [self._tops(stage) for stage in whole.stages]
        for p, chosen in zip(found, pick, strict=True):
            steps, least = self._steps(p, whole, tops)
            rate = objective.cluster.inside.rate * p.efficiency[objective.cluster.inside.medium]
            net = p.efficiency.get(objective.cluster.nics.medium, 1.0)
            for load in [{}, *links]:
                own = whole.inside / rate if not load else 0.0
                terms = {column: value / net for column, value in load.items()}
                for column, value in steps.items():
                    terms[column] = terms.get(column, 0.0) + value
                most = least + own + sum(terms.values())
                row = {column: -value * SECONDS for column, value in terms.items()}
                row[seconds] = SECONDS
                row[chosen] = -most * SECONDS
                program.row(row, lower=(least + own - most) * SECONDS)

    def _steps(self, p: Protocol, whole: Whole, tops: Sequence[list[int]]) -> tuple[Terms, float]:
        """Seconds of steps: by the levels they cross, and at least."""
        cluster, terms, least = self.objective.cluster, Terms(), p.base
        for stage, top in zip(whole.stages, tops, strict=True):
            far, near = p.between + cluster.nics.latency, p.inside
            own = near if stage.inside or len(stage.src) else 0.0
            least += stage.steps * (own + stage.fan * p.peer)
            for height, column in enumerate(top):
                tier, below = self.objective.tiers[height], self.objective.tiers[height - 1]
                hops = (tier.passed - below.passed) * cluster.fabric.hop_latency
                more = hops if height else max(far - own, 0.0)
                terms[column] = terms.get(column, 0.0) + stage.steps * more
        return terms, least

    def _tops(self, stage: Edges) -> list[int]:
        """[level] a column that is 1 where a message crosses it."""
        if not len(stage.src):
            return []
        found = []
        for height, _ in enumerate(self.objective.tiers):
            column = self.program.column(upper=1.0)
            if height == 0 and not self.alone:  # a node has one block
                self.program.row({column: 1.0}, lower=1.0)
            else:
                for a, b in zip(stage.src.tolist(), stage.dst.tolist(), strict=True):
                    for d in np.unique(self.domain[height]):
                        q = self.leaves(height, a, b, int(d))
                        self.program.row({column: 1.0, q: -1.0}, lower=0.0)
            found.append(column)
        return found

    def _links(self, whole: Whole) -> list[Terms]:
        """Seconds of line rate on every link, as sums of columns."""
        found: dict[tuple[int, ...], Terms] = {}
        for stage in whole.stages:
            for height, tier in enumerate(self.objective.tiers):
                alike = 1 if height == 0 else -(-stage.copies // tier.parts)
                each = zip(stage.src.tolist(), stage.dst.tolist(), stage.out.tolist(),
                           stage.into.tolist(), (stage.bytes * alike / tier.rate).tolist(),
                           strict=True)  # fmt: skip
                for a, b, out, into, seconds in each:
                    for d in np.unique(self.domain[height]).tolist():
                        up, down = (
                            (height, 0, d, out % tier.parts),
                            (height, 1, d, into % tier.parts),
                        )
                        if height == 0:
                            self._card(found, (a, b, out, into), d, seconds)
                        elif out % tier.parts != into % tier.parts:
                            _add(found, up, self.inside(height, a, d), seconds)
                            _add(found, down, self.inside(height, b, d), seconds)
                        else:
                            _add(found, up, {self.leaves(height, a, b, d): 1.0}, seconds)
                            _add(found, down, {self.leaves(height, b, a, d): 1.0}, seconds)
        return list(found.values())

    def _card(
        self, found: dict[tuple[int, ...], Terms], edge: tuple[int, ...], d: int, seconds: float
    ) -> None:
        """A block's own network cards."""
        a, b, out, into = edge
        if self.alone:
            crossing = {self.leaves(0, a, b, d): 1.0}
        elif d == self.domain[0][0]:
            one = self.program.column(upper=1.0)
            self.program.row({one: 1.0}, lower=1.0)
            crossing = {one: 1.0}
        else:
            return
        _add(found, (0, 0, a, out), crossing, seconds)
        _add(found, (0, 1, b, into), crossing, seconds)


def _add(found: dict[tuple[int, ...], Terms], link: tuple[int, ...], on: Terms, of: float) -> None:
    terms = found.setdefault(link, {})
    for column, value in on.items():
        terms[column] = terms.get(column, 0.0) + value * of
