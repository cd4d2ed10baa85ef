"""`roundelay completion`: what a shell needs to complete our words."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .base import Command
from .output import emit


@click.command(
    cls=Command,
    short_help="print the script for completion in a shell",
    help="Print the script that lets a shell complete commands, options and algorithms. "
    'For bash, put this into ~/.bashrc: eval "$(roundelay completion bash)"',
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str, as_json: str | None) -> None:
    """Print."""
    made = get_completion_class(shell)
    assert made is not None
    script = made(ctx.find_root().command, {}, "roundelay", "_ROUNDELAY_COMPLETE").source()
    emit({"shell": shell, "script": script}, as_json, lambda: script)
