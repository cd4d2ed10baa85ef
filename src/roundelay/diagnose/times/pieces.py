"""What events and nodes say that somebody has cut out of a trace."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

from ...errors import RoundelayError
from ...formats.chakra import gathered_graphs, read_chakra
from ...formats.kineto import words
from ...formats.nccl_tests import bus_factor
from ...units import format_size
from ..finding import Evidence, Figures, Finding, names, tell
from . import gathered_findings, graph_time_findings
from .proxied import waited

LISTED: Final = 8
UNEVEN: Final = 3.0
"""Times from which the same kernel lasts longer elsewhere because it waits there."""
FAR: Final = 10_000
"""us from which a clock has not begun with the part that is given."""
_KERNEL: Final = re.compile(
    r"(?:_(?P<sum>Sum|Prod|Min|Max|MinMax|PreMulSum|SumPostDiv))?(?:_(?P<type>[a-z]+\d*\w*?))?"
    r"_(?P<algorithm>RING|TREE|NVLS_TREE|NVLS|COLLNET_\w+?|PAT)_(?P<protocol>LL128|LL|SIMPLE)\b"
)
"""What NCCL puts into a kernel's name behind the collective (NCCL 2.28, src/device/generate.py)."""
_MADE: Final = ("COLL", "P2P")
"""Categories of calls in what NCCL's example of a profiler writes (NCCL, ext-profiler/example)."""

_BELOW: Final = ("PROXY", "NET", "NET_EVENT", "GPU", "KERNEL")
"""Those of what happens below a call: in kernels, in the proxy, in the network."""

Piece = Mapping[str, Any]


def piece_findings(file: str, pieces: Sequence[Piece]) -> list[Finding]:
    """Of events of a profiler, of NCCL's own profiler, and of nodes of execution traces."""
    made = [p for p in pieces if p.get("cat") in _MADE and isinstance(p.get("args"), dict)]
    kernels = [p for p in pieces if words.communicates(str(p.get("name", ""))) and "ph" in p]
    found = [_kernels(file, kernels)] if kernels else []
    found += [_made(file, made, pieces)] if made else []
    others = sum("ph" in p for p in pieces) - len(kernels) - len(made)
    if others and not found:
        found.append(_others(file, others))
    gathered = [graph for p in pieces for graph in gathered_graphs(p)]
    if gathered:
        found += gathered_findings(file, gathered)
    begun = any("version" in p and "id" not in p for p in pieces)  # as a whole file begins
    return found + _nodes(file, [p for p in pieces if "ph" not in p and "id" in p], begun)


def _cited(file: str, pieces: Sequence[Piece]) -> tuple[Evidence, ...]:
    return tuple(Evidence(file, 0, json.dumps(p)[:200]) for p in pieces[:LISTED])


def _kernels(file: str, kernels: Sequence[Piece]) -> Finding:
    """Kernels that communicate, as a profiler saw them."""
    told, lacks = [], Counter[str]()
    for piece in kernels:
        args = piece["args"] if isinstance(piece.get("args"), dict) else {}
        told.append(_kernel(piece, args))
        lacks["times"] += not isinstance(piece.get("dur"), int | float)
        lacks["groups and sizes"] += not args.get("Process Group Name") and not args.get(
            "In msg nelems"
        )
    missing = [what for what, count in lacks.items() if count == len(kernels)]
    figures: Figures = {"count": len(kernels), "calls": "; ".join(told[:LISTED]),
                        "lacks": " / ".join(missing)}  # fmt: skip
    reason = ["{count:kernel|kernels} of collectives, cut out of a profile: {calls}."]
    if missing:
        reason.append("Not told: {lacks}. Older profilers write none, or this part is cut off.")
    reason += _uneven(kernels, figures)
    reason.append("Whether it is hidden behind computation, and who waits for whom, such a part "
                  "cannot tell.")  # fmt: skip
    return tell(
        "pieces", file, figures, reason,
        "Give the whole trace, and those of the other ranks for the same steps.",
        _cited(file, kernels), confidence=0.9, area="time",
    )  # fmt: skip


