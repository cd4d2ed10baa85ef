"""The cluster that a machine's topology file describes, beside the named machine of its cards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath
from types import MappingProxyType
from typing import Final

from ...errors import RoundelayError
from ...formats.machine import Machine
from ...topology import Cluster, Nics

LIKE: Final = MappingProxyType(
    {"sm80": "dgx-a100", "sm90": "dgx-h100", "sm100": "dgx-b200", "sm103": "dgx-b300",
     "gfx942": "mi300x"}
)  # fmt: skip
"""By the model of its cards, the named machine that tells what a topology file does not."""


def cluster_of(machine: Machine, file: str, named: Callable[[str], Cluster]) -> Cluster:
    """One node of a cluster: cards, links and network cards from the file, the rest as named.

    Args:
        machine: as read.
        file: its name.
        named: gives named machines.

    Raises:
        RoundelayError: the file is a part, tells too little, or its cards differ; a figure is
            never guessed in silence.
    """
    model = _sound(machine, file)
    like = named(LIKE[model])
    links = machine.cards[0].link_count
    rates = {nic.rate for nic in machine.nics}
    if len(rates) > 1 or None in rates:
        raise RoundelayError(f"{file}: network cards whose rates differ or are not told; leave out "
                             "those that carry no collectives, or write the rate")  # fmt: skip
    rate = rates.pop() if rates else 0.0
    nics = (replace(like.nics, count=len(machine.nics), rate=(rate or 0.0) * 1e9)
            if machine.nics else Nics(0))  # fmt: skip
    name = PurePath(file).name
    inside = replace(like.inside, links=links, rate=like.inside.rate / like.inside.links * links)
    told = dict.fromkeys(("cards", "inside.links", "nics.count", "nics.rate"), name)
    return replace(
        like, name=PurePath(file).stem, title=f"as {name} tells, and else as {like.name}",
        cards=len(machine.cards), inside=inside, nics=nics, sources={**like.sources, **told},
    )  # fmt: skip


def _sound(machine: Machine, file: str) -> str:
    """The model of all its cards."""
    models = {card.model for card in machine.cards}
    counts = {card.link_count for card in machine.cards}
    why = ""
    if machine.cut or machine.missing:
        why = "it is cut off"
    elif len(machine.cards) < 2 or len({card.host for card in machine.cards}) > 1:
        why = "expected the cards of one host, two or more"
    elif len(models) > 1 or not models <= set(LIKE):
        why = f"cards {', '.join(sorted(models)) or '?'}; expected all of one of {', '.join(LIKE)}"
    elif len(counts) > 1 or not min(counts):
        why = f"cards with {', '.join(map(str, sorted(counts)))} links; expected as many on each"
    if why:
        raise RoundelayError(f"{file} makes no cluster: {why}; `roundelay diagnose` says more")
    return models.pop()
