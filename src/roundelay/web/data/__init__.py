"""What the views draw: the name of a view, and the function and readers of its data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from ...collectives import UnknownName
from ..charts import charts
from . import bucket, catalogue, cluster, crossing, curves, grouped, player, roads, stack
from .parameters import Reader, read


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
        "cluster": Question(cluster.cluster, cluster.READERS),
        "crossing": Question(crossing.crossing, crossing.READERS),
        "curves": Question(curves.curves, curves.READERS),
        "charts": Question(charts, {}),
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
    return msgspec.json.encode(question.answer(**read(name, question.readers, given)))
