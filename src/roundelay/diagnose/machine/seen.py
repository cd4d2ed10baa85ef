"""A machine and the file that describes it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...formats.machine import Card, Machine, Nic
from ...i18n import counted
from ..finding import Evidence, Figures, Finding, tell


@dataclass(frozen=True)
class Seen:
    """A machine as one file shows it, with the file's lines where they are at hand."""

    file: str
    machine: Machine
    lines: tuple[str, ...] = ()

    @cached_property
    def subject(self) -> str:
        """What it is about, in a few words."""
        cards, nics = len(self.machine.cards), len(self.machine.nics)
        models = {card.model for card in self.machine.cards} - {""}
        kind = f" {models.pop()}" if len(models) == 1 else ""
        return (f"{counted(cards, f'card{kind}', f'cards{kind}')}, "
                f"{counted(nics, 'network card', 'network cards')}")  # fmt: skip

    def rows(self, ends: Iterable[Card | Nic]) -> tuple[Evidence, ...]:
        """Where they stand in the file."""
        return tuple(self.at(end.line, f"{end.name} {end.bus}".strip()) for end in ends)

    def at(self, line: int, text: str) -> Evidence:
        """A line of the file, as it stands there; the text where the line is not at hand."""
        known = self.lines[line - 1].strip()[:200] if 0 < line <= len(self.lines) else ""
        return Evidence(self.file, line, known or text)

    def tell(
        self, kind: str, figures: Figures, reason: Sequence[str], advice: str,
        cited: tuple[Evidence, ...] = (), **more: Any,
    ) -> Finding:  # fmt: skip
        """A finding about the machine."""
        subject = more.pop("subject", self.subject)
        return tell(kind, subject, figures, reason, advice, cited, area="machine", **more)
