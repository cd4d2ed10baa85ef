"""One thing that was looked for, and what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ..i18n import Message, Translate
from ..units import format_size

State: TypeAlias = Literal["present", "absent", "wrong"]


@dataclass(frozen=True)
class Check:
    """One thing that was looked for.

    Attributes:
        area: a key of `AREAS`.
        name: what was looked for.
        state: "wrong" where it is there, or should be, and cannot serve as it is.
        meaning: what that means to the user.
        value: a version or a figure; None where there is none.
        unit: of a figure, such as "B" or "Gb/s".
    """

    area: str
    name: Message
    state: State
    meaning: Message
    value: str | int | float | None = None
    unit: str = ""

    @property
    def shown(self) -> str:
        """The value with its unit, for people."""
        if self.value is None:
            return ""
        if self.unit == "B" and isinstance(self.value, int):
            return format_size(self.value)
        return f"{self.value} {self.unit}".rstrip()

    def as_json(self, translate: Translate) -> dict[str, Any]:
        """The value of `--json`; the name is English, the meaning as `translate` puts it."""
        return {
            "area": self.area,
            "name": str(self.name),
            "state": self.state,
            "value": self.value,
            "unit": self.unit,
            "meaning": self.meaning.tell(translate),
        }
