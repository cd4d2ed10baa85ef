"""Answers as OpenAI's API has them: whole, or part by part."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from .messages import Ask, Piece

Json = dict[str, Any]


class Answer:
    """The frame of the answer to one request.

    Attributes:
        chat: whether it is of a chat.
    """

    def __init__(self, name: str, model: str, chat: bool) -> None:
        """With the name and the time that all its parts have."""
        self.chat = chat
        self._head = {"id": name, "created": int(time.time()), "model": model}

    def whole(self, found: Sequence[tuple[str, Piece]], usage: Json) -> Json:
        """All choices: their texts and last pieces."""
        kind = "chat.completion" if self.chat else "text_completion"
        choices = [
            {"index": i, "finish_reason": last.finish, "logprobs": None,
             **({"message": {"role": "assistant", "content": text}} if self.chat
                else {"text": text})}
            for i, (text, last) in enumerate(found)
        ]  # fmt: skip
        return {**self._head, "object": kind, "choices": choices, "usage": usage}

    def role(self, i: int) -> Json:
        """The first part of a choice of a chat."""
        return self._part([{"index": i, "delta": {"role": "assistant", "content": ""},
                            "finish_reason": None}])  # fmt: skip

    def part(self, i: int, piece: Piece) -> Json:
        """What a piece adds to a choice."""
        text = {"delta": {"content": piece.text}} if self.chat else {"text": piece.text}
        return self._part([{"index": i, **text, "finish_reason": piece.finish}])

    def counted(self, usage: Json) -> Json:
        """The last part, where it is asked for."""
        return {**self._part([]), "usage": usage}

    def _part(self, choices: list[Json]) -> Json:
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return {**self._head, "object": kind, "choices": choices}


def usage(asks: Sequence[Ask], made: Sequence[int], n: int) -> Json:
    """Tokens of prompts and answers.

    Args:
        asks: the choices, those of one prompt one after another.
        made: tokens of each.
        n: choices of a prompt, which counts once.
    """
    prompt, answer = sum(len(ask.tokens) for ask in asks[::n]), sum(made)
    return {"prompt_tokens": prompt, "completion_tokens": answer, "total_tokens": prompt + answer}
