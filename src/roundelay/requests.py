"""A call of a collective, checked: which memory it reads and writes, and how it is cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from . import _native
from .arrays import CARRIERS, Array, Flat, flat
from .collectives import Collective, collective, owner, sender
from .errors import RoundelayError
from .layout import Offsets
from .schedule import Schedule

COLLECTIVES: Final = (
    "all_reduce", "reduce", "broadcast", "all_gather", "reduce_scatter", "gather", "scatter",
    "all_to_all", "barrier",
)  # fmt: skip
NO_ROOT: Final = 2**32 - 1
"""What the engine takes for the root of a collective that has none."""
UNEQUAL: Final = 2**64 - 1
"""What the engine takes for the elements of an all-to-all of which a rank knows its own alone."""
OPS: Final = ("sum", "product", "min", "max", "band", "bor", "bxor", "avg", "premul_sum")


@dataclass(frozen=True, slots=True)
class Request:
    """A call as the user made it; see `Communicator`."""

    collective: int
    x: Any
    out: Any
    op: str | None = None
    root: int = 0
    algorithm: str | Schedule = "auto"
    dtype: str | None = None
    scale: Any = None
    counts: Any = None

    @property
    def kind(self) -> Collective:
        """The collective."""
        return collective(COLLECTIVES[self.collective])


class Memory(NamedTuple):
    """What a call reads and writes.

    Attributes:
        input, output: None where this rank has none.
        counts: elements of the pieces, in the order of ranks: one number, [rank], or [from, to].
        dtype: name of the element type.
        in_place: whether the output is the input, or a part of it, or the other way round.
        result: what the call returns.
        own: whether input and output are the caller's own memory, so that the same call may
            take the short way from now on.
    """

    input: Flat | None
    output: Flat | None
    counts: Offsets
    dtype: str
    in_place: bool
    result: Any
    own: bool


def memory(request: Request, rank: int, ranks: int) -> Memory:
    """Check a request.

    Raises:
        RoundelayError: what was found, and what was expected.
    """
    kind = request.kind
    if not isinstance(request.root, int | np.integer) or not 0 <= request.root < ranks:
        raise RoundelayError(f"root = {request.root!r}; expected a rank, 0 to {ranks - 1}")
    has_input = kind.name != "scatter" or rank == request.root
    has_output = kind.name != "gather" or rank == request.root
    x = flat(request.x, "the input", request.dtype) if has_input else None
    same = request.out is request.x
    y = x if same else None
    if has_output and not same and request.out is not None:
        y = flat(request.out, "the output", request.dtype)
    if x is not None and y is not None and x.dtype != y.dtype:
        raise RoundelayError(f"the input is of {x.dtype}, the output of {y.dtype}; expected one")
    known = x or y
    if known is None:
        raise RoundelayError(f"{kind.name} on rank {rank} needs `out`, for it has no input there")
    if y is not None and not y.array.flags.writeable:
        raise RoundelayError("the output is read-only; give an array of your own, such as a copy")
    counts = _counts(kind, request, rank, ranks, x, y)
    _check_length(kind, "input", x, _wanted(kind, counts, rank, kind.before))
    result = request.out
    if has_output and y is None:
        wanted = _wanted(kind, counts, rank, kind.after)
        y, result = _fresh(request, known, wanted)
    _check_length(kind, "output", y, _wanted(kind, counts, rank, kind.after))
    in_place, x_used = _overlap(kind, x, y, counts, rank)
    _check_op(request, known.dtype)
    own = x_used is x and not any(a is not None and a.copied for a in (x, y))
    return Memory(x_used, y, counts, known.dtype, in_place, result, own)


def _counts(
    kind: Collective, request: Request, rank: int, ranks: int, x: Flat | None, y: Flat | None
) -> Offsets:
    """Elements of the pieces, from what is given or from the arrays."""
    if request.counts is not None:
        return _uneven(kind, request, rank, ranks)
    known = x or y
    assert known is not None
    whole = known.array.size
    if kind.pieces == 0:
        return np.array([whole], np.int64)
    if x is None or kind.before is owner:  # without input: a scatter on another rank than the root
        return np.full(ranks, whole, np.int64)
    if whole % ranks:
        raise RoundelayError(
            f"{kind.name} of {whole} elements over {ranks} ranks; expected a multiple of {ranks}, "
            "or `counts` that say how many go to each"
        )
    each = np.full(ranks, whole // ranks, np.int64)
    return np.full((ranks, ranks), whole // ranks, np.int64) if kind.pieces == 2 else each


def _uneven(kind: Collective, request: Request, rank: int, ranks: int) -> Offsets:
    rows = request.counts if kind.pieces == 2 else (request.counts,)
    checked = []
    for row in rows:
        array = np.asarray(row if row is not None else [])
        if array.shape != (ranks,) or array.dtype.kind not in "iu" or (array < 0).any():
            raise RoundelayError(
                f"counts are {row!r:.80}; expected {ranks} whole numbers from 0 up, one a rank"
            )
        checked.append(array.astype(np.int64))
    if kind.pieces < 2:
        return checked[0]
    send, receive = checked
    if send[rank] != receive[rank]:
        raise RoundelayError(
            f"rank {rank} sends itself {send[rank]} elements and receives {receive[rank]}"
        )
    counts = np.zeros((ranks, ranks), np.int64)  # of others' exchanges nothing is known here
    counts[:, rank] = receive
    counts[rank] = send
    return counts


def _wanted(kind: Collective, counts: Offsets, rank: int, where: Any) -> int:
    """Elements of a buffer whose pieces are where the predicate says."""
    if kind.pieces == 2:
        return int(counts[rank].sum() if where is sender else counts[:, rank].sum())
    if kind.pieces == 1 and where is owner:
        return int(counts[rank])
    return int(counts.sum())


def _check_length(kind: Collective, what: str, array: Flat | None, wanted: int) -> None:
    if array is not None and array.array.size != wanted and kind.name != "barrier":
        raise RoundelayError(
            f"{kind.name}: the {what} has {array.array.size:,} elements; expected {wanted:,}"
        )


def _fresh(request: Request, like: Flat, wanted: int) -> tuple[Flat, Any]:
    """A new output, of the input's library where that is torch."""
    x = request.x
    carrier = CARRIERS.get(like.dtype, like.dtype)
    if type(x).__module__.partition(".")[0] == "torch":
        result = x.new_empty(wanted)
        return flat(result, "the output", request.dtype), result
    result = np.empty(wanted, carrier)
    return Flat(result, like.dtype, False), result


