"""What Roundelay has run, timed or built: schedules, timelines, measurements, walks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

import msgspec
import numpy as np

from ...errors import RoundelayError
from ...executors.ordering import NotProved
from ...formats.nccl_tests import Row, Table, Timing
from ...formats.schedule import read_schedule
from ...formats.timeline import read_timeline
from ...timeline import Timeline
from ...units import format_size
from ...verify import Verdict, verify
from ..finding import Evidence, Figures, Finding, names, tell
from ..plans import proved
from ..speed.possible import Bounds, Odd, odd_findings, sound_table

MOVES: Final = 10**7
"""Chunk moves, and chunks of all ranks, of a schedule that is proved."""
LISTED: Final = 8
MS: Final = 1e6
"""ns."""


def schedule_findings(file: str, data: bytes) -> list[Finding]:
    """What a schedule is, and whether it is right.

    Raises:
        RoundelayError: it is none.
    """
    schedule = read_schedule(data)

    def prove() -> list[Verdict]:
        if max(schedule.expanded(), schedule.chunks * schedule.ranks) > MOVES:
            raise NotProved(f"{schedule.expanded():,} moves of chunks are too many to prove here")
        return [verify(schedule)]

    figures: Figures = {
        "name": schedule.name or "-", "collective": schedule.collective, "ranks": schedule.ranks,
        "chunks": schedule.chunks, "steps": schedule.steps,
    }  # fmt: skip
    reason = ["A schedule file named {name}: {collective} of {ranks:rank|ranks}, "
              "{chunks:chunk|chunks}, {steps:step|steps}."]  # fmt: skip
    return [proved(file, figures, reason, prove)]


def timeline_findings(file: str, timeline: Timeline) -> list[Finding]:
    """What ran when: how long, how much of it was waiting, and who waited least."""
    backwards = (timeline.ready < timeline.begin) | (timeline.end < timeline.ready)
    odd = [Odd("time", "time", float(timeline.end[i] - timeline.begin[i]) / 1e3, 0.0,
               Evidence(file, 0, f"event {i}, from {timeline.begin[i]} to {timeline.end[i]} ns"))
           for i in np.flatnonzero(backwards)[:1000].tolist()]  # fmt: skip
    timeline = timeline.take(~backwards)
    begin, end = timeline.span
    calls = list(timeline.calls.values())
    figures: Figures = {
        "participants": len(timeline.names), "calls": len(calls), "events": len(timeline),
        "span_ms": (end - begin) / MS, "lost": timeline.lost,
        "examples": names(list(dict.fromkeys(calls)), 3) or "-",
    }  # fmt: skip
    reason = ["A timeline of Roundelay: {events:event|events} of {participants:participant|"
              "participants} in {span_ms} ms; {calls:call|calls}: {examples}."]  # fmt: skip
    if timeline.lost:
        reason.append("{lost} earlier ones were lost, as there was no room for them.")
    reason += _waiting(timeline, figures)
    return [*odd_findings(file, odd, "time"), tell(
        "timeline", file, figures, reason,
        "roundelay convert FILE trace.json --to chrome opens it in Perfetto; roundelay serve "
        "shows a run beside its schedule.",
        (Evidence(file, 0, repr(timeline)),), confidence=0.95, area="time",
    )]  # fmt: skip


def _waiting(timeline: Timeline, figures: Figures) -> list[str]:
    loads = timeline.loads() if len(timeline) else []
    inside = [load.busy + load.waiting for load in loads]
    shares = [load.waiting / total for load, total in zip(loads, inside, strict=True) if total]
    if len(shares) < 2 or not sum(inside):
        return []
    waits = [load.waiting for load in loads]
    least = min((i for i, total in enumerate(inside) if total), key=waits.__getitem__)
    figures |= {"wait_share": sum(waits) / sum(inside), "who": str(timeline.names[least])[:80],
                "least_ms": waits[least] / MS}  # fmt: skip
    return ["Sends and receptions waited in {wait_share} of their time; {who} waited least, "
            "{least_ms} ms: the others wait for who comes last."]  # fmt: skip


class _Measured(msgspec.Struct):
    """A row of `bench --json`; of a form that was not measured, nothing."""

    collective: str
    ranks: Annotated[int, msgspec.Meta(ge=1, lt=2**31)]
    bytes: Annotated[int, msgspec.Meta(ge=0, lt=2**62)]
    algorithm: str = ""
    dtype: str = ""
    in_place: bool = False
    time_us: float | None = None
    algbw: float | None = msgspec.field(name="algbw_GBps", default=None)
    busbw: float | None = msgspec.field(name="busbw_GBps", default=None)
    wrong: int | None = None


class _Bench(msgspec.Struct):
    """What `bench --json` says."""

    rows: list[_Measured]
    geometric_mean: float | None = None


def bench_findings(file: str, data: bytes) -> list[Finding]:
    """What was measured on this machine: the best of each collective, and what cannot be.

    Raises:
        RoundelayError: it is no such file.
    """
    bench = _decoded(data, _Bench, "measurement of roundelay bench")
    found: list[Finding] = []
    odd, parts, wrong, sound = list[Odd](), [], 0, 0
    for name, table in _tables(bench):
        kept, more = sound_table(table, file, Bounds())
        odd += more
        if kept is None:
            continue
        sound += len(kept.rows)
        wrong += sum(t.wrong or 0 for row in kept.rows for _, t in row.timings())
        best = max(kept.rows, key=lambda row: row.best.busbw)
        parts.append(f"{name}: {best.best.busbw:.4g} GB/s ({format_size(best.size)})")
    found += odd_findings(file, odd)
    figures: Figures = {"rows": sound, "best": names(parts, LISTED) or "-", "wrong": wrong,
                        "ratio": bench.geometric_mean or 0.0}  # fmt: skip
    if wrong:
        found.append(tell(
            "wrong_results", file, figures,
            ["{wrong:element is|elements are} wrong, in {rows:row|rows}: memory, a link or the "
             "library corrupts data."],
            "Run it again with -c 10; if it stays, report it with this file.",
            (Evidence(file, 0, names(parts, 1)),), fault=True, confidence=0.95,
        ))  # fmt: skip
    reason = ["Times that roundelay bench has measured, {rows:row|rows}; the highest busbw: "
              "{best}."]  # fmt: skip
    if bench.geometric_mean:
        reason.append("Beside the best rival of each row ours takes {ratio} times as long "
                      "(geometric mean).")  # fmt: skip
    return [*found, tell(
        "measured", file, figures, reason,
        "roundelay bench --cluster here prints beside it what the clock expects.",
        (Evidence(file, 0, names(parts, 1)),), confidence=0.95,
    )]  # fmt: skip


def _tables(bench: _Bench) -> Iterator[tuple[str, Table]]:
    """The rows by what was measured."""
    by: dict[tuple[str, str, int, str], list[Row]] = {}
    for m in bench.rows:
        if m.time_us is None or m.algbw is None or m.busbw is None:
            continue
        timing = Timing(m.time_us, m.algbw, m.busbw, m.wrong)
        text = f"{m.collective} {m.algorithm}, n = {m.ranks}, {m.bytes} B: {m.time_us:g} us"
        row = Row(0, text, m.bytes, None, m.dtype, None, None, None if m.in_place else timing,
                  timing if m.in_place else None)  # fmt: skip
        by.setdefault((m.collective, m.algorithm, m.ranks, m.dtype), []).append(row)
    for (collective, algorithm, ranks, dtype), rows in by.items():
        name = f"{collective}/{algorithm}" if algorithm else collective
        yield (
            f"{name}, n = {ranks}, {dtype}",
            Table(0, collective, (collective,), True, ranks, "text", (), tuple(rows), None),
        )


class _Walk(msgspec.Struct):
    """What `walk` says, as far as it is told here."""

    steps: list[Any]
    ranks: Annotated[int, msgspec.Meta(ge=1, lt=2**31)]
    tokens: Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
    token_us: float
    exchanges_per_token: float
    exchange_share: float
    cluster: str = ""
    compute_us: float = 0.0
    wait_us: float = 0.0


def walk_findings(file: str, data: bytes) -> list[Finding]:
    """Where the time of a token goes.

    Raises:
        RoundelayError: it is no walk.
    """
    walk = _decoded(data, _Walk, "walk of roundelay walk")
    at = Evidence(file, 0, f"token_us {walk.token_us:g}")
    if not 0 <= walk.exchange_share <= 1:
        raise RoundelayError(
            f"this cannot be: exchange_share, found {walk.exchange_share:g}, at most 1 of a token"
        )
    if walk.token_us <= 0:
        return odd_findings(file, [Odd("time", "time", walk.token_us, 0.0, at)], "time")
    figures: Figures = {
        "ranks": walk.ranks, "tokens": walk.tokens, "token_ms": walk.token_us / 1e3,
        "exchanges": walk.exchanges_per_token, "share": walk.exchange_share,
        "compute_ms": walk.compute_us / 1e3, "wait_ms": walk.wait_us / 1e3,
        "cluster": walk.cluster or "-",
    }  # fmt: skip
    reason = ["A walk along one request over {ranks:rank|ranks}: {tokens:token|tokens}, of "
              "{token_ms} ms each after the first."]  # fmt: skip
    reason.append("It was worked out for {cluster}, and not measured." if walk.cluster else
                  "Computing takes {compute_ms} ms of it, waiting for the slower rank {wait_ms} "
                  "ms.")  # fmt: skip
    reason.append("Exchanges ({exchanges} a token) take {share}.")
    advice = "roundelay page FILE.html --walk FILE shows it step by step."
    return [tell("walk", file, figures, reason, advice, (at,), confidence=0.95, area="time")]


def read_own_timeline(file: str, data: bytes) -> list[Finding]:
    """See `timeline_findings`.

    Raises:
        RoundelayError: it is no timeline.
    """
    return timeline_findings(file, read_timeline(data))


def _decoded(data: bytes, kind: type[Any], what: str) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RoundelayError(f"no {what}: {error}") from None
