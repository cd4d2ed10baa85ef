"""What is asked for over HTTP, as OpenAI's API has it: read, checked, and made into requests."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

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
ROLES: Final = {
    "system": "system", "developer": "system", "user": "user", "assistant": "assistant",
}  # fmt: skip
"""Who speaks in a chat, as the model knows them; OpenAI's API has `developer` for `system`."""
_NO_MATTER: Final = frozenset({
    "user", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key",
    "prompt_cache_retention", "prediction", "parallel_tool_calls",
})  # fmt: skip
"""Fields of OpenAI's API that change nothing in an answer of this model."""
_PLAIN: Final = {
    "logprobs": False, "top_logprobs": 0, "echo": False, "suffix": "", "best_of": 1,
    "presence_penalty": 0, "frequency_penalty": 0, "logit_bias": {}, "tools": [], "functions": [],
    "tool_choice": "none", "function_call": "none", "response_format": {"type": "text"},
    "modalities": ["text"],
}  # fmt: skip
"""[field] the one value with which the answer is as without it."""
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


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

    type: str
    text: str = ""


class Message(msgspec.Struct):
    """A message of a chat."""

    role: str
    content: str | list[Part]

    @property
    def text(self) -> str:
        """What it says.

        Raises:
            Refused: a part of it is no text.
        """
        if isinstance(self.content, str):
            return self.content
        for part in self.content:
            if part.type != "text":
                raise Refused(f"content of type {part.type!r:.80}; expected 'text'")
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
        Refused: it is no UTF-8, no JSON, something in it is of another type, or it has a field
            that would change the answer and is not known here.
    """
    try:
        raw = msgspec.json.decode(body)
        asked = msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise Refused(f"the body is not as expected: {error}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        half = "; \\ud800 to \\udfff must come in pairs" if _SURROGATE.search(body) else ""
        raise Refused(f"the body is no JSON in UTF-8: {error}{half}") from None
    except RecursionError:
        raise Refused("the body is nested too deeply; expected what OpenAI's API has") from None
    for name in raw.keys() - set(kind.__struct_fields__) - _NO_MATTER:
        if raw[name] is not None and not _plain(name, raw[name]):
            raise Refused(f"{name!r:.80} is not supported here; leave it out")
    return asked


def _plain(name: str, value: Any) -> bool:
    """Whether a field that is not known here leaves the answer as it is."""
    plain = _PLAIN.get(name)
    return value == plain and (isinstance(value, bool) == isinstance(plain, bool))


def requests(asked: Chat | Text, tokenizer: Tokenizer, context: int, model: str) -> list[Ask]:
    """One request for every choice, in order; see `choices`.

    Args:
        asked: what was read.
        tokenizer: of the model.
        context: tokens that prompt and answer may have together.
        model: its name.

    Raises:
        Refused: something in it is out of range.
    """
    if asked.model not in (None, "", model):
        raise Refused(f"no model {asked.model!r:.80}; there is {model!r}", 404)
    n = choices(asked)[1]
    wanted = asked.max_tokens
    if isinstance(asked, Chat):
        said = [(_role(m.role), m.text) for m in asked.messages]
        prompts, usual = [tokenizer.chat(said, context - 1)], CHAT_TOKENS
        if asked.max_completion_tokens is not None:
            wanted = asked.max_completion_tokens
    else:
        prompts, usual = _prompts(asked.prompt, tokenizer, context - 1), TEXT_TOKENS
    common = _common(asked)
    seed = secrets.randbits(32) if asked.seed is None else asked.seed
    wanted = usual if wanted is None else wanted
    asks = [make(prompt, wanted, context, seed=seed, **common) for prompt in prompts]
    return [structs.replace(ask, seed=seed + i) for ask in asks for i in range(n)]


def choices(asked: Chat | Text) -> tuple[int, int]:
    """How many prompts, and how many answers to each.

    Raises:
        Refused: there are none, or too many.
    """
    if isinstance(asked, Chat) and not asked.messages:
        raise Refused("no messages; expected at least one")
    prompts = 1 if isinstance(asked, Chat) else len(_several(asked.prompt))
    n = 1 if asked.n is None else asked.n
    if n < 1 or n * prompts > CHOICES:
        raise Refused(f"{prompts} prompts with n = {n}; expected 1 to {CHOICES} choices")
    return prompts, n


def _role(name: str) -> str:
    if name not in ROLES:
        raise Refused(f"role {name!r:.80}; expected one of {', '.join(ROLES)}")
    return ROLES[name]


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
    if not -(2**63) <= ask.seed < 2**63:
        raise Refused(f"seed = {ask.seed}; expected {-(2**63)} to {2**63 - 1}")
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


def _several(prompt: Any) -> list[str | list[int]]:
    """The prompts: texts, or lists of tokens."""
    if isinstance(prompt, str):
        return [prompt]
    if all(isinstance(one, int) for one in prompt):
        return [prompt]
    if any(isinstance(one, int) for one in prompt):
        raise Refused("the prompt has tokens beside texts or lists; expected a text, tokens, or a "
                      "list of either")  # fmt: skip
    return list(prompt)


def _prompts(prompt: Any, tokenizer: Tokenizer, most: int) -> list[list[int]]:
    """The tokens of each."""
    found = [tokenizer.encode(one, most) if isinstance(one, str) else one
             for one in _several(prompt)]  # fmt: skip
    for tokens in found:
        wrong = [t for t in tokens if not 0 <= t < tokenizer.size]
        if wrong:
            raise Refused(f"token {wrong[0]}; expected 0 to {tokenizer.size - 1}")
    return found
