"""What a rank was heard to exchange, from any file that tells of its calls.

Bytes are those of the whole vector, as in `Exchange`: what an all-gather gives, what a
reduce-scatter takes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Final, NamedTuple

import msgspec

from ..arrays import item_size
from ..formats.chakra import Graph, Node, NodeKind
from ..formats.flight import Call as Recorded
from ..formats.flight import Dump
from ..formats.kineto import Call as Traced
from ..formats.kineto import Trace, words
from ..timeline import Timeline, What

Ranks = tuple[int, ...]
MEMBERS: Final = 1 << 20
"""Ranks of a group."""
_NUMBER: Final = re.compile(r"(\d{1,7})(?:\.\w+)*$")
_CALL: Final = re.compile(r"(\w+) of (\d{1,18}) (\w+)")
_BETWEEN: Final = re.compile(r"(send|recv)\w* (\d{1,7})\s*(?:->|<-)\s*(\d{1,7})")
_LISTED: Final = re.compile(r"\[\s*\{.*\}\s*\]", re.DOTALL)


class Call(NamedTuple):
    """A call of a rank.

    Attributes:
        name: of the collective, or "send" or "recv".
        ranks: of its group, in ascending order; none where the file doesn't tell.
        bytes: -1 where the file doesn't tell.
        peer: the other rank of a message, or -1.
    """

    name: str
    ranks: Ranks
    bytes: int
    peer: int = -1


class Heard(NamedTuple):
    """A file, of one rank.

    Attributes:
        rank: of the job; -1 where neither the file nor its name tells.
        world: ranks of the job; 0 where the file doesn't tell.
        steps: in the file; 0 where none are marked.
        calls: how often each was made.
    """

    rank: int
    world: int
    steps: int
    calls: Counter[Call]


def numbered(name: str) -> int:
    """The number at the end of a file's name, or -1."""
    found = _NUMBER.search(name)
    return int(found[1]) if found else -1


def of_trace(trace: Trace) -> Heard:
    """From PyTorch's profiler."""
    known = {ranks for ranks in trace.groups.values() if ranks}
    only = known.pop() if len(known) == 1 else ()
    every = tuple(range(trace.world or 0)) if (trace.world or 0) <= MEMBERS else ()

    def ranks(call: Traced) -> Ranks:
        found = call.ranks or trace.groups.get(call.group, () if call.group else only)
        return found or (every if call.size == len(every) else ())

    calls = Counter(_sorted(c.name, ranks(c), c.bytes, c.peer) for c in trace.calls)
    rank = numbered(trace.file) if trace.rank is None else trace.rank
    return Heard(rank, len(every), len(trace.steps), calls)


def of_dump(dump: Dump) -> Heard:
    """From the flight recorder."""

    def heard(call: Recorded) -> Call:
        ranks = dump.groups.get(call.group, ())
        between = _BETWEEN.search(call.operation)
        if between is None:
            name = words.collective(call.operation)
            return _sorted(name, ranks, _recorded(name, call))
        ends = [int(between[2]), int(between[3])]  # places in the group
        peer = ends[1] if ranks[ends[0] : ends[0] + 1] == (dump.rank,) else ends[0]
        return _sorted(between[1], ranks, _recorded("", call),
                       ranks[peer] if peer < len(ranks) else -1)  # fmt: skip

    every = max(dump.groups.values(), key=len, default=())
    world = len(every) if every == tuple(range(len(every))) else 0
    rank = -1 if dump.rank is None else dump.rank
    return Heard(rank, world, 0, Counter(map(heard, dump.calls)))


def of_graph(graph: Graph, file: str, files: int) -> Heard:
    """From an execution trace.

    Args:
        graph: the trace.
        file: its name, whose number is the rank.
        files: how many there are; a call without a group is of all ranks.
    """
    groups = _groups(graph)
    every = tuple(range(files)) if files > 1 else ()

    def ranks(node: Node) -> Ranks:
        first, step, size = (_count(node.get(key)) for key in (
            "global_rank_start", "global_rank_stride", "pg_size"))  # fmt: skip
        if first >= 0 and step > 0 and 0 < size <= MEMBERS:
            return tuple(range(first, first + step * size, step))
        group = node.get("pg_name")
        return groups.get(str(group), ()) if group not in (None, "") else every

    calls = Counter(call for node in graph.nodes for call in _of_node(node, graph, ranks))
    return Heard(numbered(file), 0, 0, calls)


