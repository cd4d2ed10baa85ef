"""`roundelay verify`: prove algorithms and schedule files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Any, Final

import click

from ..algorithms import Algorithm, algorithms
from ..collectives import collective as find_collective
from ..errors import RoundelayError
from ..schedule import Schedule
from ..verify import MOMENTS_LIMIT, Verdict, prove, verify
from .base import Command, language, say
from .output import emit, on_terminal
from .targets import leave_out, load, params_option, ranks_option, target_argument

_ADDS: Final = MappingProxyType(
    {
        "rank": "adds in rank order",
        "tree": "adds in one tree",
        "per_chunk": "adds in an order per chunk",
    }
)
EXPAND_LIMIT = 10**7
"""Chunk moves that a schedule file may stand for."""


@click.command(
    cls=Command,
    short_help="prove that algorithms compute their collective",
    help="Prove algorithms by running them on numbers: TARGET is COLLECTIVE, "
    "COLLECTIVE/ALGORITHM, a schedule file (.json) or a Python file with algorithms (.py); "
    "without one, all. Groups and other parameters take every value worth proving, unless -p "
    "names some; roots vary with n. Above 1,024 ranks a sample of the chunks is checked.",
)
@target_argument(required=False)
@ranks_option("1-33", "numbers of ranks, such as 8 or 1-33 or 8,16,1024 (default 1-33)")
@params_option()
@click.option("--root", type=int, help="the root of rooted collectives (default: varies with n)")
@click.option("--complete", is_flag=True, help="check every chunk, however many ranks")
@click.option("--seed", type=int, default=0, help="of the random numbers (default 0)")
@click.pass_context
def command(
    ctx: click.Context,
    target: str | None,
    ranks: Sequence[int],
    params: dict[str, Any],
    root: int | None,
    complete: bool,
    seed: int,
    as_json: str | None,
) -> int:
    """Prove, print, and tell by the exit status."""
    if seed < 0:
        raise click.UsageError(f"--seed {seed}; expected 0 or more")
    loaded = load(target) if target else algorithms()
    options: dict[str, Any] = {"complete": complete or None, "seed": seed}
    if isinstance(loaded, Schedule):
        given = ctx.get_parameter_source("ranks") is not click.core.ParameterSource.DEFAULT
        leave_out(given, params, root is not None)
        verdicts = [_verify_file(loaded, options)]
    else:
        verdicts = _prove_all(loaded, ranks, params, root, options)
    ok = all(v.ok for v in verdicts)
    emit({"ok": ok, "results": [entry(v) for v in verdicts]}, as_json, lambda: _report(verdicts))
    return 0 if ok else 1


def _verify_file(schedule: Schedule, options: dict[str, Any]) -> Verdict:
    if schedule.expanded() > EXPAND_LIMIT:
        raise RoundelayError(
            f"the file stands for {schedule.expanded():,} chunk moves; "
            f"at most {EXPAND_LIMIT:,} are gone through"
        )
    if schedule.moments() > MOMENTS_LIMIT:
        raise RoundelayError(
            f"the file takes {schedule.moments():,} steps to go through; "
            f"at most {MOMENTS_LIMIT:,} are"
        )
    return verify(schedule, **options)


def _prove_all(
    found: list[Algorithm],
    ranks: Sequence[int],
    params: dict[str, Any],
    root: int | None,
    options: dict[str, Any],
) -> list[Verdict]:
    cases = [(a, n, p) for a in found for n in ranks for p in _parameters(a, n, params)]
    if not cases:
        raise RoundelayError("nothing to prove: the algorithms need other numbers of ranks")
    verdicts = []
    label = say("proving")
    bar = click.progressbar(cases, label=label, file=sys.stderr, hidden=not on_terminal())
    with bar as shown:
        for a, n, p in shown:
            varied = (5 * n // 8) if a.kind.rooted else 0
            at = varied if root is None else root
            verdicts.append(prove(a, n, root=at, params=p, **options))
    return verdicts


def _parameters(a: Algorithm, n: int, params: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if params:
        return iter([params])
    return a.variants(n) if a.fits(n) else iter(())


def entry(v: Verdict) -> dict[str, Any]:
    """A verdict in JSON."""
    found = {
        "collective": v.collective,
        "algorithm": v.algorithm,
        "ranks": v.ranks,
        "params": {k: str(p) if not isinstance(p, int | str) else p for k, p in v.params.items()},
        "ok": v.ok,
        "sampled": v.sampled,
        "chunks": v.chunks,
        "same_bits": v.same_bits,
        "summation": v.summation,
        "counterexample": v.counterexample,
    }
    return found if v.ok else found | {"reason": v.reason}


def _report(verdicts: list[Verdict]) -> str:
    lines = []
    by_algorithm: dict[tuple[str, str], list[Verdict]] = {}
    for v in verdicts:
        by_algorithm.setdefault((v.collective, v.algorithm), []).append(v)
    wide = max(len(f"{c}/{a}") for c, a in by_algorithm)
    for (collective, name), some in by_algorithm.items():
        failed = [v for v in some if not v.ok]
        title = f"{collective}/{name or '?'}".ljust(wide)
        lines.append(f"{title}  {_line(some)}")
        lines += [f"  n = {v.ranks}{_given(v)}: {v.told(language())}" for v in failed[:3]]
        if len(failed) > 3:
            lines.append("  " + say("... and {k} more cases", k=len(failed) - 3))
    failed_cases = sum(not v.ok for v in verdicts)
    text = "cases proved: {cases}; algorithms: {k}" if not failed_cases else (
        "cases FAILED: {bad} of {cases}; algorithms: {k}")  # fmt: skip
    summary = say(text, cases=len(verdicts), k=len(by_algorithm), bad=failed_cases)
    return "\n".join([*lines, "", summary])


def _line(some: list[Verdict]) -> str:
    ranks = sorted({v.ranks for v in some})
    span = f"n = {ranks[0]}" + (f"..{ranks[-1]}" if len(ranks) > 1 else "")
    parts = [say("ok") if all(v.ok for v in some) else say("FAILED"), span]
    parts.append(say("{k} cases", k=len(some)) if len(some) > 1 else say("1 case"))
    sampled = [v for v in some if v.sampled is not None]
    if sampled:
        most = max(sampled, key=lambda v: v.chunks)
        parts.append(
            say("sampled {k} of {chunks} chunks", k=most.sampled, chunks=f"{most.chunks:,}")
        )
    if find_collective(some[0].collective).sums and all(v.ok for v in some):
        parts.append(say(_ADDS[max({str(v.summation) for v in some}, key=list(_ADDS).index)]))
    return "  ".join(parts)


def _given(v: Verdict) -> str:
    return "".join(f", {k}={p}" for k, p in v.params.items())
