"""Rules about where processes stand that do not go on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final, NamedTuple

from ...formats.stacks import Frame, Stack
from ..finding import Figures, Finding, cited, names, tell

_CALLS: Final = re.compile(
    r"^_?(?:all_?reduce|all_?gather|reduce_?scatter|broadcast|barrier|monitored_barrier|all_?to_?all|"
    r"reduce|gather|scatter|send|recv|isend|irecv|batch_isend_irecv|new_group|init_process_group|"
    r"broadcast_object_list|gather_object|destroy_process_group|_new_process_group_helper|"
    r"_verify_param_shape_across_processes|_sync_module_states|_sync_params_and_buffers)\w{0,20}$"
)
"""Functions of torch.distributed that wait for other ranks."""
_TORCH: Final = re.compile(r"(?:^|/)torch/(?:distributed|nn/parallel)/")
_LIBRARY: Final = re.compile(
    r"(?:^|/)(?:torch|deepspeed/comm)/|^<|^lib\S+\.so|"
    r"(?:^|/)(?:threading|queue|selectors|socket|ssl|subprocess|contextlib)\.py$|"
    r"(?:^|/)(?:multiprocessing|concurrent|asyncio)/|/lib/python3[^/]{0,4}/(?!site-|dist-)"
)
"""Files that are not the program's own: torch's, and those of Python."""
_NCCL: Final = re.compile(r"^p?nccl[A-Z]\w{1,40}|^P?MPI_[A-Z]\w{1,40}|^gloo::\w")
_START: Final = re.compile(
    r"^ncclCommInit|^bootstrap\w|^ncclTransportP2pSetup|^init_process_group$"
)
_CARD: Final = re.compile(
    r"^(?:cuda|cu|hip)(?:Stream|Event|Ctx|Device)Synchronize|^(?:synchronize|item|cpu|tolist|"
    r"_local_scalar_dense|nonzero|backward|_engine_run_backward|run_backward)$"
)
"""Functions that wait for the card, on which calls of NCCL may stand."""
_DATA: Final = re.compile(r"^_?(?:try_get_data|get_data|next_data)$")
"""Functions of torch's data loader that wait for its workers."""
LISTED: Final = 8


class _At(NamedTuple):
    """Where a process stands: in a call between ranks, waiting for its card, or elsewhere."""

    who: str
    state: str
    call: str
    place: str
    stack: Stack


def stack_findings(stacks: Sequence[Stack]) -> list[Finding]:
    """Of all processes whose stacks there are."""
    chosen: dict[tuple[str, str], _At] = {}
    for stack in stacks:
        at = _where(stack)
        key = (stack.line.file, stack.process)
        if key not in chosen or _weight(at) > _weight(chosen[key]):
            chosen[key] = at
    found = list(chosen.values())
    if not any(at.state != "elsewhere" for at in found):
        return [_elsewhere(found)] if found else []
    return [_alone(found[0]) if len(found) == 1 else _several(found)]


def _weight(at: _At) -> tuple[bool, bool, bool]:
    return at.state == "call", at.state == "card", at.stack.main


def _where(stack: Stack) -> _At:
    frames = stack.frames
    calls = [i for i, f in enumerate(frames) if _is_call(f)]
    who = f"process {stack.process}" if stack.process else PurePath(stack.line.file).name
    if stack.local is not None:
        who = f"local rank {stack.local}"
    if calls:
        at = calls[-1]
        return _At(who, "call", frames[at].name, _place(frames[at + 1 :]), stack)
    card = next((i for i, f in enumerate(frames) if _CARD.search(f.name)), None)
    if card is not None:
        return _At(who, "card", frames[card].name, _place(frames[card + 1 :]), stack)
    return _At(who, "elsewhere", frames[0].name, _place(frames), stack)


def _is_call(frame: Frame) -> bool:
    torch = _CALLS.search(frame.name) is not None and _TORCH.search(frame.file) is not None
    return torch or _NCCL.search(frame.name) is not None


def _place(frames: Sequence[Frame]) -> str:
    """The first line of the program itself."""
    own = next((f for f in frames if f.line and not _LIBRARY.search(f.file)), None)
    return f"{own.file}:{own.line} ({own.name})" if own else "?"


def _told(at: Sequence[_At]) -> str:
    by: dict[tuple[str, str], list[str]] = {}
    for one in at:
        by.setdefault((one.call, one.place), []).append(one.who)
    return "; ".join(f"{names(who, LISTED)} in {call}, {place}"
                     for (call, place), who in list(by.items())[:LISTED])  # fmt: skip


