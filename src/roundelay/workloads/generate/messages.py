"""What the front and rank 0 of an instance say to one another: a line of JSON each."""

from __future__ import annotations

from typing import Literal

import msgspec

Finish = Literal["stop", "length", "error"]


class Options(msgspec.Struct, frozen=True):
    """What an instance is started with.

    Attributes:
        model: path of the GGUF file.
        ranks: over which it is cut.
        backend: see `exchange.BACKENDS`.
        context: tokens that a sequence may have; None for what the model allows.
        batch: sequences in one step.
        room: tokens that all sequences together may keep.
        threads: of each rank.
    """

    model: str
    ranks: int = 1
    backend: str = "roundelay"
    context: int | None = None
    batch: int = 32
    room: int = 65536
    threads: int = 1


class Ask(msgspec.Struct, tag="ask"):
    """A request, checked by the front.

    Attributes:
        id: of the front's choice.
        tokens: of the prompt, one or more.
        max_tokens: to be made.
        temperature, top_p, seed: see `Sampler`.
        stop: texts before which it ends.
        watch: whether each token comes with its `Moment`.
    """

    id: int
    tokens: list[int]
    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    stop: list[str] = []
    watch: bool = False


class Cancel(msgspec.Struct, tag="cancel"):
    """Nobody waits for a request any more."""

    id: int


class End(msgspec.Struct, tag="end"):
    """Finish what there is, then end."""


class Ready(msgspec.Struct, tag="ready"):
    """All ranks have their part of the model.

    Attributes:
        pids, bytes, seconds: by rank: process, bytes of its matrices, time to load them.
    """

    pids: list[int]
    bytes: list[int]
    seconds: list[float]


class Moment(msgspec.Struct):
    """When the step of a token did what; ns of CLOCK_MONOTONIC, on rank 0.

    Attributes:
        taken: rank 0 begins to plan it, or has received the request.
        told: it has told the others.
        begun, ended: computing, exchanges within it included.
        first: the first exchange begins.
        exchanges: all-reduces.
        inside: ns in them with all ranks there: from the latest arrival on.
        waited: ns in them before that.
        out: the token has been drawn.
        tokens: of this step, of all its sequences.
    """

    taken: int
    told: int
    begun: int
    ended: int
    first: int
    exchanges: int
    inside: int
    waited: int
    out: int = 0
    tokens: int = 0


class Piece(msgspec.Struct, tag="piece"):
    """What a token of a request adds.

    Attributes:
        id: of the request.
        text: may be empty.
        made: tokens until now.
        finish: why it ends here; None while it goes on. "error": `text` says why.
        moment: where it was asked for.
    """

    id: int
    text: str
    made: int
    finish: Finish | None = None
    moment: Moment | None = None


class Fault(msgspec.Struct, tag="fault"):
    """The instance ends by an error."""

    text: str


Down = Ask | Cancel | End
Up = Ready | Piece | Fault
