"""Arrays of any library as flat memory: NumPy, torch on the CPU, DLPack, the buffer protocol."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .errors import RoundelayError

Array = npt.NDArray[Any]

NAMES: Final = frozenset(
    ("float64", "float32", "float16", "int8", "int16", "int32", "int64", "uint8", "uint16",
     "uint32", "uint64", "bool", "complex64", "complex128")
)  # fmt: skip
"""Types that NumPy has, too."""
CARRIERS: Final = {"bfloat16": "uint16", "float8_e4m3fn": "uint8", "float8_e5m2": "uint8"}
"""Types that NumPy lacks, and the one of their size that carries their bits."""


class Flat(NamedTuple):
    """Memory of an array, seen as one row.

    Attributes:
        array: one-dimensional and contiguous; the caller's memory, unless `copied`.
        dtype: name of the element type.
        copied: whether the caller's array is not contiguous, so that this is a copy.
    """

    array: Array
    dtype: str
    copied: bool


def flat(x: Any, what: str, dtype: str | None = None) -> Flat:
    """The array's memory.

    Args:
        x: a NumPy array, a torch CPU tensor, or anything with DLPack or a buffer.
        what: its name in messages.
        dtype: how the bits are read where the array's own type only carries them, such as
            "bfloat16" in an array of uint16.

    Raises:
        RoundelayError: it is no array, of a type that cannot be exchanged, or not on the CPU.
    """
    array, name = _numpy(x, what)
    if dtype is not None:
        if not isinstance(dtype, str):
            raise RoundelayError(f"dtype = {dtype!r}; expected a name, such as 'bfloat16'")
        carrier = CARRIERS.get(dtype, dtype)
        if name not in (dtype, carrier):
            raise RoundelayError(
                f"{what} is of {name} and dtype = {dtype!r}; expected an array of {carrier}"
            )
        name = dtype
    if name not in NAMES and name not in CARRIERS:
        raise RoundelayError(
            f"{what} is of {name}; expected one of {', '.join(sorted(NAMES | CARRIERS.keys()))}"
        )
    copied = not array.flags.c_contiguous
    row = np.ascontiguousarray(array).reshape(-1)
    if copied and not array.flags.writeable:
        row.flags.writeable = False  # it could not be written back
    return Flat(row, name, copied)


def give_back(result: Flat, x: Any, what: str) -> None:
    """Write a copy back to where it came from."""
    if result.copied:
        array, _ = _numpy(x, what)
        array[...] = result.array.reshape(array.shape)


def _numpy(x: Any, what: str) -> tuple[Array, str]:
    if isinstance(x, np.ndarray):
        array = x
    elif type(x).__module__.partition(".")[0] == "torch":
        return _torch(x, what)
    else:
        try:
            array = np.from_dlpack(x) if hasattr(x, "__dlpack__") else np.asarray(memoryview(x))
        except (TypeError, ValueError, BufferError, RuntimeError) as error:
            raise RoundelayError(
                f"{what} is {type(x).__name__}, which gives no memory ({error}); expected a NumPy "
                "array, a torch CPU tensor, or an object with DLPack or a buffer"
            ) from None
    name = array.dtype.name
    if not array.dtype.isnative:
        raise RoundelayError(f"{what} is of foreign byte order; try .astype({name!r})")
    if name in CARRIERS:  # of a library that adds types to NumPy
        return array.view(CARRIERS[name]), name
    return array, name


def _torch(x: Any, what: str) -> tuple[Array, str]:
    """A tensor, without importing its library here."""
    if x.device.type != "cpu":
        raise RoundelayError(f"{what} is on {x.device}; expected a tensor on the CPU: x.cpu()")
    name = str(x.dtype).removeprefix("torch.")
    x = x.detach()
    if name in CARRIERS:
        import sys

        return x.view(getattr(sys.modules["torch"], CARRIERS[name])).numpy(), name
    try:
        return x.numpy(), name
    except (TypeError, RuntimeError) as error:
        raise RoundelayError(f"{what}, a tensor of {name}, gives no memory: {error}") from None


def item_size(dtype: str) -> int:
    """Bytes of an element."""
    return np.dtype(CARRIERS.get(dtype, dtype)).itemsize
