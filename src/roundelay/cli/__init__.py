"""The command line: parse, call, print. Data on stdout, talk on stderr.

Exit status: 0 fine, 1 a check failed, 2 bad input.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import click

from ..errors import RoundelayError
from .base import Group, say


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    help="Describe a collective once as a schedule; prove it, count it, watch it. "
    "Start with: roundelay demo",
)
@click.version_option(package_name="roundelay", message="%(prog)s %(version)s")
def roundelay() -> None:
    """The commands are found by `Group`, each in a module of its name."""


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 fine, 1 a check failed, 2 bad input."""
    sys.exit(run(args))


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status."""
    try:
        status = roundelay.main(args, prog_name="roundelay", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
    except RoundelayError as error:
        click.echo(f"{say('error')}: {error}", err=True)
    except (click.Abort, KeyboardInterrupt):
        click.echo(say("interrupted"), err=True)
        return 130
    except BrokenPipeError:  # the reader of a pipe has seen enough
        sys.stdout = None
        return 0
    except OSError as error:
        click.echo(f"{say('error')}: {error.filename or ''}: {error.strerror or error}", err=True)
    except MemoryError as error:
        click.echo(f"{say('error')}: {say('not enough memory')}: {error}", err=True)
    return 2
