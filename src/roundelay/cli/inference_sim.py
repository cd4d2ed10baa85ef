"""`roundelay inference-sim`: how many instances of a model a service's traffic needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np

from ..files import read_file
from ..scaling import (
    POLICIES,
    Fixed,
    Outcome,
    Request,
    Scaler,
    Service,
    Speed,
    best_target,
    least_fixed,
    poisson,
    policy,
    read_requests,
    simulate,
)
from ..scaling.choose import TARGETS
from ..scaling.policy import CALM
from ..scaling.traffic import quicker
from ..topology import Cluster
from ..units import format_time, parse_time
from .base import Command, say
from .instanced import instances, write, write_options
from .output import emit, figure, table
from .serving import tell_lacking
from .targets import Checked, cluster_option, no_use

MADE_UP = (2000, 2.0, 1000, 100)
"""Requests, a second, of so many tokens of prompt and of answer, where no file names others."""
FIXED = "fixed"
F = TypeVar("F", bound=Callable[..., Any])


def _time_option(name: str, default: str | None, text: str) -> Callable[[F], F]:
    return click.option(name, type=Checked("TIME", parse_time), default=default, help=text)


@click.command(
    cls=Command,
    short_help="how many instances of a model a service's traffic needs, by policy",
    help="Send the requests of a CSV file (columns TIMESTAMP,ContextTokens,GeneratedTokens) to "
    "instances of a model that come and go: always the same number, by how full they are, by their "
    "queue, or by a forecast. Without a file, traffic is made up. How quick an instance is comes "
    "from the clock (--cluster) or from what was measured (--prefill, --step, --full-step). "
    "--write makes of one --policy what Kubernetes takes.",
)
@click.argument("requests", required=False, type=click.Path(path_type=Path), metavar="[FILE]")
@click.option("--quicker", "times", type=float, default=1.0,
              help="let requests come this many times as quickly (default 1)")  # fmt: skip
@click.option("--policy", "named", type=click.Choice((FIXED, *POLICIES)), multiple=True,
              help="only this one; may be repeated")  # fmt: skip
@click.option("--least", type=click.IntRange(1), default=1, help="instances at least (default 1)")
@click.option("--most", type=click.IntRange(1, 10_000), default=16,
              help="instances at most (default 16)")  # fmt: skip
@click.option("--target", type=float,
              help="part of an instance's places that should be taken (default: the cheapest with "
              "which 99 % of requests are in time)")  # fmt: skip
@_time_option("--calm", f"{CALM:g}s", "time for which fewer instances must have been enough before "
              "some are taken away (default 300s)")  # fmt: skip
@_time_option("--first-token", "2s", "a request is in time if its first token comes within this "
              "(default 2s)")  # fmt: skip
@_time_option("--token", "100ms", "and its later ones within this each, in the mean "
              "(default 100ms)")  # fmt: skip
@click.option("--batch", type=click.IntRange(1, 4096), default=32,
              help="requests that run at once in an instance (default 32)")  # fmt: skip
@click.option("--queue", type=click.IntRange(0), default=64,
              help="requests that may wait in each; more are refused (default 64)")  # fmt: skip
@_time_option("--start", "60s", "time until a new instance is ready (default 60s)")
@cluster_option()
@click.option("--tp", type=click.IntRange(1), default=8,
              help="cards over which the model is cut (default 8)")  # fmt: skip
@click.option("--layers", type=click.IntRange(1), default=80,
              help="layers of the model, with --cluster (default 80: Llama 3 70B)")  # fmt: skip
@click.option("--hidden", type=click.IntRange(1), default=8192,
              help="hidden size of the model, with --cluster (default 8192)")  # fmt: skip
@click.option("--inner", type=click.IntRange(1),
              help="feed-forward width of the model, with --cluster (default 3.5 times the hidden "
              "size)")  # fmt: skip
@click.option("--memory-rate", type=click.FloatRange(0, min_open=True),
              help="bytes a second of a card's memory, with --cluster (default: known by its "
              "name)")  # fmt: skip
@_time_option("--prefill", None, "measured time for a token of a prompt")
@_time_option("--step", None, "measured time for a token where one request runs")
@_time_option("--full-step", None, "measured time for a token of each where --batch requests run")
@write_options
def command(
    requests: Path | None,
    times: float,
    named: Sequence[str],
    least: int,
    most: int,
    target: float | None,
    calm: float,
    first_token: float,
    token: float,
    batch: int,
    queue: int,
    start: float,
    where: Cluster | None,
    tp: int,
    layers: int,
    hidden: int,
    inner: int | None,
    memory_rate: float | None,
    prefill: float | None,
    step: float | None,
    full_step: float | None,
    as_json: str | None,
    **written: Any,
) -> None:
    """Simulate and print."""
    if least > most:
        raise click.UsageError(f"--least {least} and --most {most}; expected no more than --most")
    if written["folder"] and len(named) != 1:
        raise click.UsageError(f"--write, and {len(named)} of --policy; expected one, such as "
                               "--policy queue. Compare them without --write first")  # fmt: skip
    _sensible(where, named, written)
    measured = (prefill, step, full_step)
    model = {"layers": layers, "hidden": hidden, "inner": inner or hidden * 7 // 2,
             "heads": max(1, hidden // 128)}  # fmt: skip
    speed = _measured(measured, batch, start) if where is None else _clocked(
        where, tp, model, memory_rate, batch, start, measured)  # fmt: skip
    service = Service(speed, queue, tp, first_token=first_token, token=token)
    asked = read_requests(read_file(requests).decode("utf-8", "replace"), str(requests)) \
        if requests else poisson(*MADE_UP)  # fmt: skip
    asked = quicker(asked, times)
    tried = _Tried(asked, service, least, most, target, calm)
    rows = [tried.row(name) for name in named or (FIXED, *POLICIES)]
    found = {"requests": len(asked), "seconds": asked[-1].at, "speed": _speed(speed),
             "policies": rows}  # fmt: skip
    if written["folder"]:
        figures = {"tp": tp, "batch": batch, "queue": queue, "least": least, "most": most,
                   "calm": calm, "start": start}  # fmt: skip
        write(instances(rows[0], where, figures, written), written)
    emit(found, as_json, lambda: _told(found, service))


def _sensible(where: Cluster | None, named: Sequence[str], written: Mapping[str, Any]) -> None:
    """Refuse options that would change nothing."""
    if where is None:
        no_use(
            ("layers", "hidden", "inner", "memory_rate"),
            "without --cluster, whose clock takes them",
        )
    if {*named} == {FIXED}:
        no_use(("target", "calm"), "with --policy fixed")
    if written["folder"] is None:
        no_use(("name", "image", "program", "prometheus", "crds"), "without --write",
               "add --write DIR")  # fmt: skip
    elif named[0] in (FIXED, "utilisation"):
        no_use(("prometheus",), f"with --policy {named[0]}: KEDA asks it by queue and forecast")


def _measured(times: Sequence[float | None], batch: int, start: float) -> Speed:
    prefill, step, full = times
    if prefill is None or step is None or full is None:
        raise click.UsageError("how quick is an instance? Name --cluster, such as dgx-h100, or all "
                               "of --prefill, --step and --full-step")  # fmt: skip
    if full < step or (batch == 1 and full != step):
        raise click.UsageError(f"--step {format_time(step)} with one request, and --full-step "
                               f"{format_time(full)} with {batch}; expected no less with more, and "
                               "the same with as many")  # fmt: skip
    return Speed.between(prefill, step, full, batch, start)


def _clocked(where: Cluster, tp: int, model: Mapping[str, int], rate: float | None, batch: int,
             start: float, measured: Sequence[float | None]) -> Speed:  # fmt: skip
    from ..workloads.generate.clocked import Large, memory_rate, speed

    if any(time is not None for time in measured):
        raise click.UsageError("--cluster takes times from the clock; leave out --prefill, --step "
                               "and --full-step, which are measured, or leave it out")  # fmt: skip
    shape = Large(**model)
    if shape.heads % tp:
        raise click.UsageError(f"--tp {tp}, and {shape.heads} heads; expected a divisor of them, "
                               "as each card has whole heads")  # fmt: skip
    tell_lacking(where, tp, shape)
    return speed(where, tp, shape, rate or memory_rate(where), batch, start)


@dataclass(frozen=True)
class _Tried:
    """What each policy makes of the same traffic."""

    requests: Sequence[Request]
    service: Service
    least: int
    most: int
    target: float | None
    calm: float

    def row(self, name: str) -> dict[str, Any]:
        """Its figures."""
        if name == FIXED:
            enough = least_fixed(self.requests, self.service, self.most) or self.most
            count = max(enough, self.least)
            scaler = Scaler(Fixed(count), count, count)
            return _row(name, None, simulate(self.requests, self.service, scaler))

        def scaled(target: float) -> Scaler:
            chosen = policy(name, target, self.service.speed.start)
            return Scaler(chosen, self.least, self.most, self.calm)

        targets = TARGETS if self.target is None else (self.target,)
        return _row(name, *best_target(self.requests, self.service, scaled, targets))


def _row(name: str, target: float | None, found: Outcome) -> dict[str, Any]:
    first, later = (_quantiles(values) for values in (found.first, found.token))
    return {
        "policy": name,
        "target": target,
        "first_token_p50_s": first[0],
        "first_token_p99_s": first[1],
        "token_p50_s": later[0],
        "token_p99_s": later[1],
        "in_time": found.in_time,
        "refused": found.refused,
        "tokens": found.tokens,
        "instances_mean": found.mean_instances,
        "instances_most": max(count for _, count in found.instances),
        "card_hours": found.card_hours,
        "instances": found.instances,
    }


def _quantiles(values: Any) -> list[float | None]:
    known = values[~np.isnan(values)]
    return np.quantile(known, (0.5, 0.99)).tolist() if len(known) else [None, None]


def _speed(speed: Speed) -> dict[str, Any]:
    return {"prefill_s": speed.prefill, "step_s": speed.steps[0], "full_step_s": speed.steps[-1],
            "batch": speed.places, "start_s": speed.start}  # fmt: skip


def _told(found: Mapping[str, Any], service: Service) -> str:
    speed = service.speed
    head = say(
        "{requests} requests in {time}. An instance has {cards} cards: {prefill} for a token of a "
        "prompt, {step} for a token of one request, {full} for one of each of {batch}; {start} to "
        "start.",
        requests=f"{found['requests']:,}", time=format_time(found["seconds"]), cards=service.cards,
        prefill=format_time(speed.prefill), step=format_time(speed.steps[0]),
        full=format_time(speed.steps[-1]), batch=speed.places, start=format_time(speed.start),
    )  # fmt: skip
    shown = table(
        ["", *map(say, ("target", "first token", "99 %", "a token", "99 %", "in time", "refused",
                        "instances", "at most", "card hours"))],
        [_cells(row) for row in found["policies"]], right="bcdefghijk",
    )  # fmt: skip
    note = say(
        "In time: the first token within {first}, later ones within {token} each in the mean. "
        "`fixed` is the fewest instances allowed with which 99 % of requests are, or the most.",
        first=format_time(service.first_token), token=format_time(service.token),
    )  # fmt: skip
    return f"{head}\n\n{shown}\n\n{note}"


def _cells(row: Mapping[str, Any]) -> list[str]:
    times = ("first_token_p50_s", "first_token_p99_s", "token_p50_s", "token_p99_s")
    shown = [format_time(row[t]) if row[t] is not None else "-" for t in times]
    target = "" if row["target"] is None else f"{row['target']:g}"
    return [say(row["policy"]), target, *shown, f"{row['in_time']:.1%}", f"{row['refused']:,}",
            figure(row["instances_mean"]), str(row["instances_most"]),
            figure(row["card_hours"])]  # fmt: skip
