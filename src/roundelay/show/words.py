"""Words for a schedule as a whole (title, purpose, outcome), its places and its pieces."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from ..collectives import Bools, everyone
from ..i18n import Message, Translate, message
from ..schedule import Schedule

Counts = npt.NDArray[np.uint8]

PURPOSE: Final = MappingProxyType(
    {
        "all_reduce": message("Every rank brings numbers; in the end every rank has their sum."),
        "reduce": message("Every rank brings numbers; in the end rank {root} has their sum."),
        "broadcast": message("Rank {root} brings data; in the end every rank has a copy."),
        "all_gather": message("Every rank brings one piece; in the end every rank has them all."),
        "reduce_scatter": message(
            "Every rank brings numbers for every piece; in the end each has the sum of one piece."
        ),
        "gather": message("Every rank brings one piece; in the end rank {root} has them all."),
        "scatter": message(
            "Rank {root} brings a piece for everybody; in the end each has its own."
        ),
        "all_to_all": message(
            "Every rank brings a piece for every rank; i>j is the one that goes from rank i to "
            "rank j."
        ),
        "send_recv": message("Every rank brings a piece for the rank after it."),
        "barrier": message(
            "Every rank learns that all have arrived; a piece is one rank's word that it has."
        ),
        "moe_dispatch": message(
            "Every rank brings tokens; in the end each token is at every rank with an expert for "
            "it."
        ),
        "moe_combine": message(
            "Every rank has its experts' part of some tokens; in the end each token's parts are "
            "added up at its home."
        ),
    }
)


def name(schedule: Schedule) -> str:
    """``all_reduce/rails (group=4, ...)``; without a name, the collective alone."""
    what = f"{schedule.collective}/{schedule.name}" if schedule.name else schedule.collective
    params = ", ".join(
        f"{k}={v.name or v.collective if isinstance(v, Schedule) else v}"
        for k, v in schedule.params.items()
    )
    whole = f"{what} ({params})" if params else what
    return "".join(c for c in whole if c.isprintable())


def title(schedule: Schedule) -> Message:
    """Name and figures, in a line."""
    n, m, k, s = schedule.ranks, schedule.chunks, schedule.steps, schedule.helpers
    listed = message("1 rank") if n == 1 else message("{k} ranks", k=n)
    for figure in (
        message("1 piece") if m == 1 else message("{k} pieces", k=m),
        message("1 step") if k == 1 else message("{k} steps", k=k),
        message("1 switch") if s == 1 else message("{k} switches", k=s),
    )[: 3 if s else 2]:
        listed = message("{first}, {second}", first=listed, second=figure)
    return message("{name}: {figures}", name=name(schedule), figures=listed)


def purpose(schedule: Schedule) -> Message:
    """What the collective is for, in a sentence."""
    known = PURPOSE[schedule.collective.removesuffix("_v")]
    return Message(known.text, {"root": schedule.root})


def contributors(schedule: Schedule) -> Bools:
    """Whose contributions the total of a chunk is made of: shape (chunks, ranks)."""
    return schedule.before()[: schedule.ranks].T


def needed(schedule: Schedule) -> Bools:
    """Which ranks must hold the total of which chunk in the end: (ranks, chunks)."""
    return schedule.after()[: schedule.ranks]


def measured(schedule: Schedule) -> Bools:
    """By which chunks to tell how far a place is: those it needs, or all: (places, chunks)."""
    need = schedule.after()
    return need | ~need.any(axis=1, keepdims=True)


def ticks(schedule: Schedule, complete: Bools) -> Bools:
    """Which places to mark as done, of those that hold a total: (participants, chunks).

    A finished sum, wherever it is; where nothing is summed, a piece that has arrived at one of
    the few places that want it. Where every rank wants every piece, to hold it says it all.
    """
    if schedule.kind.sums:
        return complete
    return complete & schedule.after() & (schedule.kind.after is not everyone)


def outcome(schedule: Schedule, counts: Counts) -> Message:
    """What every rank holds in the end, or the first place that does not hold what it should."""
    when = (
        message("Without a single step")
        if not schedule.steps
        else message("After 1 step")
        if schedule.steps == 1
        else message("After {k} steps", k=schedule.steps)
    )
    need = needed(schedule)
    right = (counts[: schedule.ranks] == contributors(schedule)).all(axis=-1)
    wrong = np.argwhere(need & ~right)
    what = _wrong(schedule, counts, wrong, need) if len(wrong) else _right(schedule, need)
    return message("{when} {what}", when=when, what=what)


def _right(schedule: Schedule, need: Bools) -> Message:
    wants = need.sum(axis=1)
    holders = np.flatnonzero(wants)
    k, m = int(wants.max()), schedule.chunks
    if schedule.kind.routed:
        return message("every rank holds the pieces it wants, complete.")
    if len(holders) == 1 < schedule.ranks:
        if m == 1:
            return message("rank {rank} holds the complete result.", rank=holders[0])
        return message("rank {rank} holds all {m} pieces complete.", rank=holders[0], m=m)
    if k == m == 1:
        return message("every rank holds the complete result.")
    if k == m:
        return message("every rank holds all {m} pieces complete.", m=m)
    if k == 1:
        return message("every rank holds the piece it wants, complete.")
    return message("every rank holds the {k} pieces it wants, complete.", k=k)


def _wrong(schedule: Schedule, counts: Counts, wrong: npt.NDArray[np.intp], need: Bools) -> Message:
    rank, chunk = wrong[0].tolist()
    found, wanted = counts[rank, chunk], contributors(schedule)[chunk].astype(np.uint8)
    other = int(np.flatnonzero(found != wanted)[0])
    how = (
        message("lacks")
        if not found[other]
        else message("holds twice")
        if wanted[other]
        else message("wrongly holds")
    )
    return message("{k} of {m} places are wrong. The first is piece {chunk} of rank {rank}, which "
                   "{how} what rank {other} brought.", k=len(wrong), m=int(need.sum()), how=how,
                   rank=rank, chunk=chunk, other=other)  # fmt: skip


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """Rising numbers as [first, last] of every unbroken run."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def spans(numbers: Sequence[int], most: int = 4) -> str:
    """Rising numbers as text, ``0-3, 8``, with an ellipsis after `most` runs."""
    return shortened([str(a) if a == b else f"{a}-{b}" for a, b in _runs(numbers)], most)


