"""From a checked call to a task for the engine: chosen, planned, cut into slices, and cached."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final
from zlib import crc32

import numpy as np

from . import _native, fixed_order
from .algorithms import find
from .arrays import Array, give_back, item_size
from .counting import Counters
from .errors import RoundelayError
from .fixed_order import in_rank_order
from .layout import layout
from .recorder import Note, Notes
from .requests import COLLECTIVES, NO_ROOT, OPS, UNEQUAL, Memory, Request, memory, scaled
from .run.group import Group
from .schedule import Schedule
from .selection import Table, Topology
from .slicing import slicing
from .team import Planned, Teams, carrying, encode, run
from .verify import verify

STREAM_FROM: Final = 8 << 20
"""Bytes of a result from which it is written past the cache, where nothing of it is read again."""
MOST_OWN: Final = 64
"""Schedules of the user's own whose plans are kept."""
NO_OP: Final = 255


class Planner:
    """Makes the calls of one communicator.

    Attributes:
        notes: what calls are, for traces.
        counters: how often they were made.
    """

    def __init__(
        self,
        rank: int,
        nodes: tuple[tuple[int, ...], ...],
        group: Group,
        grow: Callable[[list[int]], Group],
        table: Table,
        in_order: bool,
    ) -> None:
        """For a communicator's planner.

        Args:
            rank: this process.
            nodes: the ranks of each node.
            group: the ranks.
            grow: makes a group of the ranks and helpers, given all their hosts.
            table: which algorithm when.
            in_order: take only what adds up in rank order.
        """
        # Virtual ranks go node by node, large ones first, so that algorithms of two levels find
        # their nodes.
        nodes = tuple(sorted(nodes, key=len, reverse=True))
        self._order = np.array([r for node in nodes for r in node], np.int64)
        if in_order:
            self._order.sort()
        self._rank, self._ranks = rank, len(self._order)
        self._topology = Topology(self._ranks, tuple(map(len, nodes)))
        self._teams = Teams(rank, self._ranks, group, grow)
        self.notes, self.counters = Notes(), Counters()
        self._table, self._fixed_order = table, in_order
        self._build = lru_cache(maxsize=256)(self._built)
        self._build_ordered = lru_cache(maxsize=256)(self._ordered)
        self._own: dict[int, Planned] = {}
        self._met: set[tuple[str, bytes]] = set()

    def perform(self, request: Request) -> Any:
        """Make the call.

        Raises:
            RoundelayError: bad input; nothing has been exchanged.
            ExchangeError: the exchange failed.
        """
        found = memory(request, self._rank, self._ranks)
        endpoint = self._teams.plain.group.endpoints[self._rank]
        endpoint.enter()
        try:
            self._perform(request, found, endpoint)
        finally:
            endpoint.leave()
        if found.output is not None and found.result is not None:
            give_back(found.output, found.result, "the output")
        return found.result

    def _perform(self, request: Request, found: Memory, endpoint: Any) -> None:
        x = None if found.input is None else found.input.array
        y = None if found.output is None else found.output.array
        dtype = sys.intern(found.dtype)
        short = found.own and request.counts is None and request.op != "premul_sum"
        key = (request.collective, x, y, request.op, request.algorithm)
        if not (short and endpoint.call(*key, dtype, request.root)):
            if request.op == "premul_sum" and x is not None:
                x = scaled(x, dtype, request.scale)
            largest = self._largest(request, found)
            planned = self._choose(request, found)
            options = self._options(request, found, planned, largest)
            self._connect(planned, found, options)
            tasks = self._tasks(request, found, planned, options)
            run(planned.team, self._rank, tasks, x, y, found.in_place)
            if short and not planned.schedule.helpers:
                for name in {dtype, request.dtype}:
                    endpoint.remember(*key, name, request.root, tasks[self._rank], found.in_place)

    def _choose(self, request: Request, found: Memory) -> Planned:
        if isinstance(request.algorithm, Schedule):
            return self._users(request.algorithm, request)
        kind = request.kind
        name, parameters = str(request.algorithm), {}
        if request.counts is not None and kind.pieces == 2:
            name = "direct" if name == "auto" else name
            if name not in ("direct", "pairwise"):
                raise RoundelayError(
                    f"all_to_all/{name} with counts: pieces would go through ranks that do not "
                    "know their sizes; expected direct or pairwise"
                )
        if name == "auto":
            size = self._size(found, kind.volume)
            name, chosen = self._table.choose(kind.name, self._topology, size)
            parameters = dict(chosen)
            if self._fixed_order and kind.sums:
                root = request.root if kind.rooted else 0
                return self._build_ordered(kind.name, root, size <= fixed_order.SMALL)
        elif "group" in find(f"{kind.name}/{name}").parameters:
            parameters = {"group": self._topology.nodes[0]}
        items = tuple(sorted(parameters.items()))
        return self._build(kind.name, name, items, request.root if kind.rooted else 0)

    def meet(self) -> None:
        """Connect what a barrier needs: few connections, by which ranks agree on all others."""
        nothing = np.empty(0, np.uint8)
        call = Request(COLLECTIVES.index("barrier"), nothing, nothing)
        self._first = self._choose(call, memory(call, self._rank, self._ranks))
        self._met.add(_met(self._first))
        self._first.team.group.connect(self._rank, self._first.peers)

    def _connect(self, planned: Planned, found: Memory, call: dict[str, int]) -> None:
        """Connect with the peers of a plan that is new.

        Ranks that were asked for different things would wait for connections in vain, so they
        first go through a barrier in the name of this call.
        """
        if _met(planned) in self._met or len(self._topology.nodes) == 1:
            return
        task = self._task(self._first, self._rank, np.zeros(self._ranks, np.int64), found.dtype,
                          "sum", call | {"slices": 1, "lag": 0, "divisor": 0}, None)  # fmt: skip
        run(self._first.team, self._rank, {self._rank: task}, None, None, False)
        planned.team.group.connect_helpers(planned.pairs)
        planned.team.group.connect(self._rank, planned.peers)
        self._met.add(_met(planned))

    def _size(self, found: Memory, volume: int | str) -> int:
        elements = found.counts[self._rank].sum() if volume == "n" else found.counts.sum()
        return int(elements) * item_size(found.dtype)

    def _built(
        self, kind: str, name: str, parameters: tuple[tuple[str, Any], ...], root: int
    ) -> Planned:
        algorithm = find(f"{kind}/{name}")
        rooted = algorithm.kind.rooted
        virtual_root = int(np.flatnonzero(self._order == root)[0]) if rooted else 0
        schedule = algorithm(self._ranks, virtual_root, **dict(parameters))
        self._check_order(schedule)
        return self._teams.plan(schedule, self._order)

    def _ordered(self, kind: str, root: int, small: bool) -> Planned:
        return self._teams.plan(in_rank_order(kind, self._ranks, root, small), self._order)

    def _users(self, schedule: Schedule, request: Request) -> Planned:
        """A schedule of the user's own."""
        kept = self._own.get(id(schedule))
        if kept is None:
            if (schedule.collective, schedule.ranks) != (request.kind.name, self._ranks):
                raise RoundelayError(
                    f"the schedule is {schedule!r}; expected one of {request.kind.name} over "
                    f"{self._ranks} ranks"
                )
            if request.kind.rooted and schedule.root != request.root:
                raise RoundelayError(
                    f"the schedule's root is rank {schedule.root}, and root = {request.root}"
                )
            verdict = verify(schedule)
            if not verdict:
                raise RoundelayError(f"the schedule is not right: {verdict}")
            self._check_order(schedule)
            if len(self._own) == MOST_OWN:
                self._own.clear()
            kept = self._own[id(schedule)] = self._teams.plan(schedule, np.arange(self._ranks))
        return kept

    def _check_order(self, schedule: Schedule) -> None:
        if self._fixed_order and schedule.kind.sums and self._ranks > 1:
            fixed_order.check(schedule, verify(schedule).summation)

    def _tasks(
        self, request: Request, found: Memory, planned: Planned, options: dict[str, int]
    ) -> dict[int, Any]:
        key = (options["collective"], options["plan"], options["root"])
        name = label(planned.schedule)
        self.notes.keep(key, Note(name, planned.plans))
        counts = {self._rank: self.counters.of(request.kind.name, name, options["bytes"])}
        op = "sum" if request.op in (None, "avg", "premul_sum") else request.op
        return {
            p: self._task(planned, p, found.counts, found.dtype, op, options, counts.get(p))
            for p in planned.numbers
        }

    def _task(
        self, planned: Planned, p: int, counts: Array, dtype: str, op: str, options: dict[str, int],
        counted: _native.Counts | None,
    ) -> Any:  # fmt: skip
        places = layout(planned.schedule, p, planned.order, counts)
        participants = self._ranks + planned.schedule.helpers
        numbers = planned.numbers[p]
        if options["elements"] == UNEQUAL and not places.length.all():
            numbers = encode(carrying(planned.plans[p], places.length))
        return _native.task(numbers, participants, *places, op, dtype, options, counted)

    def _options(
        self, request: Request, found: Memory, planned: Planned, largest: int
    ) -> dict[str, int]:
        """How the schedule is cut, and what all ranks must agree on."""
        schedule, kind, group = planned.schedule, request.kind, planned.team.group
        item = item_size(found.dtype)
        pieces = schedule.chunks // kind.piece_count(schedule.size)
        chunk = -(-largest // pieces) * item
        cut = slicing(schedule, chunk, len(self._topology.nodes), group.arena, group.attach)
        unequal = request.counts is not None and kind.pieces == 2
        told = found.counts.tolist() if request.counts is not None and not unequal else ""
        name = f"{planned.identity}{cut}{told}"
        return {
            **cut._asdict(),
            "streamed": self._streamed(request, found),
            "divisor": self._ranks if request.op == "avg" else 0,
            "bytes": self._size(found, kind.volume),
            "elements": UNEQUAL if unequal else int(found.counts.sum()),
            "plan": crc32(name.encode()),
            "root": request.root if kind.rooted else NO_ROOT,
            "collective": request.collective,
            "op": NO_OP if request.op is None else OPS.index(request.op),
        }

    def _largest(self, request: Request, found: Memory) -> int:
        """Elements of the largest piece; of all-to-all with counts, ranks must ask one another."""
        largest = int(found.counts.max(initial=0))
        if request.counts is None or request.kind.pieces < 2:
            return largest
        most = np.array([largest], np.int64)
        self.perform(Request(COLLECTIVES.index("all_reduce"), most, most, "max"))
        return int(most[0])

    def _streamed(self, request: Request, found: Memory) -> bool:
        """Whether the result is large, and nothing of it is read again in the same call."""
        if found.in_place or request.kind.sums or found.output is None:
            return False
        return found.output.array.nbytes >= STREAM_FROM

    def close(self) -> None:
        """Ends the helpers; the planner can't be used any more."""
        self._teams.close()
        # They lead back to here and to the communicator, whose memory would stay until the next
        # collection of cycles.
        del self._teams, self._build, self._build_ordered


def _met(planned: Planned) -> tuple[str, bytes]:
    """What tells plans apart by their peers: a schedule of the user's own is in another order."""
    return planned.identity, planned.order.tobytes()


def label(schedule: Schedule) -> str:
    """An algorithm and its parameters, for people."""
    parameters = [f"{name}={value}" for name, value in sorted(schedule.params.items())]
    return ", ".join([schedule.name or "a schedule of one's own", *parameters])
