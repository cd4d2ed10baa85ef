"""`roundelay algorithms`: what there is, with cost cards."""

from __future__ import annotations

import click

from ..algorithms import Algorithm, algorithms
from ..collectives import COLLECTIVES
from .base import Command, emit, say, table


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in COLLECTIVES if name.startswith(incomplete)]


@click.command(
    cls=Command,
    short_help="list the algorithms, with their cost",
    help="List the algorithms of all collectives, or of COLLECTIVE, with their cost cards: "
    "messages and bytes sent by the busiest rank, and steps, for n ranks and S bytes.",
)
@click.argument("collective", required=False, shell_complete=_complete)
def command(collective: str | None, as_json: str | None) -> None:
    """List algorithms."""
    found = algorithms(collective)
    emit([_entry(a) for a in found], as_json, lambda: _table(found, details=collective is not None))


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


def _table(found: list[Algorithm], details: bool) -> str:
    if not details:
        head = (say("algorithm (parameters)"), say("good for"))
        lines = table(head, [(_name(a), say(a.good)) for a in found])
        more = say("{k} algorithms. More of one collective: roundelay algorithms all_reduce",
                   k=len(found))  # fmt: skip
        return f"{lines}\n\n{more}"
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
