"""What each line of NCCL's log says, from version 2.4 on; RCCL writes the same.

A function takes the body of a line, behind NCCL INFO, and puts what it says into the record.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from types import MappingProxyType
from typing import Final, NamedTuple

from .record import Choice, Edge, Health, Last, Line, NcclLog, Reach, Search, Thread, Via, Way

ALGORITHMS: Final = (
    "tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat",
)  # fmt: skip
PROTOCOLS: Final = ("LL", "LL128", "Simple")
KEPT: Final = 1000
"""Of what differs from line to line, as many are kept."""
_NUMBER: Final = re.compile(rb"-?\d{1,15}")
_PROXY: Final = re.compile(r"\(\d+\)")
_RING: Final = re.compile(rb"Ring (\d{1,15}) : (-?\d{1,15}) -> (-?\d{1,15}) -> (-?\d{1,15})")
_TREE: Final = re.compile(rb"Tree (\d{1,15}) : (-?\d{1,15}) -> (-?\d{1,15}) -> ([-\d/]+)")
_TREES: Final = re.compile(rb"\[(\d{1,15})\] ([-\d/]+)->(-?\d{1,15})->([-\d/]+)")
_COMM: Final = re.compile(
    rb"comm \S+ rank (\d{1,15}) n[Rr]anks (\d{1,15})(?: nNodes (\d{1,15}) localRanks (\d{1,15}))?"
)
_JOB: Final = re.compile(rb" commId (0x\w{1,32})")
_EDGE: Final = re.compile(rb"( *)\+ ([A-Z0-9]+)\[(\d{1,15}(?:\.\d{1,15})?)\] - (\S+)(?: \((.*)\))?")
_ROOT: Final = re.compile(rb"(CPU/\S+) \((.*)\)")
_REACH: Final = re.compile(rb"(\w+/\S+) \((\d{1,15})/(\d{1,15}(?:\.\d{1,15})?)/(\w+)\)")
_CALL: Final = re.compile(
    rb"(?:(\w+): )?(\d{1,15}) Bytes -> Algo (\w+) proto (\w+)"
    rb"(?: time (\d{1,15}(?:\.\d{1,15})?))?(?: channel\{Lo\.\.Hi\}=\{(\d{1,15})\.\.(\d{1,15})\})?"
)
_COUNTED: Final = re.compile(
    rb"(\w+): opCount ([0-9a-f]{1,16}) .*?\bcount (\d{1,15}) .*?\bcomm (0x\w+)"
    rb"(?: \[nranks=(\d{1,9})\])?"
)
_MNNVL: Final = re.compile(
    rb"MNNVL busId (\S+) fabric UUID (\S+) cliqueId (\S+) state (\d{1,15}) healthMask (\S+)"
)
_SEARCH: Final = re.compile(
    rb"Pattern (\d{1,3}), crossNic (\d), nChannels (\d{1,4}), (?:bw|speed) (\d{1,9}(?:\.\d{1,9})?)/"
    rb"(\d{1,9}(?:\.\d{1,9})?)(?:, nvlink \d)?, type (\w{1,8})(?:/(\w{1,8}))?"
)
_SET: Final = re.compile(rb"(NCCL_\w+|RCCL_\w+) set by environment to (.*?)\.?$")
_LONGEST: Final = 2000


class At(NamedTuple):
    """Where a body stands: only what is kept is worth a text."""

    number: int
    raw: bytes
    file: str

    def line(self) -> Line:
        """The line, as text."""
        return Line(self.number, text_of(self.raw), self.file)


def connected(log: NcclLog, thread: Thread, body: bytes, at: At) -> None:
    """A channel to another rank, by some transport; or a ring, in older logs' words."""
    before, _, via = body.partition(b" via ")
    if not via:
        ring(log, thread, body, at)
        return
    way = thread.vias.get(via)
    if way is None:
        way = thread.vias[via] = _way(log, thread, via)
    log.transports[way.transport] += 1
    if way.network is None:
        return
    way.network.channels.add(_channel(before))
    if way.direct:
        way.network.direct += 1
        way.network.first_direct = way.network.first_direct or at.line()
    else:
        way.network.staged += 1
        way.network.staged_sends += b"[send]" in before
        way.network.first_staged = way.network.first_staged or at.line()


