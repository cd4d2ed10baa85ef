"""What NCCL Inspector writes for Prometheus: a rate and a time for each kind of call of a card.

Names and labels are those of plugins/profiler/inspector/README.md (NCCL 2.30): a line each of
nccl_bus_bandwidth_gbs and nccl_collective_exec_time_microseconds, and of nccl_p2p_... for messages
between two ranks. Each is the mean of the calls since the last line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite
from typing import Final, NamedTuple

from ..errors import RoundelayError
from ..i18n import message
from .kineto.words import collective
from .note import Note

KEPT: Final = 10**6
"""Series of a file."""
SHOWN: Final = 20
"""Lines that cannot be read, which are told."""
_LINE: Final = re.compile(
    rb"\s{0,9}nccl_(p2p_)?(bus_bandwidth_gbs|(?:collective_)?exec_time_microseconds)"
    rb"\{([^}\n]{0,4000})\}\s{1,9}([-+\w.]{1,40})"
)
_LABEL: Final = re.compile(rb'(\w{1,80})="((?:[^"\\]|\\.){0,400})"')


class Series(NamedTuple):
    """Calls of one kind of one card, as means.

    Attributes:
        node, card, comm, job: where: host, card, communicator, job of Slurm; "" where not told.
        ranks, nodes: of the communicator; 0 where not told.
        operation: such as "all_reduce", "send".
        size: of messages, as it stands there, such as "4-5GB".
        choice: algorithm and protocol, such as "Ring_ll".
    """

    node: str
    card: str
    comm: str
    job: str
    ranks: int
    nodes: int
    operation: str
    size: str
    choice: str


class Mean(NamedTuple):
    """The latest figures of a series: GB/s and microseconds, None where not told, and a line."""

    busbw: float | None
    time_us: float | None
    line: int


def read_inspector_prom(
    lines: Iterable[bytes],
) -> tuple[dict[Series, Mean], tuple[Note, ...]]:
    """The series in lines, which are not held, and what was odd.

    Raises:
        RoundelayError: there is none.
    """
    found: dict[Series, Mean] = {}
    notes: list[Note] = []
    for number, raw in enumerate(lines, 1):
        if b"nccl_" not in raw or raw.lstrip().startswith(b"#"):
            continue
        match = _LINE.match(raw)
        value = _value(match[4]) if match else None
        if match is None or value is None:
            if len(notes) < SHOWN:
                what = message("a line that cannot be read, left out: {why}",
                               why=raw[:80].decode("utf-8", "replace").strip())  # fmt: skip
                notes.append(Note(number, what))
            continue
        series = _series(match[3])
        known = found.get(series, Mean(None, None, number))
        if series in found or len(found) < KEPT:
            rate = match[2] == b"bus_bandwidth_gbs"
            found[series] = (known._replace(busbw=value, line=number) if rate else
                             known._replace(time_us=value))  # fmt: skip
    if not found:
        raise RoundelayError(
            "no series of NCCL Inspector; expected lines such as nccl_bus_bandwidth_gbs{...} 41.5"
        )
    return found, tuple(notes)


def _value(text: bytes) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if isfinite(value) else None


def _series(labels: bytes) -> Series:
    by = {name.decode(): value.decode("utf-8", "replace") for name, value in _LABEL.findall(labels)}
    called = by.get("collective") or by.get("p2p_operation") or by.get("p2p") or "?"
    return Series(
        by.get("node", ""), by.get("gpu", ""), by.get("comm_name", ""), by.get("slurm_job_id", ""),
        _count(by.get("nranks", "")), _count(by.get("n_nodes", "")), collective(called[:80]),
        by.get("message_size", ""), by.get("algo_proto", ""),
    )  # fmt: skip


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
