"""`roundelay cost`: what a schedule costs, beside the least that any could."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import click

from ..algorithms import Algorithm
from ..cost import Bound, Cost, bound, cost, cost_of
from ..schedule import Schedule
from ..units import format_size, parse_size
from .base import (
    Checked,
    Command,
    emit,
    load,
    only_one,
    params_option,
    ranks_option,
    say,
    size_argument,
    table,
    target_argument,
)


def _sizes(text: str) -> list[int]:
    return [parse_size(part) for part in text.split(",")]


@click.command(
    cls=Command,
    short_help="count steps, messages and bytes, beside the least possible",
    help="Count what TARGET costs for SIZE bytes (default 1MiB; as in nccl-tests' size column): "
    "steps, messages and bytes of the busiest rank, beside the least that any schedule needs. "
    "TARGET is COLLECTIVE/ALGORITHM, COLLECTIVE for a table of all its algorithms, or a "
    "schedule file.",
)
@target_argument()
@size_argument("1MiB")
@ranks_option(None, "number of ranks, such as 16384")
@params_option()
@click.option("--root", type=int, default=0, help="the root of a rooted collective (default 0)")
@click.option("--weights", type=Checked("SIZE,SIZE,...", _sizes),
              help="bytes of each piece, for uneven collectives such as all_gather_v")  # fmt: skip
def command(
    target: str,
    size: int,
    ranks: Sequence[int] | None,
    params: dict[str, Any],
    root: int,
    weights: list[int] | None,
    as_json: str | None,
) -> None:
    """Count and print."""
    loaded = load(target)
    if isinstance(loaded, Schedule):
        if ranks or params or root:
            raise click.UsageError("a schedule file has its ranks, root and parameters in it; "
                                   "leave out -n, -p and --root")  # fmt: skip
        found = [(loaded.name, cost(loaded, size, weights))]
        name, n = loaded.collective, loaded.ranks
    else:
        if not ranks:
            raise click.UsageError("how many ranks? Add -n, such as -n 8")
        name, n = loaded[0].collective, only_one(ranks)
        able = [a for a in loaded if not a.power_of_two or len(loaded) == 1 or not n & (n - 1)]
        found = [(a.name, _cost(a, n, size, params, root, weights)) for a in able]
    size = sum(weights) if weights else size
    entries = [_entry(c, name, n, size) for _, c in found]
    single = len(found) == 1
    emit(
        entries[0]
        if single
        else [{"algorithm": a, **e} for (a, _), e in zip(found, entries, strict=True)],
        as_json,
        lambda: _one(*found[0], name, n, size) if single else _many(found, name, n, size),
    )


def _cost(
    a: Algorithm, n: int, size: int, params: dict[str, Any], root: int, weights: list[int] | None
) -> Cost:
    if root or weights:
        return cost(a(n, root, **params), size, weights)
    return cost_of(a, n, size, **params)


def _entry(c: Cost, name: str, n: int, size: int) -> dict[str, Any]:
    return {
        **c._asdict(),
        "bound": bound(name, n, size, in_switch=bool(c.helper_bytes_max))._asdict(),
    }


def _bytes(value: Fraction | None, size: int) -> str:
    if value is None:
        return "-"
    share = f"  ({float(value / size):.4g} S)" if size else ""
    return format_size(round(value)) + share


def _title(what: str, n: int, size: int) -> str:
    return say("{what}, {n} ranks, S = {size}", what=what, n=f"{n:,}", size=format_size(size))


def _one(algorithm: str, c: Cost, name: str, n: int, size: int) -> str:
    least: list[Bound] = [
        bound(name, n, size, ports="one"),
        bound(name, n, size, ports="all"),
        bound(name, n, size, ports="all", in_switch=True),
    ]
    head = ["", say("counted") if c.counted else say("by formula"), say("least, one port"),
            say("least, all ports"), say("least, adding switches")]  # fmt: skip
    rows = [
        [say("steps"), f"{c.steps:,}", *(f"{b.steps:,}" for b in least)],
        [say("longest chain of moves"), "-" if c.depth is None else f"{c.depth:,}"],
        [say("messages sent, busiest rank"), f"{c.messages_max:,}"],
        [say("messages received, busiest rank"),
         "-" if c.messages_received_max is None else f"{c.messages_received_max:,}"],
        [say("bytes sent, busiest rank"), _bytes(c.bytes_sent_max, size),
         *(_bytes(b.bytes_sent_max, size) for b in least)],
        [say("bytes received, busiest rank"), _bytes(c.bytes_received_max, size)],
        [say("bytes added, busiest rank"), _bytes(c.bytes_reduced_max, size)],
    ]  # fmt: skip
    if c.helper_bytes_max:
        rows.append([say("bytes sent, busiest switch"), _bytes(c.helper_bytes_max, size)])
    rows = [row + [""] * (len(head) - len(row)) for row in rows]
    lines = [_title(f"{name}/{algorithm or '?'}", n, size), "", table(head, rows, right="bcde")]
    if not c.counted:
        lines += ["", say("n * n moves: above 1,024 ranks counted by the algorithm's formulas")]
    return "\n".join(lines)


def _many(found: list[tuple[str, Cost]], name: str, n: int, size: int) -> str:
    columns = ("algorithm", "steps", "messages", "bytes sent", "bytes received")
    head = [*map(say, columns), ""]
    rows = [
        [a, f"{c.steps:,}", f"{c.messages_max:,}", _bytes(c.bytes_sent_max, size),
         _bytes(c.bytes_received_max, size), "" if c.counted else say("by formula")]
        for a, c in found
    ]  # fmt: skip
    for label, ports, in_switch in (
        ("least, one port", "one", False),
        ("least, all ports", "all", False),
        ("least, adding switches", "all", True),
    ):
        b = bound(name, n, size, ports=ports, in_switch=in_switch)
        rows.append([say(label), f"{b.steps:,}", "", _bytes(b.bytes_sent_max, size), "", ""])
    note = say("messages and bytes are those of the busiest rank")
    return "\n".join([_title(name, n, size), "", table(head, rows, right="bcde"), "", note])
