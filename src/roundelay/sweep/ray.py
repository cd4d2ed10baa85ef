"""Questions answered side by side, by the machines of a Ray cluster."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from ..errors import RoundelayError

Question = TypeVar("Question")
Answer = TypeVar("Answer")

UNDER_WAY: Final = 1000
"""Questions that the cluster holds at one time."""


def over_ray(
    answer: Callable[[Question], Answer], questions: Sequence[Question]
) -> Iterator[tuple[int, Answer]]:
    """Numbers of questions and their answers, as they come.

    The cluster is the one that RAY_ADDRESS names or that runs here, else one is started on this
    machine. Roundelay must be installed on all its machines.

    Args:
        answer: a function of a module, which the cluster's machines can import.
        questions: values that can be pickled.

    Raises:
        RoundelayError: Ray is not installed.
        Exception: what `answer` raises.
    """
    ray = _ray()
    ray.init(ignore_reinit_error=True, log_to_driver=False)
    remote = ray.remote(answer)
    left = iter(enumerate(questions))
    under_way: dict[Any, int] = {}
    try:
        while True:
            for i, question in islice(left, UNDER_WAY - len(under_way)):
                under_way[remote.remote(question)] = i
            if not under_way:
                return
            done, _ = ray.wait(list(under_way))
            for reference in done:
                yield under_way.pop(reference), ray.get(reference)
    finally:
        ray.shutdown()


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise RoundelayError(
            "Ray is not installed; pip install 'roundelay[ray]', or sweep on this machine alone, "
            "without --ray"
        ) from None
