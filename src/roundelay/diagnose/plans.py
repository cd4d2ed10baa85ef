"""What files for MSCCL and MSCCL++ say, and whether they do what they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from ..errors import RoundelayError
from ..executors.algos import prove_msccl
from ..executors.ordering import NotProved
from ..executors.plans import SWITCH, flat, prove_mscclpp
from ..formats.msccl_xml import NEEDED, Algo, broken_limits
from ..formats.mscclpp_older import MARK, OlderPlan, read_mscclpp_older
from ..formats.mscclpp_plan import ExecutionPlan, absent, read_mscclpp
from ..formats.mscclpp_plan import broken_limits as broken_room
from ..verify import Verdict
from .finding import Evidence, Figures, Finding, tell

SOUND: Final = "Nothing; it does what it says."


def msccl_findings(file: str, algo: Algo) -> list[Finding]:
    """What an MSCCL algorithm is, whether RCCL takes it, and whether it is right."""
    blocks = [len(gpu.blocks) for gpu in algo.gpus]
    kinds = Counter(step.kind for gpu in algo.gpus for b in gpu.blocks for step in b.steps)
    ways = [name for name, meant in (("out of place", algo.out_of_place),
                                     ("in place", algo.in_place)) if meant]  # fmt: skip
    figures: Figures = {
        "name": algo.name, "collective": algo.collective, "ranks": len(algo.gpus),
        "protocol": algo.protocol, "blocks": _span(blocks), "steps": _counts(kinds, len(algo.gpus)),
        "low": str(algo.low), "high": str(algo.high), "ways": ", ".join(ways) or "-",
    }  # fmt: skip
    reason = ["An MSCCL algorithm named {name}: {collective} of {ranks:rank|ranks} by {protocol}, "
              "{ways}, with {blocks:thread block|thread blocks} a rank; "
              "steps of a rank: {steps}."]  # fmt: skip
    if 0 < algo.high < NEEDED["maxBytes"]:
        reason.append("It is for calls of {low} to {high} bytes.")
    elif algo.low:  # RCCL takes 0 at the upper end for no limit (msccl_lifecycle.cc)
        reason.append("It is for calls of {low} bytes and more.")
    found = [proved(file, figures, reason, lambda: prove_msccl(algo))]
    if algo.missing:
        stands = ", ".join(f'{name}="{NEEDED[name]}"' for name in algo.missing)
        found.append(tell(
            "plan_refused", algo.name, {"missing": ", ".join(algo.missing), "stands": stands},
            ["RCCL would refuse the file: it insists on attributes of algo that are missing "
             "({missing}), and says that attribute ... of node algo is not found."],
            "Add {stands}, or let `roundelay convert` write the file anew.",
            (Evidence(file, 1, "<algo>"),), fault=True, confidence=0.95, area="machine",
        ))  # fmt: skip
    limits = broken_limits(algo)[len(algo.missing) :]
    return [*found, *_limits(file, algo.name, limits, "RCCL")]


class Plan(NamedTuple):
    """An MSCCL++ plan, and keys that its file leaves out."""

    plan: ExecutionPlan
    absent: list[str]


def read_plan(data: bytes) -> Plan | OlderPlan:
    """The plan of a file.

    Raises:
        RoundelayError: it is none.
    """
    if MARK in data:
        return read_mscclpp_older(data)
    return Plan(read_mscclpp(data), absent(data))


def plan_findings(file: str, found: Plan | OlderPlan) -> list[Finding]:
    """What an MSCCL++ plan is, whether its executor has room for it, and whether it is right."""
    if isinstance(found, OlderPlan):
        return [_older(file, found)]
    plan, left_out = found
    blocks = [len(gpu.threadblocks) for gpu in plan.gpus]
    kinds = Counter(op.name for gpu in plan.gpus for b in gpu.threadblocks for op in flat(b.ops))
    loops = sum(op.name == "pipeline" for g in plan.gpus for b in g.threadblocks for op in b.ops)
    figures: Figures = {
        "name": plan.name, "collective": plan.ours, "ranks": len(plan.gpus),
        "protocol": plan.protocol, "blocks": _span(blocks),
        "steps": _counts(kinds, len(plan.gpus)), "loops": loops, "absent": ", ".join(left_out),
        "ways": "in place" if plan.inplace else "out of place",
    }  # fmt: skip
    reason = ["An MSCCL++ plan named {name}: {collective} of {ranks:rank|ranks} by {protocol}, "
              "{ways}, with {blocks:thread block|thread blocks} a rank; "
              "operations of a rank: {steps}."]  # fmt: skip
    if plan.min_message_size or plan.max_message_size < 2**64 - 1:
        figures |= {"low": str(plan.min_message_size), "high": str(plan.max_message_size)}
        reason.append("It is for messages of {low} to {high} bytes."
                      if plan.max_message_size < 2**63 - 1 else
                      "It is for messages of {low} bytes and more.")  # fmt: skip
    if loops:
        reason.append("Operations named pipeline ({loops}) repeat those inside them for one part "
                      "of the data after another.")  # fmt: skip
    if not plan.name:
        figures["name"] = "?"
        reason.append("It has no name; the executor reads one as text, so give it one before it "
                      "runs.")  # fmt: skip
    if left_out:
        reason.append("Keys that are left out have their defaults: {absent}.")
    advice = SOUND
    if switched := [name for name in kinds if name in SWITCH]:
        figures["switched"] = ", ".join(switched)
        reason.append("It adds or writes in the NVLink switch ({switched}: multicast), so it runs "
                      "only where the cards have NVLS (an NVSwitch of the H100's generation or "
                      "later).")  # fmt: skip
        advice = ("Run it only on machines with NVLS; elsewhere take a plan that goes over memory "
                  "channels.")  # fmt: skip
    told = proved(file, figures, reason, lambda: [prove_mscclpp(plan)], advice)
    return [told, *_limits(file, plan.name, broken_room(plan), "MSCCL++")]


def _older(file: str, plan: OlderPlan) -> Finding:
    """What a plan of an earlier version is; its operations are not ones that are proved."""
    blocks = [len(gpu.threadblocks) for gpu in plan.gpus]
    figures: Figures = {
        "name": plan.name, "collective": plan.ours, "ranks": len(plan.gpus),
        "protocol": plan.protocol, "blocks": _span(blocks),
        "steps": _counts(plan.operations(), len(plan.gpus)),
        "ways": "in place" if plan.inplace else "out of place",
    }  # fmt: skip
    return tell(
        "plan", plan.name, figures,
        ["An MSCCL++ plan named {name}: {collective} of {ranks:rank|ranks} by {protocol}, "
         "{ways}, with {blocks:thread block|thread blocks} a rank; "
         "operations of a rank: {steps}.",
         "It is in the form of earlier versions, which the executor of today does not take, and "
         "it is not proved."],
        "Make it anew with the language (DSL) of the version that is to run it, or keep "
        "to the older one.",
        (Evidence(file, 1, plan.name),), confidence=0.9, area="machine",
    )  # fmt: skip


def proved(
    file: str, figures: Figures, reason: list[str], prove: Callable[[], list[Verdict]],
    advice: str = SOUND,
) -> Finding:  # fmt: skip
    """The finding that says what it is, with the outcome of the proof."""
    kind = "plan"
    try:
        wrong = [verdict for verdict in prove() if not verdict]
        figures["wrong"] = wrong[0].reason if wrong else ""
        if not wrong:
            reason.append("It is proved: every rank ends with what it must, in any order that the "
                          "waits leave.")  # fmt: skip
    except NotProved as error:
        figures["wrong"], wrong = str(error), []
        reason.append("It is not proved: {wrong}.")
        advice = "Make the same for fewer ranks and chunks, which is proved."
    except RoundelayError as error:
        figures["wrong"], wrong = str(error), [None]  # type: ignore[list-item]
    if wrong:
        kind, advice = "plan_wrong", "Do not run it. Mend the step that is named, or make it anew."
        reason.append("It is wrong: {wrong}.")
    cited = (Evidence(file, 1, str(figures["name"])),)
    return tell(kind, str(figures["name"]), figures, reason, advice, cited, fault=bool(wrong),
                confidence=0.95, area="machine")  # fmt: skip


def _limits(file: str, name: str, wrong: list[str], whose: str) -> list[Finding]:
    if not wrong:
        return []
    return [tell(
        "plan_refused", name, {"whose": whose, "wrong": "; ".join(wrong[:4])},
        ["It goes beyond the limits of {whose}: {wrong}."], "Take fewer ranks, chunks or steps.",
        (Evidence(file, 1, name),), fault=True, confidence=0.9, area="machine",
    )]  # fmt: skip


def _span(counts: list[int]) -> str:
    low, high = min(counts, default=0), max(counts, default=0)
    return str(low) if low == high else f"{low} to {high}"


def _counts(kinds: Counter[str], ranks: int) -> str:
    """How many of each a rank has, on average where ranks differ."""
    return ", ".join(f"{name} {count / ranks:.3g}" for name, count in sorted(kinds.items()))
