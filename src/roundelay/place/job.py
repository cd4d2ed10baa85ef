"""A job: its ranks, and what groups of them exchange in a step.

Volumes by formula, for a micro-batch of B sequences of s tokens, hidden size h, b bytes an element,
L layers, m micro-batches, P parameters, and the degrees t, p, d, e of tensor, pipeline, data and
expert parallel:

- tensor: 4 all-reduces of B s h b a layer and micro-batch, of L / p layers (Narayanan et al. 2021,
  Megatron-LM, arXiv:2104.04473, section 3)
- pipeline: B s h b each way over each border of stages, a micro-batch (the same, section 2.2)
- data: all-reduce of P b / (t p); where shards are kept (FSDP), two all-gathers and a
  reduce-scatter of it (Rajbhandari et al. 2020, ZeRO, arXiv:1910.02054, section 7)
- expert: 4 all-to-alls of B s k h b a layer and micro-batch, k experts a token: to the experts and
  back, forwards and backwards (Lepikhin et al. 2020, GShard, arXiv:2006.16668)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from ..errors import RoundelayError
from ..i18n import Message

Ints = npt.NDArray[np.int64]
Pattern: TypeAlias = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "chain"]
"""`chain`: every member sends to the next and the one before."""
DEGREES: Final = ("tensor", "pipeline", "data")
ORDER: Final = ("tensor", "data", "pipeline")
"""Megatron-LM's order of ranks, innermost first."""
RANKS_LIMIT: Final = 1 << 20
DEGREES_LIMIT: Final = 5
"""Degrees that a layout may have; all of their orders are tried."""


@dataclass(frozen=True, eq=False)
class Exchange:
    """What groups of ranks exchange, all groups at once.

    Attributes:
        name: such as "data".
        pattern: a collective, or `chain`.
        groups: [group, member] ranks; a rank is in one group at most.
        size: bytes of a call, as in nccl-tests' size column; of `chain` those of a message.
        calls: in a step.
    """

    name: str
    pattern: Pattern
    groups: Ints
    size: float
    calls: int = 1

    def __post_init__(self) -> None:
        if self.pattern not in get_args(Pattern):
            raise RoundelayError(f"exchange {self.name}: pattern {self.pattern!r}; expected one of "
                                 f"{', '.join(get_args(Pattern))}")  # fmt: skip
        found, often = np.unique(self.groups, return_counts=True)
        if (often > 1).any():
            raise RoundelayError(f"exchange {self.name}: rank {found[often > 1][0]} is in two "
                                 "groups, or twice in one; expected one group at most")  # fmt: skip
        if not 0 <= self.size < 2**63 or not 0 < self.calls < 2**31:
            raise RoundelayError(f"exchange {self.name}: {self.size:g} bytes, {self.calls} calls; "
                                 "expected 0 bytes or more, and 1 call or more")  # fmt: skip


@dataclass(frozen=True)
class Model:
    """The figures of a model that volumes follow from; see the module for the formulas.

    Attributes:
        layers, hidden, sequence: L, h, s.
        parameters: P; 12 L h^2 where 0 (Megatron-LM, section 3.1).
        batch: B, sequences of a micro-batch.
        micro_batches: m, of a step.
        element: b, bytes.
        top_k: k.
        sharded: whether data-parallel ranks keep shards (FSDP).
    """

    layers: int
    hidden: int
    sequence: int
    parameters: int = 0
    batch: int = 1
    micro_batches: int = 1
    element: int = 2
    top_k: int = 1
    sharded: bool = False

    @property
    def activation(self) -> float:
        """Bytes of a micro-batch between two layers."""
        return float(self.batch * self.sequence * self.hidden * self.element)

    @property
    def weights(self) -> float:
        """Bytes of all parameters."""
        return float((self.parameters or 12 * self.layers * self.hidden**2) * self.element)


