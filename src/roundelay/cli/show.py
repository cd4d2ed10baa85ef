"""`roundelay show`: the steps of a schedule, on the terminal or as a drawing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ..show import show, steps, svg
from .base import Command, language, say
from .output import emit, write_whole
from .targets import one_schedule, params_option, ranks_option, root_option, target_argument


@click.command(
    cls=Command,
    short_help="watch a schedule step by step",
    help="Show the steps of COLLECTIVE/ALGORITHM, or of a schedule file: who sends what to whom, "
    "and how much of each piece every rank holds after every step.",
)
@target_argument()
@ranks_option(None, "number of ranks (default 4)")
@params_option()
@root_option()
@click.option("--svg", "drawing", type=click.Path(dir_okay=False, path_type=Path),
              help="draw it into this file, too")  # fmt: skip
def command(
    target: str,
    ranks: Sequence[int] | None,
    params: dict[str, Any],
    root: int,
    drawing: Path | None,
    as_json: str | None,
) -> None:
    """Show."""
    from_file = target.endswith(".json")
    schedule = one_schedule(target, ranks or (None if from_file else (4,)), params, root)
    if drawing:
        write_whole(drawing, svg(schedule, language()))
        click.echo(say("drawn into {file}", file=drawing), err=True)
    emit(
        steps(schedule, language()) if as_json else None,
        as_json,
        lambda: show(schedule, lang=language()),
    )
