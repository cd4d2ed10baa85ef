"""What commands take: targets, numbers of ranks, parameters and sizes."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from math import inf
from pathlib import Path
from typing import Any, TypeVar

import click

from ..algorithms import Algorithm, algorithms, find
from ..clusters import HERE, cluster, names
from ..collectives import COLLECTIVES, UnknownName
from ..errors import RoundelayError
from ..files import read_file
from ..rounds import Round
from ..schedule import Schedule
from ..units import UnitError, parse_counts, parse_params, parse_size

F = TypeVar("F", bound=Callable[..., Any])


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


def size_above_zero(text: str) -> int:
    """A size of 1 byte or more.

    Raises:
        UnitError: it is none.
    """
    size = parse_size(text)
    if size < 1:
        raise UnitError(f"{text!r} is no size to measure; expected 1 byte or more")
    return size


def sizes_above_zero(text: str) -> list[int]:
    """Sizes of 1 byte or more, with commas between them; as `size_above_zero`."""
    return [size_above_zero(part) for part in text.split(",")]


def seconds_above_zero(text: str) -> float:
    """A time in seconds.

    Raises:
        UnitError: it is none, or not above 0.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < inf:
        raise UnitError(f"{text!r} is no time in seconds; expected a number above 0, such as 0.5")
    return seconds


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
    return click.option("-p", "params", type=Checked("KEY=VALUE,...", parse_params), default="",
                        help="the algorithm's parameters, such as group=8,inner=ring")  # fmt: skip


def size_argument(default: str) -> Callable[[F], F]:
    """The argument SIZE."""
    return click.argument("size", type=Checked("SIZE", parse_size), default=default,
                          metavar="[SIZE]")  # fmt: skip


