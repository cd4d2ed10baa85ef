"""The schedule that an MSCCL algorithm stands for, and its proof."""

from __future__ import annotations

from ..errors import RoundelayError
from ..formats.msccl_xml import RECEIVING, SENDING, Algo, Gpu, Step
from ..schedule import Schedule
from ..verify import Verdict, verify
from .ordering import Act, Key, Unit
from .replay import replay

_At = tuple[int, int, int]
"""Rank, thread block, step."""


def from_msccl(algo: Algo, *, in_place: bool) -> Schedule:
    """The schedule that an algorithm stands for.

    Args:
        algo: as read.
        in_place: whether input and output are the same memory.

    Raises:
        RoundelayError: it is not sound: a message without its other end, steps that wait for one
            another, a place that is read empty or used by two steps at once.
    """
    return replay(algo.collective, algo.name, len(algo.gpus), algo.chunks_per_loop, _acts(algo),
                  in_place=in_place)  # fmt: skip


def prove_msccl(algo: Algo) -> list[Verdict]:
    """Prove an algorithm for each of the ways, out of place and in place, that it is for.

    Raises:
        RoundelayError: as `from_msccl`.
    """
    ways = [way for way, meant in ((False, algo.out_of_place), (True, algo.in_place)) if meant]
    return [verify(from_msccl(algo, in_place=way)) for way in ways]


def _acts(algo: Algo) -> list[Act]:
    """Every step, in the order of ranks and thread blocks, with what it must come after."""
    ids: dict[_At, int] = {}
    for r, gpu in enumerate(algo.gpus):
        for b, block in enumerate(gpu.blocks):
            for s in range(len(block.steps)):
                ids[r, b, s] = len(ids)
    sends, receptions = _ends(algo, SENDING), _ends(algo, RECEIVING)
    out: dict[_At, Key] = {}
    into: dict[_At, tuple[Key, int]] = {}
    for way in sorted(sends.keys() | receptions.keys()):
        gone, come = sends.get(way, []), receptions.get(way, [])
        if [count for _, count in gone] != [count for _, count in come]:
            raise RoundelayError(
                f"rank {way[0]} sends {len(gone)} times to rank {way[1]} over channel {way[2]}, "
                f"which receives {len(come)} times, or not as many chunks; expected the same"
            )
        for k, ((sent, _), (taken, _)) in enumerate(zip(gone, come, strict=True)):
            out[sent] = key = (way[0], "message", (*way, k))
            into[taken] = key, ids[sent]
    return [_act(algo, at, ids, out.get(at), into.get(at)) for at in ids]


def _ends(algo: Algo, kinds: tuple[str, ...]) -> dict[tuple[int, int, int], list[tuple[_At, int]]]:
    """By sender, receiver and channel: the steps at one end, in order, and their chunks."""
    found: dict[tuple[int, int, int], list[tuple[_At, int]]] = {}
    whose: dict[tuple[int, int, int], int] = {}
    for r, gpu in enumerate(algo.gpus):
        for b, block in enumerate(gpu.blocks):
            way = (
                (r, block.send, block.channel) if kinds is SENDING
                else (block.recv, r, block.channel)
            )  # fmt: skip
            for s, step in enumerate(block.steps):
                if step.kind in kinds:
                    if whose.setdefault(way, b) != b:
                        raise RoundelayError(
                            f"rank {r}: thread blocks {whose[way]} and {b} have the same peer and "
                            "channel; their order is not known. Expected one for each"
                        )
                    found.setdefault(way, []).append(((r, b, s), step.count))
    return found


def _act(
    algo: Algo, at: _At, ids: dict[_At, int], out: Key | None, into: tuple[Key, int] | None
) -> Act:
    r, b, s = at
    gpu = algo.gpus[r]
    step = gpu.blocks[b].steps[s]
    after = [ids[r, b, s - 1]] if s else []
    where = f"rank {r}, thread block {b}, step {s}"
    if step.after is not None:
        if (r, *step.after) not in ids:
            raise RoundelayError(f"{where} waits for thread block {step.after[0]}, step "
                                 f"{step.after[1]}, which is not there")  # fmt: skip
        other = gpu.blocks[step.after[0]].steps[step.after[1]]
        if not other.waited_for:
            raise RoundelayError(
                f"{where} waits for thread block {step.after[0]}, step {step.after[1]}, whose "
                "hasdep is 0: it would never be told"
            )
        after.append(ids[(r, *step.after)])
    if into is not None:
        after.append(into[1])
    units = tuple(_unit(gpu, r, step, k, out, into and into[0], where)
                  for k in range(step.count if step.kind != "nop" else 0))  # fmt: skip
    return Act(where, tuple(after), units)


def _unit(
    gpu: Gpu, rank: int, step: Step, k: int, out: Key | None, into: Key | None, where: str
) -> Unit:
    """What happens to chunk k of a step: places read and added up, and places written."""

    def key(place: tuple[str, int]) -> Key:
        room = {"i": gpu.inputs, "o": gpu.outputs, "s": gpu.scratch}[place[0]]
        if not 0 <= place[1] + k < room:
            raise RoundelayError(f"{where}: chunk {place[1] + k} of {place[0]}; it has {room}")
        return rank, place[0], place[1] + k

    reads = [key(step.source)] if step.kind in ("s", "cpy", "rrs", "rrc", "rrcs") else []
    if step.kind == "re":
        reads = [key(step.target), key(step.source)]
    if into is not None:
        reads.append((*into, k))
    writes = [key(step.target)] if step.kind not in ("s", "rrs") else []
    if out is not None:
        writes.append((*out, k))
    return Unit(tuple(reads), tuple(writes))
