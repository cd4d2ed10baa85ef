"""Prepare a collective call, time it, and check what it computed: alike on every side."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import contextmanager
from time import monotonic_ns
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from .gate import Gate
from .link import Handler
from .pattern import Array, combined, encode, lay, numbers, storage, wrong

_ALIGNMENT: Final = 64


class Cell(NamedTuple):
    """One thing to call, as the controller describes it.

    Attributes:
        collective, algorithm, op, dtype: names; `algorithm` is for our own side.
        root: the root of a rooted collective.
        elements: of the larger buffer.
        in_place: whether input and output share memory.
        shared: whether buffers come from the library's own memory.
    """

    collective: str
    algorithm: str
    op: str
    dtype: str
    root: int
    elements: int
    in_place: bool
    shared: bool = False


class Library(Protocol):
    """What a side is: a rank of a library that offers collectives."""

    rank: int
    ranks: int
    version: str

    def call(self, cell: Cell, x: Array, out: Array) -> Callable[[], Any] | None:
        """The call, ready to be made many times; None where the library has no such call."""

    def empty(self, nbytes: int) -> Array:
        """Bytes in the library's own memory, the same number on every rank."""

    def close(self) -> None:
        """Leave the job."""


class _Buffers:
    """Buffers that are kept from cell to cell: fresh memory is dear when first touched."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._held: dict[tuple[str, bool], Array] = {}

    def take(self, name: str, count: int, dtype: str, shared: bool) -> Array:
        """An array, aligned as a cache line is; its memory is the last one's of that name."""
        kind = storage(dtype)
        needed = count * kind.itemsize
        if self._held.get((name, shared), np.empty(0)).size < needed:
            self._held.pop((name, shared), None)
            if shared:
                self._held[name, shared] = self._library.empty(needed)
            else:
                fresh = np.empty(needed + _ALIGNMENT, np.uint8)
                start = -fresh.ctypes.data % _ALIGNMENT
                self._held[name, shared] = fresh[start : start + needed]
        return self._held[name, shared][:needed].view(kind)

    def free(self) -> None:
        """Give the memory back."""
        self._held.clear()


class _Ready(NamedTuple):
    """A call, and what is written before each: arrays and the number they are filled with."""

    cell: Cell
    x: Array
    out: Array
    call: Callable[[], Any]
    touch: list[tuple[Array, Any]]


class Calls:
    """The commands of one worker: prepare, run, check and free."""

    def __init__(self, library: Library, gate: Callable[[], None]) -> None:
        self._library, self._gate = library, gate
        self._buffers = _Buffers(library)
        self._ready: dict[str, _Ready] = {}

    @property
    def handlers(self) -> dict[str, Handler]:
        """The commands by name."""
        return {"prepare": self.prepare, "run": self.run, "check": self.check, "free": self.free}

    def prepare(self, form: str, cell: dict[str, Any], warmup: int) -> dict[str, Any]:
        """Get buffers and warm up; `{"unsupported": why}` where the library has no such call."""
        self._ready.pop(form, None)
        what = Cell(**cell)
        x, out = self._arrays(what)
        call = self._library.call(what, x, out)
        if call is None:
            return {"unsupported": "no such call"}
        one = encode(what.dtype, np.ones(1, np.int64))[0]
        written = [max(x, out, key=len)] if what.in_place else [x, out]
        touch = [(array, one) for array in written]
        self._ready[form] = _Ready(what, x, out, call, touch)
        try:
            self.run(form, 0, warmup)
        except (NotImplementedError, RuntimeError, TypeError) as error:
            del self._ready[form]
            return {"unsupported": f"{type(error).__name__}: {error}"[:200]}
        return {}

    def _arrays(self, cell: Cell) -> tuple[Array, Array]:
        rank, ranks = self._library.rank, self._library.ranks
        large, piece = cell.elements, cell.elements // ranks
        x_size = piece if cell.collective in ("all_gather", "gather") else large
        out_size = piece if cell.collective in ("reduce_scatter", "scatter") else large
        if not cell.in_place:
            take = self._buffers.take
            return (take("x", x_size, cell.dtype, cell.shared),
                    take("out", out_size, cell.dtype, cell.shared))  # fmt: skip
        whole = self._buffers.take("x", large, cell.dtype, cell.shared)
        own = whole[rank * piece : (rank + 1) * piece]
        return (whole if x_size == large else own), (whole if out_size == large else own)

    def run(self, form: str, calls: int, lead: int) -> dict[str, Any]:
        """Make `lead` calls, then `calls` timed ones: begin and end of each, in ns.

        Before each call the rank writes its buffers, as a program that computes does, and then
        meets the others. `wall` is the seconds all of it took.
        """
        call, touch, gate = self._ready[form].call, self._ready[form].touch, self._gate
        spans: list[tuple[int, int]] = []
        with _no_collection():
            begun = time.perf_counter()
            for turn in range(-lead, calls):
                for array, value in touch:
                    array.fill(value)
                gate()
                start = monotonic_ns()
                call()
                end = monotonic_ns()
                if turn >= 0:
                    spans.append((start, end))
        return {"spans": spans, "wall": time.perf_counter() - begun}

    def check(self, form: str) -> dict[str, Any]:
        """Make one call on known data; how many elements of this rank's result are wrong."""
        cell, x, out, call, _ = self._ready[form]
        rank, ranks = self._library.rank, self._library.ranks
        if not cell.in_place:
            out.fill(encode(cell.dtype, np.full(1, 3))[0])
        pieces = cell.collective in ("all_gather", "gather")
        table = encode(cell.dtype, numbers(rank, ranks, cell.op, cell.dtype))
        lay(x, table, rank * x.size if pieces else 0)
        self._gate()
        call()
        self._gate()
        return {"wrong": sum(wrong(*part) for part in _expected(cell, rank, ranks, out))}

    def free(self) -> dict[str, Any]:
        """Forget what was prepared and give its memory back."""
        self._ready.clear()
        self._buffers.free()
        return {}


def _expected(cell: Cell, rank: int, ranks: int, out: Array) -> list[tuple[Array, Array, int]]:
    """Parts of the output, the table that each must hold, and from where."""

    def of(source: int) -> Array:
        return encode(cell.dtype, numbers(source, ranks, cell.op, cell.dtype))

    piece = cell.elements // ranks
    kind = cell.collective
    if kind in ("reduce", "gather") and rank != cell.root:
        return []
    if kind in ("all_reduce", "reduce", "reduce_scatter"):
        start = rank * piece if kind == "reduce_scatter" else 0
        return [(out, encode(cell.dtype, combined(ranks, cell.op, cell.dtype)), start)]
    if kind in ("broadcast", "scatter"):
        return [(out, of(cell.root), rank * piece if kind == "scatter" else 0)]
    mine = kind == "all_to_all"  # of every rank's buffer the piece for this rank, else its own
    return [
        (out[s * piece : (s + 1) * piece], of(s), (rank if mine else s) * piece)
        for s in range(ranks)
    ]


@contextmanager
def _no_collection() -> Any:
    """Keep the garbage collector out of the measured calls."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def shared_gate(link: Any, library: Library) -> Callable[[], None]:
    """The barrier of workers that share a page."""
    return Gate(link.page, library.rank, library.ranks, link.settings["cores"]).wait