def _uneven(kernels: Sequence[Piece], figures: Figures) -> list[str]:
    """Whether the same kernel lasts much longer on one card or process than on another."""
    by: dict[str, dict[str, list[float]]] = {}
    for piece in kernels:
        args = piece["args"] if isinstance(piece.get("args"), dict) else {}
        took, where = piece.get("dur"), args.get("device", piece.get("pid"))
        if isinstance(took, int | float) and took > 0 and where is not None:
            by.setdefault(str(piece.get("name")), {}).setdefault(str(where)[:40], []).append(took)
    for name, places in by.items():
        middle = {where: median(times) for where, times in places.items()}
        short, long = (end(middle, key=lambda w: middle[w]) for end in (min, max))
        if len(middle) > 1 and middle[long] > UNEVEN * middle[short]:
            figures |= {"long": long, "long_us": middle[long], "short": short,
                        "short_us": middle[short], "name": name.split("(")[0][:60]}  # fmt: skip
            return ["{name} lasts {long_us} us on {long} and {short_us} us on {short} (process or "
                    "card). If these are the same calls, {short} came last and {long} waited for "
                    "it."]  # fmt: skip
    return []


def _kernel(piece: Piece, args: Mapping[str, Any]) -> str:
    """One of them in a few words: what, how, how large, how long, how fast."""
    name = str(piece.get("name", ""))
    kernel, how = words.IN_KERNEL.search(name), _KERNEL.search(name)
    named = args.get("Collective name") or (next(filter(None, kernel.groups())) if kernel else "")
    collective = words.collective(str(named)) or name[:60]
    parts = [collective, *(v.lower() for v in (how.groupdict() if how else {}).values() if v)]
    grid = args.get("grid")
    if isinstance(grid, list) and grid and isinstance(grid[0], int):
        parts.append(f"{grid[0]} channels" if grid[0] > 1 else "1 channel")
    if args.get("Process Group Name") is not None:
        parts.append(f"group {args['Process Group Name']}"[:80])
    size, ranks = _bytes(collective, args), args.get("Group size")
    parts += [format_size(size)] if size else []
    took = piece.get("dur")
    if isinstance(took, int | float) and took > 0:
        parts.append(f"{took:.4g} us")
        if size and isinstance(ranks, int) and ranks > 1:
            rate = size / took / 1e3
            try:
                parts.append(f"busbw {rate * float(bus_factor(collective, ranks)):.4g} GB/s")
            except KeyError:
                parts.append(f"algbw {rate:.4g} GB/s")
    return ", ".join(parts)


def _bytes(collective: str, args: Mapping[str, Any]) -> int:
    """Of the whole vector."""
    each = words.type_size(str(args.get("dtype", "")))
    found = (args.get(key) for key in ("In msg nelems", "Out msg nelems"))
    counts = [n for n in found if isinstance(n, int)]
    if collective == "reduce_scatter":
        counts = counts[:1]
    return each * max(counts, default=0)


