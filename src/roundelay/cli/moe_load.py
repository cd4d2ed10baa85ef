"""The load that `roundelay moe` is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from ..errors import RoundelayError
from ..moe.bench import Load
from ..moe.gate import read_scores
from ..topology import Cluster
from .targets import given

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
    unused: tuple[str, ...]
    if action != "bench":
        unused = ("hidden", "dtype", "scales", "sms", "iters")
        why = f"bench; leave out with {action}"
    elif clocked:
        unused, why = ("iters",), "processes of this machine; leave out with --cluster"
    else:
        unused, why = ("sms",), "the clock; add such as --cluster h800:2"
    if names := given(*unused):
        raise click.UsageError(f"{', '.join(names)}: for {why}")


def read(scores: str, skew: float | None) -> Any:
    """The scores of a file; None for those that are drawn."""
    if scores == "uniform":
        return None
    if skew is not None:
        raise click.UsageError("--skew is for scores that are drawn; leave it out with a file of "
                               "--scores")  # fmt: skip
    return read_scores(Path(scores))


def present(asked: dict[str, Any]) -> dict[str, Any]:
    """What is asked for, without what is not."""
    return {name: value for name, value in asked.items() if value is not None}