def _elsewhere(found: Sequence[_At]) -> Finding:
    """None is in a call between ranks."""
    lines = [at.stack.line for at in found][:LISTED]
    subject = names(list(dict.fromkeys(line.file for line in lines)), 3)
    for_data = all(any(_DATA.search(f.name) for f in at.stack.frames) for at in found)
    reason = ["No call between ranks is seen, and none that waits for a card: {parts}. Where one "
              "stays there, the others wait for it."]  # fmt: skip
    if for_data:
        reason = ["It waits for its data workers ({parts}), not for other ranks: these wait for it "
                  "in turn."]  # fmt: skip
    advice = "Take the stacks twice to see whether it moves, and those of the other ranks, too."
    if for_data:
        advice = (
            "See what the data workers do (py-spy dump of each): a slow or lost file system, "
            "a lock after a fork, a worker that was killed; num_workers=0 shows errors."
        )
    return tell(
        "waits_for_data" if for_data else "elsewhere", subject, {"parts": _told(found)}, reason,
        advice, cited(subject, *lines), fault=for_data, confidence=0.8, area="hang",
    )  # fmt: skip


def _several(found: Sequence[_At]) -> Finding:
    waiting = [at for at in found if at.state == "call"]
    elsewhere = [at for at in found if at.state == "elsewhere"]
    lines = [at.stack.line for at in (*elsewhere, *found)][:LISTED]
    subject = names(list(dict.fromkeys(line.file for line in lines)), 3)
    figures: Figures = {"count": len(found), "parts": _told(waiting), "late": _told(elsewhere)}
    if waiting and elsewhere:
        return tell(
            "never_called", subject, figures,
            ["Some stand outside of calls between ranks ({late}), while others wait in one "
             "({parts}): these wait for the former."],
            "See why it stays there: a slow disk or checkpoint, data, a lock, a branch that one "
            "rank alone takes. Take the stacks twice to see whether it moves.",
            cited(subject, *lines), fault=True, confidence=0.85, area="hang",
        )  # fmt: skip
    if len({at.call for at in waiting}) > 1:
        return tell(
            "calls_differ", subject, figures,
            ["The processes wait in different calls ({parts}): where these are of one group, none "
             "of them can end."],
            "Look for the branch that parts them: a condition on the rank, or uneven numbers of "
            "batches.", cited(subject, *lines), fault=True, confidence=0.85, area="hang",
        )  # fmt: skip
    figures["parts"] = _told(found)
    if len({(at.state, at.place) for at in found}) > 1:
        return tell(
            "calls_differ", subject, figures,
            ["The processes wait at different places of the program ({parts}): one of them is "
             "behind, or has taken another branch."],
            "Compare what they did before it: uneven numbers of batches, a condition on the rank.",
            cited(subject, *lines), fault=True, confidence=0.75, area="hang",
        )  # fmt: skip
    return tell(
        "stuck_together", subject, figures,
        ["All {count} processes seen wait at the same place ({parts}): so for a rank that is not "
         "seen, for a card, or for the network."],
        "Take the stacks of all other ranks, too; look for one that has ended, and for Xid errors.",
        cited(subject, *lines), fault=True, confidence=0.75, area="hang",
    )  # fmt: skip


def _alone(at: _At) -> Finding:
    figures: Figures = {"who": at.who, "call": at.call, "place": at.place}
    reason = ["{who} waits in {call}, called at {place}: for other ranks, which have not come to "
              "that call, or have ended."]  # fmt: skip
    if at.state == "card":
        reason = ["{who} waits for its card in {call}, called at {place}: a kernel on it does not "
                  "end, as a rule a collective to which another rank has not come."]  # fmt: skip
    elif any(_START.search(frame.name) for frame in at.stack.frames):
        reason = ["{who} is at the start of NCCL or of the group ({call}, called at {place}), "
                  "where ranks find one another: not all have come, or they do not reach the "
                  "address that rank 0 gives."]  # fmt: skip
    return tell(
        "waits_in_call", at.stack.line.file, figures, reason,
        "One stack tells who waits, not for whom: take those of all ranks at that time (py-spy "
        "dump --pid PID) and give them here together.",
        cited(at.stack.line.file, at.stack.line), fault=True, confidence=0.75, area="hang",
    )  # fmt: skip
