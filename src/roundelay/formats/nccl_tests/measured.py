"""What a run of nccl-tests has measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from ..note import Note

IN_PLACE: Final = (False, True)
"""The forms of a row in the order of its columns: whether in place."""


class Timing(NamedTuple):
    """One form of a row, with rates in GB/s (1e9 bytes a second) as nccl-tests defines them.

    Attributes:
        time_us: microseconds of a call.
        algbw: size over time.
        busbw: what each rank's link would carry, one way, if the collective were a ring.
        wrong: wrong elements; None if they were not counted.
        error: the largest relative rounding error, which old versions print instead.
    """

    time_us: float
    algbw: float
    busbw: float
    wrong: int | None = None
    error: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table.

    Attributes:
        line: its number in the text, from 1.
        text: the line, without colours and tags.
        size: bytes.
        count: elements of one rank's piece, or of its data where it has no pieces; None if not
            printed, as are `dtype` and `redop`.
        root: the root; -1 for a collective that has none, None if not printed.
        out_of_place, in_place: what was measured; None for a form that was not.
    """

    line: int
    text: str
    size: int
    count: int | None
    dtype: str | None
    redop: str | None
    root: int | None
    out_of_place: Timing | None
    in_place: Timing | None

    def timings(self) -> Iterator[tuple[bool, Timing]]:
        """Whether in place, and the figures, of each form there is."""
        for in_place, timing in zip(IN_PLACE, (self.out_of_place, self.in_place), strict=True):
            if timing is not None:
                yield in_place, timing

    @property
    def best(self) -> Timing:
        """The faster form."""
        return min((timing for _, timing in self.timings()), key=lambda timing: timing.time_us)


@dataclass(frozen=True, slots=True)
class Device:
    """A rank's card, as the lines above a table name it."""

    rank: int
    host: str
    index: int
    bus: str
    name: str


@dataclass(frozen=True)
class Table:
    """One table.

    Attributes:
        line: where it begins, from 1.
        collective: None if the figures do not tell.
        collectives: all that the figures allow, the likeliest first.
        stated: whether the text names the collective; otherwise it is inferred from the figures.
        ranks: None if the figures do not tell.
        ranks_from: what says so: the text, the count of elements, or bus over algorithm
            bandwidth.
        devices: the ranks' cards, where the text lists them.
        rows: in the order of the text; at least one.
        average: the average bus bandwidth that the text states, in GB/s.
        failed: values out of bounds that the text states as a failure.
        named: network cards that the command names (NCCL_IB_HCA).
        settings: variables of NCCL that the command sets.
    """

    line: int
    collective: str | None
    collectives: tuple[str, ...]
    stated: bool
    ranks: int | None
    ranks_from: Literal["text", "count", "factor"] | None
    devices: tuple[Device, ...]
    rows: tuple[Row, ...]
    average: float | None
    failed: int = 0
    named: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def nodes(self) -> int | None:
        """How many hosts the ranks are on; None if the text does not list them all."""
        if self.ranks_from != "text" and self.devices:
            return None
        return len({device.host for device in self.devices}) or None


@dataclass(frozen=True)
class Measured:
    """All that a text holds.

    Attributes:
        tables: those with rows; none where the rest tells something by itself.
        versions: of the libraries, as printed, such as "NCCL 2.26.2+cuda12.8".
        notes: what was odd.
        apart: cards listed for a rank that another host's card was listed for already: several
            jobs ran side by side.
        listed: the ranks' cards, of a text without rows.
        averages: lines and GB/s of averages that belong to no row.
    """

    tables: tuple[Table, ...]
    versions: tuple[str, ...]
    notes: tuple[Note, ...]
    apart: tuple[Device, ...] = ()
    listed: tuple[Device, ...] = ()
    averages: tuple[tuple[int, float], ...] = ()
