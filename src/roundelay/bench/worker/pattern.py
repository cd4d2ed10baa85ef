"""Data whose result is known exactly, so that every bit can be checked.

Every rank's buffer repeats a table of small whole numbers, and so does every result. The length
of the table is a prime: pieces of a buffer start at different places of it, and data that ended
up in a wrong place shows. All numbers are exact in the type, however they are added.
"""

from __future__ import annotations

from functools import reduce
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

PERIOD: Final = 8191
_NARROW: Final = MappingProxyType(  # bits of the fraction, bias of the exponent, bytes
    {"bfloat16": (7, 127, 2), "float8_e4m3fn": (3, 7, 1), "float8_e5m2": (2, 15, 1)}
)
_EXACT: Final = MappingProxyType(  # whole numbers up to this one are exact
    {"bfloat16": 256, "float16": 2048, "float8_e4m3fn": 16, "float8_e5m2": 8, "int8": 127,
     "uint8": 255}
)  # fmt: skip
_COMBINE: Final = MappingProxyType(
    {
        "sum": np.add,
        "avg": np.add,
        "product": np.multiply,
        "min": np.minimum,
        "max": np.maximum,
        "band": np.bitwise_and,
        "bor": np.bitwise_or,
        "bxor": np.bitwise_xor,
    }
)


def storage(dtype: str) -> np.dtype[Any]:
    """The NumPy type that holds a type's bits: NumPy has no bfloat16 and no 8-bit floats."""
    return np.dtype(f"u{_NARROW[dtype][2]}" if dtype in _NARROW else dtype)


def encode(dtype: str, numbers: npt.NDArray[np.int64]) -> Array:
    """Whole numbers from 0 up, exact in the type, as its bits."""
    if dtype not in _NARROW:
        return numbers.astype(dtype)
    fraction, bias, _ = _NARROW[dtype]
    mantissa, exponent = np.frexp(numbers)  # number = mantissa * 2**exponent, mantissa >= 1/2
    code = ((exponent - 1 + bias) << fraction) + ((2 * mantissa - 1) * 2**fraction).astype(int)
    return np.where(numbers == 0, 0, code).astype(storage(dtype))


def numbers(rank: int, ranks: int, op: str, dtype: str) -> npt.NDArray[np.int64]:
    """The table of one rank."""
    i: npt.NDArray[np.int64] = np.arange(PERIOD, dtype=np.int64)
    exact = _EXACT.get(dtype, 2**20)
    if op == "product":
        return 1 + ((i + rank) % ranks < 3).astype(np.int64)
    mine = (i + rank) % ranks == 0
    if op == "avg":  # the sum is a multiple of the number of ranks
        return np.where(mine, ranks, 0) + i % 2
    top = min(8, exact // ranks)
    if top == 0:  # so many ranks: most of them give 0
        return ((i + rank) % ranks < exact).astype(np.int64)
    return (5 * i + 3 * rank + (i >> 3)) % (top + 1)


def combined(ranks: int, op: str, dtype: str) -> npt.NDArray[np.int64]:
    """The table of the result over all ranks."""
    tables = (numbers(rank, ranks, op, dtype) for rank in range(ranks))
    total: npt.NDArray[np.int64] = reduce(_COMBINE[op], tables)
    return total // ranks if op == "avg" else total


def lay(to: Array, table: Array, start: int) -> None:
    """Fill an array with the table, from place `start` of its endless repetition."""
    for at, piece in _pieces(to.size, table, start):
        to[at : at + piece.size] = piece


def wrong(found: Array, table: Array, start: int) -> int:
    """How many elements differ, in any bit, from the table laid from `start`."""
    bits = np.dtype(f"u{min(8, found.itemsize)}")
    return sum(
        _differing(found[at : at + piece.size], piece, bits, found.itemsize)
        for at, piece in _pieces(found.size, table, start)
    )


def _differing(found: Array, piece: Array, bits: np.dtype[Any], size: int) -> int:
    differs = found.view(bits) != np.ascontiguousarray(piece).view(bits)
    words = size // bits.itemsize
    return int(np.count_nonzero(differs.reshape(-1, words).any(axis=1) if words > 1 else differs))


def _pieces(size: int, table: Array, start: int) -> Any:
    at = 0
    while at < size:
        piece = table[(start + at) % PERIOD :][: size - at]
        yield at, piece
        at += piece.size
