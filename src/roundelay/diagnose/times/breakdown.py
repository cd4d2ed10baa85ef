"""Where a rank's time goes, in the words of Holistic Trace Analysis.

The definitions are those of its temporal breakdown and of its communication-computation overlap:
https://hta.readthedocs.io. What runs at once on several streams counts once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...formats.kineto import Kind, Trace
from .spans import Spans


@dataclass(frozen=True)
class Breakdown:
    """One rank's time, in ns.

    Attributes:
        trace: where it was read.
        busy, computation, communication: when anything ran, and when work of this kind did.
        host_wait: idle while the host had not launched the next kernel yet.
    """

    trace: Trace
    busy: Spans
    computation: Spans
    communication: Spans
    host_wait: int

    @property
    def span(self) -> int:
        """From the first kernel's begin to the last one's end."""
        return int(self.busy.end[-1] - self.busy.begin[0]) if len(self.busy.begin) else 0

    @property
    def idle(self) -> int:
        """Nothing runs."""
        return self.span - self.busy.length

    @property
    def non_compute(self) -> int:
        """Something runs, but no computation: communication, copies."""
        return self.busy.length - self.computation.length

    @cached_property
    def exposed(self) -> Spans:
        """Communication that no computation hides."""
        return self.communication.without(self.computation)

    @property
    def overlap(self) -> int:
        """Communication behind which computation runs."""
        return self.communication.length - self.exposed.length

    def exposed_by_call(self) -> dict[str, int]:
        """Exposed communication by collective, the longest first."""
        found = {}
        for name in dict.fromkeys(call.name for call in self.trace.calls):
            own = [call for call in self.trace.calls if call.name == name]
            spans = Spans([call.begin for call in own], [call.end for call in own])
            found[name] = spans.both(self.exposed).length
        return dict(sorted(found.items(), key=lambda item: -item[1]))


def calls_ran(trace: Trace) -> bool:
    """Whether the trace's calls have the times at which they ran.

    Where devices work and no kernel communicates, they only have those at which they were begun.
    """
    return bool(trace.calls) and (
        not trace.on_device or bool((trace.kind == Kind.COMMUNICATION).any())
    )


def breakdown(trace: Trace) -> Breakdown:
    """Of the devices' kernels and copies; of the host's operators and calls where no device worked.

    Copies are neither computation nor communication.
    """
    if trace.on_device:
        kind = trace.kind
        compute, communicate = (
            Spans(trace.begin[kind == k], trace.end[kind == k])
            for k in (Kind.COMPUTATION, Kind.COMMUNICATION)
        )
        busy = Spans(trace.begin, trace.end)
        return Breakdown(trace, busy, compute, communicate, _host_wait(trace, busy))
    begin, end = [c.begin for c in trace.calls], [c.end for c in trace.calls]
    busy = Spans(
        np.concatenate([trace.host_begin, np.array(begin, np.int64)]),
        np.concatenate([trace.host_end, np.array(end, np.int64)]),
    )
    return Breakdown(trace, busy, Spans(trace.host_begin, trace.host_end), Spans(begin, end), 0)


def _host_wait(trace: Trace, busy: Spans) -> int:
    """Ns of gaps that end with a kernel which was launched only after they had begun."""
    gap, resumed = busy.end[:-1], busy.begin[1:]
    launched = trace.launched[np.searchsorted(trace.begin, resumed)]
    return int((resumed - gap)[launched > gap].sum())