def shortened(parts: list[str], most: int = 4) -> str:
    """The parts in a row, with an ellipsis after `most`."""
    return ", ".join(parts[:most] + ["..."] * (len(parts) > most))


def piece_name(schedule: Schedule, chunk: int) -> str:
    """A chunk's number, or ``i>j`` where the collective moves a piece from i to j."""
    if schedule.kind.pieces < 2:
        return str(chunk)
    piece, part = divmod(chunk, schedule.chunks // schedule.ranks**2)
    pair = "{}>{}".format(*divmod(piece, schedule.ranks))
    return pair if schedule.chunks == schedule.ranks**2 else f"{pair}.{part}"


def pieces(schedule: Schedule, chunks: list[int], tell: Translate) -> str:
    """The pieces of one move: ``piece 0``, ``pieces 0-3`` or, where that is long, their number."""
    if len(chunks) == 1:
        return message("piece {name}", name=piece_name(schedule, chunks[0])).tell(tell)
    if schedule.kind.pieces == 2:
        names = shortened([piece_name(schedule, c) for c in chunks])
    else:
        names = spans(chunks)
    if names.endswith("..."):
        return message("{k} pieces", k=len(chunks)).tell(tell)
    return message("pieces {names}", names=names).tell(tell)


def place(n: int, end: int) -> Message:
    """``rank 0``, or ``switch 0`` for the first helper."""
    if end < n:
        return message("rank {rank}", rank=end)
    return message("switch {switch}", switch=end - n)


def places(schedule: Schedule, tell: Translate) -> list[str]:
    """The names of all ranks and switches."""
    everybody = range(schedule.ranks + schedule.helpers)
    return [place(schedule.ranks, end).tell(tell) for end in everybody]


def move(
    schedule: Schedule, src: int, dst: int, chunks: list[int], add: bool, tell: Translate
) -> tuple[str, str, str]:
    """From where to where (``0 -> 1``), which pieces, and what becomes of them."""
    n = schedule.ranks
    ends = (str(end) if end < n else place(n, end).tell(tell) for end in (src, dst))
    act = tell("add") if add else tell("copy")
    return " -> ".join(ends), pieces(schedule, chunks, tell), act
