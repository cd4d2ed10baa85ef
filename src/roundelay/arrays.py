"""Arrays of any library as flat memory: NumPy, torch on the CPU, DLPack, the buffer protocol."""

from __future__ import annotations

import sys
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

KINDS: Final = {name: np.dtype(CARRIERS.get(name, name)).str for name in NAMES | CARRIERS.keys()}
"""How NumPy writes each type, or its carrier."""


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
    return of_tensor(x, KINDS.get(name), f"{what}, a tensor"), name


def of_tensor(x: Any, kind: str | None, what: str) -> Array:
    """The memory of a torch tensor on the CPU.

    Args:
        x: the tensor.
        kind: that of its type in `KINDS`; None where it has none.
        what: its name in messages.

    Raises:
        RoundelayError: its elements do not lie in memory as they are.
    """
    dense = x.layout is sys.modules["torch"].strided
    if kind is None or not dense or x.is_neg() or x.is_conj():
        raise RoundelayError(
            f"{what} of {x.dtype}, {x.layout}, cannot be exchanged; expected a dense one of "
            "numbers. Try .to_dense(), .resolve_conj().resolve_neg(), or another dtype"
        )
    if hasattr(x, "trigger_wait"):  # the promise of a functional collective
        return of_tensor(x.trigger_wait(), kind, what)
    at = x.data_ptr()
    if not at and x.numel():
        raise RoundelayError(
            f"{what} of type {type(x).__name__} has no memory of its own; expected a plain "
            "tensor. Try x.to_local()"
        )
    return np.asarray(_Lent(x, kind, at or _NOWHERE.ctypes.data))


class _Lent:
    """A tensor's memory, for NumPy to look at.

    `Tensor.numpy()` would take from the tensor, for good, that its storage can be resized.
    """

    def __init__(self, tensor: Any, kind: str, at: int) -> None:
        self.tensor = tensor
        strides = None
        if not tensor.is_contiguous():
            strides = tuple(step * tensor.element_size() for step in tensor.stride())
        self.__array_interface__ = {
            "version": 3,
            "typestr": kind,
            "shape": tuple(tensor.shape),
            "strides": strides,
            "data": (at, False),
        }


_NOWHERE: Final = np.empty(1)
"""Where a tensor of no elements lies."""


def item_size(dtype: str) -> int:
    """Bytes of an element."""
    return np.dtype(CARRIERS.get(dtype, dtype)).itemsize
