"""Lines that Megatron-LM prints of iterations: how long each takes, and what a card computes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

_STEP: Final = re.compile(r"\biteration +(\d{1,12})/")
_TIME: Final = re.compile(r"elapsed time per iteration \(ms\): ([\d.]{1,15})")
_RATE: Final = re.compile(r"throughput per GPU \(TFLOP/s/GPU\): ([\d.]{1,12})")
MOST: Final = 10**5
"""Lines that are kept."""


class Iteration(NamedTuple):
    """A line: the iteration, its milliseconds, and TFLOP/s of a card, 0 where not said."""

    line: int
    text: str
    number: int
    time_ms: float
    tflops: float


def read_iterations(raws: Iterable[bytes]) -> tuple[Iteration, ...]:
    """The iterations in lines; none if no line is of one."""
    found: list[Iteration] = []
    for number, raw in enumerate(raws, 1):
        if b"elapsed time per iteration" not in raw or len(found) >= MOST:
            continue
        text = raw[:4000].decode("utf-8", "replace").strip()
        time, step, rate = _TIME.search(text), _STEP.search(text), _RATE.search(text)
        if time and (value := _float(time[1])) > 0:
            found.append(Iteration(number, text[:300], int(step[1]) if step else 0, value,
                                   _float(rate[1]) if rate else 0.0))  # fmt: skip
    return tuple(found)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
