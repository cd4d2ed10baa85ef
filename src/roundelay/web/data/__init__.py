"""What the views draw: the name of a view, and the function and readers of its data."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple

import msgspec

from ...collectives import UnknownName
from ..charts import charts
from ..known import Known, nothing_given
from . import (
    bucket,
    catalogue,
    cluster,
    crossing,
    curves,
    grouped,
    jobs,
    live,
    player,
    roads,
    run,
    stack,
    walk,
)
from .parameters import Reader, read


class Question(NamedTuple):
    """What can be asked.

    Attributes:
        answer: the function that answers.
        readers: how its parameters are read from text.
        of: what of the page's `Known` it is given, under the same name.
    """

    answer: Callable[..., Any]
    readers: Mapping[str, Reader]
    of: Literal["", "runs", "walks", "clusters", "logs"] = ""


QUESTIONS: Final[Mapping[str, Question]] = MappingProxyType(
    {
        "catalogue": Question(catalogue.catalogue, {}, of="clusters"),
        "player": Question(player.player, player.READERS, of="clusters"),
        "grouped": Question(grouped.grouped, grouped.READERS),
        "bucket": Question(bucket.bucket, bucket.READERS),
        "roads": Question(roads.roads, {}),
        "cluster": Question(cluster.cluster, cluster.READERS, of="clusters"),
        "crossing": Question(crossing.crossing, crossing.READERS, of="clusters"),
        "curves": Question(curves.curves, curves.READERS, of="clusters"),
        "charts": Question(charts, {}),
        "stack": Question(stack.stack, {}),
        "runs": Question(run.runs, {}, of="runs"),
        "run": Question(run.run, {"name": str}, of="runs"),
        "walks": Question(walk.walks, {}, of="walks"),
        "walk": Question(walk.walk, {"name": str}, of="walks"),
        "logs": Question(jobs.logs, {}, of="logs"),
        "jobs": Question(jobs.jobs, {"name": str}, of="logs"),
        "live": Question(live.live, {"job": str}),
    }
)


def answer(name: str, given: Mapping[str, str], known: Known | None = None) -> bytes:
    """The data of a view as JSON.

    Args:
        name: of the view.
        given: the parameters as text; those that are left out have defaults.
        known: what may be asked for by name; without it, what comes with the page.

    Raises:
        UnknownName: no such view, or no such parameter.
        RoundelayError: a parameter that is none, or one that asks for too much.
    """
    if name not in QUESTIONS:
        raise UnknownName("view", name, QUESTIONS)
    question = QUESTIONS[name]
    more = {question.of: getattr(known or nothing_given(), question.of)} if question.of else {}
    found = question.answer(**more, **read(name, question.readers, given))
    return msgspec.json.encode(found)
