"""`roundelay bench`: time collectives as nccl-tests does, beside other libraries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from ..bench.cells import (
    DTYPE_ALIASES,
    DTYPES,
    GRID,
    GRID_SIZES,
    MEASURED,
    OP_ALIASES,
    OPS,
    Request,
    sizes_between,
)
from ..bench.controller import Bench, Predict
from ..bench.figures import Line, Summary
from ..bench.ping import available
from ..bench.predicted import Predictor
from ..bench.rivals import RIVALS
from ..bench.table import Table
from ..clusters import HERE, cluster, here_path
from ..collectives import UnknownName
from ..run import job_from_environment
from ..topology import Cluster
from ..units import UnitError, format_size
from .base import Command, say, terminated_as_interrupted
from .output import emit
from .targets import (
    Checked,
    cluster_option,
    ranks_option,
    seconds_above_zero,
    size_above_zero,
    sizes_above_zero,
)


def _whole(least: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdigit() and int(text) >= least):
            raise UnitError(f"{text!r} is no count; expected a whole number from {least} up")
        return int(text)

    return read


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in RIVALS:
            raise UnknownName("library", name, RIVALS)
    return list(dict.fromkeys(names))


def _dtype(text: str) -> str:
    name = DTYPE_ALIASES.get(text, text)
    if name not in DTYPES:
        raise UnknownName("type", text, DTYPES)
    return name


def _op(text: str) -> str:
    name = OP_ALIASES.get(text, text)
    if name not in OPS:
        raise UnknownName("operation", text, OPS)
    return name


@click.command(
    cls=Command,
    short_help="time collectives as nccl-tests does, beside other libraries",
    help="Time COLLECTIVE over processes of this machine and print nccl-tests' table; `all` is "
    "the grid of five collectives and six sizes. The time of a call goes from the first rank's "
    "start to the last rank's end, after a common barrier and with buffers freshly written; "
    "the median over the calls stands in the table. Rivals are measured in turn with ours, in "
    "the usual form: all_reduce, reduce and broadcast in place, the others out of place.",
)
@click.argument("collective", metavar="COLLECTIVE")
@ranks_option("2", "numbers of ranks, such as 4 or 2,4,8 (default 2)")
@click.option("-b", "first", type=Checked("SIZE", size_above_zero), default="8",
              help="the smallest size (default 8)")  # fmt: skip
@click.option("-e", "last", type=Checked("SIZE", size_above_zero), default="128M",
              help="the largest size (default 128M)")  # fmt: skip
@click.option("-f", "factor", type=Checked("COUNT", _whole(2)), default="16",
              help="from one size to the next (default 16)")  # fmt: skip
@click.option(
    "--sizes", type=Checked("SIZE,SIZE,...", sizes_above_zero), help="these sizes instead"
)
@click.option("-d", "dtype", type=Checked("TYPE", _dtype), default="float32",
              help="type of the elements (default float32)")  # fmt: skip
@click.option("-o", "op", type=Checked("OP", _op), default="sum",
              help="operation: sum, product, min, max, avg (default sum)")  # fmt: skip
@click.option("-r", "--root", type=Checked("RANK", _whole(0)), default="0",
              help="the root of a rooted collective (default 0)")  # fmt: skip
@click.option("-c", "checks", type=Checked("COUNT", _whole(0)), default="1",
              help="calls of each cell whose results are checked (default 1)")  # fmt: skip
@click.option("--iters", type=Checked("COUNT", _whole(1)),
              help="timed calls (default: what --seconds hold)")  # fmt: skip
@click.option("--seconds", type=Checked("SECONDS", seconds_above_zero), default="0.5",
              help="time for each side and cell (default 0.5)")  # fmt: skip
@click.option("-w", "warmup", type=Checked("COUNT", _whole(0)), default="5",
              help="calls before the timed ones (default 5)")  # fmt: skip
@click.option("--algorithm", metavar="NAME", default="auto",
              help="one of the collective's algorithms, auto, or all of them in turn")  # fmt: skip
@click.option("--against", type=Checked("NAME,NAME,...", _names), default="",
              help="libraries to compare with: gloo, openmpi, mpich, impi")  # fmt: skip
@click.option("--shared", is_flag=True, help="take our buffers from the communicator's memory")
@cluster_option(
    "print beside it what the clock says of this cluster: here, or a file that "
    "`roundelay probe` wrote (default: here, once it was probed)"
)
@click.pass_context
def command(
    ctx: click.Context,
    /,
    collective: str,
    ranks: Sequence[int],
    first: int,
    last: int,
    factor: int,
    sizes: list[int] | None,
    root: int,
    where: Cluster | None,
    as_json: str | None,
    **options: Any,
) -> int:
    """Measure, print, and tell by the exit status whether all results were right."""
    if collective not in ("all", *MEASURED):
        raise UnknownName("collective to measure", collective, ("all", *MEASURED))
    if collective == "all":
        sizes = sizes or list(GRID_SIZES)
    request = Request(
        GRID if collective == "all" else [collective],
        ranks,
        sizes or sizes_between(first, last, factor),
        root=root,
        **options,
    )
    job = job_from_environment()
    if job.ranks > 1:
        given = ctx.get_parameter_source("ranks") is not click.core.ParameterSource.DEFAULT
        return _within(request.within(job.ranks, job.source, given), where, as_json)
    predict = _predictor(where)
    bench = Bench(request, lambda text: click.echo(text, err=True), predict)
    with terminated_as_interrupted():
        bench.run(_shower(request, as_json == "-", available(), bool(predict)))
    return _conclude(bench.lines, bench.as_json(), as_json)


def _predictor(where: Cluster | None, nodes: Sequence[int] = ()) -> Predict | None:
    """What predicts, if there is a cluster to do it for; `nodes` has the ranks of each."""
    if where is None and here_path().exists():
        where = cluster(HERE)
    return Predictor(where, nodes) if where is not None else None


def _within(request: Request, where: Cluster | None, as_json: str | None) -> int:
    """Measure over the ranks of the job this process belongs to; rank 0 tells."""
    from ..bench.within import measure
    from ..communicator import init

    with init() as comm:
        first = comm.rank == 0
        predict = _predictor(where, [len(ranks) for ranks in comm.nodes])
        show = _shower(request, not first or as_json == "-", False, bool(predict))
        lines, value = measure(request, comm, show, predict)
    return _conclude(lines, value, as_json) if first else _status(lines)


def _conclude(lines: Sequence[Line], value: dict[str, Any], as_json: str | None) -> int:
    emit(value, as_json, lambda: _summary(lines))
    return _status(lines)


def _status(lines: Sequence[Line]) -> int:
    return int(any(figure.wrong for line in lines for figure in line.ours.values()))


def _shower(request: Request, quiet: bool, ping: bool, predicted: bool) -> Callable[[Line], None]:
    """What prints a line as soon as it is measured; for JSON alone, nothing."""
    table = Table(request, ping, predicted)

    def show(line: Line) -> None:
        if not quiet:
            click.echo("\n".join(table.lines(line)))

    return show


def _summary(lines: Sequence[Line]) -> str:
    summary = Summary.of(lines)
    wrong = sum(figure.wrong or 0 for line in lines for figure in line.ours.values())
    told = ["", say("# wrong elements: {k}", k=wrong)]
    if summary.worst is not None:
        mean = f"{summary.geometric_mean:.3f}"
        told.append(say("# ours / best rival, geometric mean: {mean}", mean=mean))
        told.append(say("# worst: {ratio} at {what}", ratio=f"{summary.worst.ratio:.2f}",
                        what=_where(summary.worst)))  # fmt: skip
    return "\n".join(told)


def _where(line: Line) -> str:
    point = line.point
    return say("{what}, {n} ranks, S = {size}", what=f"{point.collective}/{point.algorithm}",
               n=point.ranks, size=format_size(point.nbytes))  # fmt: skip
