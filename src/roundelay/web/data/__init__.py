"""What the views draw: the name of a view, and the function and readers of its data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from ...collectives import UnknownName
from ...errors import RoundelayError
from . import bucket, catalogue, grouped, player, roads, stack
from .parameters import Reader

TEXT_LIMIT: Final = 200
"""Characters of a parameter."""


class Question(NamedTuple):
    """What can be asked: the function that answers, and how its parameters are read from text."""

    answer: Callable[..., Any]
    readers: Mapping[str, Reader]


QUESTIONS: Final[Mapping[str, Question]] = MappingProxyType(
    {
        "catalogue": Question(catalogue.catalogue, {}),
        "player": Question(player.player, player.READERS),
        "grouped": Question(grouped.grouped, grouped.READERS),
        "bucket": Question(bucket.bucket, bucket.READERS),
        "roads": Question(roads.roads, {}),
        "stack": Question(stack.stack, {}),
    }
)


def answer(name: str, given: Mapping[str, str]) -> bytes:
    """The data of a view as JSON.

    Args:
        name: of the view.
        given: the parameters as text; those that are left out have defaults.

    Raises:
        UnknownName: no such view, or no such parameter.
        RoundelayError: a parameter that is none, or one that asks for too much.
    """
    if name not in QUESTIONS:
        raise UnknownName("view", name, QUESTIONS)
    question = QUESTIONS[name]
    read = {}
    for key, text in given.items():
        if key not in question.readers:
            raise UnknownName(f"parameter of {name}", key, question.readers or ["none"])
        if len(text) > TEXT_LIMIT:
            raise RoundelayError(
                f"{key} has {len(text):,} characters; expected at most {TEXT_LIMIT}"
            )
        read[key] = question.readers[key](text)
    return msgspec.json.encode(question.answer(**read))
