"""A timeline as a trace file for Perfetto (ui.perfetto.dev) and chrome://tracing.

The Trace Event Format: a process for each node, a thread for each participant. A call encloses
what it consists of, and that encloses its waiting. Arrows lead from a send to its receptions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np

from ..errors import RoundelayError
from ..timeline import COLUMNS, UNKNOWN, Act, Timeline, What
from .timeline import check_indices

VERSION: Final = 1
_US: Final = 1000
"""ns of the format's unit."""


class Args(msgspec.Struct, omit_defaults=True):
    """What an event says of itself beyond its times; see `Timeline`."""

    call: int
    stage: int = UNKNOWN
    slice: int = 0
    bytes: int = 0
    waited_us: float = 0.0
    peer: int = UNKNOWN
    peers: int = 0
    step: int | None = None
    participants: list[int] = []
    chunks: list[tuple[int, int]] = []


class TraceEvent(msgspec.Struct, omit_defaults=True):
    """One event of a trace file. Times in microseconds."""

    name: str
    ph: str
    pid: int
    tid: int
    ts: float
    dur: float | None = None
    cat: str = ""
    id: int | None = None
    bp: str = ""
    args: dict[str, Any] = {}


class Other(msgspec.Struct, omit_defaults=True):
    """By what we know a file again."""

    roundelay: int
    lost: int = 0


class TraceFile(msgspec.Struct, rename="camel", omit_defaults=True):
    """A whole file."""

    trace_events: list[TraceEvent]
    other_data: Other | None = None
    display_time_unit: str = "ms"


def write_chrome(timeline: Timeline) -> bytes:
    """The timeline as a trace file, in JSON."""
    events = [*_names(timeline), *_slices(timeline), *_arrows(timeline)]
    lines = b",\n".join(map(msgspec.json.encode, events))
    other = msgspec.json.encode(Other(VERSION, timeline.lost))
    return b'{"traceEvents":[\n%b\n],\n"otherData":%b,"displayTimeUnit":"ns"}\n' % (lines, other)


def _names(timeline: Timeline) -> Iterator[TraceEvent]:
    for node in dict.fromkeys(timeline.nodes):
        yield TraceEvent("process_name", "M", node, 0, 0.0, args={"name": f"node {node}"})
    for p, (name, node) in enumerate(zip(timeline.names, timeline.nodes, strict=True)):
        yield TraceEvent("thread_name", "M", node, p, 0.0, args={"name": name})
        yield TraceEvent("thread_sort_index", "M", node, p, 0.0, args={"sort_index": p})


def _slices(timeline: Timeline) -> Iterator[TraceEvent]:
    columns = [getattr(timeline, name).tolist() for name in COLUMNS]
    for i, row in enumerate(zip(*columns, strict=True)):
        e = dict(zip(COLUMNS, row, strict=True))
        where = {"pid": timeline.nodes[e["rank"]], "tid": e["rank"], "ts": e["begin"] / _US}
        args = _args(timeline, e)
        yield TraceEvent(
            timeline.text(i), "X", **where, dur=(e["end"] - e["begin"]) / _US,
            cat=What(e["what"]).name.lower(), args=msgspec.to_builtins(args),
        )  # fmt: skip
        if args.waited_us:
            yield TraceEvent("wait", "X", **where, dur=args.waited_us, cat="wait")


def _args(timeline: Timeline, e: dict[str, int]) -> Args:
    args = Args(e["call"])
    if e["what"] != What.CALL:
        waited = (e["ready"] - e["begin"]) / _US
        args = Args(e["call"], e["stage"], e["slice"], e["bytes"], waited, e["peer"], e["peers"])
    if e["act"] >= 0:
        act = timeline.acts[e["act"]]
        args.step, args.participants = act.step, list(act.peers)
        args.chunks = list(act.chunks)
    return args


def _arrows(timeline: Timeline) -> Iterator[TraceEvent]:
    """From where a send has begun to work, to the middle of what a reception does with it."""
    sends, receptions = (index.tolist() for index in timeline.messages())
    ranks, ready = timeline.rank.tolist(), timeline.ready.tolist()
    middle = ((timeline.ready + timeline.end) / 2).tolist()
    for i, (a, b) in enumerate(zip(sends, receptions, strict=True)):
        for ph, event, ts, bp in (("s", a, ready[a], ""), ("f", b, middle[b], "e")):
            node = timeline.nodes[ranks[event]]
            yield TraceEvent("message", ph, node, ranks[event], ts / _US, None, "message", i, bp)


def read_chrome(data: bytes) -> Timeline:
    """The timeline of a trace file that `write_chrome` has made.

    Raises:
        RoundelayError: it is no such file; the message says why.
    """
    try:
        file = msgspec.json.decode(data, type=TraceFile)
        if file.other_data is None or file.other_data.roundelay != VERSION:
            raise RoundelayError(
                f"the trace file is not Roundelay's of version {VERSION}; only those can be read, "
                "as written by write_chrome"
            )
        timeline = _timeline(file, file.other_data.lost)
    except (ValueError, RecursionError, KeyError, OverflowError) as error:
        if isinstance(error, RoundelayError):
            raise
        raise RoundelayError(f"no trace file of Roundelay: {error}") from None
    check_indices(timeline)
    return timeline


def _timeline(file: TraceFile, lost: int) -> Timeline:
    names: dict[int, tuple[str, int]] = {}
    calls: dict[int, str] = {}
    acts: dict[Act, int] = {}
    rows = []
    kinds = {w.name.lower(): w for w in What}
    for e in file.trace_events:
        if e.ph == "M" and e.name == "thread_name":
            names[e.tid] = (str(e.args["name"]), e.pid)
        if e.ph != "X" or e.cat not in kinds:
            continue
        what, args = kinds[e.cat], msgspec.convert(e.args, Args)
        if what == What.CALL:
            calls[args.call] = e.name
        rows.append(_row(e, what, args, acts))
    table = np.array(rows, np.int64).reshape(-1, len(COLUMNS)).T
    columns: dict[str, Any] = dict(zip(COLUMNS, table, strict=True))
    found = [names[p] for p in sorted(names)]
    return Timeline(
        **columns, calls=calls, names=[name for name, _ in found],
        nodes=[node for _, node in found], acts=list(acts), lost=lost,
    )  # fmt: skip


def _row(e: TraceEvent, what: What, args: Args, acts: dict[Act, int]) -> list[int]:
    act = UNKNOWN
    if args.step is not None:
        found = Act(args.step, tuple(args.participants), tuple(args.chunks))
        act = acts.setdefault(found, len(acts))
    begin = round(e.ts * _US)
    end, ready = (begin + round(d * _US) for d in (e.dur or 0.0, args.waited_us))
    return [e.tid, args.call, what, args.peer, args.peers, args.stage, args.slice, args.bytes,
            begin, ready, end, act]  # fmt: skip