def _channel(before: bytes) -> int:
    """The number in Channel 00/0 : ... or Ring 00 : ..."""
    word = b"".join(before.split(b" ", 2)[1:2]).partition(b"/")[0]
    return int(word) if _NUMBER.fullmatch(word) else -1


def _way(log: NcclLog, thread: Thread, via: bytes) -> Via:
    """What a transport's name says: NET/IB/0(3)/GDRDMA, P2P/CUMEM/read."""
    text = text_of(via)
    if not text.startswith("NET/"):
        return Via(text.split("/read")[0].split(" comm ")[0], None, False)
    parts = text.split("/")
    device = _PROXY.sub("", "/".join(parts[1:3]))
    network = log.networks.setdefault((thread.host, device), Way(thread.host, device))
    return Via("NET/" + parts[1], network, "GDRDMA" in text)


def ring(log: NcclLog, thread: Thread, body: bytes, at: At) -> None:
    """Ring 00 : before -> rank -> behind."""
    found = _RING.match(body)
    if found:
        channel, before, rank, behind = map(int, found.groups())
        thread.rings[channel] = before, rank, behind


def tree(log: NcclLog, thread: Thread, body: bytes, at: At) -> None:
    """Tree 0 : above -> rank -> below/below/below."""
    found = _TREE.match(body)
    if found:
        thread.first_tree = thread.first_tree or at.line()
        thread.trees[int(found[1])] = int(found[3]), int(found[2]), _ranks(found[4])


def trees(log: NcclLog, thread: Thread, body: bytes, at: At) -> None:
    """Trees [0] below->rank->above, or in version 2.4 above->rank->below: below has slashes."""
    thread.first_tree = thread.first_tree or at.line()
    for channel, left, rank, right in _TREES.findall(body):
        below, above = (left, right) if b"/" in left else (right, left)
        thread.trees[int(channel)] = int(rank), _ranks(above, keep=True)[0], _ranks(below)


def _ranks(text: bytes, *, keep: bool = False) -> tuple[int, ...]:
    numbers = (int(part) for part in text.split(b"/") if _NUMBER.fullmatch(part))
    return tuple(n for n in numbers if keep or n >= 0) or ((-1,) if keep else ())


def communicator(log: NcclLog, thread: Thread, body: bytes, at: At) -> None:
    """The rank and the sizes; whether its start-up begins or is complete."""
    found = _COMM.search(body)
    if found is None:
        return
    thread.rank, thread.ranks = int(found[1]), int(found[2])
    if found[3]:
        thread.nodes, thread.local = int(found[3]), int(found[4])
    if (job := _JOB.search(body)) and not thread.job:
        thread.job = text_of(job[1])
    if b"Init START" in body:
        thread.started, thread.complete = at.line(), None
    elif b"Init COMPLETE" in body:
        thread.complete = at.line()
    elif b"Abort COMPLETE" in body:
        thread.aborted = thread.aborted or at.line()


def edge(log: NcclLog, thread: Thread, body: bytes, at: At) -> None:
    """A line of the tree of the system."""
    edges = log.systems.get(thread.host)
    if edges is None or len(edges) >= KEPT:
        return
    if found := _EDGE.match(body):
        indent, medium, rate, end, detail = found.groups()
        edges.append(Edge(1 + len(indent), medium.decode(), float(rate), _text(end),
                          _text(detail or b""), at.line()))  # fmt: skip
    elif root := _ROOT.match(body):
        edges.append(Edge(0, "", None, _text(root[1]), _text(root[2]), at.line()))


def paths(log: NcclLog, thread: Thread, body: bytes, at: At) -> None:
    """GPU/x :GPU/y (hops/rate/class) ...: a row of the table of paths."""
    source, colon, rest = body.partition(b" :")
    line = at.line()
    if not colon or len(log.paths) >= KEPT:
        return
    for target, hops, rate, way in _REACH.findall(rest[: _LONGEST * 8]):
        log.paths.append(Reach(_text(source), _text(target), int(hops), float(rate), _text(way),
                               line))  # fmt: skip