def _overlap(
    kind: Collective, x: Flat | None, y: Flat | None, counts: Offsets, rank: int
) -> tuple[bool, Flat | None]:
    """Whether it is in place; and the input, or a copy where the output would spoil it."""
    if x is None or y is None or not np.may_share_memory(x.array, y.array):
        return False, x
    apart = y.array.ctypes.data - x.array.ctypes.data
    item = x.array.itemsize
    natural = 0
    if kind.pieces == 1:
        ahead = int(counts[:rank].sum()) * item
        natural = ahead if kind.after is owner else -ahead
    if kind.pieces < 2 and apart == natural:
        return True, x
    if apart >= x.array.nbytes or -apart >= y.array.nbytes:
        return False, x
    return False, Flat(x.array.copy(), x.dtype, False)


def _check_op(request: Request, dtype: str) -> None:
    """Ask the kernels whether there is such an operation on such a type."""
    if not request.kind.sums:
        return
    if not isinstance(request.op, str):
        raise RoundelayError(f"op = {request.op!r}; expected one of {', '.join(OPS)}")
    if request.scale is not None and request.op != "premul_sum":
        raise RoundelayError(f"op {request.op!r} takes no scale; only 'premul_sum' does")
    nothing = bytearray()
    scale = {"avg": 1, "premul_sum": request.scale}.get(request.op)
    _native.reduce(request.op, dtype, nothing, [nothing], scale)


def scaled(array: Array, dtype: str, factor: Any) -> Array:
    """A copy, every element times a factor."""
    made = np.empty_like(array)
    _native.reduce("premul_sum", dtype, made.data, [array.data], factor)
    return made
