"""Arrays in memory that all ranks of a node can read in place."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from math import prod
from operator import index
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .._native import Endpoint
from ..errors import RoundelayError
from .machine import available_bytes

BLOCK: Final = 16 << 20
"""Bytes of a block at least: each is a mapping in every reader."""
GRAIN: Final = 4096
"""Arrays begin at multiples of this."""


def _checked(shape: int | Sequence[int]) -> tuple[int, ...]:
    try:
        sizes = tuple(map(index, shape if isinstance(shape, Sequence) else (shape,)))
    except TypeError:
        sizes = (-1,)
    if min(sizes, default=0) < 0:
        raise RoundelayError(f"shape = {shape!r:.80}; expected whole numbers from 0 up")
    return sizes


class _Memory:
    """Part of a block, for NumPy to look at."""

    def __init__(self, block: Any, begin: int, size: int) -> None:
        whole = np.frombuffer(block, np.uint8)
        self.block = block
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "shape": (size,),
            "data": (whole.ctypes.data + begin, False),
        }


class Pool:
    """Blocks of shared memory, cut into arrays; what an array held is used again after it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._blocks: list[Any] = []
        self._free: list[tuple[int, int, int]] = []  # (block, begin, end)

    def empty(self, shape: int | Sequence[int], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """An array of the shape, not set to anything."""
        shape = _checked(shape)
        size = prod(shape) * dtype.itemsize
        free = available_bytes()
        if free is not None and size > free:
            raise RoundelayError(f"a shared array of {size:,} bytes; there are {free:,} bytes left")
        whole = max(GRAIN, -(-size // GRAIN) * GRAIN)
        block, begin = self._take(whole)
        memory = _Memory(self._blocks[block], begin, size)
        # Arrays keep this alive as long as any of them looks at the memory.
        weakref.finalize(memory, self._give_back, block, begin, begin + whole).atexit = False
        return np.asarray(memory).view(dtype).reshape(shape)

    def _take(self, size: int) -> tuple[int, int]:
        for i, (block, begin, end) in enumerate(self._free):
            if end - begin >= size:
                self._free[i] = (block, begin + size, end)
                return block, begin
        # Few different lengths, so that arrays that grow and grow find room in earlier blocks.
        step = max(GRAIN, 1 << max(0, size.bit_length() - 3))
        length = max(BLOCK, -(-size // step) * step)
        self._blocks.append(self._endpoint.shared(length))
        block = len(self._blocks) - 1
        self._free.append((block, size, length))
        return block, 0

    def _give_back(self, block: int, begin: int, end: int) -> None:
        self._free.append((block, begin, end))
        joined: list[tuple[int, int, int]] = []
        for piece in sorted(p for p in self._free if p[1] < p[2]):
            if joined and joined[-1][0] == piece[0] and joined[-1][2] == piece[1]:
                joined[-1] = (piece[0], joined[-1][1], piece[2])
            else:
                joined.append(piece)
        self._free[:] = joined
