"""All that the rules look at: facts, a table, and the cluster it was measured on."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Final

from ...errors import RoundelayError
from ...formats.nccl_tests import Row, Table, Timing, bus_factor
from ...topology import Cluster
from ..finding import Evidence, Figures, Finding, tell
from .cards import Card, card_of, instance_of
from .expected import Judged, Predict
from .facts import Facts

MACHINES: Final = MappingProxyType(
    {
        "VR200": "vr200-nvl144", "GB300": "gb300-nvl72", "GB200": "gb200-nvl72",
        "B300": "dgx-b300", "B200": "dgx-b200", "H800": "h800", "H200": "hgx-h200",
        "H100": "dgx-h100", "A100": "dgx-a100", "MI300X": "mi300x", "L40S": "l40s-pcie",
        "V100": "v100-pcie",
    }
)  # fmt: skip
"""Named machines by a card that they have."""
LARGE: Final = 2**33
"""Bytes at which bandwidths are compared: 8 GiB, as nccl-tests' own guide does."""

GB: Final = 1e9
"""Bytes."""


def machine_of(card: str) -> str | None:
    """The named machine that has such cards, in the same form (PCIe or SXM), if one has."""
    other = re.compile(r"\bPCIe\b|\bNVL\b|\bGH200", re.I), re.compile(r"\bSXM", re.I)
    name = next((name for kind, name in MACHINES.items() if kind in card.upper()), None)
    return None if name is None or other[name.endswith("-pcie")].search(card) else name


_GENERATIONS: Final = (
    (re.compile(r"\bV100"), "volta"), (re.compile(r"\bA(?:100|800|30|40|10|6000)\b"), "ampere"),
    (re.compile(r"\b(?:GH200|H(?:100|200|800|20))\b"), "hopper"),
    (re.compile(r"\bG?B(?:100|200|300)\b"), "blackwell"), (re.compile(r"\bMI3\d\d"), "cdna3"),
    (re.compile(r"\bL(?:4|40|40S)\b|RTX 4\d\d\d"), "ada"),
)  # fmt: skip
"""Generations by names of cards, as NVML and nccl-tests write them."""


def generation_of(card: str) -> str | None:
    """The generation of a card by its name, if that tells."""
    return next((name for pattern, name in _GENERATIONS if pattern.search(card)), None)


