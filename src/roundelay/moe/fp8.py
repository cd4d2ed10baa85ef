"""FP8 in E4M3, with a scale for each run of 128 numbers.

E4M3 has a sign, four bits of exponent (bias 7) and three of mantissa, no infinities, and 448 as its
largest number (Micikevicius et al. 2022, arXiv 2209.05433).
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import RoundelayError

BLOCK: Final = 128
"""Numbers with a scale in common."""
LARGEST: Final = 448.0
NAN: Final = 0x7F

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]


@cache
def _values() -> Floats:
    """[byte], what it stands for."""
    byte = np.arange(256)
    exponent, mantissa = byte >> 3 & 15, byte & 7
    size = np.where(exponent > 0, np.ldexp(8 + mantissa, exponent - 10), np.ldexp(mantissa, -9))
    values: Floats = np.where(byte >> 7, -size, size).astype(np.float32)
    values[[NAN, NAN + 128]] = np.nan
    values.flags.writeable = False
    return values


@cache
def _borders() -> Floats:
    """Half-way points between neighbouring numbers from 0 up; the last one is 448's own half."""
    positive = _values()[:NAN]
    middle = ((positive[1:] + positive[:-1]) / 2).astype(np.float32)
    middle.flags.writeable = False
    return middle


def encode(x: npt.NDArray[np.floating[Any]]) -> Bytes:
    """Numbers as E4M3, rounded to the nearest, ties to even; what is too large becomes 448."""
    size = np.abs(x)
    code = np.searchsorted(_borders(), size, side="left")  # a tie goes down ...
    tie = code < len(_borders())
    tie[tie] = _borders()[code[tie]] == size[tie]
    code += tie & (code & 1 == 1)  # ... unless the number below is odd
    code = np.where(np.isnan(x), NAN, code)
    return np.where(np.signbit(x), code + 128, code).astype(np.uint8)


def decode(x: Bytes) -> Floats:
    """E4M3 as numbers."""
    return _values()[x]


def to_fp8(x: npt.NDArray[Any]) -> tuple[Bytes, Floats]:
    """Rows as E4M3 and scales: ``x = value * scale``, the largest of a block becoming 448.

    Args:
        x: [row, column], floats.

    Returns:
        bytes [row, column] and scales [row, ceil(column / 128)].

    Raises:
        RoundelayError: other shapes or types.
    """
    x = np.asarray(x)
    if x.ndim != 2 or x.dtype.kind != "f":
        raise RoundelayError(f"{x.dtype} of shape {x.shape} for FP8; expected rows of floats")
    blocks = -(-x.shape[1] // BLOCK)
    padded = np.zeros((len(x), blocks * BLOCK), np.float32)
    padded[:, : x.shape[1]] = x
    cut = padded.reshape(len(x), blocks, BLOCK)
    most = np.abs(cut).max(axis=2, initial=0)
    scales = np.where(most > 0, most / LARGEST, 1).astype(np.float32)
    scales = np.where(scales > 0, scales, np.finfo(np.float32).tiny)
    codes = encode(cut / scales[:, :, None])
    return codes.reshape(padded.shape)[:, : x.shape[1]], scales


def from_fp8(values: Bytes, scales: Floats) -> Floats:
    """What `to_fp8` made, as float32."""
    wide = np.repeat(scales, BLOCK, axis=1)[:, : values.shape[1]]
    return decode(values) * wide
