"""What the commands share: languages, `--json`, targets, tables, and how help is found."""

from __future__ import annotations

import difflib
import importlib
import os
import pkgutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from ..algorithms import Algorithm, algorithms, find
from ..collectives import COLLECTIVES
from ..errors import RoundelayError
from ..i18n import LANGUAGES, default_lang, translator
from ..schedule import Schedule
from ..units import UnitError, parse_counts, parse_size

F = TypeVar("F", bound=Callable[..., Any])


def say(text: str, **values: Any) -> str:
    """The text in the language asked for, with values put in."""
    return translator(language())(text).format(**values)


def language() -> str:
    """The language asked for: by --lang, else by the locale."""
    context = click.get_current_context(silent=True)
    lang = context.find_root().meta.get(__name__) if context else None
    return lang or default_lang(os.environ)


def _translated(records: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(names, say(text)) for names, text in records]


class Command(click.Command):
    """A command with --json and --lang, and help in two languages."""

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
            click.Option(["--lang"], type=click.Choice(LANGUAGES), expose_value=False,
                         help="language of text for people (default: from the locale)"),
        ]  # fmt: skip

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Find --lang before help is printed, and give --json a file only where one follows."""
        for i, word in enumerate(args):
            following = args[i + 1] if i + 1 < len(args) else ""
            lang = word.removeprefix("--lang=") if word != "--lang" else following
            if word.startswith("--lang") and lang in LANGUAGES:
                ctx.find_root().meta[__name__] = lang
            if word == "--json" and not following.endswith(".json"):
                args[i] = "--json=-"
        return super().parse_args(ctx, args)

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


class Group(click.Group):
    """The commands, each in a module of this package called after it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands there are."""
        package = importlib.import_module(__package__)
        names = [m.name for m in pkgutil.iter_modules(package.__path__) if m.name != "base"]
        order = ("demo", "algorithms", "show", "verify", "cost", "export")
        return sorted(names, key=lambda n: (order.index(n) if n in order else len(order), n))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, if there is one."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"{__package__}.{cmd_name}").command
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

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take --lang before the command too."""
        for i in range(len(args) - 1):
            if args[i] == "--lang" and args[i + 1] in LANGUAGES:
                ctx.meta[__name__] = args[i + 1]
                if not any(a in self.list_commands(ctx) for a in args[:i]):
                    args = args[:i] + args[i + 2 :]
                break
        return super().parse_args(ctx, args)

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The text, translated."""
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(say(self.help or ""))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands, translated."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            rows.append((name, say(command.short_help or "") if command else ""))
        with formatter.section(say("Commands")):
            formatter.write_dl(rows)


class Checked(click.ParamType[Any]):
    """An option or argument read by a function of ours, whose complaint is shown as it is."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name, self.read = name, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value, read."""
        if not isinstance(value, str):
            return value
        try:
            return self.read(value)
        except RoundelayError as error:
            self.fail(str(error), param, ctx)


def read_params(text: str) -> dict[str, Any]:
    """``group=8,inner=ring,groups=8x4`` as a dictionary."""
    found: dict[str, Any] = {}
    for pair in filter(None, text.split(",")):
        name, equals, value = pair.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise UnitError(f"{pair!r}; expected key=value,key=value, such as group=8,inner=ring")
        found[name.strip()] = _param(value.strip())
    return found


def _param(text: str) -> Any:
    if text.isascii() and text.isdigit():
        return int(text)
    parts = text.split("x")
    if len(parts) > 1 and all(p.isascii() and p.isdigit() for p in parts):
        return tuple(int(p) for p in parts)
    return text


