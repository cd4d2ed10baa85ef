"""What commands print: JSON or tables, on stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from unicodedata import category

import click
import msgspec

from ..show.columns import pad, width


def emit(value: Any, as_json: str | None, table: Callable[[], str]) -> None:
    """Print the value as JSON, or the table; with a file, write the one and print the other."""
    if as_json:
        text = msgspec.json.format(msgspec.json.encode(value, enc_hook=_plain), indent=2).decode()
        if as_json == "-":
            click.echo(text)
            return
        write_whole(Path(as_json), text + "\n")
    click.echo(table())


def write_whole(path: Path, what: str | bytes) -> None:
    """Write a file whole, or leave what was there before, as on a full disk.

    Raises:
        OSError: it cannot be written; its file name is this one.
    """
    data = what.encode() if isinstance(what, str) else what
    whole = path.resolve()
    direct = (whole.exists() and not whole.is_file()) or not os.access(whole.parent, os.W_OK)
    part = whole if direct else whole.with_name(f".{whole.name}.{os.getpid()}")
    try:
        part.write_bytes(data)
        if not direct:
            if whole.exists():
                part.chmod(whole.stat().st_mode)
            part.replace(whole)
    except OSError as error:
        if not direct:
            part.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


def _plain(value: Any) -> Any:
    if hasattr(value, "numerator") and hasattr(value, "denominator"):  # Fraction, NumPy integers
        whole = value.denominator == 1
        return int(value.numerator) if whole else value.numerator / value.denominator
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value)} in JSON")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: str = "") -> str:
    """Rows under a head, aligned; `right` names the columns to align right, by their letter a, b.

    Wide characters (Chinese) count for two.
    """
    lines = [list(head), *map(list, rows)]
    wide = [max(width(line[i]) for line in lines) for i in range(len(head))]

    left = [chr(ord("a") + i) in right for i in range(len(head))]
    out = ["  ".join(map(pad, line, wide, left)).rstrip() for line in lines]
    return "\n".join([out[0], "  ".join("-" * w for w in wide), *out[1:]])


def printable(text: str) -> str:
    """Text that a program has made, in which nothing steers the terminal."""
    return "".join(
        c.encode("unicode_escape").decode() if category(c) == "Cc" and c not in "\n\t" else c
        for c in text
    )


def figure(value: Any) -> str:
    """A number for people: four digits, or all digits of a larger one before the point."""
    return f"{float(value):,.0f}" if abs(value) >= 1000 else f"{float(value):.4g}"


def on_terminal() -> bool:
    """Whether somebody watches stderr."""
    return sys.stderr.isatty()
