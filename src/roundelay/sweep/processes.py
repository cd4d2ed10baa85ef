"""Questions answered side by side, by processes of this machine."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from time import monotonic
from typing import Any, Final, TypeVar

from ..errors import RoundelayError

Question = TypeVar("Question")
Answer = TypeVar("Answer")

PATIENCE: Final = 1.0
"""Seconds for which this process answers alone: others take as long to start."""


class _Worker:
    """A process that answers one question after the other."""

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        # Not forked: a fork of a program with threads may hang.
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(
            target=_work, args=(answer, theirs), daemon=True
        )
        self.process.start()
        theirs.close()

    def answers(self) -> Any:
        """What it has answered.

        Raises:
            RoundelayError: it has ended.
        """
        try:
            found = self.pipe.recv()
        except (EOFError, ConnectionError):
            self.process.join()
            raise RoundelayError(
                f"a process of the sweep has ended with status {self.process.exitcode}; -9 may be "
                "for want of memory: try fewer at once, as --jobs 1"
            ) from None
        if isinstance(found, BaseException):
            raise found
        return found

    def end(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _work(answer: Callable[[Any], Any], pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that has started this
    with suppress(EOFError, ConnectionError):  # which may have ended
        while True:
            question = pipe.recv()
            try:
                found = answer(question)
            except Exception as error:
                found = error
            pipe.send(found)


def over_processes(
    answer: Callable[[Question], Answer], questions: Sequence[Question], jobs: int
) -> Iterator[tuple[int, Answer]]:
    """Numbers of questions and their answers, as they come.

    This process begins; where that takes long, others are started for the rest. Leaving it early,
    as on Ctrl-C, ends them.

    Args:
        answer: a function of a module, which other processes can import.
        questions: values that can be pickled.
        jobs: processes, at most.

    Raises:
        RoundelayError: a process has been killed.
        Exception: what `answer` raises.
    """
    left = iter(enumerate(questions))
    begin = monotonic()
    for i, question in left:
        yield i, answer(question)
        if jobs > 1 and monotonic() - begin > PATIENCE:
            break
    rest = list(left)
    workers: list[_Worker] = []
    try:
        for _ in range(min(jobs, len(rest))):
            workers.append(_Worker(answer))
        yield from _shared(workers, iter(rest))
    finally:
        for worker in workers:
            worker.end()


def _shared(
    workers: Sequence[_Worker], left: Iterator[tuple[int, Any]]
) -> Iterator[tuple[int, Any]]:
    """Each worker gets a question, and the next when it has answered."""
    busy: dict[Any, tuple[_Worker, int]] = {}
    idle = list(workers)
    while True:
        for worker, (i, question) in zip(idle, left, strict=False):
            worker.pipe.send(question)
            busy[worker.pipe] = worker, i
        if not busy:
            return
        idle = []
        for pipe in wait(list(busy)):
            worker, i = busy.pop(pipe)
            yield i, worker.answers()
            idle.append(worker)
