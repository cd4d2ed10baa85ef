"""What a log of NCCL or RCCL holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..note import Note


class Line(NamedTuple):
    """A line of a file, from 1, without what a launcher has put before it."""

    number: int
    text: str
    file: str = ""


@dataclass
class Edge:
    """A line of NCCL's tree of the system: what is reached over what, at GB/s one way."""

    depth: int
    medium: str
    rate: float | None
    end: str
    detail: str
    line: Line


class Warned(NamedTuple):
    """A warning, or an information of its weight: where in NCCL's source, and what is said."""

    place: str
    text: str
    host: str
    line: Line
    warns: bool = True


class Failed(NamedTuple):
    """Where a thread gave up first: a line of NCCL's source, and the result that it hands on."""

    place: str
    result: int
    line: Line


@dataclass(frozen=True)
class Last:
    """The last call that a thread has told of: its number, function, elements and communicator.

    Attributes:
        ranks: of the communicator; 0 where it is not told.
    """

    count: int
    function: str
    elements: int
    comm: str
    line: Line
    ranks: int = 0


@dataclass
class Thread:
    """One thread of one process: in a communicator's start-up that is one rank.

    Attributes:
        host, pid, device: from the lines' heads.
        rank, ranks, nodes, local: as the communicator's line says.
        started, complete, aborted: lines that say so.
        job: id of the communicator, as all its ranks print it; "" where that is not told.
        rings: by channel, the rank before and the one behind.
        trees: by channel, the rank above and those below.
        first_tree: the line that tells of the first tree.
        vias: what each transport's text stands for.
        told: where and what the last call was, by communicator; see `last_of`.
        failed: the first line of the way back from a failure.
    """

    host: str
    pid: str
    device: int | None = None
    rank: int | None = None
    ranks: int | None = None
    nodes: int | None = None
    local: int | None = None
    started: Line | None = None
    complete: Line | None = None
    aborted: Line | None = None
    job: str = ""
    rings: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    trees: dict[int, tuple[int, int, tuple[int, ...]]] = field(default_factory=dict)
    first_tree: Line | None = None
    vias: dict[bytes, Via] = field(default_factory=dict)
    told: dict[bytes, tuple[Any, bytes]] = field(default_factory=dict)
    failed: Failed | None = None


@dataclass(slots=True)
class Via:
    """A transport: its name, and the network device if it has one, with GPUDirect RDMA or not."""

    transport: str
    network: Way | None
    direct: bool


@dataclass
class Way:
    """Connections over one network device of a host, with and without GPUDirect RDMA."""

    # Old versions read a card's memory for sends only if NCCL_NET_GDR_READ asks for it, so sends
    # without it are counted apart.

    host: str
    name: str
    direct: int = 0
    staged: int = 0
    staged_sends: int = 0
    channels: set[int] = field(default_factory=set)
    first_direct: Line | None = None
    first_staged: Line | None = None


class Choice(NamedTuple):
    """What NCCL has chosen for a call; None where the line does not say."""

    function: str
    size: int
    algorithm: str
    protocol: str
    channels: int | None
    time_us: float | None
    line: Line


class Health(NamedTuple):
    """A card's place in a multi-node NVLink fabric."""

    bus: str
    fabric: str
    clique: str
    state: int
    mask: str
    line: Line


class Reach(NamedTuple):
    """A way in NCCL's table of paths: hops, GB/s one way, class."""

    source: str
    target: str
    hops: int
    rate: float
    way: str
    line: Line


class Search(NamedTuple):
    """What NCCL's search has found for one pattern.

    Attributes:
        pattern: NCCL's number; see `nccl_graph.PATTERNS`.
        crosses: whether a ring may leave by one network card and come in by another.
        inside, between: GB/s of a channel one way, inside a node and between nodes.
        way_inside, way_between: class of the longest way; "" where it is not told.
    """

    pattern: int
    crosses: bool
    channels: int
    inside: float
    between: float
    way_inside: str
    way_between: str
    line: Line


@dataclass
class NcclLog:
    """All that a log holds. What comes by the thousand is counted, with its first line.

    Attributes:
        lines: of NCCL, and others.
        standing: the last line, where it is a progress bar at its start.
        versions: such as "NCCL 2.26.2+cuda12.8", with their first line.
        threads: those that have said something about a rank.
        systems: the tree of the system, by host, of the first rank that printed it.
        transports: such as "P2P/CUMEM", with how often.
        networks: connections by host and network device.
        chosen: what was chosen, by the text that says so; see `choices`.
        measured: bare rows of nccl-tests behind NCCL's lines: microseconds and GB/s of size.
        warned: warnings that differ, the first thousand, with how often.
        noted: information that weighs as much as a warning, likewise.
        environment: variables that were set, with their values.
        interfaces: lines that name network interfaces or the network that is used.
        health: of multi-node NVLink.
        paths: of the table of paths.
        searches: what the search for rings and trees has found, by what it says.
        nets: whether its channels pass network cards.
        results: what NCCL's calls ended with, by name, as the program's errors say.
        notes: what was odd.
    """

    lines: int = 0
    others: int = 0
    standing: Line | None = None
    versions: dict[str, Line] = field(default_factory=dict)
    threads: dict[bytes, Thread] = field(default_factory=dict)
    systems: dict[str, list[Edge]] = field(default_factory=dict)
    transports: Counter[str] = field(default_factory=Counter)
    networks: dict[tuple[str, str], Way] = field(default_factory=dict)
    chosen: dict[bytes, list[Any]] = field(default_factory=dict)
    measured: list[tuple[float, float, Line]] = field(default_factory=list)
    warned: dict[tuple[str, str], tuple[int, Warned]] = field(default_factory=dict)
    noted: dict[tuple[str, str], tuple[int, Warned]] = field(default_factory=dict)
    environment: dict[str, tuple[str, Line]] = field(default_factory=dict)
    interfaces: dict[str, Line] = field(default_factory=dict)
    health: list[Health] = field(default_factory=list)
    paths: list[Reach] = field(default_factory=list)
    searches: dict[bytes, Search] = field(default_factory=dict)
    nets: bool = False
    results: dict[str, Line] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)

    def choices(self) -> list[tuple[int, Choice]]:
        """What was chosen for calls, with how often."""
        return [(count, made) for count, made in self.chosen.values()]

    def ranks(self) -> Iterable[Thread]:
        """Threads whose rank is known."""
        return (thread for thread in self.threads.values() if thread.rank is not None)

    @property
    def size(self) -> int | None:
        """Ranks of the largest communicator that the log names."""
        return max((t.ranks for t in self.threads.values() if t.ranks), default=None)
