"""Start the ranks of a training, follow what they note, and start them anew where that is asked."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import msgspec

from ...errors import RoundelayError
from ...i18n import Message, message
from ...run.launch import launch, python_command, rank_environments
from ...units import format_size
from .measure import Row, row
from .scratch import scratch
from .settings import Settings
from .stamps import MET, REFUSED, Done, Event, Line, Noted, Refused, Saved
from .text import read_text

MOST_STARTS: Final = 8
_LOOK: Final = 0.2
"""Seconds from one look at the ranks' files to the next."""

Tell = Callable[[Message], None]
Show = Callable[[Row], None]


class Course:
    """What has become of a training.

    Attributes:
        rows: by step; one that was made again stands there as it was made last.
        notes: by step, what the ranks noted.
        made: how many steps were made in all.
        events, saved: in order.
        refused: why the ranks cannot do it; empty where they can.
        done: how it ended; None where it has not.
        starts: how often the ranks were started.
    """

    def __init__(self, show: Show) -> None:
        self._show = show
        self.rows: dict[int, Row] = {}
        self.notes: dict[int, list[Noted]] = {}
        self.made = self.starts = 0
        self.events: list[Event] = []
        self.saved: list[Saved] = []
        self.refused = ""
        self.done: Done | None = None
        self._open: dict[tuple[int, int, int], list[Noted]] = {}

    def take(self, line: Line) -> None:
        """What a rank has noted."""
        match line:
            case Noted():
                key = (self.starts, line.round, line.step)
                notes = self._open.setdefault(key, [])
                notes.append(line)
                if len(notes) == line.ranks:
                    self._show(self._made(self._open.pop(key)))
            case Event():
                self.events.append(line)
            case Saved():
                self.saved.append(line)
            case Refused():
                self.refused = line.why
            case Done():
                self.done = line

    def ended(self) -> None:
        """The ranks have ended; what only some of them have made stands, unless it was made anew.

        One may have died when all that was exchanged in the step had been.
        """
        for key in sorted(self._open):
            if key[-1] not in self.rows:
                self._made(self._open[key])
        self._open.clear()
        self.events.sort(key=lambda event: event.at)

    def _made(self, notes: list[Noted]) -> Row:
        step = notes[0].step
        self.made += 1
        self.notes[step] = sorted(notes, key=lambda note: note.rank)
        self.rows[step] = row(notes)
        return self.rows[step]

    def length(self) -> int:
        """How much has happened: what fails at once would fail again."""
        return self.made + len(self.events)

    def saved_step(self) -> int:
        """After which step the last checkpoint was written; 0 where there is none."""
        return max((s.step for s in self.saved if not s.problem), default=0)


