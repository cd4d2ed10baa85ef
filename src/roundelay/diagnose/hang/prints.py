"""Rules about fingerprints, by which torch compares the calls of ranks before they begin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...formats.watchdog import Print, Watched
from ..finding import Figures, Finding, cited, tell

STRAY: Final = 10**7
"""Calls: a rank that is so far from another has not counted from the same start; old versions
begin at a random number that rank 0 chooses for all."""


def prints_differ(file: str, said: Watched) -> Finding | None:
    """Fingerprints of a call that are not the same."""
    if len(said.prints) < 2:
        return _one_print(file, said.prints)
    a, b = said.prints[:2]
    if a.sequence != b.sequence:
        return _apart(file, a, b)
    kind = ("calls_differ" if a.operation != b.operation else
            "sizes_differ" if a.shape != b.shape else "types_differ")  # fmt: skip
    figures: Figures = {
        "sequence": a.sequence, "rank": a.rank, "other": b.rank, "operation": a.operation,
        "one": _print(kind, a), "two": _print(kind, b),
    }  # fmt: skip
    reason = ["At sequence {sequence} rank {rank} calls {operation} with {one}, rank {other} with "
              "{two}."]  # fmt: skip
    if kind == "calls_differ" and not a.sequence:
        reason = ["Rank {rank} calls {one}, rank {other} {two}, where all must call the same."]
    elif not a.sequence:
        reason = ["In one call rank {rank} calls {operation} with {one}, rank {other} with {two}."]
    advice = "Look for a branch that the two ranks take differently."
    if kind == "sizes_differ" and "REDUCE_SCATTER" in a.operation:
        reason.append("Where these are gradients of shards (FSDP, ZeRO), the ranks share out "
                      "another part of the model in this call: another order of its parts, parts "
                      "that one rank does not use or has frozen, or another model.")  # fmt: skip
        advice = ("Print model, wrapping and order of use on both ranks; make every rank use the "
                  "same parts of the model in each step.")  # fmt: skip
    if kind == "sizes_differ" and "GATHER" in a.operation:
        reason.append("Every rank must bring a piece of the same size: that is not so where what "
                      "is shared out does not divide evenly, for one.")  # fmt: skip
        advice = "Fill the pieces up to one size, or gather them into a list of tensors."
    if kind == "sizes_differ" and a.operation.startswith(("ALLREDUCE", "_ALLREDUCE")):
        reason.append("Where these are gradients, a part of the model was not used on one rank, "
                      "such as a batch without images.")  # fmt: skip
        advice = ("Make every rank use all of the model in each step (a zero-weighted pass), or "
                  "set find_unused_parameters=True.")  # fmt: skip
    return tell(kind, file, figures, reason, advice, cited(file, a.line), fault=True,
                confidence=0.9, area="hang")  # fmt: skip


def _one_print(file: str, prints: Sequence[Print]) -> Finding | None:
    """A fingerprint alone, as versions before 2.0 print it."""
    if not prints:
        return None
    one = prints[0]
    figures: Figures = {"rank": one.rank, "operation": one.operation, "shape": str(list(one.shape)),
                        "dtype": one.dtype or "?"}  # fmt: skip
    return tell(
        "calls_differ", file, figures,
        ["Rank {rank} calls {operation} of shape {shape} ({dtype}), and at least one other rank "
         "calls something else, which this version of PyTorch does not print."],
        "Look for the same line of the other ranks: those that name another operation or shape are "
        "where they part. PyTorch 2.0 and later print both sides.",
        cited(file, one.line), fault=True, confidence=0.8, area="hang",
    )  # fmt: skip


def _apart(file: str, a: Print, b: Print) -> Finding:
    """Fingerprints of different calls: one rank is further on."""
    figures: Figures = {
        "rank": a.rank, "sequence": a.sequence, "operation": a.operation,
        "other": b.rank, "elsewhere": b.sequence, "another": b.operation,
    }  # fmt: skip
    if abs(a.sequence - b.sequence) > STRAY:
        return tell(
            "counts_differ", file, figures,
            ["Rank {rank} is at sequence {sequence} ({operation}) while rank {other} is at "
             "{elsewhere} ({another}). That is too far apart for calls that one of them has left "
             "out: they did not begin at the same number, so they are in different groups, or one "
             "of them has made its group anew."],
            "Compare the groups that both ranks make, and their order (new_group must be called by "
            "all ranks); see whether a rank was started again.",
            cited(file, a.line), fault=True, confidence=0.75, area="hang",
        )  # fmt: skip
    return tell(
        "counts_differ", file, figures,
        ["Rank {rank} is at sequence {sequence} ({operation}) while rank {other} is at {elsewhere} "
         "({another}): they have made different numbers of calls."],
        "Look for a call that only some ranks make (under a condition on the rank, or after an "
        "error that one rank alone has met), and read the end of both ranks' logs.",
        cited(file, a.line), fault=True, confidence=0.9, area="hang",
    )  # fmt: skip


def _print(kind: str, print_: object) -> str:
    shape = list(getattr(print_, "shape", ()))
    what = {"sizes_differ": shape, "types_differ": getattr(print_, "dtype", "")}
    return str(what.get(kind, getattr(print_, "operation", "")))
