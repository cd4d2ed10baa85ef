"""What such tables hold."""

from __future__ import annotations

from typing import Literal, NamedTuple

What = Literal["wire", "collective", "latency", "host", "tcp"]


class Point(NamedTuple):
    """A row.

    Attributes:
        line, text: where it stands.
        size: bytes; 0 where the program says none.
        rate: GB/s (1e9 bytes a second): of a collective its algbw; None where only times are told.
        busbw: GB/s, of a collective.
        time_us: microseconds.
        other: GB/s of another library beside it.
    """

    line: int
    text: str
    size: int
    rate: float | None = None
    busbw: float | None = None
    time_us: float | None = None
    other: float | None = None


class Curve(NamedTuple):
    """A table of rates or times by size.

    Attributes:
        line: of its header, from 1.
        title: what the program says that it is.
        what: a wire between two, a collective, a latency, a card and its host, or TCP.
        points: its rows.
        ranks: where it says how many.
    """

    line: int
    title: str
    what: What
    points: tuple[Point, ...]
    ranks: int | None = None


class Matrix(NamedTuple):
    """A table of cards by cards, or of hosts by cards.

    Attributes:
        line: of its title, from 1.
        title: as printed.
        host: whether rows or columns are processors.
        both: whether rates add both directions.
        peers: whether cards reach one another directly (P2P); None where that is not told.
        cells: of (row, column): GB/s, or microseconds; without a card to itself.
        latency: whether they are times.
        lines: of its rows, with their text.
    """

    line: int
    title: str
    host: bool
    both: bool
    peers: bool | None
    cells: dict[tuple[int, int], float]
    latency: bool
    lines: tuple[tuple[int, str], ...]


class Bandwidths(NamedTuple):
    """All that a text holds.

    Attributes:
        curves, matrices: the tables.
        cards: names of cards.
        barred: pairs of cards that can not reach one another directly.
    """

    curves: tuple[Curve, ...]
    matrices: tuple[Matrix, ...]
    cards: tuple[str, ...]
    barred: int
