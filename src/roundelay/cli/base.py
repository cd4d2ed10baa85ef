"""What the commands share: languages, `--json`, help, and how a command is found."""

from __future__ import annotations

import difflib
import importlib
import os
import re
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from ..i18n import LANGUAGES, default_lang, message, translator

COMMANDS: Final = (
    "demo",
    "algorithms",
    "show",
    "serve",
    "page",
    "verify",
    "cost",
    "cluster",
    "simulate",
    "explain",
    "overlap",
    "place",
    "order",
    "inference-sim",
    "cluster-sim",
    "check",
    "diagnose",
    "topology",
    "convert",
    "bench",
    "moe",
    "probe",
    "doctor",
    "tune",
    "train",
    "generate",
    "llm",
    "walk",
    "launch",
    "status",
    "export",
    "completion",
)
"""The commands in the order of the help; each stands in a module of its name."""
PASSES_ON: Final = "launch"
"""The command whose later words may belong to another program."""
_DEFAULT: Final = "default: "
_NOTED: Final = re.compile(r"(.*)  \[(.*)\]", re.S)
"""A help text with what click adds to it, such as ``[default: 8; x>=1]``."""


def say(text: str, **values: Any) -> str:
    """The text in the language asked for, with values put in; see `i18n.message`."""
    return message(text, **values).tell(translator(language()))


def language() -> str:
    """The language asked for: by --lang, else by the locale."""
    context = click.get_current_context(silent=True)
    asked = context.find_object(str) if context else None
    return asked or default_lang(os.environ)


def take_language(args: list[str]) -> tuple[str | None, list[str]]:
    """The language that --lang asks for, wherever it stands, and the other words.

    It must be known before a command is parsed, since help is in that language too.

    Raises:
        RoundelayError: no such language.
    """
    for i, word in enumerate(args):
        if word in ("--", PASSES_ON):
            break
        name, equals, value = word.partition("=")
        value = value if equals else "".join(args[i + 1 : i + 2])
        if name == "--lang":
            translator(value)  # or it says which there are
            return value, args[:i] + args[i + (1 if equals else 2) :]
    return None, args


def _translated(records: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(names, _help(text)) for names, text in records]


def _help(text: str) -> str:
    """The help text of an option, translated, with what click adds to it."""
    noted = _NOTED.fullmatch(text)
    if noted is None:
        return say(text)
    return f"{say(noted[1])}  [{'; '.join(map(_note, noted[2].split('; ')))}]"


def _note(text: str) -> str:
    if text.startswith(_DEFAULT):
        return say("default: {value}", value=text.removeprefix(_DEFAULT))
    return say("required") if text == "required" else text


class Translated(click.Command):
    """A command whose help is in two languages."""

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The line of usage, translated."""
        words = " ".join(self.collect_usage_pieces(ctx))
        formatter.write_usage(ctx.command_path, words, prefix=f"{say('Usage')}: ")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The command's text, translated."""
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(say(self.help or ""))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options' texts, translated."""
        options = [p for p in self.get_params(ctx) if isinstance(p, click.Option)]
        records = [r for p in options if (r := p.get_help_record(ctx))]
        with formatter.section(say("Options")):
            formatter.write_dl(_translated(records))


class Command(Translated):
    """A command with --json and --lang."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params += [
            click.Option(
                ["--json", "as_json"],
                is_flag=False,
                flag_value="-",
                metavar="[FILE.json]",
                help="print one JSON value, or write it to FILE.json and print the table",
            ),
            click.Option(
                ["--lang"],
                type=click.Choice(LANGUAGES),
                expose_value=False,
                help="language of text for people (default: from the locale)",
            ),
        ]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Give --json a file only where one follows."""
        for i, word in enumerate(args):
            following = "".join(args[i + 1 : i + 2])
            if word == "--json" and not following.endswith(".json"):
                args[i] = "--json=-"
            elif word == "--json" and Path(following).exists():
                raise click.UsageError(
                    f"{following} is there already; to read it put it before --json, "
                    f"to write over it say --json={following}"
                )
        return super().parse_args(ctx, args)


class Group(Translated, click.Group):
    """The commands, each in a module of this package called after it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands there are."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, if there is one."""
        if cmd_name not in self.list_commands(ctx):
            return None
        module = importlib.import_module(f"{__package__}.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command asked for, or the nearest names."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], known, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise click.UsageError(f"no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options, then the commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands, translated."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            rows.append((name, say(command.short_help or "") if command else ""))
        with formatter.section(say("Commands")):
            formatter.write_dl(rows)


@contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """Clean up on SIGTERM as on Ctrl-C."""

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
