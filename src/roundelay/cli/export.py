"""`roundelay export`: a schedule as a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from ..formats.schedule import schema, write_schedule
from .base import Command
from .output import write_whole
from .targets import one_schedule, params_option, ranks_option, root_option, target_argument


@click.command(
    cls=Command,
    short_help="write a schedule file",
    help="Write the schedule of COLLECTIVE/ALGORITHM as a JSON file, which verify, cost and show "
    "take too.",
)
@target_argument(required=False)
@ranks_option(None, "number of ranks, such as 8")
@params_option()
@root_option()
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path),
              help="the file to write (default: to stdout)")  # fmt: skip
@click.option("--schema", "as_schema", is_flag=True, help="print the JSON Schema of such files")
def command(
    target: str | None,
    ranks: Sequence[int] | None,
    params: dict[str, Any],
    root: int,
    output: Path | None,
    as_schema: bool,
    as_json: str | None,
) -> None:
    """Write."""
    if as_schema:
        data = msgspec.json.format(msgspec.json.encode(schema()), indent=2) + b"\n"
    elif target is None:
        raise click.UsageError(
            "which algorithm? Name COLLECTIVE/ALGORITHM, such as all_reduce/ring"
        )
    else:
        data = write_schedule(one_schedule(target, ranks, params, root))
    deliver(data, output, as_json)


def deliver(data: bytes, output: Path | None, as_json: str | None) -> None:
    """Write into the file that is named, or to stdout."""
    file = output or (Path(as_json) if as_json and as_json != "-" else None)
    if file:
        write_whole(file, data)
    else:
        click.echo(data, nl=False)
