"""Start a job's ranks on this machine, watch over them, and leave none behind."""

from __future__ import annotations

import os
import secrets
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from ..errors import RoundelayError
from ..i18n import Message, message
from .crew import Crew, Tags
from .environment import Tasks, srun_tasks

GRACE: Final = 2.0
"""Seconds that the others have to end on their own when a rank has failed."""
TERM: Final = 3.0
"""Seconds from SIGTERM to SIGKILL."""
TORCH_PORT: Final = -10_000
"""From the port of a job under srun to the one at which torch's ranks meet."""
TIMED_OUT: Final = 124
"""Exit status when the time was up, as that of timeout(1)."""

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def rank_environments(environ: Mapping[str, str], ranks: int) -> list[dict[str, str]]:
    """The environment of each rank: this one, the job's variables, and torchrun's.

    Under srun each task starts its part of them, tasks in order. MASTER_ADDR, MASTER_PORT and
    OMP_NUM_THREADS stay as they are if they are set.

    Raises:
        RoundelayError: the tasks of srun can't have as many ranks each, or their number is unknown.
    """
    tasks = srun_tasks(environ)
    if tasks is not None:
        return _of_task(environ, ranks, tasks)
    ports = _free_ports(2)
    shared = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(ports[1]),
        "OMP_NUM_THREADS": "1",
        **environ,
        "ROUNDELAY_RANKS": str(ranks),
        "ROUNDELAY_ADDRESS": f"127.0.0.1:{ports[0]}",
        "ROUNDELAY_SECRET": secrets.token_hex(16),
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(ranks),
    }
    names = ("ROUNDELAY_RANK", "RANK", "LOCAL_RANK")
    return [{**shared, **dict.fromkeys(names, str(rank))} for rank in range(ranks)]


def _of_task(environ: Mapping[str, str], ranks: int, at: Tasks) -> list[dict[str, str]]:
    """The environments of the ranks that a task of srun starts."""
    each, left = divmod(ranks, at.tasks)
    if left or not each:
        raise RoundelayError(f"{ranks} ranks over {at.tasks} tasks of srun; expected a multiple of "
                             f"{at.tasks}: as many on each")  # fmt: skip
    shared = {
        "MASTER_ADDR": at.host,
        "MASTER_PORT": str(at.port + TORCH_PORT),
        "OMP_NUM_THREADS": "1",
        **environ,
        "ROUNDELAY_RANKS": str(ranks),
        "ROUNDELAY_ADDRESS": environ.get("ROUNDELAY_ADDRESS") or f"{at.host}:{at.port}",
        "WORLD_SIZE": str(ranks),
        "LOCAL_WORLD_SIZE": str(each),
    }
    found = []
    for i in range(each):
        rank, local = str(at.task * each + i), str(at.on_host * each + i)
        found.append({**shared, "ROUNDELAY_RANK": rank, "RANK": rank, "LOCAL_RANK": local})
    return found


def launch(
    command: Sequence[str],
    environments: Sequence[Mapping[str, str]],
    tell: Callable[[Message], None],
    tag: bool = False,
    timeout: float | None = None,
    elastic: bool | Callable[[], bool] = False,
    linger: float | None = None,
    interrupt: signal.Signals = signal.SIGINT,
) -> int:
    """Runs a command once for each environment, until all have ended.

    When one fails, or at SIGINT, SIGTERM, SIGHUP or the timeout, the others are ended: two
    seconds after that by SIGTERM, three seconds later by SIGKILL. Processes that a rank has
    started end with it, unless they have left its process group.

    Args:
        command: a program and its arguments.
        environments: one for each rank.
        tell: is given what people should know, such as which rank failed.
        tag: puts the rank before each line that it prints.
        timeout: seconds after which the job is ended.
        elastic: the others go on when one fails, as they may by `Communicator.shrink`; or what
            says whether they can by then.
        linger: seconds that the others have when one has ended by itself, well or not, in a job
            that is elastic; None: as many as they need.
        interrupt: what ranks get at SIGINT. SIGTERM is for programs that would only print where
            they were.

    Returns:
        0, or the exit status of the first rank that failed, 128 + its number for a signal; 124 at
        the timeout. Where the job is elastic, 0 if any rank ended well.
    """
    with _signals() as pipe, Crew(command, environments) as crew:
        crew.start(piped=tag)
        deadline = None if timeout is None else time.monotonic() + timeout
        watch = _Watch(crew, tell, deadline, elastic, linger, interrupt)
        with selectors.DefaultSelector() as selector:
            selector.register(pipe, selectors.EVENT_READ)
            tags = Tags(crew, selector)
            while crew.running:
                for key, _ in selector.select(watch.seconds()):
                    if key.data is tags:
                        tags.read(key.fileobj)
                    else:
                        watch.signalled(os.read(pipe, 4096))
                watch.look()
            crew.end()
            tags.drain()
        return watch.status or (0 if watch.well else watch.failed)


