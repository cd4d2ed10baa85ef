"""What a rank notes of a step, by the clock that all ranks of a machine have."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

REFUSED = 3
"""Exit status of a rank that has noted `Refused`."""
MET = "met-"
"""How the files begin that ranks make when all are there: from then on they go on without one."""
Span = tuple[int, int]
"""Begin and end, in ns of CLOCK_MONOTONIC."""


class Exchanged(msgspec.Struct, array_like=True):
    """An exchange as its rank saw it.

    Attributes:
        collective: its name.
        bytes: that it gives each rank, as in nccl-tests' size column.
        issued, ended: ns.
    """

    collective: str
    bytes: int
    issued: int
    ended: int = 0


class Noted(msgspec.Struct, tag="step", kw_only=True):
    """A step of one rank.

    Attributes:
        rank: as it was called at the start.
        round: counts how often the ranks have become others.
        step: from 1.
        ranks: that made it.
        loss: of all sequences of the step.
        span: of the whole step.
        forward, update: when these ended, and began.
        computed: ns of the processor's time that computing took; what others have taken of the
            processor meanwhile is not in it.
        blocked: when it could do nothing but wait for exchanges.
        exchanges: in the order in which they were issued.
    """

    rank: int
    round: int
    step: int
    ranks: int
    loss: float
    span: Span
    forward: int
    update: int
    computed: int
    blocked: Sequence[Span]
    exchanges: Sequence[Exchanged]


class Saved(msgspec.Struct, tag="saved"):
    """A checkpoint.

    Attributes:
        step: after which it was written.
        seconds: that it took.
        bytes: of the file.
        problem: why there is none.
    """

    step: int
    seconds: float
    bytes: int
    problem: str = ""


class Event(msgspec.Struct, tag="event"):
    """Something that has happened.

    Attributes:
        what: killed, shrunk, resumed.
        step: in which, or after which.
        rank: that is killed; else that tells it.
        ranks: that there are now.
        at: when it was done, in ns of CLOCK_MONOTONIC.
        noticed: when the rank that tells it had learnt that another has gone.
    """

    what: str
    step: int
    rank: int
    ranks: int
    at: int = 0
    noticed: int = 0


class Refused(msgspec.Struct, tag="refused"):
    """The rank cannot do what it is asked for; all ranks find the same.

    Attributes:
        why: for people.
    """

    why: str


class Done(msgspec.Struct, tag="done"):
    """The end.

    Attributes:
        parameters: numbers that were learnt.
        sample: what the model writes.
    """

    parameters: int
    sample: str


Line = Noted | Saved | Event | Refused | Done
