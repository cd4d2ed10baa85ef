"""The lines that DeepEP's tests print, as users paste them.

https://github.com/deepseek-ai/DeepEP, tests/test_low_latency.py and tests/test_internode.py. Rates
are in GB/s (1e9 bytes a second), as printed.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_TOGETHER: Final = re.compile(r"Dispatch \+ combine bandwidth: ([\d.]+) GB/s")
_APART: Final = re.compile(
    r"(?<!\+ )\bDispatch bandwidth: ([\d.]+) GB/s.*?Combine bandwidth: ([\d.]+)"
)
_BEST: Final = re.compile(
    r"(?:Best (?:dispatch|combine)\b|\[tuning\]).*?:\s*(?:([\d.]+) GB/s \(RDMA\), )?"
    r"([\d.]+) GB/s \(NVL\)"
)


class Printed(NamedTuple):
    """A line's figures.

    Attributes:
        line: its number, from 1.
        text: the line.
        together: dispatch and combine in one.
        apart: dispatch, and combine, each timed by itself.
        best: of the network (0 inside a node) and of NVLink, after or while tuning; tokens to the
            rank's own node count.
    """

    line: int
    text: str
    together: float | None = None
    apart: tuple[float, float] | None = None
    best: tuple[float, float] | None = None


def read_deepep(data: bytes | str) -> tuple[Printed, ...]:
    """The lines with figures, none if this is no such text."""
    text = data.encode() if isinstance(data, str) else data
    every = (printed_in(number, raw) for number, raw in enumerate(text.splitlines(), 1))
    return tuple(line for line in every if line is not None)


def printed_in(number: int, raw: bytes) -> Printed | None:
    """The figures of one line, if it has some."""
    if b" GB/s" not in raw:
        return None
    line = raw.decode("utf-8", "replace")
    plain = line.strip()
    if match := _TOGETHER.search(line):
        return Printed(number, plain, together=_figure(match[1]))
    if match := _APART.search(line):
        return Printed(number, plain, apart=(_figure(match[1]), _figure(match[2])))
    if match := _BEST.search(line):
        return Printed(number, plain, best=(_figure(match[1]), _figure(match[2])))
    return None


def _figure(text: str | None) -> float:
    """A number; what only looks like one, or is not there, is 0."""
    if text is None:
        return 0.0
    try:
        return float(text)
    except ValueError:
        return 0.0
