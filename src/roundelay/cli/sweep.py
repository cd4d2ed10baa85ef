"""From what `simulate` is asked to points, and from points to rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import click

from ..algorithms import Algorithm, find
from ..bench.machine import cores
from ..clusters import cluster, write
from ..collectives import COLLECTIVES, UnknownName, collective
from ..errors import RoundelayError
from ..files import read_file
from ..schedule import Schedule
from ..sweep import Axis, Store, grid, over_processes, over_ray
from ..topology import Cluster
from .points import Point, answer
from .progress import progress
from .stragglers import Straggler
from .targets import leave_out, load

Row = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """What the command is asked, apart from what is swept."""

    target: str
    where: Cluster | None
    ranks: int | None
    sizes: tuple[int, ...]
    algorithm: str
    protocol: str | None
    params: Mapping[str, Any]
    root: int
    stragglers: Sequence[Straggler]
    jitter: str | None
    samples: int
    seed: int

    @cached_property
    def loaded(self) -> list[Algorithm] | Schedule:
        """What the target names."""
        return load(self.target)

    @property
    def collective(self) -> str:
        """Its collective.

        Raises:
            RoundelayError: it has several.
        """
        if isinstance(self.loaded, Schedule):
            return self.loaded.collective
        names = dict.fromkeys(a.collective for a in self.loaded)
        if len(names) > 1:
            raise RoundelayError(f"{self.target} has algorithms of {', '.join(names)}; name one, "
                                 f"as {self.target}:{next(iter(names))}")  # fmt: skip
        return next(iter(names))

    @property
    def each(self) -> tuple[str, ...]:
        """Names of the algorithms that are timed each; none where it is one or the quickest."""
        if isinstance(self.loaded, Schedule) or not self._several:
            return ()
        own = self.target not in COLLECTIVES
        every = self.algorithm == "all" or (self.algorithm == "auto" and own)
        return tuple(a.name for a in self.loaded) if every else ()

    def by(self, algorithm: str) -> str:
        """What names the algorithm; see `Point`.

        Raises:
            RoundelayError: there is none of that name.
        """
        if algorithm == "nccl":
            return algorithm
        if algorithm in ("auto", "all"):
            return "auto" if self._several else self.target
        if self.target in COLLECTIVES:
            return f"{self.target}/{find(self.target, algorithm).name}"
        if isinstance(self.loaded, Schedule) or not self.target.endswith(".py"):
            raise RoundelayError(f"{self.target} names an algorithm already; leave out "
                                 f"--algorithm {algorithm}")  # fmt: skip
        if algorithm not in (known := [a.name for a in self.loaded]):
            raise UnknownName(f"algorithm of {self.target}", algorithm, known)
        return f"{self.target}:{self.collective}/{algorithm}"

    @property
    def _several(self) -> bool:
        return isinstance(self.loaded, list) and len(self.loaded) > 1

    @cached_property
    def source(self) -> bytes:
        """The file of the target, if it is one."""
        file, ending, _ = self.target.rpartition(".py")
        path = Path(file + ending if ending else self.target)
        return read_file(path) if path.suffix in (".py", ".json") else b""


@dataclass(frozen=True)
class Place:
    """A point of a sweep.

    Attributes:
        point: the question.
        about: what its row says beside the answer: cluster, nodes and ranks, and what is swept.
    """

    point: Point
    about: Row


def places(asked: Asked, axes: Sequence[Axis]) -> list[Place]:
    """The points of a sweep, the sizes of each following one another.

    Raises:
        RoundelayError: what is asked does not go together.
        click.UsageError: the same.
    """
    swept = {axis.key for axis in axes}
    if isinstance(asked.loaded, Schedule):
        leave_out(asked.ranks, asked.params, asked.root, "ranks" in swept, "algorithm" in swept)
    if asked.where is None and "cluster" not in swept:
        raise click.UsageError("on which cluster? Add --cluster, such as --cluster dgx-h100:16")
    if "straggler" in swept and len(asked.stragglers) != 1:
        raise click.UsageError("--sweep straggler needs one --straggler that says who is slow, "
                               "such as --straggler rank=0:1")  # fmt: skip
    each = asked.each if "algorithm" not in swept else ()
    axes = [*([Axis("algorithm", each)] if each else []),
            *(axis for axis in axes if axis.key != "size"),
            *(axis for axis in axes if axis.key == "size")]  # fmt: skip
    if "size" not in swept:
        axes.append(Axis("size", asked.sizes if collective(asked.collective).volume else (0,)))
    return [_place(asked, values) for values in grid(axes)]


def _place(asked: Asked, values: Mapping[str, Any]) -> Place:
    where = cluster(values["cluster"]) if "cluster" in values else asked.where
    assert where is not None
    if "nodes" in values:
        where = where.scaled(values["nodes"])
    loaded = asked.loaded
    ranks = values.get("ranks", asked.ranks) or where.size
    point = Point(
        collective=asked.collective,
        by=asked.by(values.get("algorithm", asked.algorithm)),
        cluster=write(where),
        ranks=loaded.ranks if isinstance(loaded, Schedule) else ranks,
        size=values["size"],
        protocol=values.get("protocol", asked.protocol),
        params=tuple(sorted(asked.params.items())),
        root=asked.root,
        stragglers=tuple((what, which, values.get("straggler", times))
                         for what, which, times in asked.stragglers),
        jitter=asked.jitter or "",
        samples=asked.samples,
        seed=asked.seed,
    )  # fmt: skip
    _needless(point)
    nodes = -(-point.ranks // where.cards)
    swept = {key: value for key, value in values.items() if key != "size"}
    return Place(point, {"cluster": where.name, "nodes": nodes, "ranks": point.ranks,
                         "swept": swept})  # fmt: skip


def _needless(point: Point) -> None:
    """Refuse what is given, but of no use where the algorithm is chosen."""
    given = {"-p": point.params, "--root": point.root}
    if point.by == "auto":
        given["--protocol"] = point.protocol
    if point.by == "nccl":
        given |= {"--straggler": point.stragglers, "--jitter": point.jitter}
    useless = [name for name, value in given.items() if value]
    if point.by in ("auto", "nccl") and useless:
        who = "NCCL's choice" if point.by == "nccl" else "the quickest of all algorithms"
        raise click.UsageError(f"{', '.join(useless)} with {who}; name an algorithm, as in "
                               "--algorithm ring")  # fmt: skip


def rows(
    asked: Asked, found: Sequence[Place], file: Path | None, jobs: int, ray: bool
) -> list[Row]:
    """The rows of all points, in their order; those that the file has are not asked again.

    Args:
        asked: what was asked.
        found: the points.
        file: where rows are kept as they come.
        jobs: processes of this machine.
        ray: ask a Ray cluster instead.
    """
    answers: list[Row | None] = [None] * len(found)
    with Store(file) if file else nullcontext() as store:
        keys = [place.point.key(asked.source) for place in found] if store else []
        if store:
            answers = [store.rows.get(key) for key in keys]
        left = [i for i, row in enumerate(answers) if row is None]
        with progress(len(found), len(found) - len(left)) as step:
            for k, row in _answers([found[i].point for i in left], jobs, ray):
                i = left[k]
                answers[i] = row
                if store:
                    store.add(keys[i], {**found[i].about, **row})
                step(found[i].about["swept"])
    return [{**(row or {}), **place.about} for row, place in zip(answers, found, strict=True)]


def _answers(questions: Sequence[Point], jobs: int, ray: bool) -> Iterator[tuple[int, Row]]:
    if ray:
        return over_ray(answer, questions)
    jobs = min(jobs, len(questions))
    threads = cores() if jobs <= 1 else 1
    return over_processes(partial(answer, threads=threads), questions, jobs)
