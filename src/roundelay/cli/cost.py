"""`roundelay cost`: what a schedule costs, beside the least that any could."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import click

from ..algorithms import Algorithm
from ..collectives import collective
from ..cost import Bound, Cost, bound, cost, cost_of
from ..schedule import Schedule
from ..units import format_size, parse_size
from .base import Command, say
from .output import emit, figure, table
from .targets import (
    Checked,
    leave_out,
    load,
    only_one,
    params_option,
    ranks_option,
    root_option,
    size_argument,
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
@root_option()
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
        leave_out(ranks, params, root)
        found = [(loaded.name, cost(loaded, size, weights))]
        name, n = loaded.collective, loaded.ranks
    else:
        name, n = loaded[0].collective, only_one(ranks)
        if len(kinds := {a.collective for a in loaded}) > 1:
            choice = ", ".join(f"{target}:{kind}" for kind in sorted(kinds))
            raise click.UsageError(f"{target!r} has several collectives; choose one: {choice}")
        able = [a for a in loaded if len(loaded) == 1 or a.fits(n, params)]
        found = [(a.name, _cost(a, n, size, params, root, weights)) for a in able]
    size = sum(weights) if weights else size
    case = Case(name, n, size, weights)
    entries = [_entry(c, case) for _, c in found]
    if len(found) == 1:
        emit(entries[0], as_json, lambda: _one(*found[0], case))
    else:
        named = [{"algorithm": a, **e} for (a, _), e in zip(found, entries, strict=True)]
        emit(named, as_json, lambda: _many(found, case))


def _cost(
    a: Algorithm, n: int, size: int, params: dict[str, Any], root: int, weights: list[int] | None
) -> Cost:
    if root or weights:
        return cost(a(n, root, **params), size, weights)
    return cost_of(a, n, size, **params)


class Case(NamedTuple):
    """What is counted: a collective over n ranks, and its bytes."""

    collective: str
    n: int
    size: int
    weights: list[int] | None

    def least(self, ports: str = "one", in_switch: bool = False) -> Bound:
        """The least possible in a port model."""
        return bound(self.collective, self.n, self.size, weights=self.weights, ports=ports,
                     in_switch=in_switch)  # fmt: skip

    def bounds(self) -> dict[str, Bound]:
        """The least possible in three models, by what to call them; none where a routing says."""
        if collective(self.collective).routed:
            return {}
        return {
            "least, one port": self.least(),
            "least, all ports": self.least("all"),
            "least, adding switches": self.least("all", True),
        }

    def title(self, algorithm: str = "") -> str:
        """A headline."""
        what = f"{self.collective}/{algorithm}" if algorithm else self.collective
        size = format_size(self.size)
        return say("{what}, {n} ranks, S = {size}", what=what, n=f"{self.n:,}", size=size)

    def bytes(self, value: Fraction | None) -> str:
        """Bytes, and as a multiple of S."""
        if value is None:
            return "-"
        share = f" = {figure(value / self.size)} S" if self.size else ""
        return format_size(round(value)) + share


def _entry(c: Cost, case: Case) -> dict[str, Any]:
    in_switch = bool(c.helper_bytes_max)
    bound = case.least(in_switch=in_switch)._asdict() if case.bounds() else None
    return {**c._asdict(), "bound": bound}


def _one(algorithm: str, c: Cost, case: Case) -> str:
    least = case.bounds()
    head = ["", say("counted") if c.counted else say("by formula"), *map(say, least)]
    bounds = least.values()
    rows = [
        ["steps", f"{c.steps:,}", *(f"{b.steps:,}" for b in bounds)],
        ["longest chain of moves", _count(c.depth)],
        ["messages sent, busiest rank", _count(c.messages_max)],
        ["messages received, busiest rank", _count(c.messages_received_max)],
        ["bytes sent, busiest rank", case.bytes(c.bytes_sent_max),
         *(case.bytes(b.bytes_sent_max) for b in bounds)],
        ["bytes received, busiest rank", case.bytes(c.bytes_received_max)],
        ["bytes added, busiest rank", case.bytes(c.bytes_reduced_max)],
    ]  # fmt: skip
    if c.helper_bytes_max:
        rows.append(["bytes sent, busiest switch", case.bytes(c.helper_bytes_max)])
    rows = [[say(row[0]), *row[1:], *[""] * (len(head) - len(row))] for row in rows]
    lines = [case.title(algorithm or "?"), "", table(head, rows, right="bcde")]
    if not c.counted:
        lines += ["", say("n * n moves: above 1,024 ranks counted by the algorithm's formulas")]
    return "\n".join(lines)


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"


def _many(found: list[tuple[str, Cost]], case: Case) -> str:
    head = ("algorithm", "steps", "messages", "bytes sent", "bytes received")
    rows = [
        [a if c.counted else f"{a} *", _count(c.steps), _count(c.messages_max),
         case.bytes(c.bytes_sent_max), case.bytes(c.bytes_received_max)]
        for a, c in found
    ]  # fmt: skip
    for label, b in case.bounds().items():
        rows.append([say(label), _count(b.steps), "", case.bytes(b.bytes_sent_max), ""])
    lines = [case.title(), "", table([*map(say, head)], rows, right="bcde"), ""]
    lines.append(say("messages and bytes are those of the busiest rank"))
    if not all(c.counted for _, c in found):
        lines.append(
            "* " + say("n * n moves: above 1,024 ranks counted by the algorithm's formulas")
        )
    return "\n".join(lines)