def complete_cluster(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Completion of a cluster's name in a shell."""
    return [name for name in (*names(), HERE) if name.startswith(incomplete)]


def cluster_option(text: str = "", *, required: bool = False) -> Callable[[F], F]:
    """The option --cluster."""
    text = text or ("a machine with a number of nodes, such as dgx-h100:16, or a cluster file; see "
                    "`roundelay cluster`")  # fmt: skip
    return click.option("--cluster", "where", type=Checked("CLUSTER", cluster), required=required,
                        shell_complete=complete_cluster, help=text)  # fmt: skip


def root_option() -> Callable[[F], F]:
    """The option --root."""
    text = "the root of a rooted collective (default 0)"
    return click.option("--root", type=int, default=0, help=text)


def only_one(ranks: Sequence[int] | None) -> int:
    """The one number of ranks that a command takes."""
    if not ranks:
        raise click.UsageError("how many ranks? Add -n, such as -n 8")
    if len(ranks) != 1:
        raise click.UsageError(f"-n names {len(ranks)} numbers of ranks; expected one here")
    return ranks[0]


def given(*names: str) -> list[str]:
    """Those of the parameters that were given, as they are written."""
    context, default = click.get_current_context(), click.core.ParameterSource.DEFAULT
    return [
        p.opts[0] if isinstance(p, click.Option) else p.opts[0].upper()
        for p in context.command.params
        if p.name in names and context.get_parameter_source(p.name) is not default
    ]


def leave_out(*given: Any) -> None:
    """Refuse what a schedule file already says."""
    if any(given):
        raise click.UsageError("a schedule file has its ranks, root and parameters in it; "
                               "leave out -n, -p and --root")  # fmt: skip


def no_use(names: Sequence[str], where: str, instead: str = "") -> None:
    """Refuse options that would change nothing.

    Args:
        names: parameters of the command's function.
        where: they change nothing, such as "without --for".
        instead: what else may have been meant, such as "add --for".

    Raises:
        UsageError: one of them was given.
    """
    if idle := given(*names):
        what = f"{instead}, or leave it out" if instead else "leave it out"
        raise click.UsageError(f"{idle[0]} changes nothing {where}; {what}")


def load(target: str) -> list[Algorithm] | Schedule:
    """What a target names: a collective, an algorithm, a schedule file, or a file of algorithms.

    ``FILE.py:COLLECTIVE/ALGORITHM`` names one of several in a file.

    Raises:
        RoundelayError: nothing of that name, or a file that is no schedule.
        OSError: the file cannot be read.
    """
    file, _, name = target.rpartition(".py:")
    if file:
        found = load_python(Path(file + ".py"))
        chosen = [a for a in found if name in (f"{a.collective}/{a.name}", a.collective)]
        if not chosen:
            raise UnknownName(f"algorithm in {file}.py", name, [_name(a) for a in found])
        return chosen
    if target.endswith(".py"):
        return load_python(Path(target))
    if target.endswith(".json"):
        from ..formats.schedule import read_schedule

        return read_schedule(read_file(Path(target)))
    if "/" in target and target.count("/") == 1 and not Path(target).exists():
        return [find(target)]
    if Path(target).exists():
        raise RoundelayError(
            f"{target} is a file or folder; expected one that ends in .json or .py"
        )
    if target not in COLLECTIVES and (same := [a for a in algorithms() if a.name == target]):
        raise RoundelayError(f"{target!r} is no collective; try {', '.join(map(_name, same))}")
    return algorithms(target)


def _name(a: Algorithm) -> str:
    return f"{a.collective}/{a.name}"


def load_python(path: Path) -> list[Algorithm]:
    """The algorithms defined in a Python file, which is run as if it stood among ours.

    What goes wrong in it, then or when an algorithm is built, is an error of the input.
    """
    scope: dict[str, Any] = {
        "__name__": path.stem,
        "__file__": str(path),
        "__package__": "roundelay.algorithms.all_reduce",  # any: so that `from ...schedule` works
    }
    sys.path.insert(0, str(path.parent))
    text = read_file(path)
    with blame(path):
        exec(compile(text, str(path), "exec"), scope)
    found: list[Algorithm] = [v for v in scope.values() if isinstance(v, Algorithm)]
    if not found:
        raise RoundelayError(
            f"{path} defines no algorithm; write `from roundelay import algorithm` and over a "
            'function @algorithm("all_reduce", messages="...", bytes_sent="...", steps="...")'
        )
    return [replace(a, function=_blamed(a, path)) for a in found]


def _blamed(a: Algorithm, path: Path) -> Callable[..., Schedule]:
    @wraps(a.function)
    def build(n: int, **params: Any) -> Schedule:
        where = f"{a.name}({n})"
        with blame(path, where):
            schedule = a.function(n, **params)
        if not isinstance(schedule, Schedule) or not callable(schedule.rounds):
            return schedule
        lazy = schedule.rounds

        def rounds() -> Iterator[Round]:
            with blame(path, where):
                yield from lazy()

        return replace(schedule, rounds=rounds)

    return build


@contextmanager
def blame(path: Path, where: str = "") -> Iterator[None]:
    """Turn what a user's code raises into an error of the input, which says where."""
    try:
        yield
    except (RoundelayError, KeyboardInterrupt):
        raise
    except BaseException as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [f.lineno for f in frames if f.filename == str(path)]
        at = f", line {lines[-1]}" if lines else ""
        what = f"{where}: " if where else ""
        raise RoundelayError(f"{path}{at}: {what}{type(error).__name__}: {error}") from error


def one_schedule(
    target: str, ranks: Sequence[int] | None, params: dict[str, Any], root: int
) -> Schedule:
    """The schedule a target names."""
    loaded = load(target)
    if isinstance(loaded, Schedule):
        leave_out(ranks, params, root)
        return loaded
    if len(loaded) != 1:
        parted = f"{target}:" if target.endswith(".py") else ""
        names = ", ".join(f"{parted}{_name(a)}" for a in loaded)
        raise click.UsageError(f"{target!r} has several algorithms; choose one: {names}")
    return loaded[0](only_one(ranks), root, **params)
