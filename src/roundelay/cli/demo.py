"""`roundelay demo`: the tour a newcomer runs first."""

from __future__ import annotations

import time
from typing import Any

import click

from ..algorithms import Algorithm, algorithms, find
from ..cost import COUNT_LIMIT, bound, cost_of
from ..show import show
from ..verify import Verdict, prove
from .base import Command, language, say
from .output import emit, figure, table

SIZES = (8, 16384)
LEAST = (
    ("least, one port", "one", False),
    ("least, all ports", "all", False),
    ("least, adding switches", "all", True),
)


@click.command(
    cls=Command,
    short_help="the tour: start here",
    help="A tour in a few seconds: the ring over four ranks, shown and proved; then every "
    "all-reduce algorithm, proved and counted for 8 and for 16,384 ranks.",
)
def command(as_json: str | None) -> int:
    """Show, prove, count."""
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
    ok = first.ok and all(e["proved"] is not False for e in entries)
    if talk:
        click.echo(_after(time.perf_counter() - begun))
    if as_json:
        emit({"ok": ok, "rows": entries}, as_json, lambda: "")
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
    ]
    return "\n".join(lines)
