"""Any schedule over any process group, by batches of its messages between two ranks.

So an algorithm of one's own runs on GPUs, over NCCL, without a kernel of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

import torch
import torch.distributed as dist

from ..collectives import owner, root
from ..errors import RoundelayError
from ..program import OWN, Bounce, Space
from ..schedule import Schedule
from ..verify import verify
from .stretches import KEPT, Spots, Step, Write, program
from .tensors import operation

Fold = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
FOLDS: Final = {
    "sum": torch.add, "avg": torch.add, "product": torch.mul,
    "min": torch.minimum, "max": torch.maximum,
}  # fmt: skip
"""Operations, as torch's functions."""


def run_over(
    group: dist.ProcessGroup | None, schedule: Schedule, tensor: torch.Tensor | None,
    out: torch.Tensor | None = None, op: Any = "sum", counts: Sequence[int] | None = None,
) -> torch.Tensor | None:  # fmt: skip
    """Run a schedule over a process group of any backend; all its ranks must call it.

    Each step of the schedule is one `dist.batch_isend_irecv`, and torch adds up what is added up,
    where the tensors are. It returns when the result is there; on a GPU, when the current stream
    has been told to wait for it.

    Args:
        group: of as many ranks as the schedule; None is the world. NCCL wants a group to have made
            a collective of all its ranks before.
        schedule: of one's own or from the library, without switches that add.
        tensor: the input; None for a scatter on another rank than the root.
        out: the result. Without it, a new tensor, or the input itself where both are of one size
            (all_reduce, reduce, broadcast).
        op: sum, product, min, max or avg, by name or as `dist.ReduceOp`.
        counts: elements of each rank's piece, where they differ; not for all_to_all.

    Returns:
        the result; None for a gather on another rank than the root.

    Raises:
        RoundelayError: bad input; nothing has been sent.
    """
    rank = dist.get_rank(group)
    _check(schedule, dist.get_world_size(group))
    call = _Call(schedule, rank, tensor, out, counts)
    name = op if isinstance(op, str) else operation(op)[0]
    fold = _fold(schedule, name, call.like)
    steps, scratch = program(schedule, rank, call.counts)
    call.rows[Space.SCRATCH] = call.like.new_empty(scratch)
    for step in steps:
        _run(group, call, step, fold)
    return call.finish(schedule.ranks if schedule.kind.sums and name == "avg" else 1)


def _check(schedule: Schedule, ranks: int) -> None:
    if schedule.ranks != ranks:
        raise RoundelayError(f"{schedule!r} over a group of {ranks} ranks; expected as many")
    if schedule.helpers:
        raise RoundelayError(
            f"{schedule!r} has {schedule.helpers} switches that add, and messages go between "
            "ranks alone; expected a schedule of ranks, such as ring or double_tree"
        )
    if schedule.kind.name in ("barrier", "send_recv"):
        raise RoundelayError(f"{schedule!r}; expected one of all_reduce, all_gather and the like")
    if problem := _problem(schedule):
        raise RoundelayError(f"the schedule is not right: {problem}")


@lru_cache(KEPT)
def _problem(schedule: Schedule) -> str:
    verdict = verify(schedule)
    return "" if verdict else str(verdict)


def _fold(schedule: Schedule, name: str, like: torch.Tensor) -> Fold:
    """How two contributions become one."""
    if name not in FOLDS:
        raise RoundelayError(f"op {name!r}; expected one of {', '.join(FOLDS)}")
    fold: Fold = FOLDS[name]
    if schedule.kind.sums:
        try:
            fold(like[:0], like[:0])
        except RuntimeError as error:
            raise RoundelayError(f"torch has no {name} of {like.dtype}: {error}") from None
    return fold


