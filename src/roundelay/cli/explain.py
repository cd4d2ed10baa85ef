"""`roundelay explain`: which algorithm a cluster should use, why, and what is the next best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ..bench.table import us
from ..errors import RoundelayError
from ..simulate.nccl import Prediction, predict
from ..simulate.rows import Question, Row, nccl_row, row_json
from ..topology import Cluster
from ..units import format_size, format_time
from .base import Command, say
from .output import emit, table
from .targets import cluster_option, only_one, ranks_option, size_argument

PARTS = {
    "latency": "latency",
    "wire": "wire",
    "reduce": "copying and adding",
    "wait": "waiting",
    "host": "launching",
}
"""The parts of a time, and what they are called."""


@click.command(
    cls=Command,
    short_help="which algorithm a cluster should use, and why",
    help="Which algorithm is the quickest for SIZE bytes of COLLECTIVE on a cluster, why, what is "
    "the next best and by how much: the sum with its numbers, the link that binds, and what NCCL "
    "does there.",
)
@click.argument("collective")
@size_argument("1MiB")
@cluster_option(required=True)
@ranks_option(None, "cards that take part (default: all of the cluster)")
def command(
    collective: str, size: int, where: Cluster, ranks: Sequence[int] | None, as_json: str | None
) -> None:
    """Time all that may win, and say why."""
    question = Question(collective, where, only_one(ranks) if ranks else where.size)
    rows = [row for _, row in question.quickest(size)]
    choice, *others = rows
    nccl = _nccl(question, size)
    following = others[0] if others else None
    found = {
        "choice": choice.algorithm,
        "because": _because(choice, following),
        "next_best": following.algorithm if following else None,
        "slower_by": following.time / choice.time - 1 if following and choice.time else None,
        "formula": _formula(choice),
        "binding_link": choice.binding_link,
        "rows": [row_json(row) for row in rows],
        "nccl": {**row_json(nccl_row(nccl)), "formula": nccl.formula} if nccl else None,
    }
    emit(found, as_json, lambda: _told(question, rows, found, nccl))


def _nccl(question: Question, size: int) -> Prediction | None:
    """What NCCL does, where it is known."""
    try:
        return predict(question.cluster, question.collective, size, question.ranks)
    except RoundelayError:
        return None


def _formula(row: Row) -> str:
    parts = [f"{format_time(getattr(row, part))} {say(name)}" for part, name in PARTS.items()
             if getattr(row, part)]  # fmt: skip
    return " + ".join(parts) + f" = {format_time(row.time)}"


def _because(choice: Row, following: Row | None) -> str:
    part = max(PARTS, key=lambda p: getattr(choice, p))
    share = f"{getattr(choice, part) / choice.time:.0%}" if choice.time else "0%"
    text = say("{part} is {share} of its time", part=say(PARTS[part]), share=share)
    if following is None:
        return text
    saved = max(PARTS, key=lambda p: getattr(following, p) - getattr(choice, p))
    less = getattr(following, saved) - getattr(choice, saved)
    more = say("it has {time} less {part} than {other}", time=format_time(less),
               part=say(PARTS[saved]), other=following.algorithm)  # fmt: skip
    return f"{text}; {more}" if less > 0 else text


def _told(
    question: Question, rows: Sequence[Row], found: dict[str, Any], nccl: Prediction | None
) -> str:
    choice, *others = rows
    lines = [
        say("{collective} of {size} over {n} cards of {cluster}: {choice}, by {protocol}, "
            "in {time}", collective=question.collective, size=format_size(choice.size),
            n=f"{question.ranks:,}", cluster=question.cluster.name, choice=choice.algorithm,
            protocol=choice.protocol, time=format_time(choice.time)),
        "",
        "  " + found["formula"],
        "",
        say("Why: {because}.", because=found["because"]),
    ]  # fmt: skip
    if choice.binding_link:
        lines.append(say("The busiest link: {link}.", link=choice.binding_link))
    if others:
        lines.append(say("The next best is {other}, {more} slower.", other=others[0].algorithm,
                         more=f"{found['slower_by']:.1%}"))  # fmt: skip
    if choice.band:
        low, high = map(format_time, choice.band)
        lines.append(say("Measured times are expected between {low} and {high}.", low=low,
                         high=high))  # fmt: skip
    head = ["algorithm", "protocol", "us", "busbw, GB/s", *PARTS.values()]
    shown = [*rows, *([nccl_row(nccl)] if nccl else [])]
    cells = [
        [f"NCCL: {row.algorithm}" if row.channels else row.algorithm, row.protocol,
         us(row.time * 1e6), f"{row.busbw / 1e9:.2f}",
         *(us(getattr(row, part) * 1e6) for part in PARTS)]
        for row in shown
    ]  # fmt: skip
    lines += ["", table([*map(say, head)], cells, right="cdefghi")]
    if nccl:
        lines += ["", say("NCCL's choice: {formula}", formula=nccl.formula)]
    return "\n".join(lines)