def of_timeline(timeline: Timeline) -> list[Heard]:
    """From our own: each of its ranks that has made a call."""
    every = tuple(range(sum(name.startswith("rank ") for name in timeline.names)))
    made: dict[int, Counter[Call]] = {}
    whole = timeline.what == What.CALL
    pairs = zip(timeline.rank[whole].tolist(), timeline.call[whole].tolist(), strict=True)
    for rank, number in pairs:
        if rank < len(every):
            found = _CALL.match(timeline.calls.get(number, ""))
            name = found[1] if found else timeline.calls.get(number, "").partition(" ")[0]
            size = int(found[2]) * item_size(found[3]) if found else -1
            made.setdefault(rank, Counter())[Call(name, every, size)] += 1
    return [Heard(rank, len(every), 0, calls) for rank, calls in sorted(made.items())]


def _sorted(name: str, ranks: Sequence[int], size: int, peer: int = -1) -> Call:
    return Call(name, tuple(sorted(ranks)), size, peer)


def _recorded(name: str, call: Recorded) -> int:
    """Bytes, by shapes."""
    each = words.type_size(call.dtype)
    into, out = (sum(map(prod, shapes)) for shapes in (call.inputs, call.outputs))
    count = {"all_gather": out, "reduce_scatter": into}.get(name, max(into, out))
    return each * count if each and count else -1


def _of_node(node: Node, graph: Graph, ranks: Callable[[Node], Ranks]) -> list[Call]:
    """What a node exchanges; PyTorch's observer has one for it in each call."""
    own = node.get("collective_name")
    if graph.nested:
        if not isinstance(own, str) or not own:
            return []
        name = words.collective(own)
        return [_sorted(name, ranks(node), _observed(name, node))]
    if not node.kind.communicates:
        return []
    size = _count(node.get("comm_size"))
    if node.kind == NodeKind.COLLECTIVE:
        name, group = node.collective, ranks(node)
        if name == "all_gather" and size > 0:  # of a rank's own piece
            size *= len(group)
        return [_sorted(name, group, size)]
    sends = node.kind == NodeKind.SEND
    peer = _count(node.get("comm_dst" if sends else "comm_src"))
    return [_sorted("send" if sends else "recv", ranks(node), size, peer)]


def _observed(name: str, node: Node) -> int:
    kind = node.get("dtype")
    each = words.type_size(kind) if isinstance(kind, str) else 0
    into, out = (_count(node.get(key)) for key in ("in_msg_nelems", "out_msg_nelems"))
    count = {"all_gather": out, "reduce_scatter": into}.get(name, max(into, out))
    return each * count if each and count >= 0 else -1


def _groups(graph: Graph) -> Mapping[str, Ranks]:
    """Of the node in which PyTorch lists process groups."""
    found: dict[str, Ranks] = {}
    for node in graph.nodes:
        listed = _LISTED.search(node.inputs[0]) if "process_group:init" in node.name else None
        if listed is None:
            continue
        try:
            groups = msgspec.json.decode(listed[0].replace('\\"', '"'), type=list[dict[str, Any]])
        except (msgspec.DecodeError, RecursionError):
            continue
        for group in groups:
            ranks = group.get("ranks")
            if isinstance(ranks, list) and all(_count(r) >= 0 for r in ranks):
                size = _count(group.get("group_size"))
                whole = range(size if 0 < size <= MEMBERS else 0)  # the default group lists none
                found[str(group.get("pg_name"))] = tuple(ranks) or tuple(whole)
    return found


def _count(value: Any) -> int:
    whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53
    return value if whole else -1