@dataclass
class _Watch:
    """What has gone wrong, and what comes next of it."""

    crew: Crew
    tell: Callable[[Message], None]
    deadline: float | None
    elastic: bool | Callable[[], bool]
    linger: float | None = None
    interrupt: signal.Signals = signal.SIGINT
    status: int = 0
    failed: int = 0  # the first status of a rank, where the others go on
    well: bool = False  # a rank has ended without failing
    steps: list[tuple[float, int]] = field(default_factory=list)

    def seconds(self) -> float | None:
        """How long nothing needs to be done."""
        moments = [moment for moment, _ in self.steps[:1]]
        moments += [self.deadline] if self.deadline is not None else []
        return max(0.0, min(moments) - time.monotonic()) if moments else None

    def signalled(self, numbers: bytes) -> None:
        """This process has got signals; the first is passed on, a second one means at once."""
        for number in numbers:
            if number not in _SIGNALS:
                continue
            if self.status == 128 + number:
                self.crew.send(signal.SIGKILL)
            else:
                self.crew.send(self.interrupt if number == signal.SIGINT else number)
                self._end(128 + number)

    def look(self) -> None:
        """Which ranks have ended, and whether it is time for the next step."""
        for rank, code in self.crew.ended():
            self.well = self.well or code == 0
            if code and not self.status:
                self.tell(_failed(rank, code))
                self.failed = self.failed or (code if code > 0 else 128 - code)
                if not self._goes_on():
                    self._end(self.failed)
            if self.elastic and self.linger is not None and code >= 0:
                self._soon(self.linger)
        now = time.monotonic()
        if self.deadline is not None and now >= self.deadline:
            self.deadline = None
            if not self.status and self.crew.running:
                names = ", ".join(map(str, sorted(self.crew.running)))
                self.tell(message("the time is up; still running: ranks {names}", names=names))
                self._end(TIMED_OUT)
        while self.steps and now >= self.steps[0][0]:
            self.crew.send(self.steps.pop(0)[1])

    def _goes_on(self) -> bool:
        return self.elastic() if callable(self.elastic) else self.elastic

    def _end(self, status: int) -> None:
        self.status = self.status or status
        self._soon(GRACE)

    def _soon(self, seconds: float) -> None:
        """End what runs then, or sooner where that was planned."""
        end = time.monotonic() + seconds
        if not self.steps or (len(self.steps) == 2 and end < self.steps[0][0]):
            self.steps = [(end, signal.SIGTERM), (end + TERM, signal.SIGKILL)]


def _failed(rank: int, code: int) -> Message:
    if code > 0:
        return message("rank {rank} ended with status {code}", rank=rank, code=code)
    known = {int(number): number.name for number in signal.Signals}
    name = known.get(-code, str(-code))
    return message("rank {rank} was killed by signal {name}", rank=rank, name=name)


@contextmanager
def _signals() -> Iterator[int]:
    """A pipe into which each signal, and each end of a child, writes its number."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    wanted = [s for s in _SIGNALS if signal.getsignal(s) is not signal.SIG_IGN]
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    handlers = {s: signal.signal(s, _ignore) for s in (*wanted, signal.SIGCHLD)}
    try:
        yield reader
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)


def _ignore(number: int, frame: object) -> None:
    """The number is in the pipe already."""


def _free_ports(count: int) -> list[int]:
    """Ports of this machine that are free now; all are held until the last is found."""
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [sock.getsockname()[1] for sock in held]
    finally:
        for sock in held:
            sock.close()


def python_command(words: Sequence[str], module: bool) -> list[str]:
    """The command that runs a Python file, or a module, with its arguments."""
    return [sys.executable, *(["-m"] if module else []), *words]
