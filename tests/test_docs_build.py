"""What only Sphinx can tell; collected where the extra `docs` is there, as for `make docs`."""

import os
import subprocess
import sys

from test_docs import CATALOGUES, TOP, catalogue_of, translated_pages


def test_catalogues_are_made_from_the_pages_as_they_are(tmp_path):
    """Else `make docs-text`. Docstrings may be ahead of their translation."""
    build = [sys.executable, "-m", "sphinx", "-q", "-b", "gettext", str(TOP / "docs"), "made"]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    subprocess.run(build, cwd=tmp_path, env=env, check=True, capture_output=True)
    for page in translated_pages():
        if page.as_posix() in ("reference/api.md", "reference/algorithms.md"):
            continue
        made = catalogue_of(tmp_path / "made" / page.with_suffix(".pot"))
        kept = catalogue_of(CATALOGUES / page.with_suffix(".po"))
        assert made.keys() == kept.keys(), f"{page}: make docs-text, then translate"
