"""What the views draw: the name of a view, and the function and readers of its data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from ...collectives import UnknownName
from ..charts import charts
from ..runs import Runs, examples
from . import (
    bucket,
    catalogue,
    cluster,
    crossing,
    curves,
    grouped,
    live,
    player,
    roads,
    run,
    stack,
)
from .parameters import Reader, read


class Question(NamedTuple):
    """What can be asked.

    Attributes:
        answer: the function that answers.
        readers: how its parameters are read from text.
        of_runs: whether it is given the runs that are known, before its parameters.
    """

    answer: Callable[..., Any]
    readers: Mapping[str, Reader]
    of_runs: bool = False


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
        "runs": Question(run.runs, {}, of_runs=True),
        "run": Question(run.run, {"name": str}, of_runs=True),
        "live": Question(live.live, {"job": str}),
    }
)


def answer(name: str, given: Mapping[str, str], known: Runs | None = None) -> bytes:
    """The data of a view as JSON.

    Args:
        name: of the view.
        given: the parameters as text; those that are left out have defaults.
        known: the real runs that may be asked for; those that come with the page otherwise.

    Raises:
        UnknownName: no such view, or no such parameter.
        RoundelayError: a parameter that is none, or one that asks for too much.
    """
    if name not in QUESTIONS:
        raise UnknownName("view", name, QUESTIONS)
    question = QUESTIONS[name]
    first = [known or examples()] if question.of_runs else []
    found = question.answer(*first, **read(name, question.readers, given))
    return msgspec.json.encode(found)
