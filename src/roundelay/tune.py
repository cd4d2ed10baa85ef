"""A table of the best algorithms, measured on this machine.

Every algorithm of a collective runs at every size; from the winners come rules for ranges of sizes
and ranks. What was not measured, such as several nodes, keeps the rules of the table before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import log2
from typing import Any, Final, NamedTuple

from .algorithms import Algorithm, algorithms
from .bench.race import race
from .errors import RoundelayError
from .selection import Rule, Table

MARGIN: Final = 0.95
"""An algorithm is better than a plainer one only if its time is at most this part of it: what is
less is noise."""
MADE: Final = "# Which algorithm when; the first rule that fits is taken. Made by `roundelay tune`."
"""The first line of a file."""
PLAIN: Final = ("one_shot", "two_shot", "direct")
"""The plainest first; others come after them."""
BASELINES: Final = ("star", "pairwise")
"""Algorithms that are there to be compared with."""


@dataclass(frozen=True, slots=True)
class Winner:
    """The best algorithm of a collective at one point.

    Attributes:
        microseconds: of every algorithm, by name.
    """

    collective: str
    ranks: int
    size: int
    algorithm: str
    microseconds: Mapping[str, float]


class _Span(NamedTuple):
    """Sizes below `below` bytes (all, if None) that one algorithm wins."""

    algorithm: str
    below: int | None


def candidates(collective: str, ranks: int) -> list[str]:
    """Algorithms worth measuring: those that fit, and need no switch that adds."""
    return [a.name for a in algorithms(collective) if _fits(a, ranks)]


def _fits(algorithm: Algorithm, ranks: int) -> bool:
    if algorithm.name in BASELINES or "group" in algorithm.parameters:
        return False  # groups are nodes, and there is one
    try:
        return not algorithm(ranks).helpers
    except RoundelayError:
        return False


def tune(
    collectives: Sequence[str], ranks: Sequence[int], sizes: Sequence[int], seconds: float
) -> Iterator[Winner]:
    """Measure, and give each winner as it is found.

    Args:
        collectives: their names.
        ranks: numbers of processes.
        sizes: bytes in the sense of nccl-tests.
        seconds: for each algorithm and size.
    """
    for collective in collectives:
        for n in ranks:
            names = candidates(collective, n)
            times: dict[int, dict[str, float]] = {}
            for point, figure in race(collective, names, n, sizes, seconds):
                times.setdefault(point.nbytes, {})[point.algorithm] = figure.time_us
            before = ""
            for size, row in times.items():
                before = _winner(row, before)
                yield Winner(collective, n, size, before, row)


def _winner(row: Mapping[str, float], before: str) -> str:
    """The fastest; of those about as fast the winner of the size before, else the plainest."""
    least = min(row.values())
    near = [name for name in row if MARGIN * row[name] <= least]
    return min(near, key=lambda n: (n != before, PLAIN.index(n) if n in PLAIN else 9, row[n]))


def rules(winners: Sequence[Winner]) -> list[Rule]:
    """Rules of one node, from the winners, for the ranks measured and those in between."""
    made = []
    for collective in dict.fromkeys(w.collective for w in winners):
        measured = sorted({w.ranks for w in winners if w.collective == collective})
        for i, n in enumerate(measured):
            least = n if i == 0 else (measured[i - 1] + n) // 2 + 1
            most = n if i == len(measured) - 1 else (n + measured[i + 1]) // 2
            row = [w for w in winners if (w.collective, w.ranks) == (collective, n)]
            made += [
                Rule(collective, span.algorithm, "one", (least, most),
                     "" if span.below is None else f"{span.below} B")
                for span in _spans(row)
            ]  # fmt: skip
    return made


def _spans(row: Sequence[Winner]) -> list[_Span]:
    spans: list[_Span] = []
    for here, following in zip(row, [*row[1:], None], strict=True):
        if following is not None and following.algorithm == here.algorithm:
            continue
        middle = None if following is None else log2(here.size * following.size) / 2
        below = None if middle is None else 2 ** round(middle)
        spans.append(_Span(here.algorithm, below))
    return spans


def write(winners: Sequence[Winner], before: Table, measured: str) -> str:
    """A table in TOML: what was measured, then the rules of the table before for the rest."""
    fresh = rules(winners)
    lines = [
        MADE,
        f"measured = {_quoted(measured)}",
        *(_rule(rule) for rule in (*fresh, *before.rules)),
    ]
    text = "\n\n".join(lines) + "\n"
    Table.read(text, "the table just made")
    return text


def _rule(rule: Rule) -> str:
    lines = ["[[rule]]", f"collective = {_quoted(rule.collective)}"]
    if rule.nodes:
        lines.append(f"nodes = {_quoted(rule.nodes)}")
    if tuple(rule.ranks) != (1, 2**31):
        lines.append(f"ranks = [{rule.ranks[0]}, {rule.ranks[1]}]")
    if rule.below:
        lines.append(f"below = {_quoted(rule.below)}")
    lines.append(f"algorithm = {_quoted(rule.algorithm)}")
    if rule.parameters:
        inner = ", ".join(f"{k} = {_value(v)}" for k, v in rule.parameters.items())
        lines.append(f"parameters = {{ {inner} }}")
    return "\n".join(lines)


def _value(value: Any) -> str:
    return _quoted(value) if isinstance(value, str) else str(value)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