def search(log: NcclLog, thread: Thread, body: bytes, at: At) -> None:
    """Pattern 4, crossNic 0, nChannels 2, bw 12/12, type PHB/PIX: said by every rank alike."""
    found = _SEARCH.match(body)
    if found is None or body in log.searches or len(log.searches) >= KEPT:
        return
    pattern, crosses, channels, inside, between, way, other = found.groups()
    log.searches[body] = Search(
        int(pattern), crosses != b"0", int(channels), float(inside), float(between), _class(way),
        _class(other or b""), at.line(),
    )  # fmt: skip


def _class(way: bytes) -> str:
    """A class of ways; versions before 2.6 write a number, whose meaning has changed since."""
    return "" if way.isdigit() else _text(way)


def choice(log: NcclLog, thread: Thread, body: bytes, at: At) -> None:
    """The algorithm and protocol of a call: a text that comes again and again."""
    seen = log.chosen.get(body)
    if seen is not None:
        seen[0] += 1
    elif len(log.chosen) < KEPT and (found := _CALL.match(body)):
        function, size, algorithm, protocol, time, low, high = found.groups()
        made = Choice(
            _text(function or b""), int(size), _name(algorithm, ALGORITHMS),
            _name(protocol, PROTOCOLS), int(high) - int(low) + 1 if high else None,
            float(time) if time else None, at.line(),
        )  # fmt: skip
        log.chosen[body] = [1, made]


def _name(text: bytes, names: tuple[str, ...]) -> str:
    """A name for an id or a name."""
    word = text.decode("utf-8", "replace")
    if word.isdecimal() and len(word) < 4:
        return names[int(word)] if int(word) < len(names) else word
    return next((name for name in names if name.lower() == word.lower()), word)


def call(log: NcclLog, thread: Thread, body: bytes, at: At) -> None:
    """A call, counted: the last one of each communicator is kept as it stands."""
    start = body.find(b" comm ")
    if start > 0:
        end = body.find(b" ", start + 6)
        thread.told[body[start + 6 : end if end > 0 else None]] = at, body


def last_of(thread: Thread) -> list[Last]:
    """The last call in each communicator."""
    found = []
    for at, body in thread.told.values():
        if counted := _COUNTED.match(body):
            function, count, elements, comm, ranks = counted.groups()
            found.append(Last(int(count, 16), _text(function), int(elements), _text(comm),
                              at.line(), int(ranks or 0)))  # fmt: skip
    return found


def health(log: NcclLog, thread: Thread, body: bytes, at: At) -> None:
    """A card's place in a fabric of NVLink."""
    found = _MNNVL.match(body)
    if found and len(log.health) < KEPT:
        bus, fabric, clique, state, mask = found.groups()
        log.health.append(Health(_text(bus), _text(fabric), _text(clique), int(state), _text(mask),
                                 at.line()))  # fmt: skip


def variable(log: NcclLog, thread: Thread, body: bytes, at: At) -> None:
    """A variable that was set."""
    found = _SET.match(body)
    if found and len(log.environment) < KEPT:
        log.environment.setdefault(_text(found[1]), (_text(found[2]), at.line()))


def interface(log: NcclLog, thread: Thread, body: bytes, at: At) -> None:
    """A line about interfaces and networks."""
    if b"Using" in body and len(log.interfaces) < KEPT:
        log.interfaces.setdefault(f"{thread.host}: {_text(body)}", at.line())


def text_of(data: bytes) -> str:
    """The text of a line, shortened."""
    return data[:400].decode("utf-8", "replace").strip()


def _text(data: bytes) -> str:
    return data[:_LONGEST].decode("utf-8", "replace").strip()


Say = Callable[[NcclLog, Thread, bytes, At], object]
SAYS: Final = MappingProxyType(
    {
        b"Channel": connected, b"Ring": connected, b"Tree": tree, b"Trees": trees,
        b"comm": communicator, b"ncclCommInitRank": communicator, b"[Rank": communicator,
        b"ncclCommInitRankConfig": communicator, b"ncclCommSplit": communicator,
        b"Pattern": search, b"MNNVL": health,
        b"NET/IB": interface, b"NET/Socket": interface, b"NET/OFI": interface,
        b"Bootstrap": interface, b"Using": interface, b"+": edge,
    }
)  # fmt: skip
"""What a line says, by its first word."""
