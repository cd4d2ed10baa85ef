"""What `roundelay moe` does with schedules: prove them, show one, write one."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from ..formats.schedule import write_schedule
from ..moe.bench import Load
from ..moe.proof import Proof, prove
from ..moe.schemes import SCHEMES, build, combine
from ..schedule import Schedule
from ..show import show, steps
from ..verify import Verdict
from .base import language, say
from .export import deliver
from .output import emit, table
from .verify import entry

_SMALL: Final = {"nodes": 2, "cards": 2, "experts": 8, "top_k": 2, "tokens": 1}
DEFAULTS: Final = MappingProxyType(
    {"verify": {"nodes": 8, "cards": 8, "tokens": 32}, "show": _SMALL, "export": _SMALL}
)
"""Of the load, by what is done."""


def proved(load: Load, scheme: str | None, as_json: str | None) -> int:
    """Prove a scheme, or all, and print; 0 where all of it holds."""
    layout = load.layout()
    proofs = [
        prove(build(s, layout, load.cards, load.max_nodes), load.cards, load.max_nodes)
        for s in ([scheme] if scheme else SCHEMES)
    ]
    ok = all(p.ok for p in proofs)
    found = {"ok": ok, "results": [each for p in proofs for each in _entries(p)]}
    emit(found, as_json, lambda: _told(load, proofs))
    return 0 if ok else 1


def drawn(load: Load, scheme: str | None, back: bool, as_json: str | None) -> None:
    """Show the steps of a dispatch, or of its combine."""
    schedule = _schedule(load, scheme, back)
    emit(steps(schedule, language()) if as_json else None, as_json,
         lambda: show(schedule, lang=language()))  # fmt: skip


def written(
    load: Load, scheme: str | None, back: bool, output: Path | None, as_json: str | None
) -> None:
    """Write a schedule file."""
    deliver(write_schedule(_schedule(load, scheme, back)), output, as_json)


def _schedule(load: Load, scheme: str | None, back: bool) -> Schedule:
    there = build(scheme or "two_hop", load.layout(), load.cards, load.max_nodes)
    return combine(there) if back else there


def _entries(proof: Proof) -> list[dict[str, Any]]:
    between = {"copies_between_nodes_max": proof.most, "copies_between_nodes_limit": proof.limit,
               "same_index": proof.same_index}  # fmt: skip
    return [{**entry(proof.there), **between}, *([entry(proof.back)] if proof.back else [])]


def _told(load: Load, proofs: list[Proof]) -> str:
    head = ["scheme", "dispatch", "combine", "copies between nodes", "to the same index"]
    rows = [[p.there.algorithm, _word(p.there), _word(p.back), *_between(p)] for p in proofs]
    lines = [
        say("{tokens} tokens of {ranks} cards in {nodes} nodes, {experts} experts, top {top_k}",
            tokens=f"{load.tokens * load.ranks:,}", ranks=load.ranks, nodes=load.nodes,
            experts=load.experts, top_k=load.top_k),
        "",
        table([*map(say, head)], rows),
    ]  # fmt: skip
    failed = [v for p in proofs for v in (p.there, p.back) if v is not None and not v.ok]
    lines += [f"{v.collective}/{v.algorithm}: {v.told(language())}" for v in failed]
    return "\n".join(lines)


def _word(verdict: Verdict | None) -> str:
    return "-" if verdict is None else say("ok") if verdict.ok else say("FAILED")


def _between(proof: Proof) -> list[str]:
    if proof.limit is None:
        return ["-", "-"]
    return [say("at most {most}, limit {limit}", most=proof.most, limit=proof.limit),
            say("ok") if proof.same_index else say("FAILED")]  # fmt: skip
