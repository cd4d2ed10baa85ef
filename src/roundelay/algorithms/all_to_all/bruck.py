"""Bruck, any radix: a piece for the rank at distance o travels the digits of o, lowest first.

Before the digit of weight w, the pieces at rank q come from ranks q - l with l < w, and have l
as the lower digits of their distance. A message is a product of two progressions (the lower
digits l and the higher digits u); the move lists the shorter and strides through the longer.
"""

import numpy as np

from ...schedule import COPY, Round, Schedule
from ..registry import algorithm


@algorithm(
    "all_to_all",
    messages="(radix-1)*floor_log(n-1, radix) + (n-1)//radix**floor_log(n-1, radix)",
    bytes_sent="S/n*nonzero_digits(n, radix)",
    steps="(radix-1)*floor_log(n-1, radix) + (n-1)//radix**floor_log(n-1, radix)",
    good="small pieces, up to a few KB: log(n) messages instead of n - 1",
    bad="large pieces: each is sent about log2(n) / 2 times",
    source="Bruck et al. 1997, doi:10.1109/71.642949",
    tries={"radix": lambda n: (3, 4, 8)},
    needs="radix >= 2",
    dense=True,
)
def bruck(n: int, radix: int = 2) -> Schedule:
    rounds, weight, radix = [], 1, min(radix, n)
    while weight < n:
        for far in range(weight, min(weight * radix, n), weight):
            rounds.append(_digit(n, far, weight, weight * radix))
        weight *= radix
    return Schedule("all_to_all", n, n * n, rounds)


def _digit(n: int, far: int, weight: int, next_weight: int) -> Round:
    low = np.arange(min(weight, n - far))
    high = np.arange(0, n - far, next_weight)
    by_low = len(low) <= len(high)
    rank, part = (
        a.ravel() for a in np.meshgrid(np.arange(n), low if by_low else high, indexing="ij")
    )
    if by_low:
        chunk = (rank - part) % n * n + (rank + far) % n
        count, stride, wrap = -((part + far - n) // next_weight), next_weight, n
    else:
        chunk = rank * n + (rank + far + part) % n
        count, stride, wrap = np.minimum(weight, n - far - part), -n, 0
    return Round(rank, (rank + far) % n, chunk, COPY, count=count, stride=stride, wrap=wrap)