def _made(file: str, made: Sequence[Piece], pieces: Sequence[Piece]) -> Finding:
    """Calls in what NCCL's own profiler writes."""
    begun = [p for p in made if p.get("ph") != "e"]
    told = [_call(p, p["args"]) for p in begun]
    kernels = [p["args"] for p in pieces if p.get("name") == "KernelCh" and p.get("ph") != "e"
               and isinstance(p.get("args"), dict)]  # fmt: skip
    below = kernels or any(str(p.get("cat")) in _BELOW for p in pieces)
    figures: Figures = {"count": len(begun), "calls": "; ".join(told[:LISTED])}
    reason = ["{count:call|calls} as NCCL's profiler tells them: {calls}."]
    if kernels and not any(args.get("StopGpuClk") for args in kernels):
        figures["kernels"] = len(kernels)
        reason.append("Of {kernels:channel|channels} of kernels the begin stands there and no end "
                      "(StopGpuClk is 0), so how long data moved, and a bandwidth, cannot be "
                      "taken from it; that says nothing of whether the calls ended.")  # fmt: skip
    elif ran := sorted(
        (args["StopGpuClk"] - args["StartGpuClk"]) / 1e3
        for args in kernels
        if isinstance(args.get("StartGpuClk"), int) and args.get("StopGpuClk")
    ):
        figures |= {"kernels": len(ran), "ran_us": median(ran), "most_us": ran[-1]}
        reason.append("{kernels:channel of a kernel|channels of kernels} ran {ran_us} us (median; "
                      "{most_us} us at most) by the card's clock, waiting for other ranks "
                      "included.")  # fmt: skip
        if unended := sum(args.get("StopGpuClk") == 0 for args in kernels):
            figures["unended"] = unended
            reason.append("Of {unended:other channel|other channels} no end was written "
                          "(StopGpuClk is 0): a gap of the profiler's plugin, which says nothing "
                          "of how long the channel ran, nor that it hangs.")  # fmt: skip
    if unset := _unset(pieces):
        figures["unset"] = unset
        reason.append("{unset:event has|events have} the time 0, which the plugin has not set: "
                      "what begins or ends there has no duration.")  # fmt: skip
    reason += waited(pieces, figures)
    advice = (
        "Switch on all kinds of events (NCCL_PROFILE_EVENT_MASK=4095) for the times of kernels, "
        "channels and network; the profile of torch has those of kernels."
    )
    if below:
        advice = "For how long kernels take, see nsys or the profile of torch as well."
    if begun and not below:
        reason.append("They begin and end where the host has put them in line, which takes a "
                      "microsecond; events of the kernel and of the proxy, which tell when data "
                      "moved, are not in it.")  # fmt: skip
    return tell(
        "nccl_events", file, figures, reason, advice,
        _cited(file, begun), confidence=0.9, area="time",
    )  # fmt: skip


def _unset(pieces: Sequence[Piece]) -> int:
    """Events at 0 that end there, or that begin there while all others are far from it."""
    first = min((p["ts"] for p in pieces if isinstance(p.get("ts"), int | float) and p["ts"] > 0),
                default=0)  # fmt: skip
    return sum(p.get("ts") == 0 and (p.get("ph") == "e" or first > FAR) for p in pieces)


def _call(piece: Piece, args: Mapping[str, Any]) -> str:
    count, dtype = args.get("Count"), str(args.get("Datatype", ""))
    each = words.type_size(dtype.removeprefix("nccl"))
    parts = [words.collective(str(piece.get("name", "")))]
    if isinstance(count, int):
        size = f" ({format_size(count * each)})" if each else ""
        parts.append(f"{count} {dtype.removeprefix('nccl').lower()}{size}")
    parts += [str(args[key]).lower() for key in ("Algorithm", "Protocol") if key in args]
    if "nChannels" in args:
        parts.append(f"{args['nChannels']} channels")
    if "Rank" in args:
        way = "to" if str(piece.get("name", "")).lower() == "send" else "from"
        parts.append(f"rank {args['Rank']}" + (f" {way} {args['Peer']}" if "Peer" in args else ""))
    return ", ".join(parts)


def _others(file: str, count: int) -> Finding:
    return tell(
        "pieces", file, {"count": count},
        ["{count:event|events} cut out of a profile, none of which communicates."],
        "Give the whole trace: then it is said where the time goes.", confidence=0.9, area="time",
    )  # fmt: skip


def _nodes(file: str, nodes: Sequence[Piece], begun: bool) -> list[Finding]:
    """Nodes of an execution trace, as its reader takes them in a file of their own."""
    if not nodes:
        return []
    observed = any("ctrl_deps" in node or "attrs" in node for node in nodes)
    whole = {"schema": "", "nodes": nodes} if observed else {"workload_graph": nodes}
    try:
        graph = read_chakra(json.dumps(whole).encode())
    except RoundelayError:
        return []
    told = [f for f in graph_time_findings(file, graph) if f.kind != "incomplete"]
    if begun:
        return told
    count = names([str(node.id) for node in graph.nodes], LISTED)
    told.append(tell(
        "pieces", file, {"nodes": count},
        ["This is a part of an execution trace (nodes {nodes}): what waits for what, and how long "
         "a step takes, only the whole tells."],
        "Give the whole file.", confidence=0.9, area="time",
    ))  # fmt: skip
    return told
