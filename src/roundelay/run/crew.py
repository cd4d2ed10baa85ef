"""Processes that are started together and end together, and what they print."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

from . import child

_PYTHON: Final = (sys.executable, "-I", "-S", str(Path(child.__file__).resolve()))
_LONGEST: Final = 2**16
"""Bytes of a line beyond which it is printed in parts."""


class Crew:
    """One process for each environment; leaving the context ends them all, whatever happened.

    Each is the leader of a process group, so that its own children end with it. They are waited
    for only at the end: until then their ids cannot be another process's.
    """

    def __init__(self, command: Sequence[str], environments: Sequence[Mapping[str, str]]) -> None:
        self._command = command
        self._environments = environments
        self._processes: list[subprocess.Popen[bytes]] = []
        self._guard: subprocess.Popen[bytes] | None = None
        self._ended = False
        self.running: set[int] = set()
        """Ranks that have not ended."""

    def start(self, piped: bool) -> None:
        """Starts all of them; with their output in pipes, or where this process's goes."""
        guard = [*_PYTHON, "guard"]
        self._guard = subprocess.Popen(guard, stdin=subprocess.PIPE, start_new_session=True)
        command = [*_PYTHON, "rank", str(os.getpid()), *self._command]
        output = subprocess.PIPE if piped else None
        for rank, environment in enumerate(self._environments):
            process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                process_group=0,
                bufsize=0,
            )
            self._processes.append(process)
            self.running.add(rank)
            self._tell_guard(f"{process.pid}\n")

    def outputs(self) -> list[tuple[int, BinaryIO, BinaryIO]]:
        """Ranks, their pipes, and where each should go."""
        found = []
        for rank, process in enumerate(self._processes):
            for pipe, target in ((process.stdout, sys.stdout), (process.stderr, sys.stderr)):
                if pipe is not None:
                    found.append((rank, pipe, target.buffer))
        return found  # type: ignore[return-value]

    def ended(self) -> list[tuple[int, int]]:
        """Ranks that have ended since the last call, with exit statuses, negative for signals."""
        found = []
        for rank in sorted(self.running):
            flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
            result = os.waitid(os.P_PID, self._processes[rank].pid, flags)
            if result is not None:
                exited = result.si_code == os.CLD_EXITED
                found.append((rank, result.si_status if exited else -result.si_status))
                self.running.discard(rank)
        return found

    def send(self, number: int) -> None:
        """Sends a signal to the ranks that have not ended, and to their children."""
        for rank in self.running:
            with suppress(ProcessLookupError):
                os.killpg(self._processes[rank].pid, number)

    def end(self) -> None:
        """Ends all that is left, and waits for it."""
        if self._ended:
            return
        self._ended = True  # from here on the ids may become other processes'
        self.send(signal.SIGKILL)
        for process in self._processes:
            process.wait()
        self.running.clear()
        child.end_groups([process.pid for process in self._processes])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()
        for process in self._processes:
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        self._tell_guard("done\n")
        if self._guard is not None and self._guard.stdin is not None:
            with suppress(BrokenPipeError):
                self._guard.stdin.close()
            self._guard.wait()

    def _tell_guard(self, line: str) -> None:
        if self._guard is not None and self._guard.stdin is not None:
            with suppress(BrokenPipeError):
                self._guard.stdin.write(line.encode())
                self._guard.stdin.flush()


class Tags:
    """Passes on what ranks print, line by line, each with its rank before it."""

    def __init__(self, crew: Crew, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._rests: dict[BinaryIO, bytes] = {}
        self._targets: dict[BinaryIO, tuple[bytes, BinaryIO]] = {}
        for rank, pipe, target in crew.outputs():
            os.set_blocking(pipe.fileno(), False)
            self._targets[pipe] = (f"[{rank}] ".encode(), target)
            self._rests[pipe] = b""
            selector.register(pipe, selectors.EVENT_READ, self)

    def read(self, pipe: BinaryIO) -> bool:
        """Passes on what is in a pipe; whether there may be more later."""
        try:
            data = os.read(pipe.fileno(), _LONGEST)
        except BlockingIOError:
            return False
        lines = (self._rests[pipe] + data).split(b"\n")
        rest = lines.pop()
        if rest and (not data or len(rest) > _LONGEST):
            lines.append(rest)
            rest = b""
        self._rests[pipe] = rest
        tag, target = self._targets[pipe]
        target.write(b"".join(tag + line + b"\n" for line in lines))
        target.flush()
        if not data:
            self._selector.unregister(pipe)
        return bool(data)

    def drain(self) -> None:
        """Passes on what is left when all have ended."""
        for pipe in [key.fileobj for key in self._selector.get_map().values() if key.data is self]:
            while self.read(pipe):  # type: ignore[arg-type]
                pass
            self._finish(pipe)  # type: ignore[arg-type]

    def _finish(self, pipe: BinaryIO) -> None:
        """The last line of a pipe that somebody still holds open."""
        rest, self._rests[pipe] = self._rests[pipe], b""
        if rest:
            tag, target = self._targets[pipe]
            target.write(tag + rest + b"\n")
            target.flush()
