"""The script that draws charts, from plotly's own package, and what keeps it to the page's policy.

It writes styles into the page, which the policy refuses; but none for which it finds an element of
the name already. So the page has such elements, and the rules that are needed in its own style.
"""

from __future__ import annotations

import gzip
import re
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ..errors import RoundelayError

GLOBAL: Final = "plotly.js-style-global"
"""The name of the styles that plotly does without where an element of it says so."""
_NAMED: Final = re.compile(r'getElementById\("([0-9a-f]{64})"\)')


@lru_cache(maxsize=1)
def script() -> bytes | None:
    """The script; None where the package is missing."""
    found = find_spec("plotly")
    if found is None or not found.submodule_search_locations:
        return None
    path = Path(found.submodule_search_locations[0], "package_data", "plotly.min.js")
    return path.read_bytes() if path.is_file() else None


@lru_cache(maxsize=1)
def packed() -> bytes:
    """The script as gzip has it, packed once."""
    return gzip.compress(script() or b"", 6)


def needed() -> bytes:
    """The script.

    Raises:
        RoundelayError: the package is missing.
    """
    found = script()
    if found is None:
        raise RoundelayError(
            "no package plotly, which draws the charts; try: pip install 'roundelay[web]'"
        )
    return found


@lru_cache(maxsize=1)
def marks() -> list[str]:
    """Names of the elements for which plotly writes no styles."""
    return [GLOBAL, *dict.fromkeys(_NAMED.findall((script() or b"").decode("utf-8", "replace")))]


def charts() -> dict[str, Any]:
    """Whether there is a script, and the names of `marks`."""
    return {"there": script() is not None, "marks": marks() if script() else []}
