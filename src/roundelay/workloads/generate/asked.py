"""What is asked for over HTTP, as OpenAI's API has it: read, checked, and made into requests."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec

from ...errors import RoundelayError
from .messages import Ask
from .tokenizer import Tokenizer

CHOICES: Final = 16
"""Choices of one request at most."""
STOPS: Final = 4
"""Stop sequences at most."""
CHAT_TOKENS: Final = 512
"""Tokens of an answer in a chat, where the request does not say."""
TEXT_TOKENS: Final = 16
"""Tokens that go on a text, where the request does not say; as OpenAI's API."""
_UNKNOWN: Final = ("logprobs", "top_logprobs", "tools", "functions", "logit_bias", "suffix", "echo",
                   "presence_penalty", "frequency_penalty")  # fmt: skip


class Refused(RoundelayError):
    """The request is wrong.

    Attributes:
        status: of HTTP.
    """

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status


class Part(msgspec.Struct):
    """A part of a message."""

    type: Literal["text"]
    text: str


class Message(msgspec.Struct):
    """A message of a chat."""

    role: Literal["system", "user", "assistant"]
    content: str | list[Part]

    @property
    def text(self) -> str:
        """What it says."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content)


class StreamOptions(msgspec.Struct):
    """What a stream has beside the text."""

    include_usage: bool = False


class Common(msgspec.Struct, kw_only=True):
    """What both kinds of requests have."""

    model: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    n: int | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None


class Chat(Common, kw_only=True):
    """The body of /v1/chat/completions."""

    messages: list[Message]
    max_completion_tokens: int | None = None


class Text(Common, kw_only=True):
    """The body of /v1/completions."""

    prompt: str | list[str | int | list[int]]


def read(body: bytes, kind: type[Common]) -> Any:
    """A body as `Chat` or `Text`.

    Raises:
        Refused: it is no UTF-8, no JSON, or something in it is of another type.
    """
    try:
        raw = msgspec.json.decode(body)
        asked = msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise Refused(f"the body is not as expected: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Refused(f"the body is no JSON in UTF-8: {error}") from None
    for name in _UNKNOWN:
        if raw.get(name):
            raise Refused(f"{name} is not supported here; leave it out")
    return asked


def requests(asked: Chat | Text, tokenizer: Tokenizer, context: int, model: str) -> list[Ask]:
    """One request for every choice, in order.

    Args:
        asked: what was read.
        tokenizer: of the model.
        context: tokens that prompt and answer may have together.
        model: its name.

    Raises:
        Refused: something in it is out of range.
    """
    if asked.model not in (None, "", model):
        raise Refused(f"no model {asked.model!r}; there is {model!r}", 404)
    wanted = asked.max_tokens
    if isinstance(asked, Chat):
        prompts = [tokenizer.chat([(m.role, m.text) for m in asked.messages])]
        if not asked.messages:
            raise Refused("no messages; expected at least one")
        wanted = asked.max_completion_tokens or wanted
        usual = CHAT_TOKENS
    else:
        prompts, usual = _prompts(asked.prompt, tokenizer), TEXT_TOKENS
    common = _common(asked)
    n = 1 if asked.n is None else asked.n
    if not 1 <= n * len(prompts) <= CHOICES or n < 1:
        raise Refused(f"{len(prompts)} prompts with n = {n}; expected 1 to {CHOICES} choices")
    seed = secrets.randbits(32) if asked.seed is None else asked.seed
    return [make(prompt, usual if wanted is None else wanted, context, seed=seed + i, **common)
            for prompt in prompts for i in range(n)]  # fmt: skip


def make(prompt: Sequence[int], wanted: int, context: int, **given: Any) -> Ask:
    """A request; it ends at the border of the context where `wanted` tokens do not fit.

    Args:
        prompt: its tokens.
        wanted: tokens to be made at most.
        context: tokens that both may have together.
        given: other fields of `Ask`.

    Raises:
        Refused: the prompt is empty or too long, or a field is out of range.
    """
    if not prompt:
        raise Refused("the prompt is empty; expected at least one token")
    if len(prompt) >= context:
        raise Refused(f"the prompt has {len(prompt):,} tokens; expected at most {context - 1:,}, "
                      f"for the context is {context:,}")  # fmt: skip
    if wanted < 1:
        raise Refused(f"max_tokens = {wanted}; expected 1 or more")
    ask = Ask(0, list(prompt), min(wanted, context - len(prompt)), **given)
    if not 0 <= ask.temperature <= 2:
        raise Refused(f"temperature = {ask.temperature:g}; expected 0 to 2")
    if not 0 < ask.top_p <= 1:
        raise Refused(f"top_p = {ask.top_p:g}; expected more than 0, at most 1")
    if not -(2**63) <= ask.seed < 2**63 - CHOICES:
        raise Refused(f"seed = {ask.seed}; expected a number of 64 bits")
    if len(ask.stop) > STOPS or not all(ask.stop):
        raise Refused(f"stop = {ask.stop!r:.80}; expected up to {STOPS} texts, none of them empty")
    return ask


def _common(asked: Common) -> dict[str, Any]:
    stop = [asked.stop] if isinstance(asked.stop, str) else asked.stop or []
    return {
        "temperature": 1.0 if asked.temperature is None else asked.temperature,
        "top_p": 1.0 if asked.top_p is None else asked.top_p,
        "stop": stop,
    }


def _prompts(prompt: Any, tokenizer: Tokenizer) -> list[list[int]]:
    """Texts or tokens, one or several."""
    if isinstance(prompt, str):
        return [tokenizer.encode(prompt)]
    if all(isinstance(one, int) for one in prompt):
        prompt = [prompt]
    found = [tokenizer.encode(one) if isinstance(one, str) else one for one in prompt]
    for tokens in found:
        wrong = [t for t in tokens if not 0 <= t < tokenizer.size]
        if wrong:
            raise Refused(f"token {wrong[0]}; expected 0 to {tokenizer.size - 1}")
    return found
