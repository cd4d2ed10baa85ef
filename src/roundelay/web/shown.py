"""A view of the page in Python: written to a file, opened in the browser, shown in a notebook.

>>> page("player", algorithm="star", n=4).view
'player'
"""

from __future__ import annotations

import os
import tempfile
import webbrowser
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Final

from ..units import format_size
from .page import page as one_file
from .states import asked, state_text

HEIGHT: Final = 760
"""Pixels of the frame in a notebook."""


@dataclass(frozen=True)
class Page:
    """A view with its data, as one file that needs no server and no network.

    Attributes:
        view: its name.
        text: the file.
    """

    view: str
    text: str = field(repr=False)

    def save(self, file: str | os.PathLike[str]) -> Path:
        """Write it, and return where it is."""
        path = Path(file)
        path.write_text(self.text, "utf-8")
        return path

    def open(self) -> Path:
        """Write it into a new file of the folder for temporary ones, and open it in the browser."""
        handle, name = tempfile.mkstemp(".html", "roundelay-", text=True)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(self.text)
        webbrowser.open(Path(name).as_uri())
        return Path(name)

    def __str__(self) -> str:
        """What it is, and how large."""
        return f"{self.view}: {format_size(len(self.text.encode()))}; save it, or open it"

    def _repr_html_(self) -> str:
        """A frame of its own, from which nothing leads to the notebook."""
        return (
            f'<iframe title="Roundelay: {self.view}" srcdoc="{escape(self.text)}" '
            f'sandbox="allow-scripts allow-downloads" width="100%" height="{HEIGHT}" '
            'style="border:0"></iframe>'
        )


def page(view: str = "player", **state: object) -> Page:
    """A view of the page in a state.

    Args:
        view: its name, as in the page's address: player, bucket, roads, cluster, curves and more.
        **state: what the address has behind it, such as collective, algorithm, n, size, cluster;
            `lang` is "en" or "zh", `theme` "light" or "dark".

    Raises:
        UnknownName: no such view.
        RoundelayError: a state that is none.
    """
    given = {key: str(value) for key, value in state.items() if value is not None}
    if view == "player":
        given = {"n": "8"} | given
    return Page(view, one_file(asked(view, given), state_text(view, given)))
