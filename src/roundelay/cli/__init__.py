"""The command line: parse, call, print. Data on stdout, talk on stderr.

Exit status: 0 fine, 1 a check failed, 2 bad input.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import click

from ..errors import RoundelayError
from ..i18n import default_lang, translator
from .base import Group, take_language


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
    lang = None
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a console that cannot show ● shows ?
    try:
        lang, words = take_language(list(sys.argv[1:] if args is None else args))
        status = roundelay.main(words, prog_name="roundelay", standalone_mode=False, obj=lang)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except click.ClickException as error:
        error.show()
    except RoundelayError as error:
        _complain(lang, str(error))
    except (click.Abort, KeyboardInterrupt):
        _complain(lang, "interrupted")
        return 130
    except BrokenPipeError:  # the reader of a pipe has seen enough
        sys.stdout = None
        return 0
    except OSError as error:
        _complain(lang, *filter(None, (error.filename, error.strerror or str(error))))
    except MemoryError as error:
        _complain(lang, "not enough memory", str(error))
    return 2


def _complain(lang: str | None, *what: str) -> None:
    tell = translator(lang or default_lang(os.environ))
    click.echo(": ".join(map(tell, ("error", *what))), err=True)