@dataclass(frozen=True, eq=False)
class Job:
    """Ranks and their exchanges.

    Attributes:
        name: for people.
        ranks: how many.
        exchanges: those of a step.
        layout: degrees, innermost first; ranks are numbered by them.
        sliced: whether it takes parts of cards (MIG, time slices), too.
        notes: where it comes from.
    """

    name: str
    ranks: int
    exchanges: tuple[Exchange, ...]
    layout: tuple[int, ...]
    sliced: bool = False
    notes: tuple[Message, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.ranks <= RANKS_LIMIT:
            raise RoundelayError(f"{self.name}: {self.ranks} ranks; expected 1 to {RANKS_LIMIT:,}")
        if prod(self.layout) != self.ranks:
            raise RoundelayError(f"{self.name}: {' x '.join(map(str, self.layout))} are "
                                 f"{prod(self.layout)} ranks, not {self.ranks}")  # fmt: skip
        for e in self.exchanges:
            if e.groups.size and not 0 <= e.groups.min() <= e.groups.max() < self.ranks:
                raise RoundelayError(
                    f"exchange {e.name}: ranks {e.groups.min()} to "
                    f"{e.groups.max()}; expected 0 to {self.ranks - 1}"
                )


def parallel(
    name: str,
    degrees: dict[str, int],
    model: Model | None = None,
    volumes: dict[str, float] | None = None,
    order: tuple[str, ...] = ORDER,
    ranks: int | None = None,
    sliced: bool = False,
) -> Job:
    """A job by its degrees of parallelism.

    Args:
        name: of the job.
        degrees: of tensor, pipeline, data and expert, 1 where left out; expert divides data, and
            an expert group is of neighbours in a data group.
        model: from which volumes follow.
        volumes: bytes a step instead, by parallelism; those of a rank's calls together.
        order: of ranks, innermost first.
        ranks: how many there are, to check; None: as many as degrees make.
        sliced: see `Job`.

    Raises:
        RoundelayError: degrees that don't multiply to the ranks, or nothing to exchange by.
    """
    t, p, d, e = (degrees.get(key, 1) for key in (*DEGREES, "expert"))
    if min(t, p, d, e) < 1:
        raise RoundelayError(f"{name}: degrees {degrees}; expected 1 or more of each")
    if sorted(order) != sorted(DEGREES):
        raise RoundelayError(f"{name}: order {'-'.join(order)}; expected {', '.join(DEGREES)}, "
                             "in some order, innermost first, as tensor-data-pipeline")  # fmt: skip
    if ranks is not None and t * p * d != ranks:
        raise RoundelayError(
            f"{name}: tensor {t} x pipeline {p} x data {d} = {t * p * d}, but it has {ranks} "
            "ranks; expected groups that multiply to them (expert parallel is part of data)"
        )
    if d % e:
        raise RoundelayError(f"{name}: expert {e} doesn't divide data {d}; expected a divisor, as "
                             "expert groups are parts of data groups")  # fmt: skip
    if not 1 <= t * p * d <= RANKS_LIMIT:
        raise RoundelayError(f"{name}: {t * p * d} ranks; expected 1 to {RANKS_LIMIT:,}")
    layout = tuple(degrees.get(key, 1) for key in order)
    groups = _groups(layout, order, e)
    found = []
    if model is not None:
        found += _by_model(model, (t, p, d, e), groups)
    given = volumes or {}
    found = [x for x in found if x.name not in given]
    for key, size in given.items():
        if key not in groups:
            raise RoundelayError(f"{name}: volume of {key!r}; expected {', '.join(groups)}")
        if groups[key].shape[1] > 1:
            found.append(Exchange(key, _PATTERNS[key], groups[key], size))
    return Job(name, t * p * d, tuple(found), layout, sliced)


def layout_of(exchanges: Iterable[Exchange], ranks: int) -> tuple[int, ...]:
    """Degrees, innermost first, in which all groups of even steps are rows or columns.

    >>> rows, columns = np.arange(32).reshape(4, 8), np.arange(32).reshape(4, 8).T
    >>> layout_of([Exchange("a", "all_reduce", g, 1.0) for g in (rows, columns)], 32)
    (8, 4)
    """
    borders = {1, ranks}
    for e in exchanges:
        steps = np.diff(e.groups, axis=1)
        if steps.size and steps[0, 0] > 0 and (steps == steps[0, 0]).all():
            step = int(steps[0, 0])
            more = borders | {step, step * e.groups.shape[1]}
            if all(b % a == 0 for a, b in pairwise(sorted(more))) and max(more) == ranks:
                borders = more
    found = tuple(b // a for a, b in pairwise(sorted(borders)))
    return found if 0 < len(found) <= DEGREES_LIMIT else (ranks,)


_PATTERNS: Final[dict[str, Pattern]] = {
    "tensor": "all_reduce",
    "pipeline": "chain",
    "data": "all_reduce",
    "expert": "all_to_all",
}


def _groups(layout: tuple[int, ...], order: tuple[str, ...], expert: int) -> dict[str, Ints]:
    """[group, member] ranks by parallelism."""
    ranks = np.arange(prod(layout)).reshape(layout[::-1])
    found = {}
    for axis, key in enumerate(order):
        moved = np.moveaxis(ranks, len(layout) - 1 - axis, -1)
        found[key] = np.ascontiguousarray(moved.reshape(-1, layout[axis]))
    found["expert"] = found["data"].reshape(-1, expert)
    return found


def _by_model(
    model: Model, degrees: tuple[int, int, int, int], groups: dict[str, Ints]
) -> list[Exchange]:
    t, p, d, e = degrees
    m, own = model.micro_batches, max(1, model.layers // p)
    found = []
    if t > 1:
        found.append(
            Exchange("tensor", "all_reduce", groups["tensor"], model.activation, 4 * own * m)
        )
    if p > 1:
        found.append(Exchange("pipeline", "chain", groups["pipeline"], model.activation / t, m))
    if d > 1:
        size = model.weights / (t * p)
        if model.sharded:
            found.append(Exchange("data", "all_gather", groups["data"], size, 2))
            found.append(Exchange("shards", "reduce_scatter", groups["data"], size))
        else:
            found.append(Exchange("data", "all_reduce", groups["data"], size))
    if e > 1:
        size = model.activation * model.top_k / t
        found.append(Exchange("expert", "all_to_all", groups["expert"], size, 4 * own * m))
    return found
