"""What lines of a training log say of its iterations."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

from ...formats.iterations import Iteration
from ..finding import Evidence, Figures, Finding, tell

SLOW: Final = 1.3
"""Times the usual iteration, from which one is slow."""
FEW: Final = 3
"""Iterations below which nothing is usual."""


def iteration_findings(file: str, found: Sequence[Iteration]) -> list[Finding]:
    """How even iterations are."""
    later = [one for one in found if one.number > 1] or list(found)
    if len(later) < FEW:
        return []
    usual = median(one.time_ms for one in later)
    slow = [one for one in later[1:] if one.time_ms > SLOW * usual]
    rates = [one.tflops for one in later if one.tflops]
    figures: Figures = {"iterations": len(later), "usual_ms": usual, "slow": len(slow)}
    reason = ["{iterations:line|lines} of iterations; the usual iteration takes {usual_ms} ms."]
    if rates:
        figures["tflops"] = median(rates)
        reason.append("A card computes {tflops} TFLOP/s at the usual one.")
    if slow:
        figures |= {"number": slow[0].number, "slow_ms": max(one.time_ms for one in slow),
                    "times": max(one.time_ms for one in slow) / usual}  # fmt: skip
        reason.append("{slow:iteration is|iterations are} slow, the first at iteration {number}: "
                      "up to {slow_ms} ms, {times} times the usual one. What comes now and then is "
                      "no setting: checkpoints and evaluation, loading data, garbage collection, "
                      "one card that throttles, or a link that retries.")  # fmt: skip
    else:
        reason.append("They are even. How much of one is exchange cannot be told from it.")
    return [tell(
        "iterations", file, figures, reason,
        "See whether slow iterations come at a fixed distance; trace one (torch.profiler) on all "
        "ranks, and give the traces: they tell exchange from computation, and who is late.",
        tuple(Evidence(file, one.line, one.text) for one in (slow or later)[:2]),
        fault=bool(slow), confidence=0.7, area="time",
    )]  # fmt: skip
