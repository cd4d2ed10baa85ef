"""A layer of experts in torch, whose exchange hides behind computing."""

from __future__ import annotations

from .hidden import Hidden, hidden
from .layer import Experts

__all__ = ["Experts", "Hidden", "hidden"]
