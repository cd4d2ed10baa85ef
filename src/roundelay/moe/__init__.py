"""Dispatch to experts: who gets which token, how it travels, and how the results come back.

>>> import numpy as np
>>> from roundelay import moe, verify
>>> scores = moe.uniform_scores(tokens=8, experts=16, seed=1)
>>> chosen = moe.choose(scores, top_k=4, groups=4, max_groups=2).experts
>>> layout = moe.Layout.of(chosen, np.arange(8), moe.Placement.even(16, ranks=8))
>>> verify(moe.two_hop(layout, group=2, max_nodes=2)).ok
True
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .experts import Placement
from .fp8 import BLOCK, from_fp8, to_fp8
from .gate import Choice, choose, read_scores, skewed_scores, uniform_scores
from .layout import Layout
from .schemes import SCHEMES, build, combine, copies, flat_card, flat_expert, two_hop

if TYPE_CHECKING:
    from .hops import Handle
    from .ways import exchange


def __getattr__(name: str) -> Any:
    """`exchange` and `Handle`, loaded when asked for: they need the native core."""
    if name in ("Handle", "exchange"):
        return getattr(importlib.import_module(f"{__name__}.ways"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "BLOCK",
    "SCHEMES",
    "Choice",
    "Handle",
    "Layout",
    "Placement",
    "build",
    "choose",
    "combine",
    "copies",
    "exchange",
    "flat_card",
    "flat_expert",
    "from_fp8",
    "read_scores",
    "skewed_scores",
    "to_fp8",
    "two_hop",
    "uniform_scores",
]
