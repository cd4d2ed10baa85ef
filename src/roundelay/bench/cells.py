"""What is measured: sizes and counts in nccl-tests' sense, and the factors of bus bandwidth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from ..collectives import COLLECTIVES, UnknownName
from ..errors import RoundelayError
from ..units import format_size
from .machine import available_bytes
from .worker.calls import Cell
from .worker.pattern import storage

GRID: Final = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all")
"""The collectives of `bench all`."""
GRID_SIZES: Final = (8, 1 << 10, 32 << 10, 1 << 20, 16 << 20, 128 << 20)
MEASURED: Final = (*GRID, "reduce", "gather", "scatter")
_WHOLE: Final = ("all_reduce", "reduce", "broadcast")
"""Both buffers of these have the full size, and they are usually called in place."""

_FLOATS: Final = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")
_INTEGERS: Final = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
DTYPES: Final = (*_FLOATS, *_INTEGERS, "complex64", "complex128")
DTYPE_ALIASES: Final = MappingProxyType(
    {"half": "float16", "float": "float32", "double": "float64", "fp8e4m3": "float8_e4m3fn",
     "fp8e5m2": "float8_e5m2"}
)  # fmt: skip
OPS: Final = ("sum", "product", "min", "max", "avg", "band", "bor", "bxor")
OP_ALIASES: Final = MappingProxyType({"prod": "product"})


@dataclass(frozen=True)
class Request:
    """What to measure.

    Attributes:
        collectives, ranks, sizes: the grid; sizes in bytes.
        dtype, op, root: of every call.
        algorithms: of our side, by collective; "auto" leaves the choice to the engine.
        checks: calls of each cell whose result is checked.
        iters: timed calls of each side and cell; None for as many as `seconds` holds.
        seconds: of each side and cell.
        warmup: calls before anything is timed, and before each block of timed calls.
        against: rivals by name.
        shared: whether our buffers come from `Communicator.empty`.
    """

    collectives: Sequence[str]
    ranks: Sequence[int]
    sizes: Sequence[int]
    dtype: str = "float32"
    op: str = "sum"
    root: int = 0
    algorithm: str = "auto"
    checks: int = 1
    iters: int | None = None
    seconds: float = 0.5
    warmup: int = 5
    against: Sequence[str] = ()
    shared: bool = False

    def __post_init__(self) -> None:
        for what, found, known in (
            ("type", [self.dtype], DTYPES),
            ("operation", [self.op], OPS),
            ("collective to measure", self.collectives, MEASURED),
        ):
            for name in found:
                if name not in known:
                    raise UnknownName(what, name, known)
        if self.op.startswith("b") and self.dtype not in _INTEGERS:
            raise RoundelayError(
                f"operation {self.op!r} on {self.dtype}; it is for integers, such as int32"
            )
        for n in self.ranks:
            if not 0 <= self.root < n:
                raise RoundelayError(f"root {self.root} of {n} ranks; expected 0 to {n - 1}")

    def within(self, ranks: int, launcher: str, given: bool) -> Request:
        """This request, for the ranks of a job that runs already.

        Args:
            ranks: of the job.
            launcher: what started it, for messages.
            given: whether the number of ranks was asked for, or is a default.

        Raises:
            RoundelayError: it asks for other ranks, or for rivals.
        """
        if self.against:
            raise RoundelayError(
                f"--against inside a job of {ranks} ranks ({launcher}); rivals are measured in "
                "jobs that the benchmark starts itself: run it alone, on one machine"
            )
        if given and list(self.ranks) != [ranks]:
            asked = ",".join(map(str, self.ranks))
            raise RoundelayError(
                f"-n {asked} inside a job of {ranks} ranks ({launcher}); leave -n out, or run the "
                "benchmark alone to start ranks of its own"
            )
        return replace(self, ranks=[ranks])


@dataclass(frozen=True)
class Point:
    """One line of the table: a collective of some algorithm over n ranks at a size.

    Attributes:
        count: elements of the larger buffer.
        shared: whether our buffers come from the library's own memory.
    """

    collective: str
    algorithm: str
    ranks: int
    count: int
    dtype: str
    op: str
    root: int
    shared: bool = False

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return storage(self.dtype).itemsize

    @property
    def nbytes(self) -> int:
        """The size that nccl-tests prints."""
        return self.count * self.itemsize

    @property
    def shown_count(self) -> int:
        """The count that nccl-tests prints: elements of a piece where buffers have pieces."""
        return self.count if self.collective in _WHOLE else self.count // self.ranks

    @property
    def usually_in_place(self) -> bool:
        """The form in which rivals are measured."""
        return self.collective in _WHOLE

    @property
    def forms(self) -> tuple[bool, ...]:
        """Whether in place, for each form there is; the usual one first."""
        usual = self.usually_in_place
        return (usual,) if self.collective == "all_to_all" else (usual, not usual)

    @property
    def sums(self) -> bool:
        """Whether it has an operation."""
        return COLLECTIVES[self.collective].sums

    @property
    def rooted(self) -> bool:
        """Whether it has a root."""
        return COLLECTIVES[self.collective].rooted

    @property
    def bus_factor(self) -> Fraction:
        """Bus bandwidth over algorithm bandwidth, as in nccl-tests."""
        return COLLECTIVES[self.collective].bus_factor(self.ranks)

    def cell(self, in_place: bool) -> Cell:
        """What a worker is told."""
        return Cell(self.collective, self.algorithm, self.op, self.dtype, self.root, self.count,
                    in_place, self.shared)  # fmt: skip


def count_of(collective: str, nbytes: int, ranks: int, dtype: str) -> int:
    """Elements of the larger buffer for a size: at least one, or one a piece."""
    count = max(nbytes // storage(dtype).itemsize, 1)
    return count if collective in _WHOLE else max(count // ranks, 1) * ranks


def sizes_between(first: int, last: int, factor: int) -> list[int]:
    """Sizes from `first` to `last`, each `factor` times the one before.

    Raises:
        RoundelayError: there is none, or there would be no end to them.
    """
    if factor < 2 or first < 1 or last < first:
        raise RoundelayError(
            f"sizes from {first} to {last} by a factor of {factor}; expected 1 byte or more, an "
            "end no smaller than the beginning, and a factor of 2 or more: -b 8 -e 128M -f 16"
        )
    sizes = [first]
    while sizes[-1] * factor <= last:
        sizes.append(sizes[-1] * factor)
    return sizes


def check_memory(request: Request, sides: int) -> None:
    """Refuse what this machine's memory cannot hold.

    Raises:
        RoundelayError: with what is needed, what is there and what to try.
    """
    free = available_bytes()
    needed = 2 * max(request.sizes) * max(request.ranks) * sides
    if free is not None and needed > 0.8 * free:
        raise RoundelayError(
            f"buffers of {format_size(max(request.sizes))} for {max(request.ranks)} ranks of "
            f"{sides} sides need {format_size(needed)}; {format_size(free)} of memory are free. "
            "Try a smaller -e, fewer ranks or fewer rivals"
        )
