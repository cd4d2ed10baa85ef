"""`roundelay walk`: the steps of one request, measured here or on the clock of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from ..topology import Cluster
from ..units import format_size, format_time
from .base import Command, say
from .generate import run_one
from .output import emit, printable, table
from .serving import found_options, model_options, tell_lacking, where_time_went
from .targets import cluster_option, given, no_use

NAMES = {
    "request": "the request arrives: text becomes tokens",
    "instance": "an instance gets it",
    "ranks": "its ranks are told the step",
    "weights": "weights are in place",
    "compute": "each rank computes its part",
    "exchange": "all-reduces put the parts together",
    "token": "a token is drawn and comes out",
}
"""The steps, and what they are called."""
HERE = ("prompt", "max_tokens", "model", "backend", "context", "threads")
CLOCKED = ("layers", "hidden", "inner", "memory_rate")
"""Parameters of a request here, and of a large model on the clock."""


@click.command(
    cls=Command,
    short_help="follow one request through a language model, step by step",
    help="Follow one request from its arrival to the tokens that come out, with measured times: "
    "what computing took, how many exchanges a token needed and what share of its time. With "
    "--cluster, the same on the clock for a large model on cards that are not here.",
)
@click.argument("prompt", default="The capital of France is")
@model_options
@click.option("--max-tokens", type=int, default=8, help="tokens at most (default 8)")
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path),
              help="write the steps to this file, as JSON")  # fmt: skip
@cluster_option()
@click.option("--layers", type=click.IntRange(1), default=126,
              help="of the large model (default 126)")  # fmt: skip
@click.option("--hidden", type=click.IntRange(1), default=16384,
              help="its width (default 16384)")  # fmt: skip
@click.option("--inner", type=click.IntRange(1),
              help="its feed-forward width (default 3.25 times the width)")  # fmt: skip
@click.option("--memory-rate", type=float,
              help="bytes a second of a card's memory (default: known by its name)")  # fmt: skip
def command(
    prompt: str,
    max_tokens: int,
    save: Path | None,
    where: Cluster | None,
    layers: int,
    hidden: int,
    inner: int | None,
    memory_rate: float | None,
    as_json: str | None,
    **model: Any,
) -> None:
    """Walk."""
    if where is not None:
        no_use(HERE, "with --cluster, where nothing runs")
        found = _clocked(where, model["tp"], layers, hidden, inner, memory_rate)
        told = _clock_table
    else:
        no_use(CLOCKED, "without --cluster", "add such as --cluster dgx-h100")
        options, tokenizer, context = found_options(**model)
        done = run_one(options, tokenizer, prompt, False, max_tokens, context, lambda text: None)
        found = {"prompt": prompt, "text": done.text, "ranks": options.ranks,
                 "backend": options.backend, "steps": done.steps(), **done.summary()}  # fmt: skip
        told = _table
    if save:
        save.write_bytes(msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    emit(found, as_json, lambda: told(found))


def _table(found: dict[str, Any]) -> str:
    """The first token, the second, and where the time of a token goes."""
    blocks = [printable(found["prompt"] + found["text"])]
    for token, title in ((0, say("The first token:")), (1, say("The next token:"))):
        steps = [s for s in found["steps"] if s["token"] == token]
        if steps:
            blocks.append(f"{title}\n{_steps(steps)}")
    return "\n\n".join([*blocks, where_time_went(found)])


def _steps(steps: list[dict[str, Any]]) -> str:
    rows = [[str(i), say(NAMES[s["name"]]), _time(s["start_us"]), _time(s["duration_us"]), _more(s)]
            for i, s in enumerate(steps, start=8 - len(steps))]  # fmt: skip
    whole = sum(s["duration_us"] + s.get("wait_us", 0) for s in steps)
    rows.append(["", say("all of it, waiting included"), "", _time(whole), ""])
    return table(["", say("step"), say("begins"), say("takes"), ""], rows, right="acd")


def _more(step: dict[str, Any]) -> str:
    if "exchanges" in step:
        wait = _time(step["wait_us"]) if "wait_us" in step else ""
        text = "all-reduces: {count}; waiting for the slower rank beside: {wait}"
        return say(text if wait else "all-reduces: {count}", count=step["exchanges"], wait=wait)
    if "bytes_by_rank" in step:
        return say("{bytes} on each rank", bytes=format_size(max(step["bytes_by_rank"])))
    return ""


def _time(us: float) -> str:
    return format_time(us / 1e6)


def _clocked(where: Cluster, tp: int, layers: int, hidden: int, inner: int | None,
             rate: float | None) -> dict[str, Any]:  # fmt: skip
    from ..workloads.generate.clocked import Large, memory_rate, token

    ranks = tp if given("tp") else min(8, where.size)
    heads = max(1, hidden // 128)
    shape = Large(layers, hidden, inner or hidden * 13 // 4, heads, min(8, heads))
    tell_lacking(where, ranks, shape)
    return token(where, ranks, shape, memory_rate(where) if rate is None else rate)


def _clock_table(found: dict[str, Any]) -> str:
    steps = found["steps"]
    rows = [[say(NAMES[s["name"]]), _time(s["duration_us"]),
             f"{s['duration_us'] / found['token_us']:.1%}", _more(s)] for s in steps]  # fmt: skip
    alone = found["ranks"] == 1
    head = say(
        "A token on one card of {cluster}: {time}; predicted, not measured." if alone else
        "A token over {ranks} cards of {cluster}: {time}; predicted, not measured.",
        ranks=found["ranks"], cluster=found["cluster"], time=_time(found["token_us"]),
    )  # fmt: skip
    note = say("A card reads its weights once a token: a lower bound, at the rate of its memory.")
    if not alone:
        exchanges = say("{exchanges} all-reduces of {bytes}, {each} each.",
                        exchanges=found["exchanges_per_token"],
                        bytes=format_size(found["exchange_bytes"]),
                        each=_time(found["one_exchange_us"]))  # fmt: skip
        note = say("{first} {second}", first=exchanges, second=note)
    shown = table([say("step"), say("takes"), say("share"), ""], rows, right="bc")
    return f"{head}\n\n{shown}\n\n{note}"
