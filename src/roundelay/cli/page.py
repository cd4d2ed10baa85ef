"""`roundelay page`: the page as one file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from ..clusters import ENDINGS
from ..errors import RoundelayError
from ..units import format_size
from ..web.known import known
from ..web.named import name_of
from ..web.page import page
from ..web.states import CURVED, PLAYED, TIMED, VIEWS, asked, state_text
from .base import Command, say
from .output import emit, write_whole

OPTIONS: Final = ("collective", "algorithm", "against", "n", "params", "size", "cluster")
"""Of the command, those that say what a view shows."""


@click.command(
    cls=Command,
    short_help="put the page into one file, to mail or to put on a site",
    help="Write a view of the page into FILE.html, with its data inside. The file opens without "
    "a server and loads nothing from elsewhere.",
)
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.html")
@click.option("--view", type=click.Choice(VIEWS), metavar="|".join(VIEWS),
              help="which view (default player; run with --trace, walk with --walk, jobs with "
              "--jobs)")  # fmt: skip
@click.option("--collective", default="", help="default all_reduce")
@click.option("--algorithm", default="", help="default ring")
@click.option("--against", default="", help="a second algorithm, beside the first")
@click.option(
    "-n", "n", default="", help="number of ranks (default 8; on a cluster, all its cards)"
)
@click.option(
    "-p", "params", default="", help="the algorithm's parameters, such as group=8,inner=ring"
)
@click.option("--size", default="",
              help="bytes of the collective (default 1M; 256M of the view cluster)")  # fmt: skip
@click.option("--cluster", default="", help="a machine with a number of nodes, such as dgx-h100:2, "
              "or a cluster file, to time it on")  # fmt: skip
@click.option("--trace", "traces", multiple=True, type=click.Path(exists=True, path_type=Path),
              metavar="FILE", help="for the view run: a trace of a real run, or a folder that "
              "ROUNDELAY_TRACE has filled; a second one stands beside the first")  # fmt: skip
@click.option("--walk", "walked", type=click.Path(exists=True, path_type=Path), metavar="FILE",
              help="for the view walk: a walk along a request, as roundelay walk --save "
              "writes it")  # fmt: skip
@click.option("--jobs", "events", type=click.Path(exists=True, path_type=Path), metavar="FILE",
              help="for the view jobs: jobs over time, as roundelay cluster-sim --events writes "
              "them")  # fmt: skip
def command(
    file: Path, view: str | None, traces: tuple[Path, ...], walked: Path | None,
    events: Path | None, as_json: str | None, **given: str,
) -> None:  # fmt: skip
    """Write the page."""
    _check_file(file)
    view = _view(view, traces, walked, events)
    _check_options(view, [key for key, value in given.items() if value])
    machine = Path(given["cluster"])
    machines = [machine] if machine.suffix in ENDINGS else []
    found = known(traces, [walked] if walked else [], machines, [events] if events else [])
    if machines:
        given["cluster"] = next(iter(found.clusters))
    state = _state(view, {key: value for key, value in given.items() if value})
    if view == "run":
        state = dict(zip(("run", "against"), map(name_of, traces), strict=False))
    if walked:
        state = {"walk": name_of(walked)}
    if events:
        state = {"jobs": name_of(events)}
    text = page(asked(view, state, found.clusters), state_text(view, state), found)
    try:
        write_whole(file, text)
    except OSError as error:
        raise RoundelayError(f"{file}: {error.strerror}") from None
    size = len(text.encode())
    written = {"file": str(file), "bytes": size}
    emit(written, as_json, lambda: say("{file}: {size}", file=file, size=format_size(size)))


def _check_file(file: Path) -> None:
    if str(file) == "-" or file.is_dir():
        raise RoundelayError(f"{file}: expected the name of a file, such as ring.html")


def _check_options(view: str, given: list[str]) -> None:
    """No option may be given that the view has no use for."""
    used = {"player": [*PLAYED, "against"], "cluster": TIMED, "curves": CURVED}.get(view, [])
    spare = [key for key in given if key not in used]
    if spare:
        names = {"n": "-n", "params": "-p"}
        found = ", ".join(names.get(key, f"--{key}") for key in spare)
        known = ", ".join(names.get(key, f"--{key}") for key in used if key in OPTIONS)
        raise RoundelayError(f"{found} with --view {view}; expected {known or 'none of these'}")


def _view(
    view: str | None, traces: tuple[Path, ...], walked: Path | None, events: Path | None
) -> str:
    """The view that is asked for, or that the files are for."""
    if len(traces) > 2:
        raise RoundelayError(f"{len(traces)} times --trace; expected at most two in one file")
    files = ("--trace", traces, "run"), ("--walk", walked, "walk"), ("--jobs", events, "jobs")
    for option, given, wanted in files:
        if given and view not in (None, wanted):
            raise RoundelayError(f"{option} with --view {view}; expected --view {wanted}")
    return view or next((name for _, given, name in files if given), "player")


def _state(view: str, given: dict[str, str]) -> dict[str, str]:
    """The state of a view, by the options that were given."""
    if view == "player":
        clock = {"clock": "seconds"} if "cluster" in given else {}
        return {"n": "8", "size": "1M"} | given | clock
    return given