@dataclass(frozen=True)
class Case:
    """What is known of one measurement. Rates are in GB/s, one way.

    Attributes:
        facts: as written down, or taken from the table.
        cluster: where it was measured, if that is known.
        table: what was measured.
        rows: of the table, beside what is expected.
        predict: the model.
        assumed: whether the cluster was only taken by the cards' name.
    """

    facts: Facts
    cluster: Cluster | None = None
    table: Table | None = None
    rows: tuple[Judged, ...] = ()
    predict: Predict | None = None
    assumed: bool = False

    @property
    def nics_assumed(self) -> bool:
        """Whether the network cards are those of machines with such cards, and not told."""
        facts = self.facts
        known = facts.machine and instance_of(facts.machine)
        told = facts.nic or facts.nic_per_card or facts.node_line or known
        return self.assumed and not told

    @property
    def collective(self) -> str:
        """The one that was measured; all_reduce is what people measure if they do not say."""
        return self.facts.collectives[0] if self.facts.collectives else "all_reduce"

    @property
    def nodes(self) -> int | None:
        """Hosts."""
        if self.facts.nodes is None and self.facts.ranks and self.cluster:
            return -(-self.facts.ranks // self.cluster.cards)
        return self.facts.nodes

    @property
    def cards(self) -> int | None:
        """Ranks of each host."""
        facts = self.facts
        if facts.cards is None and facts.ranks and facts.nodes:
            return facts.ranks // facts.nodes
        return facts.cards or (self.cluster.cards if self.cluster else None)

    @property
    def ranks(self) -> int | None:
        """All ranks."""
        if self.facts.ranks is None and self.cards:
            return (self.nodes or 1) * self.cards
        return self.facts.ranks

    @property
    def inside(self) -> float | None:
        """Line rate of all of a card's links to the others of its node."""
        facts = self.facts
        if facts.inside is None and facts.links and facts.link_line:
            return facts.links * facts.link_line
        if facts.inside is None and self.cluster is None:
            kind = self.kind
            linked = kind and (kind.joined in ("switch", "mesh", "cube") or self.bridged)
            return kind.line if kind and linked and kind.line else None
        return facts.inside or (self.cluster.inside.rate / GB if self.cluster else None)

    @property
    def kind(self) -> Card | None:
        """What is known of the card."""
        return card_of(self.facts.card) if self.facts.card else None

    @property
    def bridged(self) -> bool:
        """Whether an NVLink bridge joins all the cards, as somebody says."""
        said = f"{self.facts.card} {' '.join(self.facts.texts.values())}".lower()
        links = "bridge" in said or "nvlink" in said or bool(re.search(r"\bnv\d\b", said))
        return links and "no nvlink" not in said and (self.ranks or 2) == 2

    @property
    def bonded(self) -> bool:
        """Whether network cards are one device together."""
        return any(so and "bond" in name for name, so in self.facts.flags.items())

    @property
    def best_rate(self) -> float | None:
        """The highest rate that was measured, GB/s."""
        facts = self.facts
        return facts.peak or facts.measured or max(facts.busbw.values(), default=None)

    @property
    def best_line(self) -> tuple[Evidence, ...]:
        """The row of the highest bus bandwidth."""
        return self.lines(self.best_row[0]) if self.best_row else ()

    @property
    def nic(self) -> float | None:
        """Line rate of a network card."""
        if self.facts.nic is None and self.facts.nic_per_card is None and self.cluster:
            return self.cluster.nics.rate / GB or None
        return self.facts.nic or self.facts.nic_per_card

    @property
    def nics(self) -> int | None:
        """Network cards of a host."""
        facts = self.facts
        if facts.nics is None and facts.nic_per_card is not None:
            return self.cards
        if facts.nics is None and facts.nic and self.cluster:
            line = self.cluster.nics.rate / GB
            return self.cluster.nics.count if abs(facts.nic - line) < 0.05 * line else None
        return facts.nics or (self.cluster.nics.count if self.cluster else None)

    @property
    def node_rate(self) -> float | None:
        """Line rate of all network cards of a host."""
        if self.facts.node_line:
            return self.facts.node_line
        return self.nic * self.nics if self.nic and self.nics else None

    @property
    def subject(self) -> str:
        """What it is about, in a few words."""
        parts = [", ".join(self.facts.collectives), self.facts.card or ""]
        if self.ranks and (self.facts.ranks or self.facts.nodes):
            parts.append(f"n = {self.ranks}")
        return ", ".join(filter(None, parts)) or self.facts.file

    def expected_busbw(self, collective: str | None = None, size: int = LARGE) -> float | None:
        """What the model expects; None where it cannot say, or not for these network cards."""
        name, ranks, facts = collective or self.collective, self.ranks, self.facts
        if self.cluster is None or self.predict is None or not ranks:
            return None
        if (self.nodes or 1) > 1 and (facts.nics or facts.nic or facts.nic_per_card):
            return None
        if facts.links not in (None, self.cluster.inside.links):
            return None
        try:
            time = self.predict(self.cluster, name, size, ranks).time_s
            return size / time / GB * float(bus_factor(name, ranks))
        except (RoundelayError, KeyError):
            return None

    @cached_property
    def best_row(self) -> tuple[Row, Timing] | None:
        """The row of the highest bus bandwidth."""
        if self.table is None:
            return None
        pairs = [(row, timing) for row in self.table.rows for _, timing in row.timings()]
        return max(pairs, key=lambda pair: pair[1].busbw)

    def cited(self, *fields: str) -> tuple[Evidence, ...]:
        """Where facts were read."""
        known = self.facts.evidence
        return tuple(evidence for name in fields for evidence in known.get(name, ()))

    def lines(self, *rows: Row) -> tuple[Evidence, ...]:
        """Rows of the table."""
        return tuple(Evidence(self.facts.file, row.line, row.text) for row in rows)


Rule = Callable[[Case], Finding | None]
"""What looks for one thing."""


def found(
    case: Case,
    kind: str,
    figures: Figures,
    reason: Sequence[str],
    advice: str,
    cited: tuple[Evidence, ...] = (),
    *,
    fault: bool = False,
    confidence: float = 0.8,
    subject: str = "",
) -> Finding:
    """A finding about a case.

    Args:
        case: what it is about.
        kind: see `Finding`.
        figures: see `Finding`.
        reason: sentences, with the names of figures in braces.
        advice: a sentence of the same kind.
        cited: the evidence.
        fault: see `Finding`.
        confidence: see `Finding`.
        subject: if not the case's.
    """
    return tell(
        kind, subject or case.subject, figures, reason, advice, cited, fault=fault,
        confidence=confidence,
    )  # fmt: skip
