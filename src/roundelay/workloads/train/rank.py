"""The program of one rank: `python -m roundelay.workloads.train.rank FOLDER`.

The folder has the settings; what the rank notes goes into a file of its own there, a line each.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

import msgspec
import torch
import torch.distributed as dist

import roundelay.torch

from ...errors import ExchangeError, RoundelayError
from .checkpoint import part_of, save
from .faults import Deaths
from .settings import Kill, Settings
from .stamps import MET, REFUSED, Done, Event, Line, Refused, Saved
from .trainer import Trainer

SAMPLE = 120
"""Bytes that the model writes at the end."""


class Rank:
    """This rank, and its file."""

    def __init__(self, folder: Path) -> None:
        self.settings = msgspec.json.decode((folder / "settings.json").read_bytes(), type=Settings)
        self.name = int(os.environ["RANK"])
        self._folder = folder
        self._lines: BinaryIO = (folder / f"rank-{self.name}.jsonl").open("ab", buffering=0)
        self._file = Path(self.settings.checkpoint) if self.settings.checkpoint else None
        self._deaths = Deaths(self.settings, self.name, self._last_words)

    def note(self, line: Line) -> None:
        """Keep a line: it is there even if the process is killed next."""
        self._lines.write(msgspec.json.encode(line) + b"\n")

    def _last_words(self, kill: Kill) -> None:
        self.note(Event("killed", kill.step, self.name, dist.get_world_size(), time.monotonic_ns()))

    def run(self) -> None:
        """Train to the end."""
        (self._folder / f"{MET}{self.name}").touch()
        trainer = Trainer(self.settings, self.name, self._deaths)
        if self.settings.resume and self._file:
            trainer.restore(self._file)
            self._tell("resumed", trainer)
        while trainer.done < self.settings.steps:
            try:
                self.note(trainer.step())
                self._save(trainer)
            except ExchangeError:
                if self.settings.on_failure != "shrink":
                    raise
                self._shrink(trainer)
        if dist.get_rank() == 0:
            if self._file:
                part_of(self._file).unlink(missing_ok=True)
            beginning = b"And God said"
            sample = trainer.model.goes_on(beginning, SAMPLE, self.settings.seed)
            self.note(Done(trainer.parameters, sample))

    def _shrink(self, trainer: Trainer) -> None:
        """Go on with the ranks that live; more may die meanwhile."""
        noticed, agreed = time.monotonic_ns(), False
        while not agreed:
            roundelay.torch.shrink()
            with suppress(ExchangeError):
                trainer.agree(self._file)
                agreed = True
        self._tell("shrunk", trainer, noticed)

    def _tell(self, what: str, trainer: Trainer, noticed: int = 0) -> None:
        if dist.get_rank() == 0:
            now = time.monotonic_ns()
            self.note(Event(what, trainer.done, self.name, dist.get_world_size(), now, noticed))

    def _save(self, trainer: Trainer) -> None:
        """A checkpoint, where one is due. A disk that is full is told, and the training goes on."""
        file, step = self._file, trainer.done
        if file is None or step % self.settings.every:
            return
        begun = time.monotonic()
        state = trainer.state()
        if dist.get_rank() != 0:
            self._deaths.at("checkpoint")
            return
        try:
            size = save(file, state, lambda: self._deaths.at("checkpoint"))
            self.note(Saved(step, time.monotonic() - begun, size))
        except OSError as error:
            problem = f"{file}: {error.strerror}"
            self.note(Saved(step, time.monotonic() - begun, 0, problem))


@contextmanager
def group(settings: Settings) -> Iterator[None]:
    """The process group of all ranks."""
    timeout = timedelta(seconds=settings.patience)
    dist.init_process_group(settings.backend, timeout=timeout)
    try:
        yield
    finally:
        dist.destroy_process_group()


def main(folder: str) -> int:
    """Run; the exit status."""
    torch.set_num_threads(1)
    rank = Rank(Path(folder))
    try:
        with group(rank.settings):
            rank.run()
    except (RoundelayError, MemoryError, RuntimeError) as error:
        if why := _refusal(error):
            rank.note(Refused(why))
            return REFUSED
        known = isinstance(error, RoundelayError | dist.DistError)
        if not known and rank.settings.backend != "gloo":
            raise
        print(f"rank {rank.name}: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"rank {rank.name}: cannot note what it does in {folder}: {error.strerror}; TMPDIR "
              "may name another place", file=sys.stderr)  # fmt: skip
        return 1
    return 0


def _refusal(error: Exception) -> str:
    """Why it cannot be done as it is asked for, where that is what the error says."""
    if isinstance(error, ExchangeError):
        return ""
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return "not enough memory; try a smaller --width, --context or --batch, or fewer --ranks"
    return str(error) if isinstance(error, RoundelayError) else ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
