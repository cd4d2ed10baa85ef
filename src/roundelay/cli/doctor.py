"""`roundelay doctor`: what this machine has that matters to collectives, and what it means."""

from __future__ import annotations

import shutil
import textwrap
from itertools import groupby

import click

from ..doctor import AREAS, examine
from ..doctor.check import Check
from ..i18n import message, translator
from ..show.columns import pad, width
from .base import Command, language, say
from .output import emit

STATES = {"present": message("present"), "absent": message("absent"), "wrong": message("wrong")}
MARKS = {"present": "+", "absent": "-", "wrong": "!"}


@click.command(
    cls=Command,
    short_help="what this machine has, and what that means",
    help="Look at this machine: processor, memory, shared memory, limits, network cards, RDMA, "
    "GPUs, CUDA, NCCL, torch, MPI, Slurm, Kubernetes, and Roundelay itself. Each thing is present "
    "(+), absent (-) or wrong (!), and a sentence says what that means. Nothing is changed, and "
    "nothing goes over the network. The exit status is 1 where something is wrong.",
)
def command(as_json: str | None) -> int:
    """Look, print; 1 where something is wrong."""
    checks = examine()
    tell = translator(language())
    emit({"checks": [c.as_json(tell) for c in checks]}, as_json, lambda: _report(checks))
    return int(any(c.state == "wrong" for c in checks))


def _report(checks: list[Check]) -> str:
    tell = translator(language())
    wide = max(width(c.name.tell(tell)) for c in checks)
    lines = []
    for area, found in groupby(checks, lambda c: c.area):
        lines += [AREAS[area].tell(tell), *(line for c in found for line in _lines(c, wide)), ""]
    wrong = sum(c.state == "wrong" for c in checks)
    lines.append(say("Nothing is wrong.") if not wrong else say("Wrong: {k}, marked !.", k=wrong))
    return "\n".join(lines)


def _lines(check: Check, wide: int) -> list[str]:
    tell = translator(language())
    state = check.shown or STATES[check.state].tell(tell)
    first = f"{MARKS[check.state]} {pad(check.name.tell(tell), wide)}  {state}".rstrip()
    room = max(40, min(shutil.get_terminal_size((100, 24)).columns, 120) - wide - 4)
    told = _wrapped(check.meaning.tell(tell), room)
    return [first, *(f"{'':{wide + 4}}{line}" for line in told)]


def _wrapped(text: str, room: int) -> list[str]:
    """Lines of so many columns at most; Chinese, which has no spaces, is left to the terminal."""
    return textwrap.wrap(text, room, break_on_hyphens=False) if text.isascii() else [text]
