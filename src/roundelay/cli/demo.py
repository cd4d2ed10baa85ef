"""`roundelay demo`: the tour a newcomer runs first."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import click

from ..algorithms import Algorithm, algorithms, find
from ..bench.cells import Point
from ..bench.figures import Figure
from ..bench.race import race
from ..bench.table import us
from ..clusters import cluster
from ..cost import COUNT_LIMIT, bound, cost_of
from ..errors import NotBuilt, RoundelayError
from ..show import show
from ..simulate.rows import Question, Row, row_json
from ..units import format_size
from ..verify import Verdict, prove
from .base import Command, language, say
from .output import emit, figure, table

SIZES = (8, 16384)
RACE = ("star", "ring", "recursive_doubling", "one_shot", "two_shot")
RACE_RANKS = 4
RACE_SIZES = (1 << 10, 64 << 10, 1 << 20, 16 << 20)
RACE_SECONDS = 0.03
"""Of the calls of one algorithm at one size."""
RACE_LIMIT = 5.0
"""Seconds after which no larger size is begun."""
MODELLED = ("ring", "halving_doubling", "double_tree", "rails")
MODELLED_CLUSTER = "dgx-h100:2048"
MODELLED_SIZES = (8, 1 << 20, 64 << 20, 1 << 30)
LEAST = (
    ("least, one port", "one", False),
    ("least, all ports", "all", False),
    ("least, adding switches", "all", True),
)


@click.command(
    cls=Command,
    short_help="the tour: start here",
    help="A tour in a few seconds: the ring over four ranks, shown and proved; then every "
    "all-reduce algorithm, proved and counted for 8 and for 16,384 ranks; then some of them, run "
    "between four processes of this machine, and timed on a modelled cluster of 16,384 cards.",
)
def command(as_json: str | None) -> int:
    """Show, prove, count, run, time."""
    begun = time.perf_counter()
    talk = as_json != "-"
    ring = find("all_reduce/ring")
    if talk:
        click.echo(say("1. Four ranks add up their data: all-reduce, by a ring.") + "\n")
        click.echo(show(ring(4), lang=language()))
    first = prove(ring, 4)
    if talk:
        click.echo("\n" + _proof(first) + "\n")
    entries = []
    for number, n in enumerate(SIZES, 2):
        rows = [_row(a, n) for a in algorithms("all_reduce")]
        entries += rows
        if talk:
            text = "{number}. Every all-reduce algorithm over {n} ranks; S is the size of the data."
            click.echo(say(text, number=number, n=f"{n:,}") + "\n")
            click.echo(_table(rows, n) + "\n")
    run = _run(talk, 2 + len(SIZES))
    modelled = _modelled(talk, 3 + len(SIZES))
    ok = first.ok and all(e["proved"] is not False for e in entries) and run["ok"] is not False
    if talk:
        click.echo(_after(time.perf_counter() - begun))
    if as_json:
        found = {"ok": ok, "rows": entries, "run": run, "modelled": modelled}
        emit(found, as_json, lambda: "")
    return 0 if ok else 1


def _proof(v: Verdict) -> str:
    if not v.ok:
        return say("NOT proved: {why}", why=v.told(language()))
    return say(
        "Proved: every rank ends with the sum of all four, and with the same bits, in any order "
        "of the moves that respects their dependences."
    )


def _row(a: Algorithm, n: int) -> dict[str, Any]:
    checked = None if a.dense and n > COUNT_LIMIT else prove(a, n)
    c = cost_of(a, n)
    return {
        "algorithm": a.name,
        "ranks": n,
        "proved": None if checked is None else checked.ok,
        "sampled": None if checked is None else checked.sampled,
        "steps": c.steps,
        "messages": c.messages_max,
        "bytes_sent": c.bytes_sent_max,
        "counted": c.counted,
    }


def _table(rows: list[dict[str, Any]], n: int) -> str:
    head = [say("algorithm"), say("proved"), say("steps"), say("messages"), say("bytes sent / S")]
    lines = []
    for e in sorted(rows, key=lambda e: (e["steps"], e["bytes_sent"])):
        lines.append([e["algorithm"], _proved(e), f"{e['steps']:,}", f"{e['messages']:,}",
                      figure(e['bytes_sent'])])  # fmt: skip
    for label, ports, in_switch in LEAST:
        least = bound("all_reduce", n, ports=ports, in_switch=in_switch)
        lines.append([say(label), "", f"{least.steps:,}", "", figure(least.bytes_sent_max)])
    return table(head, lines, right="cde")


def _proved(e: dict[str, Any]) -> str:
    if e["proved"] is None:
        return say("up to {n} ranks", n=f"{COUNT_LIMIT:,}")
    if not e["proved"]:
        return say("FAILED")
    return say("all chunks") if e["sampled"] is None else say("{k} chunks", k=e["sampled"])


def _run(talk: bool, number: int) -> dict[str, Any]:
    """Some algorithms, run between real processes; the part of `--json` about it."""
    if talk:
        text = "{number}. {n} processes of this machine do it: microseconds of an all-reduce."
        click.echo(say(text, number=number, n=RACE_RANKS) + "\n")
    rows: list[dict[str, Any]] = []
    end = time.perf_counter() + RACE_LIMIT
    running = race("all_reduce", RACE, RACE_RANKS, RACE_SIZES, RACE_SECONDS)
    try:
        with contextlib.closing(running):
            for point, found in running:
                rows.append(_raced(point, found))
                if len(rows) % len(RACE) == 0 and time.perf_counter() > end:
                    break
    except RoundelayError as error:
        return _not_run(error, talk)
    if talk:
        click.echo(_race_table(rows) + "\n")
    winners = {str(size): _winner(rows, size) for size in dict.fromkeys(r["bytes"] for r in rows)}
    return {"ok": not any(r["wrong"] for r in rows), "ranks": RACE_RANKS, "rows": rows,
            "winners": winners, "error": None}  # fmt: skip


def _not_run(error: RoundelayError, talk: bool) -> dict[str, Any]:
    """Where the core is not built that is no fault; where processes fail it is."""
    if talk:
        click.echo(say("Not run: {why}", why=error) + "\n")
    ok = None if isinstance(error, NotBuilt) else False
    return {"ok": ok, "ranks": RACE_RANKS, "rows": [], "winners": {}, "error": str(error)}


def _raced(point: Point, found: Figure) -> dict[str, Any]:
    return {
        "algorithm": point.algorithm,
        "bytes": point.nbytes,
        "time_us": found.time_us,
        "busbw_GBps": found.busbw(point),
        "calls": found.calls,
        "wrong": found.wrong,
    }


def _winner(rows: list[dict[str, Any]], size: int) -> str:
    best = min((r for r in rows if r["bytes"] == size), key=lambda r: float(r["time_us"]))
    return str(best["algorithm"])


def _race_table(rows: list[dict[str, Any]]) -> str:
    lines = []
    for size in dict.fromkeys(r["bytes"] for r in rows):
        times = [f"{r['time_us']:,.0f}" for r in rows if r["bytes"] == size]
        lines.append([format_size(size), *times, _winner(rows, size)])
    wrong = sum(r["wrong"] or 0 for r in rows)
    checked = say("All results were checked, and are right.")
    if wrong:
        checked = say("FAILED: {wrong} wrong elements.", wrong=f"{wrong:,}")
    note = say(
        "Medians of a few calls, so the order may change; `roundelay bench` measures well. "
        "More ranks than cores take turns on them."
    )
    right = "bcdefghij"[: len(RACE)]
    return table([say("size"), *RACE, say("fastest")], lines, right=right) + f"\n\n{checked} {note}"


def _modelled(talk: bool, number: int) -> dict[str, Any]:
    """Some algorithms on a cluster that is not here; the part of `--json` about it."""
    there = cluster(MODELLED_CLUSTER)
    if talk:
        text = "{number}. {n} cards of {cluster}, by the clock: microseconds of an all-reduce."
        click.echo(say(text, number=number, n=f"{there.size:,}", cluster=there.name) + "\n")
    question = Question("all_reduce", there, there.size)
    try:
        rows = [*_timed(question), *(question.nccl(size) for size in MODELLED_SIZES)]
    except NotBuilt as error:
        return _not_run(error, talk)
    if talk:
        click.echo(_modelled_table(rows) + "\n")
    return {"cluster": there.name, "ranks": there.size, "rows": [row_json(row) for row in rows]}


def _timed(question: Question) -> Iterator[Row]:
    for name in MODELLED:
        algorithm = find(f"all_reduce/{name}")
        given = {"group": question.cluster.cards} if "group" in algorithm.parameters else {}
        clock = question.clock(algorithm(question.ranks, **given))
        yield from (question.of(name, clock, size) for size in MODELLED_SIZES)


def _modelled_table(rows: list[Row]) -> str:
    ours, nccl = rows[: -len(MODELLED_SIZES)], rows[-len(MODELLED_SIZES) :]
    lines = []
    for size, theirs in zip(MODELLED_SIZES, nccl, strict=True):
        here = [row for row in ours if row.size == size]
        best = min(here, key=lambda row: row.time)
        lines.append([format_size(size), *(us(row.time * 1e6) for row in here), best.algorithm,
                      f"{us(theirs.time * 1e6)} ({theirs.algorithm})"])  # fmt: skip
    head = [say("size"), *MODELLED, say("fastest"), "NCCL"]
    note = say("`roundelay simulate` and `roundelay explain` say more, for many machines.")
    return table(head, lines, right="bcdefghij"[: len(MODELLED)]) + f"\n\n{note}"


def _after(seconds: float) -> str:
    lines = [
        say(
            "That took {seconds:.1f} s. Messages and bytes are those of the busiest rank; "
            "S is what one rank brings.\n"
            "`16 chunks`: a sample of 16 pieces was proved (`verify --complete` proves all). "
            "One port: a rank sends one message at a time.",
            seconds=seconds,
        ),
        say("Next:"),
        "  roundelay show all_reduce/double_tree -n 8 -p pieces=2",
        "  roundelay show all_reduce/switch -n 4 --svg switch.svg",
        "  roundelay cost all_reduce -n 1024 64MiB",
        "  roundelay verify all_to_all",
        "  roundelay algorithms all_gather",
        "  roundelay bench all_reduce -n 4",
        "  roundelay explain all_reduce 256MiB --cluster dgx-h100:2048",
    ]
    return "\n".join(lines)