class _Call:
    """The tensors of a call, as rows of elements.

    Attributes:
        rows: [space], a row; None where this rank has none.
        counts: elements of the pieces: one number where they are equal by nature, or one a rank.
        like: a row of their type.
    """

    def __init__(
        self, schedule: Schedule, rank: int, tensor: torch.Tensor | None,
        out: torch.Tensor | None, counts: Sequence[int] | None,
    ) -> None:  # fmt: skip
        kind, self._rank, self._schedule = schedule.kind, rank, schedule
        given = tensor if kind.name != "scatter" or rank == schedule.root else None
        has_output = kind.name != "gather" or rank == schedule.root
        known = given if given is not None else out
        if known is None:
            name = "out" if kind.name == "scatter" else "tensor"
            raise RoundelayError(f"{kind.name} on rank {rank} has no {name}; expected a tensor")
        self.like = known.detach().reshape(-1)
        self.counts = _counts(schedule, self.like.numel(), given is None, counts)
        if out is None and has_output:
            wanted = self._elements(kind.after)
            out = known if kind.pieces == 0 else known.detach().new_empty(wanted)
        self._out = out if has_output else None
        for what, found, where in (("tensor", given, kind.before), ("out", self._out, kind.after)):
            self._expect(what, found, self._elements(where))
        y = _row(self._out)
        x = y if given is self._out and kind.pieces == 0 else _row(given)
        self.in_place = x is y
        if x is not y and x is not None and y is not None and _overlap(x, y):
            x = x.clone()
        self.rows = {Space.INPUT: x, Space.OUTPUT: y}

    def _elements(self, where: Any) -> int:
        """How many a rank has that is told where pieces are."""
        pieces = self._schedule.kind.pieces
        if pieces == 1 and where is owner:
            return self.counts[self._rank]
        return sum(self.counts) * (self._schedule.ranks if pieces == 2 else 1)

    def _expect(self, what: str, found: torch.Tensor | None, elements: int) -> None:
        if found is None:
            return
        name, like = self._schedule.kind.name, self.like
        if (found.dtype, found.device) != (like.dtype, like.device):
            raise RoundelayError(
                f"{name}: {what} is of {found.dtype} on {found.device}; expected {like.dtype} on "
                f"{like.device}"
            )
        if found.numel() != elements:
            raise RoundelayError(
                f"{name}: {what} has {found.numel():,} elements; expected {elements:,}"
            )

    def finish(self, divisor: int) -> torch.Tensor | None:
        """The result, divided, where the caller wants it."""
        row = self.rows[Space.OUTPUT]
        if self._out is None or row is None:
            return None
        if divisor > 1 and (self._schedule.kind.after is not root
                            or self._rank == self._schedule.root):  # fmt: skip
            exact = row.is_floating_point() or row.is_complex()
            row.div_(divisor, rounding_mode=None if exact else "trunc")
        if not self._out.is_contiguous():
            self._out.detach().copy_(row.view(self._out.shape))
        return self._out


def _counts(
    schedule: Schedule, elements: int, no_input: bool, counts: Sequence[int] | None
) -> tuple[int, ...]:
    """Elements of the pieces, from what is given or from the elements of a tensor."""
    kind, ranks = schedule.kind, schedule.ranks
    if counts is not None:
        if kind.pieces != 1 or len(counts) != ranks or min(counts) < 0:
            raise RoundelayError(
                f"{kind.name} with counts {list(counts)!r:.80}; expected {ranks} numbers from 0 up "
                "for a collective of a piece a rank, and none for others"
            )
        return tuple(map(int, counts))
    if kind.pieces == 0:
        return (elements,)
    if kind.pieces == 1 and (no_input or kind.before is owner):
        return (elements,) * ranks
    if elements % ranks:
        raise RoundelayError(
            f"{kind.name} of {elements} elements over {ranks} ranks; expected a multiple of {ranks}"
        )
    return (elements // ranks,) * (ranks if kind.pieces == 1 else 1)


def _row(tensor: torch.Tensor | None) -> torch.Tensor | None:
    return None if tensor is None else tensor.detach().contiguous().view(-1)


def _overlap(x: torch.Tensor, y: torch.Tensor) -> bool:
    return bool(x.untyped_storage().data_ptr() == y.untyped_storage().data_ptr())


def _run(group: Any, call: _Call, step: Step, fold: Fold) -> None:
    """Do a step: all its messages at once, then what is made of them."""
    messages: list[Any] = []

    def message(kind: Any, row: torch.Tensor, peer: int) -> None:
        if row.numel():  # as bytes, of which every backend has the type
            messages.append(dist.P2POp(kind, row.view(torch.uint8), None, group, group_peer=peer))

    for send in step.sends:
        row = _read(call, send.spots)
        spoilt = send.bounce == Bounce.ALWAYS or (send.bounce == Bounce.IN_PLACE and call.in_place)
        row = row.clone() if spoilt and len(send.spots) == 1 else row
        for peer in send.peers:
            message(dist.isend, row, peer)
    arrived = []
    for write in step.writes:
        rows = [_room(call, write) if peer != OWN else None for peer in write.sources]
        for row, peer in zip(rows, write.sources, strict=True):
            if row is not None:
                message(dist.irecv, row, peer)
        arrived.append(rows)
    for work in dist.batch_isend_irecv(messages) if messages else ():
        work.wait()
    for write, rows in zip(step.writes, arrived, strict=True):
        values = [_read(call, write.own) if row is None else row for row in rows]
        total = values[0]
        for value in values[1:]:
            total = fold(total, value)
        _put(call, write.spots, total)


def _views(call: _Call, spots: Spots) -> list[torch.Tensor]:
    return [call.rows[space][begin:end] for space, begin, end in spots]  # type: ignore[index]


def _read(call: _Call, spots: Spots) -> torch.Tensor:
    """The values there, as one row: the memory itself where it is one stretch."""
    views = _views(call, spots)
    return views[0] if len(views) == 1 else torch.cat([call.like[:0], *views])


def _room(call: _Call, write: Write) -> torch.Tensor:
    """Where a message may arrive: at home where nothing is added and home is one stretch."""
    if len(write.sources) == len(write.spots) == 1:
        return _views(call, write.spots)[0]
    return call.like.new_empty(sum(end - begin for _, begin, end in write.spots))


def _put(call: _Call, spots: Spots, value: torch.Tensor) -> None:
    at = 0
    for view in _views(call, spots):
        part = value[at : at + view.numel()]
        if part.data_ptr() != view.data_ptr():
            view.copy_(part)
        at += view.numel()