class _Files:
    """The ranks' files, read as they grow."""

    def __init__(self, folder: Path, course: Course) -> None:
        self._folder, self._course = folder, course
        self._read: dict[Path, int] = {}
        self._decode = msgspec.json.Decoder(Line).decode

    def look(self) -> None:
        """Take the lines that are new."""
        for file in sorted(self._folder.glob("rank-*.jsonl")):
            with file.open("rb") as source:
                source.seek(self._read.get(file, 0))
                for line in source:
                    if line.endswith(b"\n"):  # else it is being written
                        self._read[file] = self._read.get(file, 0) + len(line)
                        self._course.take(self._decode(line))

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Look again and again in the meantime, and a last time after it."""
        ended = threading.Event()

        def follow() -> None:
            while not ended.wait(_LOOK):
                self.look()

        thread = threading.Thread(target=follow, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self.look()


def train(settings: Settings, tell: Tell, show: Show) -> tuple[Course, int]:
    """Run a training to its end.

    Args:
        settings: of it.
        tell: is given what people should know, such as which rank was killed.
        show: is given each step when all its ranks have made it.

    Returns:
        what has become of it, and the exit status of its ranks.

    Raises:
        RoundelayError: it cannot be done as it is asked for.
    """
    read_text(settings.text, settings.context)
    course = Course(show)
    with scratch() as made:
        settings = _with_checkpoint(settings, made)
        settings.check()
        _fits(settings)
        if find_spec("torch") is None:
            raise RoundelayError("torch is not installed; pip install 'roundelay[torch]'")
        while True:
            before = course.length()
            status = _start(settings, made, course, tell)
            if not status and not course.rows:
                raise RoundelayError(
                    f"{settings.checkpoint} is at step {course.events[-1].step:,} already; "
                    f"expected more with --steps, which is {settings.steps:,}"
                )
            if not status or course.length() == before or not _again(settings, status, course):
                return course, status
            settings = _going_on(settings, course)
            tell(message("the ranks are started again, from step {step}",
                         step=course.saved_step() if settings.resume else 0))  # fmt: skip


def _fits(settings: Settings) -> None:
    """See that what each parameter needs fits into the memory of this machine."""
    rows = 2 * settings.ranks + 2 * (1 if settings.zero else settings.ranks)
    needed = settings.parameters * rows * (8 if settings.dtype == "float64" else 4)
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > there:
        raise RoundelayError(
            f"{settings.parameters:,} parameters with their gradients and moments take "
            f"{format_size(needed)} on {settings.ranks} ranks, and this machine has "
            f"{format_size(there)}; try a smaller --width, fewer --layers or fewer --ranks"
        )


def _with_checkpoint(settings: Settings, folder: Path) -> Settings:
    """What goes back to a checkpoint needs one, also where nobody wants to keep it."""
    file = settings.checkpoint
    if file is None:
        if settings.resume:
            raise RoundelayError("--resume without --checkpoint; expected the file to go on from")
        needed = settings.on_failure == "restart" or (settings.zero and settings.kill)
        return msgspec.structs.replace(settings, checkpoint=str(folder / "checkpoint")) \
            if needed else settings  # fmt: skip
    path = Path(file).absolute()
    if settings.resume and not path.exists():
        raise RoundelayError(f"--resume, and there is no {file}; expected a checkpoint")
    if path.exists() and not settings.resume:
        raise RoundelayError(f"{file} is there already; go on from it with --resume, or name "
                             "another file")  # fmt: skip
    if not path.parent.is_dir():
        raise RoundelayError(f"{file}: no such folder; expected one that is there")
    return msgspec.structs.replace(settings, checkpoint=str(path))


def _start(settings: Settings, folder: Path, course: Course, tell: Tell) -> int:
    """The ranks, once, until they have ended."""
    course.starts += 1
    own = folder / str(course.starts)
    own.mkdir()
    (own / "settings.json").write_bytes(msgspec.json.encode(settings))
    command = python_command(["roundelay.workloads.train.rank", str(own)], module=True)
    environments = rank_environments(os.environ, settings.ranks)

    def told(what: Message) -> None:
        if what.values.get("code") != REFUSED:  # what it says is told once, and not by each
            tell(what)

    def met() -> bool:  # before that, whoever is left would wait for all
        return any(own.glob(f"{MET}*"))

    with _Files(own, course).followed():
        status = launch(
            command, environments, told, elastic=settings.on_failure == "shrink" and met,
            linger=settings.patience, interrupt=signal.SIGTERM,
        )  # fmt: skip
    course.ended()
    if course.refused:
        raise RoundelayError(course.refused)
    return status


def _again(settings: Settings, status: int, course: Course) -> bool:
    """Whether to start again: a rank was lost, and nobody has asked for the end."""
    asked = status in (128 + signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGHUP)
    return settings.on_failure == "restart" and not asked and course.starts < MOST_STARTS


def _going_on(settings: Settings, course: Course) -> Settings:
    """The same, from the last checkpoint; whoever was killed is not killed again."""
    killed = {(e.rank, e.step) for e in course.events if e.what == "killed"}
    kill = [k for k in settings.kill if (k.rank, k.step) not in killed]
    there = settings.checkpoint is not None and Path(settings.checkpoint).exists()
    return msgspec.structs.replace(settings, kill=kill, resume=there)
