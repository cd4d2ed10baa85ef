"""The page as one file: all modules as one script, style and data inside, nothing from elsewhere.

The modules are written so that they can be put one after another: an import or export stands on
a line of its own, and no name at the top of a module is used at the top of another.
"""

from __future__ import annotations

import base64
import hashlib
import json
import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import Final

from ..errors import RoundelayError
from .charts import marks, needed
from .data import answer
from .known import Known
from .server import static
from .states import Asked

MAIN: Final = "main.js"
_IMPORT: Final = re.compile(r'import \{[^}]+\} from "(\.[^"]+)";')
_EXPORT: Final = re.compile(r"^export (?=(?:async )?function|const|class)", re.M)
_COMMENT: Final = re.compile(r"^ *(?:/\*\*(?:(?!\*/).)*\*/|//[^\n]*)\n", re.M | re.S)
"""Lines that say something about the code: a file to mail does without."""
_INDENT: Final = re.compile(r"^ +", re.M)
_TOP: Final = re.compile(r"^(?:async )?(?:function\*?|const|let|class) +(\w+|\{[^}]*\})", re.M)


CHARTS: Final = "curves"
"""The data for which plotly's script is put in."""


def page(asked: Iterable[Asked], state: str = "", known: Known | None = None) -> str:
    """The page with some views' data inside.

    Args:
        asked: what to put in.
        state: the state it opens in, as in its address after the ``#``.
        known: runs, walks and clusters that may be asked for; without it, those
            that come with the page.

    Raises:
        RoundelayError: no such view, or a parameter that is none.
    """
    asked = list(asked)
    script, style = bundle(), _text("style.css")
    data = {key(name, given): json.loads(answer(name, given, known)) for name, given in asked}
    inside = json.dumps({"state": state, "data": data}, ensure_ascii=False, separators=(",", ":"))
    inside = inside.replace("<", "\\u003c")
    charted = any(name == CHARTS for name, _ in asked)
    charting = needed().decode() if charted else ""
    scripts = f"'{_hash(script)}' '{_hash(charting)}'" if charting else f"'{_hash(script)}'"
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src '{_hash(style)}'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    html = _text("index.html")
    for old, new in (
        ('<meta charset="utf-8">', f'<meta charset="utf-8">\n<meta http-equiv='
         f'"Content-Security-Policy" content="{policy}">'),
        ('<link rel="stylesheet" href="static/style.css">', f"<style>{style}</style>"),
        ('<script type="module" src="static/main.js"></script>',
         f'<script type="application/json" id="inside">{inside}</script>\n'
         f'{_charts(charting)}<script type="module">{script}</script>'),
    ):  # fmt: skip
        if html.count(old) != 1:
            raise RoundelayError(f"index.html: expected {old!r} once")
        html = html.replace(old, new)
    return html


def _charts(charting: str) -> str:
    """The script of charts, behind what keeps it from writing styles; or nothing."""
    if not charting:
        return ""
    if "</script" in charting.lower():
        raise RoundelayError("plotly's script has </script in it; expected none, as in plotly 6")
    kept = "".join(f'<meta id="{mark}" class="no-inline-styles">' for mark in marks())
    return f"{kept}<script>{charting}</script>\n"


def key(name: str, given: Mapping[str, str]) -> str:
    """What a view's data is found by: its name and parameters in the order of the alphabet."""
    return "&".join([name, *(f"{k}={v}" for k, v in sorted(given.items()))])


def bundle(main: str = MAIN) -> str:
    """All modules that `main` needs as one script, those that others need first.

    Raises:
        RoundelayError: a module that is not there, an import that is not on one line, or a name
            that two modules have at their top.
    """
    texts: dict[str, str] = {}
    _collect(main, texts, ())
    owners: dict[str, str] = {}
    for path, text in texts.items():
        for name in _tops(text):
            if name in owners:
                raise RoundelayError(
                    f"{path}: {name} is a name at the top of {owners[name]} as well; expected "
                    "different names, for in one file they stand in one script"
                )
            owners[name] = path
    whole = _INDENT.sub("", "\n".join(texts.values()))
    if "</script" in whole.lower():
        raise RoundelayError("a module has </script in it, which would end the script; split it")
    return whole


def _collect(path: str, texts: dict[str, str], above: tuple[str, ...]) -> None:
    """Add a module to `texts`, after those it imports."""
    if path in texts:
        return
    if path in above:
        raise RoundelayError(f"{path} imports itself by way of {', '.join(above)}")
    text = _text(path)
    for found in _IMPORT.finditer(text):
        other = posixpath.normpath(posixpath.join(posixpath.dirname(path), found[1]))
        _collect(other, texts, (*above, path))
    text = _EXPORT.sub("", _IMPORT.sub("", text))
    if left := re.search(r"^(?:import|export)\b.*$", text, re.M):
        raise RoundelayError(
            f'{path}: {left[0]!r}; expected import {{a, b}} from "./x.js"; on one line, and '
            "export before a function, const or class"
        )
    texts[path] = _COMMENT.sub("", text).strip()


def _tops(text: str) -> Iterable[str]:
    for found in _TOP.finditer(text):
        yield from re.findall(r"\w+", found[1])


def _text(path: str) -> str:
    found = static(path)
    if found is None:
        raise RoundelayError(f"no module {path}")
    return found.decode()


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
