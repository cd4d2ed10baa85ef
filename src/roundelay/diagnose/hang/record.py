"""Run a program without data, on all ranks at once in one process, and note its calls in order.

    recording = record(program, ranks=4)

where `program(comm)` is what each rank does. Every call returns at once, and no values are
exchanged: results are arrays of the right shape with the rank's own values or none. A program
whose calls depend on values that it receives cannot be checked so.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from ... import communicator
from ...calls import Calls
from ...errors import RoundelayError
from ...requests import Request, memory
from .order import Group, Use, Wait

PACKAGE: Final = str(Path(__file__).parents[2])
RANKS: Final = 1024
"""That a program is recorded for: each is a thread."""


@dataclass
class Recording:
    """What each rank has called, in order."""

    programs: dict[int, list[Use | Wait]] = field(default_factory=dict)


def record(program: Callable[[Recorded], object], ranks: int, timeout: float = 60.0) -> Recording:
    """Run `program` once for each rank, each in a thread of its own.

    Args:
        program: takes the communicator that `roundelay.init` would have given it.
        ranks: how many.
        timeout: seconds that all of it may take.

    Raises:
        RoundelayError: a rank ended by an error, or not in time, or never came to a `split`.
    """
    if not 0 < ranks <= RANKS:
        raise RoundelayError(f"{ranks} ranks; expected 1 to {RANKS:,}")
    world = _World(ranks, time.monotonic() + timeout)
    threads = [
        threading.Thread(target=world.run, args=(program, rank), daemon=True)
        for rank in range(ranks)
    ]
    for thread in threads:
        thread.start()
    for rank, thread in enumerate(threads):
        thread.join(max(0.0, world.end - time.monotonic()))
        if thread.is_alive() and not world.errors:
            raise RoundelayError(
                f"rank {rank} has not ended within {timeout:g} s; what the program does between "
                "its calls is really done, so try it with less"
            )
    if world.errors:
        rank, error = next(iter(world.errors.items()))
        raise RoundelayError(f"rank {rank} ended by {type(error).__name__}: {error}") from error
    return Recording(world.programs)


def record_script(path: Path, ranks: int, timeout: float = 60.0) -> Recording:
    """As `record`, of a script that gets its communicator from `roundelay.init()`.

    Raises:
        RoundelayError: see `record`; or it is no Python.
        OSError: it cannot be read.
    """
    try:
        code = compile(path.read_bytes(), str(path), "exec")
    except (SyntaxError, ValueError) as error:
        raise RoundelayError(f"{path}: no Python program: {error}") from None
    own = threading.local()

    def program(comm: Recorded) -> None:
        own.comm = comm
        exec(code, {"__name__": "__main__", "__file__": str(path)})

    with _init_gives(lambda: own.comm):
        return record(program, ranks, timeout)


@contextmanager
def _init_gives(comm: Callable[[], Recorded]) -> Any:
    """While it lasts, `roundelay.init` gives this."""
    kept = communicator.init
    communicator.init = lambda *_, **__: comm()  # type: ignore[assignment]
    try:
        yield
    finally:
        communicator.init = kept


class _World:
    """What the ranks of one recording share."""

    def __init__(self, ranks: int, end: float) -> None:
        self.end = end
        self.programs: dict[int, list[Use | Wait]] = {rank: [] for rank in range(ranks)}
        self.errors: dict[int, BaseException] = {}
        self._changed = threading.Condition()
        self._ended: set[int] = set()
        self._met: dict[str, dict[int, tuple[int, int]]] = {}

    def run(self, program: Callable[[Recorded], object], rank: int) -> None:
        """One rank, to its end."""
        group = "world", tuple(self.programs)
        try:
            program(Recorded(self, group, rank))
        except SystemExit:
            pass
        except BaseException as error:
            self.errors[rank] = error
        finally:
            with self._changed:
                self._ended.add(rank)
                self._changed.notify_all()

    def meet(
        self, tag: str, members: Sequence[int], rank: int, said: tuple[int, int]
    ) -> dict[int, tuple[int, int]]:
        """What all members say; each waits for the others.

        Raises:
            RoundelayError: one has ended without.
        """
        with self._changed:
            met = self._met.setdefault(tag, {})
            met[rank] = said
            self._changed.notify_all()
            while len(met) < len(members):
                absent = [r for r in members if r in self._ended and r not in met]
                if absent:
                    raise RoundelayError(
                        f"rank {rank} calls split in {tag.rpartition('.')[0]}, and rank {absent[0]}"
                        " has ended without; all ranks of a communicator must call it"
                    )
                if not self._changed.wait(max(0.0, self.end - time.monotonic())):
                    raise RoundelayError(f"rank {rank} waits in split for others in vain")
            return met


class Recorded(Calls):
    """Stands in for a `Communicator`: notes calls, and moves nothing.

    Attributes:
        rank, ranks, nodes, name: as of a `Communicator`; all ranks are on one node.
    """

    def __init__(self, world: _World, group: Group, rank: int) -> None:
        """For a rank of a group, by its number there; groups hold ranks of the job."""
        self.name, self._members = group
        self.rank, self.ranks = rank, len(self._members)
        self.nodes = (tuple(range(self.ranks)),)
        self._world, self._group, self._made, self._splits = world, group, 0, 0
        self._notes = world.programs[self._members[rank]]
        self._call = lambda *_: False

    def _do(
        self,
        collective: int,
        x: Any,
        out: Any,
        op: str | None,
        root: int,
        algorithm: Any,
        async_op: bool,
        dtype: str | None,
        scale: Any = None,
        counts: Any = None,
    ) -> Any:
        request = Request(collective, x, out, op, root, algorithm, dtype, scale, counts)
        checked = memory(request, self.rank, self.ranks)
        kind, self._made = request.kind, self._made + 1
        elements = (checked.input or checked.output).array.size if counts is None else "..."  # type: ignore[union-attr]
        rooted = f" root {root}" if kind.name in ROOTED else ""
        what = f"{kind.name}{f' {op}' if op else ''}{rooted} {checked.dtype} x {elements}"
        if kind.name in ("barrier", "scatter", "gather"):  # the root has more than the others
            what = f"{kind.name}{rooted}"
        self._notes.append(Use(self._group, self._made, not async_op, what=what, where=_where()))
        if not async_op:
            return checked.result
        return Pending(checked.result, self._notes, Wait(self._group, self._made))

    def split(self, color: int, key: int | None = None, **_: Any) -> Self | None:
        """As of a `Communicator`."""
        self._splits += 1
        tag, me = f"{self.name}.{self._splits}", self._members[self.rank]
        said = (int(color), self.rank if key is None else int(key))
        every = self._world.meet(tag, self._members, me, said)
        if color < 0:
            return None
        same = [r for r in self._members if every[r][0] == color]
        same.sort(key=lambda r: (every[r][1], self._members.index(r)))
        return type(self)(self._world, (f"{tag}.{color}", tuple(same)), same.index(me))

    def empty(self, shape: Any, dtype: Any = np.float32) -> Any:
        """An array, as of `numpy.empty`."""
        return np.empty(shape, dtype)

    def patience(self, seconds: float) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        """Nothing to close."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Pending:
    """Stands in for a `Handle`."""

    def __init__(self, result: Any, notes: list[Use | Wait], wait: Wait) -> None:
        self._result, self._notes, self._wait = result, notes, wait

    def wait(self, timeout: float | None = None) -> Any:
        """The result; what comes after it comes after the call's end."""
        self._notes.append(self._wait)
        return self._result

    def done(self) -> bool:
        """Always; a program that asks goes on when it is so."""
        self._notes.append(self._wait)
        return True

    def error(self) -> None:
        """None."""


ROOTED: Final = frozenset(("broadcast", "reduce", "gather", "scatter"))


def _where() -> str:
    """File and line of the program that made the call."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
