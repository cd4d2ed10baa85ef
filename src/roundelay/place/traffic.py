"""An exchange as messages between ranks, in the stages that libraries cut it into.

Ranks that a node holds stand in blocks of so many. A group with several members in each block goes
by rails: inside the blocks, and between the members of one index. Others go in a ring in the order
of their members, as NCCL's do, or all to all directly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .job import Exchange, Ints, Job

Floats = npt.NDArray[np.float64]


class Stage(NamedTuple):
    """Messages of one kind, all under way at once.

    Attributes:
        src, dst: [message] ranks.
        bytes: [message] of a call.
        steps: that follow one another.
        fan: further messages that a card has in a step.
    """

    src: Ints
    dst: Ints
    bytes: Floats
    steps: int
    fan: int = 0


class Traffic(NamedTuple):
    """An exchange as messages.

    Attributes:
        name: of the exchange.
        stages: one behind the other; large calls are cut, so that stages overlap.
        size: bytes of a call.
        calls: in a step.
    """

    name: str
    stages: tuple[Stage, ...]
    size: float
    calls: int


_PASSES = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}


def traffic(job: Job, block: int) -> list[Traffic]:
    """The messages of a job whose blocks of so many ranks stand in one node each."""
    found = []
    for e in job.exchanges:
        if e.groups.shape[1] > 1:
            found.append(Traffic(e.name, tuple(_stages(e, block)), e.size, e.calls))
    return found


def _stages(e: Exchange, block: int) -> list[Stage]:
    n = e.groups.shape[1]
    if e.pattern == "chain":
        return [_chain(e.groups, e.size)]
    held = _held(e.groups, block)
    if held is None:
        return [_direct(e.groups, e.size) if e.pattern == "all_to_all" else
                _ring(e.groups, e.size, _PASSES[e.pattern])]  # fmt: skip
    inner = held.reshape(-1, held.shape[2])
    outer = np.swapaxes(held, 1, 2).reshape(-1, held.shape[1])
    if e.pattern == "all_to_all":
        return [_direct(inner, e.size), _direct(outer, e.size)]
    passes, m = _PASSES[e.pattern], held.shape[2]
    assert n == held.shape[1] * m
    return [_ring(inner, e.size, passes), _ring(outer, e.size / m, passes)]


def _held(groups: Ints, block: int) -> Ints | None:
    """[group, block, member] where each block has as many members, 2 or more, and there are 2."""
    blocks = groups // block
    order = np.argsort(blocks, axis=1, kind="stable")
    ordered = np.take_along_axis(groups, order, axis=1)
    own = ordered // block
    m = int((own[0] == own[0, 0]).sum())
    if m < 2 or m == groups.shape[1] or groups.shape[1] % m:
        return None
    held = ordered.reshape(len(groups), -1, m)
    own = own.reshape(held.shape)
    same = (own == own[:, :, :1]).all() and (np.diff(own[:, :, 0], axis=1) > 0).all()
    return held if same else None


def _ring(groups: Ints, size: float, passes: int) -> Stage:
    n = groups.shape[1]
    after = np.roll(groups, -1, axis=1)
    each = np.full(groups.size, passes * (n - 1) / n * size)
    return Stage(groups.ravel(), after.ravel(), each, passes * (n - 1))


def _direct(groups: Ints, size: float) -> Stage:
    n = groups.shape[1]
    src = np.repeat(groups, n - 1, axis=1)
    others = [np.roll(groups, -k, axis=1) for k in range(1, n)]
    dst = np.stack(others, axis=2).reshape(len(groups), -1)
    return Stage(src.ravel(), dst.ravel(), np.full(src.size, size / n), 1, n - 2)


def _chain(groups: Ints, size: float) -> Stage:
    a, b = groups[:, :-1].ravel(), groups[:, 1:].ravel()
    src, dst = np.concatenate([a, b]), np.concatenate([b, a])
    return Stage(src, dst, np.full(len(src), size), 2)
