"""Where the pieces of an expert dispatch come from and who wants them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import RoundelayError


@dataclass(frozen=True, eq=False)
class Routing:
    """For each piece its home and the ranks that want it.

    A piece is a token, or a token for one of its experts. All pieces are of one size.

    Attributes:
        home: [piece], the rank that has it at first, and adds up what comes back.
        wanted: [rank, piece], whether the rank has an expert for it.

    Raises:
        RoundelayError: shapes that do not belong together, or a home that is no rank.
    """

    home: npt.NDArray[np.integer[Any]]
    wanted: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        home, wanted = np.asarray(self.home), np.asarray(self.wanted)
        if home.ndim != 1 or home.dtype.kind not in "iu":
            raise RoundelayError(f"home is {home.dtype} of shape {home.shape}; expected one whole "
                                 "number a piece")  # fmt: skip
        if wanted.dtype != np.bool_ or wanted.shape[1:] != home.shape or not len(wanted):
            raise RoundelayError(
                f"wanted is {wanted.dtype} of shape {wanted.shape}; expected bool of shape "
                f"(ranks, {len(home)})"
            )
        if home.size and not 0 <= home.min() <= home.max() < len(wanted):
            raise RoundelayError(f"homes from {home.min()} to {home.max()}; expected ranks, 0 to "
                                 f"{len(wanted) - 1}")  # fmt: skip
        object.__setattr__(self, "home", home)
        object.__setattr__(self, "wanted", wanted)

    @property
    def ranks(self) -> int:
        """How many ranks there are."""
        return len(self.wanted)

    @property
    def pieces(self) -> int:
        """How many pieces there are."""
        return len(self.home)
