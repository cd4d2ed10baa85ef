"""What was odd in a file, and where."""

from __future__ import annotations

from typing import NamedTuple

from ..i18n import Message


class Note(NamedTuple):
    """Something missing, doubtful or impossible; line 0 stands for the whole file."""

    line: int
    what: Message