def complete_target(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Completion of COLLECTIVE/ALGORITHM in a shell."""
    names = [f"{a.collective}/{a.name}" for a in algorithms()]
    if "/" not in incomplete:
        names = [c for c in COLLECTIVES if c.startswith(incomplete)] + names
    return [n for n in names if n.startswith(incomplete)]


def target_argument(*, required: bool = True) -> Callable[[F], F]:
    """The argument TARGET of a command."""
    return click.argument(
        "target", required=required, metavar="TARGET" if required else "[TARGET]",
        shell_complete=complete_target,
    )  # fmt: skip


def ranks_option(default: str | None, text: str) -> Callable[[F], F]:
    """The option -n."""
    return click.option("-n", "ranks", type=Checked("COUNTS", parse_counts), default=default,
                        help=text)  # fmt: skip


def params_option() -> Callable[[F], F]:
    """The option -p."""
    return click.option("-p", "params", type=Checked("KEY=VALUE,...", read_params), default="",
                        help="the algorithm's parameters, such as group=8,inner=ring")  # fmt: skip


def size_argument(default: str) -> Callable[[F], F]:
    """The argument SIZE."""
    return click.argument("size", type=Checked("SIZE", parse_size), default=default,
                          metavar="[SIZE]")  # fmt: skip


def only_one(ranks: Sequence[int]) -> int:
    """The one number of ranks that a command takes."""
    if len(ranks) != 1:
        raise click.UsageError(f"-n names {len(ranks)} numbers of ranks; expected one here")
    return ranks[0]


def load(target: str) -> list[Algorithm] | Schedule:
    """What a target names: a collective, an algorithm, a schedule file, or a file of algorithms.

    Raises:
        RoundelayError: nothing of that name, or a file that is no schedule.
        OSError: the file cannot be read.
    """
    if target.endswith(".py"):
        return load_python(Path(target))
    if target.endswith(".json") or (os.sep in target and Path(target).is_file()):
        from ..formats.schedule import read_schedule

        return read_schedule(Path(target).read_bytes())
    if "/" in target:
        return [find(target)]
    return algorithms(target)


def load_python(path: Path) -> list[Algorithm]:
    """The algorithms defined in a Python file, which is run."""
    scope: dict[str, Any] = {
        "__name__": path.stem,
        "__file__": str(path),
        "__package__": "roundelay.algorithms",
    }
    code = path.read_bytes()
    try:
        exec(compile(code, str(path), "exec"), scope)
    except RoundelayError:
        raise
    except Exception as error:
        raise RoundelayError(f"{path}: {type(error).__name__}: {error}") from error
    found: list[Algorithm] = [v for v in scope.values() if isinstance(v, Algorithm)]
    if not found:
        raise RoundelayError(f"{path} defines no algorithm; put @algorithm(...) over a function")
    return found


def one_schedule(
    target: str, ranks: Sequence[int] | None, params: dict[str, Any], root: int
) -> tuple[Schedule, Algorithm | None]:
    """The schedule a target names, and the algorithm it comes from, if it does."""
    loaded = load(target)
    if isinstance(loaded, Schedule):
        if ranks or params or root:
            raise click.UsageError("a schedule file has its ranks, root and parameters in it; "
                                   "leave out -n, -p and --root")  # fmt: skip
        return loaded, None
    if len(loaded) != 1:
        names = ", ".join(f"{a.collective}/{a.name}" for a in loaded)
        raise click.UsageError(f"{target!r} has several algorithms; choose one: {names}")
    if not ranks:
        raise click.UsageError("how many ranks? Add -n, such as -n 8")
    return loaded[0](only_one(ranks), root, **params), loaded[0]


def emit(value: Any, as_json: str | None, table: Callable[[], str]) -> None:
    """Print the value as JSON, or the table; with a file, write the one and print the other."""
    if as_json:
        text = msgspec.json.format(msgspec.json.encode(value, enc_hook=_plain), indent=2).decode()
        if as_json == "-":
            click.echo(text)
            return
        Path(as_json).write_text(text + "\n", "utf-8")
    click.echo(table())


def _plain(value: Any) -> Any:
    if hasattr(value, "numerator") and hasattr(value, "denominator"):  # Fraction, NumPy integers
        whole = value.denominator == 1
        return int(value.numerator) if whole else value.numerator / value.denominator
    if hasattr(value, "tolist"):
        return value.tolist()
    raise NotImplementedError(f"{type(value)} in JSON")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: str = "") -> str:
    """Rows under a head, aligned; `right` names the columns to align right, by their letter a, b.

    Wide characters (Chinese) count for two.
    """
    lines = [list(head), *map(list, rows)]
    wide = [max(width(line[i]) for line in lines) for i in range(len(head))]

    def cell(i: int, text: str) -> str:
        pad = " " * (wide[i] - width(text))
        return pad + text if chr(ord("a") + i) in right else text + pad

    out = ["  ".join(cell(i, text) for i, text in enumerate(line)).rstrip() for line in lines]
    return "\n".join([out[0], "  ".join("-" * w for w in wide), *out[1:]])


def figure(value: Any) -> str:
    """A number for people: four digits, or all digits of a larger one before the point."""
    return f"{float(value):,.0f}" if abs(value) >= 1000 else f"{float(value):.4g}"


def width(text: str) -> int:
    """Columns the text takes on a terminal."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def on_terminal() -> bool:
    """Whether somebody watches stderr."""
    return sys.stderr.isatty()
