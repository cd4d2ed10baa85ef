"""The table of NCCL's tuner plugin (plugins/tuner/example in NCCL 2.30): which row a call takes.

The plugin takes names that it does not know for allreduce, ring or simple without a word, and runs
a call that no row fits on one channel. So every row has channels, and every collective a last row
that fits all calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ..errors import RoundelayError
from ..i18n import message
from .note import Note
from .plain import text_of

COLLECTIVES: Final = MappingProxyType(
    {"all_reduce": "allreduce", "all_gather": "allgather", "reduce_scatter": "reducescatter",
     "broadcast": "broadcast", "reduce": "reduce"}
)  # fmt: skip
"""Names there, by ours."""
LEGAL: Final = MappingProxyType(
    {
        "all_reduce": ("tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree"),
        "all_gather": ("ring", "pat", "nvls", "collnet_direct"),
        "reduce_scatter": ("ring", "pat", "nvls", "collnet_direct"),
        "broadcast": ("ring",),
        "reduce": ("ring",),
    }
)
"""Algorithms that NCCL has for a collective (2.30, src/graph/tuning.cc)."""
PROTOCOLS: Final = ("LL", "LL128", "Simple")
ALL_PROTOCOLS: Final = ("tree", "ring")
"""Algorithms with all protocols; others have Simple alone."""
MOST: Final = 2**64 - 1
CHANNELS: Final = 64
ANY: Final = -1
FIELDS: Final = 8
"""Of a row; two more may follow."""
LONGEST: Final = 255
"""Characters of a line that the plugin reads."""


@dataclass(frozen=True)
class Row:
    """One choice.

    Attributes:
        collective: one of `COLLECTIVES`.
        low, high: bytes, both included, as NCCL counts them: type size times the larger count of
            send and receive, so of the whole vector.
        algorithm, protocol: a legal pair; see `LEGAL`.
        channels: 1 to 64.
        nodes, ranks: exact numbers, or -1 for any.
        operations, registered: operations in a pipeline, registered buffers (0 or 1), or -1.
    """

    collective: str
    low: int
    high: int
    algorithm: str
    protocol: str
    channels: int
    nodes: int = ANY
    ranks: int = ANY
    operations: int = ANY
    registered: int = ANY

    @property
    def fits_all(self) -> bool:
        """Whether it fits every call of its collective."""
        free = (self.nodes, self.ranks, self.operations, self.registered) == (ANY,) * 4
        return free and self.low == 0 and self.high == MOST


def write_tuner(rows: Sequence[Row], channels: int) -> bytes:
    """The file that NCCL_TUNER_CONFIG_FILE names. The first row that fits a call is taken.

    Args:
        rows: in order.
        channels: of the last rows (ring, Simple), which take what no other row fits.

    Raises:
        RoundelayError: a row that the plugin would misread or NCCL could not run.
    """
    last = [Row(name, 0, MOST, "ring", "Simple", channels) for name in COLLECTIVES]
    closed = {row.collective for row in rows if row.fits_all}
    whole = [*rows, *(row for row in last if row.collective not in closed)]
    lines = ["# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,"
             "numPipeOps,regBuff"]  # fmt: skip
    for number, row in enumerate(whole, 1):
        _check(row, number)
        lines.append(
            f"{COLLECTIVES[row.collective]},{row.low},{row.high},{row.algorithm},"
            f"{row.protocol.lower()},{row.channels},{row.nodes},{row.ranks},{row.operations},"
            f"{row.registered}"
        )
    return ("\n".join(lines) + "\n").encode()


def _check(row: Row, number: int) -> None:
    if row.collective not in LEGAL:
        raise _bad(number, f"collective {row.collective!r}", ", ".join(LEGAL))
    if row.algorithm not in LEGAL[row.collective]:
        raise _bad(number, f"{row.collective} by {row.algorithm!r}",
                   ", ".join(LEGAL[row.collective]))  # fmt: skip
    legal = PROTOCOLS if row.algorithm in ALL_PROTOCOLS else ("Simple",)
    if row.protocol not in legal:
        raise _bad(number, f"{row.algorithm} with {row.protocol!r}", ", ".join(legal))
    if not 1 <= row.channels <= CHANNELS:
        raise _bad(number, f"{row.channels} channels", f"1 to {CHANNELS}")
    if not 0 <= row.low <= row.high <= MOST:
        raise _bad(number, f"bytes {row.low} to {row.high}", "0 <= low <= high < 2^64")
    for name in ("nodes", "ranks", "operations"):
        if (value := getattr(row, name)) != ANY and value < 1:
            raise _bad(number, f"{name} = {value}", "a number from 1 up, or -1 for any")
    if row.registered not in (ANY, 0, 1):
        raise _bad(number, f"registered = {row.registered}", "0, 1, or -1 for both")


def _bad(number: int, found: str, expected: str) -> RoundelayError:
    return RoundelayError(f"row {number} of the tuner's table: {found}; expected {expected}")


def tuner_lines(data: bytes) -> list[tuple[int, str, Row | str]]:
    """Number and text of each line that is no comment, and its row, or what is wrong with it.

    Raises:
        RoundelayError: no line has the form of a row.
    """
    found: list[tuple[int, str, Row | str]] = []
    for number, line in enumerate(text_of(data).split("\n"), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            row = _row(line)
            _check(row, number)
            found.append((number, line, row))
        except ValueError as error:
            found.append((number, line, str(error)[:200]))
    if not any(line.count(",") >= FIELDS - 1 for _, line, _ in found):
        raise RoundelayError(
            "no row of a tuner's table; expected lines such as allreduce,0,65536,tree,ll,8,-1,-1"
        )
    return found


def read_tuner(data: bytes) -> tuple[tuple[Row, ...], tuple[Note, ...]]:
    """The rows of such a file, and what is odd about it.

    Raises:
        RoundelayError: no line of it is a row.
    """
    rows: list[Row] = []
    notes: list[Note] = []
    for number, line, found in tuner_lines(data):
        if len(line) > LONGEST:
            notes.append(Note(number, message("more than {most} characters", most=LONGEST)))
        if isinstance(found, str):
            notes.append(Note(number, message("no sound row: {error}", error=found)))
        else:
            rows.append(found)
    for name in COLLECTIVES:
        if not any(row.fits_all for row in rows if row.collective == name):
            text = "{name} has no last row that fits all calls: the rest runs on one channel"
            notes.append(Note(0, message(text, name=name)))
    return tuple(rows), tuple(notes)


def _row(line: str) -> Row:
    fields = [field.strip() for field in line[:LONGEST].split(",")]
    if not FIELDS <= len(fields) <= FIELDS + 2:
        raise ValueError(f"{len(fields)} fields; expected 8 to 10")
    names = {there: ours for ours, there in COLLECTIVES.items()}
    protocols = {protocol.lower(): protocol for protocol in PROTOCOLS}
    for field, known in ((fields[0], names), (fields[4], protocols)):
        if field not in known:
            raise ValueError(f"{field[:40]!r}; expected one of {', '.join(known)}")
    low, high, channels = (int(fields[i]) for i in (1, 2, 5))
    nodes, ranks, operations, registered = ([int(field) for field in fields[6:]] + [ANY] * 2)[:4]
    return Row(names[fields[0]], low, high, fields[3], protocols[fields[4]], channels, nodes, ranks,
               operations, registered)  # fmt: skip
