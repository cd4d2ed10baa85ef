"""Whether calls in several groups can wait for one another in a circle, whatever runs first.

A call ends when all members of its group have come to it. What must come after what:

- on one rank, calls of one group, or of one stream, run one after another;
- nothing is called before what the program has waited for has ended.

If that makes a circle, the program must hang. A device may also run calls in the order in which
they were made though nothing asks for it, because two do not fit on it at once. If only that makes
a circle, the program may hang. Without a circle no order of execution can deadlock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

Group = tuple[str, tuple[int, ...]]
"""Its name, and the ranks that belong to it as far as they are known."""
TRIED: Final = 64
"""Nodes from which a shorter circle is looked for."""


class Use(NamedTuple):
    """A call that a rank makes.

    Attributes:
        group: in which.
        number: by which the other ranks' calls of the group match it.
        waits: whether the rank goes on only when it has ended.
        stream: calls of one stream run in order; without it, those of a group do.
        what, where: operation, and place in the program or file, for messages.
    """

    group: Group
    number: object
    waits: bool = False
    stream: str = ""
    what: str = ""
    where: str = ""


class Wait(NamedTuple):
    """A rank goes on only when this call has ended."""

    group: Group
    number: object


Programs = Mapping[int, Sequence[Use | Wait]]
"""What each rank does, in order."""


class Link(NamedTuple):
    """Of a circle: this rank comes to `after` only when `before` has ended."""

    rank: int
    before: Use
    after: Use


@dataclass(frozen=True)
class Circle:
    """Calls that wait for one another.

    Attributes:
        links: the `after` of each is the `before` of the next, of the last that of the first.
        certain: whether it must hang; else only where calls run in the order they were made.
    """

    links: tuple[Link, ...]
    certain: bool


def circle(programs: Programs) -> Circle | None:
    """A circle, a certain one if there is any; None if no order of execution can deadlock."""
    for certain in (True, False):
        found = _Graph(programs, certain).circle()
        if found:
            return Circle(found, certain)
    return None


Node = tuple[Group, object] | tuple[int, int]
"""A call, or a point of a rank's program where it has waited."""


@dataclass
class _Graph:
    """What waits for what: [node] the nodes after it, each with the rank that makes it so."""

    programs: Programs
    certain: bool
    after: dict[Node, dict[Node, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for rank, program in self.programs.items():
            self._add(rank, program)

    def _edge(self, before: Node | None, node: Node, rank: int) -> None:
        self.after.setdefault(node, {})
        if before is not None and before != node:
            self.after.setdefault(before, {}).setdefault(node, rank)

    def _add(self, rank: int, program: Sequence[Use | Wait]) -> None:
        waited: Node | None = None  # what has ended when the program goes on
        last: Node | None = None
        streams: dict[object, Node] = {}
        for point, item in enumerate(program):
            node: Node = item.group, item.number
            if isinstance(item, Wait):
                here = rank, point
                self._edge(waited, here, rank)
                self._edge(node, here, rank)
                waited = here
                continue
            for stream in {item.group, item.stream or item.group}:
                self._edge(streams.get(stream), node, rank)
                streams[stream] = node
            self._edge(waited, node, rank)
            if not self.certain:
                self._edge(last, node, rank)
            last = node
            if item.waits:
                waited = node

    def circle(self) -> tuple[Link, ...]:
        """The links of a short circle; none where there is none."""
        left = self._left()
        if not left:
            return ()
        before = {later: node for node in left for later in self.after[node] if later in left}
        node, seen = next(iter(left)), dict[Node, None]()
        while node not in seen:  # everything that is left has something left before it
            seen[node] = None
            node = before[node]
        some = [*seen][[*seen].index(node) :]
        found = [self._shortest(start, left) for start in some[:TRIED]]
        return self._links(min((way for way in found if way), key=len))

    def _left(self) -> dict[Node, None]:
        """Nodes that stay when those with nothing before them are taken away again and again."""
        count = dict.fromkeys(self.after, 0)
        for nodes in self.after.values():
            for node in nodes:
                count[node] += 1
        free = deque(node for node, n in count.items() if not n)
        while free:
            node = free.popleft()
            del count[node]
            for later in self.after[node]:
                count[later] -= 1
                if not count[later]:
                    free.append(later)
        return dict.fromkeys(count)

    def _shortest(self, start: Node, left: Mapping[Node, None]) -> list[Node]:
        """The shortest way from a node back to it."""
        came: dict[Node, Node] = {}
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for later in self.after[node]:
                if later == start:
                    way = [node]
                    while way[-1] != start:
                        way.append(came[way[-1]])
                    return way[::-1]
                if later in left and later not in came:
                    came[later] = node
                    queue.append(later)
        return []

    def _links(self, way: list[Node]) -> tuple[Link, ...]:
        """A way round as links between calls: points of programs are left out."""
        uses = {
            (rank, (use.group, use.number)): use
            for rank, program in self.programs.items() for use in program if isinstance(use, Use)
        }  # fmt: skip
        calls = [i for i, node in enumerate(way) if not isinstance(node[0], int)]
        links = []
        for at, i in enumerate(calls):
            j = calls[(at + 1) % len(calls)]
            rank = self.after[way[i]][way[(i + 1) % len(way)]]
            links.append(Link(rank, uses[rank, way[i]], uses[rank, way[j]]))  # type: ignore[index]
        return tuple(links)


def unmade(programs: Programs) -> list[tuple[Use, int, tuple[int, ...]]]:
    """Calls that some members make and others never: the call, a rank that makes it, who does not.

    Only where programs are known to their end, and groups with all their ranks.
    """
    made: dict[tuple[Group, object], dict[int, Use]] = {}
    for rank, program in programs.items():
        for item in program:
            if isinstance(item, Use):
                made.setdefault((item.group, item.number), {})[rank] = item
    found = []
    for (group, _), by in made.items():
        missing = tuple(rank for rank in group[1] if rank not in by)
        if missing:
            rank = next(iter(by))
            found.append((by[rank], rank, missing))
    return found
