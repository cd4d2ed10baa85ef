"""`roundelay launch`: the ranks of a job on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from ..i18n import LANGUAGES, Message, translator
from ..run.launch import launch, python_command, rank_environments
from .base import Translated, language


def _set_language(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    ctx.obj = value or ctx.obj


@click.command(
    cls=Translated,
    context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False},
    short_help="run a Python program as the ranks of a job on this machine",
    help="Run a Python program as the ranks of a job on this machine: -n 4 starts it four times, "
    "each with its rank in the environment, also under the names that torchrun uses. When a rank "
    "fails the others are ended, and its exit status is that of this command. Under Slurm's srun, "
    "-n is the number of ranks in all, and each task starts its part of them.",
)
@click.option("-n", "ranks", type=int, metavar="N", help="number of ranks, such as 4")
@click.option("-m", "--module", is_flag=True, help="PROGRAM is a module, as for python -m")
@click.option("--tag", is_flag=True, help="put the rank before each line that it prints")
@click.option("--elastic", is_flag=True,
              help="the others go on when a rank fails, if their program can")  # fmt: skip
@click.option(
    "--timeout",
    type=float,
    metavar="SECONDS",
    help="end the job after this time, with exit status 124",
)
@click.option(
    "--lang",
    type=click.Choice(LANGUAGES),
    is_eager=True,
    expose_value=False,
    callback=_set_language,
    help="language of text for people (default: from the locale)",
)
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    ranks: int | None,
    module: bool,
    tag: bool,
    elastic: bool,
    timeout: float | None,
    program: str,
    arguments: tuple[str, ...],
) -> int:
    """Run."""
    if ranks is None or ranks < 1:
        found = "no -n" if ranks is None else f"-n {ranks}"
        raise click.UsageError(f"{found}; expected a number of ranks, such as -n 4")
    if timeout is not None and not timeout > 0:
        raise click.UsageError(f"--timeout {timeout:g}; expected seconds, such as 600")
    if not module and not Path(program).exists():
        raise click.UsageError(
            f"{program}: no such file; expected a Python program, or a module after -m"
        )
    words = python_command([program, *arguments], module)
    environments = rank_environments(os.environ, ranks)
    if sys.stdout is not None:
        sys.stdout.flush()
    return launch(words, environments, _tell, tag, timeout, elastic)


def _tell(what: Message) -> None:
    click.echo(f"roundelay launch: {what.tell(translator(language()))}", err=True)
