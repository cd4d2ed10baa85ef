"""`roundelay algorithms`: what there is, with cost cards."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ..algorithms import Algorithm, algorithms
from ..collectives import COLLECTIVES
from .base import Command, say
from .output import emit, figure, table
from .targets import only_one, ranks_option


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in COLLECTIVES if name.startswith(incomplete)]


@click.command(
    cls=Command,
    short_help="list the algorithms, with their cost",
    help="List the algorithms of all collectives, or of COLLECTIVE, with their cost cards: "
    "messages and bytes sent by the busiest rank, and steps, for n ranks and S bytes.",
)
@click.argument("collective", required=False, shell_complete=_complete)
@ranks_option("8", "number of ranks that the overview counts for (default 8)")
def command(collective: str | None, ranks: Sequence[int], as_json: str | None) -> None:
    """List algorithms."""
    found, n = algorithms(collective), only_one(ranks)
    emit([_entry(a) for a in found], as_json,
         lambda: _details(found) if collective else _overview(found, n))  # fmt: skip


def _entry(a: Algorithm) -> dict[str, object]:
    return {
        "collective": a.collective,
        "algorithm": a.name,
        "parameters": dict(a.parameters),
        "messages": a.messages,
        "bytes_sent": a.bytes_sent,
        "steps": a.steps,
        "good": a.good,
        "bad": a.bad,
        "source": a.source,
    }


def _name(a: Algorithm) -> str:
    parameters = ", ".join(a.parameters)
    return f"{a.collective}/{a.name}" + (f" ({parameters})" if parameters else "")


def _overview(found: list[Algorithm], n: int) -> str:
    head = ("algorithm (parameters)", "steps", "messages", "bytes sent / S", "good for")
    rows = []
    for a in found:
        card = a.card(n)
        figures = [figure(x) for x in (card.steps, card.messages, card.bytes_sent)]
        rows.append([_name(a), *figures, say(a.good)])
    lines = table([*map(say, head)], rows, right="bcd")
    more = say(
        "{k} algorithms, counted at n = {n}; messages and bytes are those of the busiest rank.\n"
        "Formulas and sources: roundelay algorithms all_reduce",
        k=len(found), n=n,
    )  # fmt: skip
    return f"{lines}\n\n{more}"


def _details(found: list[Algorithm]) -> str:
    blocks = []
    for a in found:
        rows = [
            (say("messages"), a.messages),
            (say("bytes sent"), a.bytes_sent),
            (say("steps"), a.steps),
            (say("good for"), say(a.good)),
            (say("bad for"), say(a.bad)),
            (say("source"), a.source),
        ]
        blocks.append("\n".join([_name(a), *(f"  {k}: {v}" for k, v in rows)]))
    return "\n\n".join(blocks)
