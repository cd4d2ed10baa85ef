"""A table of NCCL's tuner plugin: whether it is legal, what it chooses, and what it leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from ...formats.tuner import ANY, COLLECTIVES, MOST, Row, tuner_lines
from ...i18n import counted
from ...units import format_size
from ..finding import Evidence, Figures, Finding, numbers, tell

ROWS: Final = 2000
"""Rows that are gone through."""
KINDS: Final = 16
"""Numbers of nodes and ranks that are told apart."""
LISTED: Final = 8
MANY: Final = 16
"""Choices that are told."""


class _At(NamedTuple):
    """A row, and its line."""

    line: int
    row: Row


class _Part(NamedTuple):
    """Sizes, both ends included, and the row that takes them; None where none does."""

    low: int
    high: int
    at: _At | None


def tuner_findings(file: str, data: bytes) -> list[Finding]:
    """What a table does.

    Raises:
        RoundelayError: it is none.
    """
    lines = tuner_lines(data)
    rows = [_At(number, found) for number, _, found in lines if isinstance(found, Row)][:ROWS]
    wrong = [(number, text, found) for number, text, found in lines if isinstance(found, str)]
    texts = {number: text for number, text, _ in lines}
    taken = _taken(rows)
    found = [_illegal(file, wrong), _gaps(file, taken), _never(file, rows, taken, texts),
             _chosen(file, rows, taken, texts)]  # fmt: skip
    return [finding for finding in found if finding is not None]


_Taken = dict[tuple[str, int, int], list[_Part]]


def _taken(rows: Sequence[_At]) -> _Taken:
    """By collective, nodes and ranks: which sizes which row takes. ANY is any other number."""
    kinds = dict.fromkeys((at.row.nodes, at.row.ranks) for at in rows)
    kinds.setdefault((ANY, ANY))
    listed = list(kinds)[:KINDS]
    return {(name, *kind): _parts(rows, name, *kind) for name in COLLECTIVES for kind in listed}


def _parts(rows: Sequence[_At], name: str, nodes: int, ranks: int) -> list[_Part]:
    """The sizes from 0 to the largest, cut where another row takes them."""
    free, parts = [(0, MOST)], []
    for at in rows:
        row = at.row
        fits = row.nodes in (ANY, nodes) and row.ranks in (ANY, ranks)
        always = (row.operations, row.registered) == (ANY, ANY)
        if row.collective != name or not fits or not always:
            continue
        left = []
        for low, high in free:
            a, b = max(low, row.low), min(high, row.high)
            if a > b:
                left.append((low, high))
                continue
            parts.append(_Part(a, b, at))
            left += [(x, y) for x, y in ((low, a - 1), (b + 1, high)) if x <= y]
        free = left
    return sorted([*parts, *(_Part(low, high, None) for low, high in free)])


def _sizes(low: int, high: int) -> str:
    if (low, high) == (0, MOST):
        return "*"
    end = min(format_size(high), format_size(high + 1), key=len)  # the rounder one
    return f"{format_size(low)} - {'*' if high == MOST else end}"


def _calls(name: str, nodes: int, ranks: int) -> str:
    parts = ["" if nodes == ANY else counted(nodes, "node", "nodes"),
             "" if ranks == ANY else counted(ranks, "rank", "ranks")]  # fmt: skip
    return ", ".join([name, *filter(None, parts)])


def _cited(file: str, lines: Iterable[tuple[int, str]]) -> tuple[Evidence, ...]:
    return tuple(Evidence(file, number, text[:300]) for number, text in list(lines)[:LISTED])


def _illegal(file: str, wrong: Sequence[tuple[int, str, str]]) -> Finding | None:
    """Rows that the plugin would misread, or NCCL could not run."""
    if not wrong:
        return None
    figures: Figures = {"count": len(wrong), "first": wrong[0][2][:200], "line": wrong[0][0]}
    return tell(
        "tuner_wrong", file, figures,
        ["{count:row is|rows are} not legal; line {line}: {first}.",
         "The plugin takes names that it does not know for allreduce, ring or simple without a "
         "word, and NCCL cannot run every pair; what is said below leaves such rows out."],
        "Mend them, or let `roundelay tune --for nccl` write the table anew.",
        _cited(file, ((number, text) for number, text, _ in wrong)), fault=True, confidence=0.95,
        area="machine",
    )  # fmt: skip


def _gaps(file: str, taken: _Taken) -> Finding | None:
    """Calls that no row fits."""
    listed = [f"{_calls(*kind)}: {_sizes(part.low, part.high)}" for kind, parts in taken.items()
              if not _usual(taken, kind) for part in parts if part.at is None]  # fmt: skip
    if not listed:
        return None
    return tell(
        "one_channel", file, {"count": len(listed), "listed": _joined(listed)},
        ["No row fits these calls (sizes in bytes, * is any): {listed}.",
         "The plugin runs them on one channel, which is many times slower than NCCL's own choice."],
        "End the table with a row for all calls of each collective, such as "
        "allreduce,0,18446744073709551615,ring,simple,16,-1,-1,-1,-1.",
        (Evidence(file, 0, listed[0]),), fault=True, confidence=0.9, area="machine",
    )  # fmt: skip


def _never(file: str, rows: Sequence[_At], taken: _Taken, texts: dict[int, str]) -> Finding | None:
    """Rows that come too late: those before them take all their calls."""
    used = {part.at.line for parts in taken.values() for part in parts if part.at is not None}
    every = {(at.row.nodes, at.row.ranks) for at in rows}
    never = [at.line for at in rows if at.line not in used
             and (at.row.operations, at.row.registered) == (ANY, ANY)]  # fmt: skip
    if not never or len(every) > KINDS - 1:
        return None
    return tell(
        "row_never_taken", file, {"lines": numbers(never)},
        ["Rows that are never taken (lines): {lines}. Those before them fit all their calls, and "
         "the first row that fits is taken."],
        "Put rows for few calls before those for many.",
        _cited(file, ((line, texts[line]) for line in never)), confidence=0.9, area="machine",
    )  # fmt: skip


def _chosen(file: str, rows: Sequence[_At], taken: _Taken, texts: dict[int, str]) -> Finding | None:
    """What is chosen, by collective, communicator and size."""
    if not rows:
        return None
    listed = [f"{_calls(*kind)}: {', '.join(_choices(parts))}" for kind, parts in taken.items()
              if any(part.at for part in parts) and not _usual(taken, kind)]  # fmt: skip
    figures: Figures = {"rows": len(rows), "choices": _joined(listed)}
    return tell(
        "tuner", file, figures,
        ["A table of NCCL's tuner plugin with {rows:legal row|legal rows}.",
         "It chooses (sizes in bytes, * is any): {choices}."],
        "Name it in NCCL_TUNER_CONFIG_FILE, with the plugin in NCCL_TUNER_PLUGIN; sizes are those "
        "of the whole vector.",
        _cited(file, ((at.line, texts[at.line]) for at in rows[:2])), confidence=0.95,
        area="machine",
    )  # fmt: skip


def _joined(listed: Sequence[str]) -> str:
    return "; ".join([*listed[:MANY], *(["..."] if len(listed) > MANY else [])])


def _usual(taken: _Taken, kind: tuple[str, int, int]) -> bool:
    """Whether a communicator of this size is treated as any other."""
    name, *size = kind
    return size != [ANY, ANY] and taken[kind] == taken[name, ANY, ANY]


def _choices(parts: Sequence[_Part]) -> Iterator[str]:
    """Parts side by side with the same algorithm and protocol are one."""
    joined: list[tuple[int, int, list[Row]]] = []
    for part in parts:
        if part.at is None:
            continue
        low, high, rows = part.low, part.high, [part.at.row]
        if joined and joined[-1][1] + 1 == low and _same(joined[-1][2][-1], part.at.row):
            low, _, before = joined.pop()
            rows = [*before, *rows]
        joined.append((low, high, rows))
    for low, high, rows in joined:
        yield f"{_sizes(low, high)} {rows[0].algorithm}/{rows[0].protocol} ({_channels(rows)})"


def _channels(rows: Sequence[Row]) -> str:
    least, most = (end(row.channels for row in rows) for end in (min, max))
    return counted(most, "channel", "channels") if least == most else f"{least} to {most} channels"


def _same(a: Row, b: Row) -> bool:
    return (a.algorithm, a.protocol) == (b.algorithm, b.protocol)
