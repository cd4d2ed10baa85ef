"""How far a long command has come, on stderr where somebody watches."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final

import click

from .base import say
from .output import on_terminal

Step = Callable[[Mapping[str, Any]], None]
"""Called for each thing done, with what it was."""
EVERY: Final = 0.1
"""Seconds from one line to the next, at least."""


@contextmanager
def progress(total: int, done: int) -> Iterator[Step]:
    """A line that tells how many things are done, and when all will be.

    Args:
        total: things in all.
        done: those that were done before.
    """
    if not on_terminal() or done == total:
        yield lambda _: None
        return
    try:
        rich = importlib.import_module("rich.progress")
    except ImportError:
        yield from _plain(total, done)
        return
    with rich.Progress(*rich.Progress.get_default_columns(), rich.MofNCompleteColumn(),
                       console=importlib.import_module("rich.console").Console(stderr=True),
                       transient=True) as bar:  # fmt: skip
        task = bar.add_task("", total=total, completed=done)

        def step(what: Mapping[str, Any]) -> None:
            bar.update(task, advance=1, description=_words(what))

        yield step


def _plain(total: int, done: int) -> Iterator[Step]:
    begin, shown, asked = monotonic(), 0.0, total - done

    def step(what: Mapping[str, Any]) -> None:
        nonlocal done, shown
        done += 1
        now = monotonic()
        if now - shown < EVERY:
            return
        shown = now
        left = (now - begin) * (total - done) / (asked - total + done)
        line = say("{done} of {total}, {seconds} s left", done=f"{done:,}", total=f"{total:,}",
                   seconds=f"{left:,.0f}")  # fmt: skip
        click.echo(f"\r\x1b[K{line}  {_words(what)}", nl=False, err=True)

    try:
        yield step
    finally:
        click.echo("\r\x1b[K", nl=False, err=True)


def _words(what: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in what.items())
