"""`roundelay overlap`: the time of a training step, and what of its communication is exposed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt

from ..errors import RoundelayError
from ..files import read_file
from ..simulate.disturb import Jitter
from ..simulate.overlap import Parts, Share, Shares, StepClock, StepTiming
from ..simulate.overlap.files import read
from ..simulate.pricing import PS
from ..topology import Cluster
from ..units import format_size, format_time
from .base import Command, say
from .output import emit, table
from .stragglers import read_straggler
from .targets import Checked, cluster_option, only_one, ranks_option

Floats = npt.NDArray[np.float64]

PARTS = {
    "compute": "computing",
    "exposed": "exposed communication",
    "wait": "waiting for others",
    "hidden": "communication beside computing",
}
"""The parts of a step, and what they are called; the first three add up to it."""
KINDS_SHOWN = 12
"""Kinds of ranks in the table."""


@click.command(
    cls=Command,
    short_help="the time of a training step: computing and communication side by side",
    help="Time one step of training on a cluster: how much of its communication hides behind "
    "computing, and who waits for whom. FILE is a TOML file: a model and how it is cut, or tasks "
    'one by one; see the guide "Time a training step".',
)
@click.argument("file", type=click.Path(path_type=Path))
@cluster_option(required=True)
@ranks_option(None, "cards that take part (default: all of the cluster)")
@click.option("--algorithm", type=click.Choice(("nccl", "auto")), default="nccl",
              help="nccl, or auto: the quickest of ours (default nccl)")  # fmt: skip
@click.option(
    "--straggler",
    "stragglers",
    multiple=True,
    type=Checked("rank=WHICH:TIMES", read_straggler),
    help="a rank that computes slower, such as rank=37:1.10; may be given several times",
)
@click.option("--sms", type=int,
              help="multiprocessors of every card that do communication and nothing else; the "
              "best number is told")  # fmt: skip
@click.option("--jitter", type=Checked("WHAT=DISTRIBUTION:X,...", Jitter.parse),
              help="how computing differs from time to time, such as step=normal:0.05,"
              "card=lognormal:0.03")  # fmt: skip
@click.option("--samples", type=click.IntRange(1), default=100,
              help="how often jitter is drawn (default 100)")  # fmt: skip
def command(
    file: Path,
    where: Cluster,
    ranks: Sequence[int] | None,
    algorithm: str,
    stragglers: Sequence[tuple[str, str, float]],
    sms: int | None,
    jitter: Jitter | None,
    samples: int,
    as_json: str | None,
) -> None:
    """Time and print."""
    plan = read(read_file(file), str(file))
    n = only_one(ranks) if ranks else where.size
    clock = StepClock(plan.step, where, n, [_slow(*s) for s in stragglers], algorithm)
    timing = clock.time(Share(sms, plan.card) if sms is not None else None)
    shares = clock.best_share(plan.card) if sms is not None else None
    drawn = clock.samples(jitter, samples, timing.share) if jitter is not None else None
    found = _found(clock, timing, shares, drawn)
    found["even_step_us"] = clock.time(timing.share, evenly=True).time * 1e6
    emit(found, as_json, lambda: _told(clock, found))


def _slow(what: str, which: str, times: float) -> tuple[int, float]:
    if what != "rank" or not (which.isascii() and which.isdigit()):
        raise RoundelayError(f"{what}={which}; a step has ranks that compute slower, such as "
                             "rank=37:1.10")  # fmt: skip
    return int(which), times


def _found(
    clock: StepClock, timing: StepTiming, shares: Shares | None, drawn: Floats | None
) -> dict[str, Any]:
    kinds, ready, begin, end = timing.kinds, *(m / PS * 1e6 for m in timing.moments)
    return {
        "cluster": clock.cluster.name,
        "ranks": clock.ranks,
        "step_us": timing.time * 1e6,
        **_micros(timing.mean),
        "by_rank": [
            {"rank": int(first), "alike": int(count),
             **_micros(Parts(*(float(c[kind]) for c in timing.by_kind)))}
            for kind, (first, count) in enumerate(zip(kinds.first, kinds.counts, strict=True))
        ],
        "exchanges": [
            {"collective": e.collective, "bytes": e.size, "group": e.group.size if e.group else
             clock.ranks, "stride": e.group.stride if e.group else 1, "tasks": tasks,
             "time_us": clock.prices[e].seconds(timing.share) * 1e6,
             "algorithm": clock.prices[e].algorithm}
            for e, tasks in clock.step.exchanges.items()
        ],
        "tasks": [
            {"name": task.name, "stream": task.stream, "ready_us": float(ready[i, kinds.of[0]]),
             "begin_us": float(begin[i, kinds.of[0]]), "end_us": float(end[i, kinds.of[0]])}
            for i, task in enumerate(clock.step)
        ],
        "share": None if shares is None else {
            "best_sms": shares.best.sms,
            "curve": [{"sms": int(s), "step_us": float(t) * 1e6}
                      for s, t in zip(shares.sms, shares.times, strict=True)],
        },
        "samples": None if drawn is None else _spread(drawn * 1e6),
    }  # fmt: skip


def _micros(parts: Parts[float]) -> dict[str, float]:
    return {f"{name}_us": seconds * 1e6 for name, seconds in parts._asdict().items()}


def _spread(times: Floats) -> dict[str, float]:
    p50, p99 = np.quantile(times, (0.5, 0.99), method="inverted_cdf")
    return {"count": len(times), "mean_us": float(times.mean()), "p50_us": float(p50),
            "p99_us": float(p99), "max_us": float(times.max())}  # fmt: skip


def _told(clock: StepClock, found: dict[str, Any]) -> str:
    blocks = [
        say("A step over {ranks} cards of {cluster}: {time}", ranks=f"{clock.ranks:,}",
            cluster=clock.cluster.name, time=_time(found["step_us"])),
        _parts(found),
    ]  # fmt: skip
    if found["exchanges"]:
        blocks.append(_exchanges(found))
    blocks += _notes(found)
    return "\n\n".join(blocks)


def _time(us: float) -> str:
    return format_time(us * 1e-6)


def _parts(found: dict[str, Any]) -> str:
    """A column for all ranks in the mean, or for each kind of them."""
    kinds = found["by_rank"] if len(found["by_rank"]) > 1 else []
    shown = kinds[:KINDS_SHOWN]
    head = ["", say("all ranks"),
            *(say("rank {rank}", rank=k["rank"]) if k["alike"] == 1 else
              say("rank {rank} and {more} alike", rank=k["rank"], more=f"{k['alike'] - 1:,}")
              for k in shown)]  # fmt: skip
    whole = found["step_us"] or 1.0
    rows = [
        [say(text), *(f"{_time(k[f'{part}_us'])} ({k[f'{part}_us'] / whole:.1%})"
                      for k in (found, *shown))]
        for part, text in PARTS.items()
    ]  # fmt: skip
    return table(head, rows, right="bcdefghijklmn")


def _exchanges(found: dict[str, Any]) -> str:
    head = ("exchange", "size", "ranks", "apart", "tasks", "each takes", "algorithm")
    rows = [
        [e["collective"], format_size(e["bytes"]), f"{e['group']:,}", f"{e['stride']:,}",
         f"{e['tasks']:,}", _time(e["time_us"]), e["algorithm"]]
        for e in found["exchanges"]
    ]  # fmt: skip
    return table([*map(say, head)], rows, right="bcdef")


def _notes(found: dict[str, Any]) -> Iterator[str]:
    if found["even_step_us"] != found["step_us"]:
        yield say("If no rank were slower: {time}.", time=_time(found["even_step_us"]))
    if share := found["share"]:
        best = share["curve"][share["best_sms"] - 1]
        yield say("The best share: {sms} multiprocessors, {time}.", sms=best["sms"],
                  time=_time(best["step_us"]))  # fmt: skip
    if drawn := found["samples"]:
        times = {name: _time(drawn[f"{name}_us"]) for name in ("mean", "p50", "p99", "max")}
        yield say("Of {count} steps with jitter: mean {mean}, p50 {p50}, p99 {p99}, longest {max}.",
                  count=f"{drawn['count']:,}", **times)  # fmt: skip
