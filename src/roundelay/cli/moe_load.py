"""The load that `roundelay moe` is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from ..errors import RoundelayError
from ..moe.bench import Load
from ..moe.gate import read_scores
from ..topology import Cluster
from .targets import no_use

TOKENS: Final = 256
"""Tokens of a rank, where processes of this machine exchange them."""
HIDDEN: Final = 1024
"""Numbers of a token there."""


def load_on(where: Cluster, **asked: Any) -> Load:
    """A load on the clock."""
    defaults: dict[str, Any] = {"nodes": where.size // where.cards, "cards": where.cards}
    return Load(**defaults | present(asked))


def load_here(ranks: int, nodes: int | None, cards: int | None, **asked: Any) -> Load:
    """A load between so many processes of this machine."""
    if nodes is None:
        nodes = ranks // cards if cards else (2 if ranks % 2 == 0 else 1)
    cards = cards or ranks // nodes
    if nodes * cards != ranks:
        raise RoundelayError(f"{nodes} nodes of {cards} cards, and {ranks} ranks; expected as many")
    if asked["dtype"] == "bfloat16":
        raise RoundelayError("--dtype bfloat16 cannot be added up here; expected fp8 or float32")
    defaults: dict[str, Any] = {"tokens": TOKENS, "hidden": HIDDEN, "dtype": "float32"}
    return Load(nodes, cards, **defaults | present(asked))


def leave_out(action: str, clocked: bool) -> None:
    """Refuse options that would change nothing."""
    if action != "bench":
        no_use(("hidden", "dtype", "scales", "sms", "iters"), f"for {action}; it is for bench")
    elif clocked:
        no_use(("iters",), "with --cluster; it is for processes of this machine")
    else:
        no_use(("sms",), "without --cluster", "add such as --cluster h800:2")


def read(scores: str) -> Any:
    """The scores of a file; None for those that are drawn."""
    if scores == "uniform":
        return None
    no_use(("skew",), "with a file of --scores")
    return read_scores(Path(scores))


def present(asked: dict[str, Any]) -> dict[str, Any]:
    """What is asked for, without what is not."""
    return {name: value for name, value in asked.items() if value is not None}
