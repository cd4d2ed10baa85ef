"""The benchmark over the ranks of a job that runs already: torchrun, mpirun, srun.

Every rank makes the same calls and takes the same decisions, for all see the same replies.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..communicator import Communicator
from .cells import Request
from .contest import Contest
from .controller import Predict, points
from .figures import Line, as_json
from .machine import machine
from .worker.calls import Calls
from .worker.ours import Ours


class Here:
    """This rank, its replies put beside those of the others; in a contest it stands for a job.

    Attributes:
        name: of the side.
        version: of the library.
    """

    name = "roundelay"

    def __init__(self, comm: Communicator) -> None:
        self._comm, library = comm, Ours(comm)
        self.version = library.version
        self._handlers = Calls(library, comm.barrier).handlers
        self._one_clock = len(comm.nodes) == 1

    def ask(self, seconds: float, do: str, **command: Any) -> list[dict[str, Any]]:
        """Obey the command on this rank; all ranks' replies, in order."""
        reply = self._handlers[do](**command)
        if "spans" in reply and not self._one_clock:  # the longest rank's time must do
            reply["spans"] = [(0, end - begin) for begin, end in reply["spans"]]
        return self._gather(reply)

    def _gather(self, reply: dict[str, Any]) -> list[dict[str, Any]]:
        data = np.frombuffer(json.dumps(reply).encode(), np.uint8)
        sizes = self._comm.all_gather(np.array([data.size], np.int64))
        row = np.zeros(int(sizes.max()), np.uint8)
        row[: data.size] = data
        rows = self._comm.all_gather(row).reshape(self._comm.ranks, -1)
        return [json.loads(rows[r, : sizes[r]].tobytes()) for r in range(self._comm.ranks)]


def measure(
    request: Request,
    comm: Communicator,
    show: Callable[[Line], None],
    predict: Predict | None = None,
) -> tuple[Sequence[Line], dict[str, Any]]:
    """Measure on all ranks; the lines and the value of `--json`, equal on each.

    Args:
        request: what to measure, over as many ranks as `comm` has.
        comm: all ranks of the job.
        show: takes each line as soon as it is there.
        predict: says what each point is predicted to take; None for nothing.
    """
    here = Here(comm)
    contest = Contest(here, {}, request, lambda _: None)
    lines = []
    for point in points(request, comm.ranks):
        figures, _ = contest.measure(point)
        lines.append(Line(point, figures, predicted_us=predict(point) if predict else None))
        show(lines[-1])
    return lines, as_json(lines, machine(), {"roundelay": here.version}, None)
