"""What an execution trace shows: what it holds, whether it can be run, and its longest path."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...formats.chakra import Graph, Node, NodeKind
from ...formats.pieces import loose_json
from ...i18n import counted
from ...units import format_size
from ..finding import Evidence, Figures, Finding, names, numbers, tell

LISTED: Final = 8


def graph_time_findings(file: str, graph: Graph) -> list[Finding]:
    """All that is to be said of one."""
    nodes = {node.id: node for node in graph.nodes}
    found = [f for f in (_mislabelled(file, graph), _groups(file, graph)) if f]
    if not graph.nested:
        found += [f for f in (_twice(file, graph, nodes), _missing(file, graph, nodes)) if f]
        order, stuck = _order(nodes)
        if stuck:
            found.append(_circle(file, graph, stuck))
        elif path := _path(file, graph, order, nodes):
            found.append(path)
    return [*found, _what(file, graph)]


def gathered_findings(file: str, graphs: Sequence[Graph]) -> list[Finding]:
    """Of traces in one file: whether all do the same, and what the first holds."""
    works = [tuple((n.kind, n.collective, n.get("comm_size"), n.duration_us) for n in graph.nodes)
             for graph in graphs]  # fmt: skip
    odd = [i for i, work in enumerate(works) if work != works[0]]
    first = graph_time_findings(file, graphs[0])
    if len(graphs) == 1:
        return first
    figures: Figures = {"count": len(graphs), "odd": numbers(odd, LISTED),
                        "nodes": sum(len(graph.nodes) for graph in graphs)}  # fmt: skip
    reason = ["{count:execution trace|execution traces} in one file, {nodes:node|nodes} in all."]
    reason.append("All do the same: as many nodes of the same kinds and sizes, apart from ids and "
                  "names." if not odd else
                  "Those numbered {odd} (from 0) do otherwise than the first; stages of a pipeline "
                  "do, and else a collective may wait for ever.")  # fmt: skip
    told = tell(
        "execution_traces", file, figures, reason,
        "What follows is said of the first of them.",
        tuple(_node(file, graph.nodes[0]) for graph in graphs[:LISTED] if graph.nodes),
        confidence=0.9, area="time",
    )  # fmt: skip
    return [told, *first]


def _subject(graph: Graph) -> str:
    return f"{graph.dialect} {graph.version}, {counted(len(graph.nodes), 'node', 'nodes')}".replace(
        " ,", ","
    )


def _node(file: str, node: Node) -> Evidence:
    took = f", {node.duration_us} us" if node.duration_us else ""
    return Evidence(file, 0, f"node {node.id}: {node.kind.name.lower()} {node.name[:120]}{took}")


def _what(file: str, graph: Graph) -> Finding:
    kinds = Counter(node.kind for node in graph.nodes)
    communication = [node for node in graph.nodes if node.kind.communicates]
    calls = Counter(node.collective or node.kind.name.lower() for node in communication)
    sizes = [size for node in communication if isinstance(size := node.get("comm_size"), int)]
    figures: Figures = {
        "dialect": graph.dialect, "version": graph.version or "?", "nodes": len(graph.nodes),
        "kinds": names([f"{kind.name.lower()} {n}" for kind, n in sorted(kinds.items())]),
        "calls": names([f"{name} {n}" for name, n in calls.most_common()], LISTED),
    }  # fmt: skip
    reason = ["An execution trace ({dialect}, version {version}) of {nodes:node|nodes}: {kinds}."]
    if calls:
        reason.append("It communicates: {calls}.")
    elif not any(node.collective for node in graph.nodes):
        reason.append("No node of it communicates.")
    if sizes:
        figures["total"] = format_size(sum(sizes))
        reason.append("Their sizes add up to {total}.")
    if not graph.nested and not any(node.duration_us for node in graph.nodes):
        reason.append("No node has a time: it is a workload to be simulated, or its times are "
                      "left out; 0 is not measured.")  # fmt: skip
        advice = "Times come from a simulator that runs it, or from profilers' traces of a run."
    advice = "Give the profilers' traces of all ranks as well: then it is said who is late."
    if graph.nested:
        reason.append("Its nodes say which operation is inside which, and have no times.")
        advice = ("For times, link it with the profiler's trace of the same steps "
                  "(chakra_trace_link), or give that trace itself.")  # fmt: skip
    return tell(
        "execution_trace", _subject(graph), figures, reason, advice,
        tuple(_node(file, node) for node in communication[:LISTED]), confidence=0.95, area="time",
    )  # fmt: skip


def _mislabelled(file: str, graph: Graph) -> Finding | None:
    """Collectives that are marked as computation."""
    wrong = [node for node in graph.nodes if node.kind == NodeKind.COMPUTE and node.collective]
    if not wrong:
        return None
    examples = names([f"{n.name[:60]} ({n.id})" for n in wrong], LISTED)
    return tell(
        "marked_as_compute", _subject(graph), {"count": len(wrong), "examples": examples},
        ["{count:node that communicates by its name is|nodes that communicate by their names are} "
         "marked as computation: {examples}. A simulator takes that for work of one rank, and "
         "sends nothing."],
        "Convert the trace anew with a converter that knows these names, or set the type to "
        "COMM_COLL_NODE with comm_type and comm_size.",
        tuple(_node(file, node) for node in wrong[:LISTED]), fault=True, confidence=0.9,
        area="time",
    )  # fmt: skip


def _groups(file: str, graph: Graph) -> Finding | None:
    """Process groups that the observer of torch has listed."""
    node = next((n for n in graph.nodes if "process_group:init" in n.name), None)
    listed = loose_json(_first_text(node.get("inputs"))) if node else None
    groups = [g for g in listed if isinstance(g, dict)] if isinstance(listed, list) else []
    if not node or not groups:
        return None
    told = [_group(g) for g in groups]
    figures: Figures = {"count": len(groups), "groups": names(told, LISTED)}
    return tell(
        "process_groups", _subject(graph), figures,
        ["{count:process group is|process groups are} listed: {groups}."],
        "Calls name their group by pg_name; match them by it.", (_node(file, node),),
        confidence=0.9, area="time",
    )  # fmt: skip


def _first_text(inputs: Any) -> str:
    values = inputs.get("values") if isinstance(inputs, dict) else None
    first = values[0] if isinstance(values, list) and values else ""
    return first if isinstance(first, str) else ""


def _group(group: Mapping[str, Any]) -> str:
    ranks = group.get("ranks")
    who = f"all {group.get('group_size', '?')} ranks"
    if isinstance(ranks, list) and ranks:
        who = f"ranks {numbers(ranks, 8)}"
    return f"{group.get('pg_name', '?')} ({group.get('backend_config', '?')}): {who}"[:200]


def _twice(file: str, graph: Graph, nodes: Mapping[int, Node]) -> Finding | None:
    """Ids that are not unique."""
    counts = Counter(node.id for node in graph.nodes)
    more = [i for i, n in counts.items() if n > 1]
    if not more:
        return None
    figures: Figures = {"count": len(more), "examples": numbers(more, LISTED)}
    return tell(
        "ids_twice", _subject(graph), figures,
        ["Ids are given to more than one node ({count}: {examples}), so what waits for them is not "
         "known."], "Write it again with ids of its own for each node.",
        tuple(_node(file, nodes[i]) for i in more[:LISTED]), fault=True, confidence=0.9,
        area="time",
    )  # fmt: skip


def _missing(file: str, graph: Graph, nodes: Mapping[int, Node]) -> Finding | None:
    """Nodes that are waited for and not there."""
    absent: dict[int, Node] = {}
    for node in graph.nodes:
        for i in (*node.control, *node.data):
            if i not in nodes:
                absent.setdefault(i, node)
    if not absent:
        return None
    figures: Figures = {"count": len(absent), "nodes": len(graph.nodes),
                        "examples": numbers(absent, LISTED)}  # fmt: skip
    return tell(
        "incomplete", _subject(graph), figures,
        ["Nodes wait for {count:other|others} that are not in the file ({examples}): it is a part, "
         "or "
         "cut off. A simulator would wait for them for ever."],
        "Give the whole file, or take these dependencies out.",
        tuple(_node(file, node) for node in [*absent.values()][:LISTED]), fault=True,
        confidence=0.9, area="time",
    )  # fmt: skip


def _order(nodes: Mapping[int, Node]) -> tuple[list[int], list[int]]:
    """Ids in an order in which they can run, and those that never can."""
    left = {i: len({*n.control, *n.data} & nodes.keys()) for i, n in nodes.items()}
    after: dict[int, list[int]] = {}
    for i, node in nodes.items():
        for before in {*node.control, *node.data} & nodes.keys():
            after.setdefault(before, []).append(i)
    free = deque(i for i, n in left.items() if not n)
    order = []
    while free:
        i = free.popleft()
        order.append(i)
        for later in after.get(i, ()):
            left[later] -= 1
            if not left[later]:
                free.append(later)
    return order, [i for i, n in left.items() if n]


def _circle(file: str, graph: Graph, stuck: list[int]) -> Finding:
    by = {node.id: node for node in graph.nodes}
    figures: Figures = {"count": len(stuck), "examples": numbers(stuck, LISTED)}
    return tell(
        "circular", _subject(graph), figures,
        ["{count:node|nodes} wait for one another in a circle, or behind one, and never run: "
         "{examples}."], "Take the dependency out that points backwards in the program.",
        tuple(_node(file, by[i]) for i in stuck[:LISTED]), fault=True, confidence=0.95,
        area="time",
    )  # fmt: skip


def _path(file: str, graph: Graph, order: list[int], nodes: Mapping[int, Node]) -> Finding | None:
    """The longest path, as it is and where communication takes no time."""
    if not any(node.duration_us for node in nodes.values()):
        return None
    with_, last = _longest(order, nodes, communicate=True)
    without, _ = _longest(order, nodes, communicate=False)
    sums = {kind: sum(n.duration_us for n in nodes.values() if n.kind.communicates == kind)
            for kind in (False, True)}  # fmt: skip
    figures: Figures = {
        "path_ms": with_ / 1e3, "without_ms": without / 1e3, "exposed_ms": (with_ - without) / 1e3,
        "compute_ms": sums[False] / 1e3, "communication_ms": sums[True] / 1e3,
        "share": (with_ - without) / with_ if with_ else 0.0,
    }  # fmt: skip
    if not sums[True] and any(node.kind.communicates for node in nodes.values()):
        return tell(
            "longest_path", _subject(graph), figures,
            ["The longest chain of nodes that wait for one another takes {path_ms} ms of "
             "computation; nodes that communicate have no time here, so what they add is not "
             "told."],
            "Run it in a simulator, or give the profilers' traces, for what communication adds.",
            tuple(_node(file, nodes[i]) for i in last[:LISTED]), confidence=0.8, area="time",
        )  # fmt: skip
    return tell(
        "longest_path", _subject(graph), figures,
        ["The longest chain of nodes that wait for one another takes {path_ms} ms; if "
         "communication took no time, {without_ms} ms: {exposed_ms} ms of it ({share}) are "
         "exposed.", "All other nodes together take {compute_ms} ms, and "
         "communication {communication_ms} ms."],
        "Begin with what lies on that chain; what does not can be shorter to no effect.",
        tuple(_node(file, nodes[i]) for i in last[:LISTED]), confidence=0.8, area="time",
    )  # fmt: skip


def _longest(
    order: list[int], nodes: Mapping[int, Node], communicate: bool
) -> tuple[int, list[int]]:
    """Length in us of the longest chain, and its nodes, the longest first."""
    ends: dict[int, int] = {}
    came: dict[int, int] = {}
    for i in order:
        node = nodes[i]
        before = [b for b in (*node.control, *node.data) if b in ends]
        latest = max(before, key=ends.__getitem__, default=None)
        takes = node.duration_us if communicate or not node.kind.communicates else 0
        ends[i] = takes + (0 if latest is None else ends[latest])
        if latest is not None:
            came[i] = latest
    at = max(ends, key=ends.__getitem__)
    way = [at]
    while at in came:
        way.append(at := came[at])
    way.sort(key=lambda i: -nodes[i].duration_us)
    return max(ends.values()), [i for i in way if nodes[i].kind != NodeKind.METADATA]
