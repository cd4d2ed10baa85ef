"""Facts about a measurement that somebody wrote down."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from ..finding import Evidence

_NAMED: Final = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?) ?(GB/s|Gb/s|GBps|Gbps)")


@dataclass
class Facts:
    """What is known; None and empty for what is not. Rates are in GB/s.

    Attributes:
        collectives: their names.
        card: the kind of card.
        ranks, nodes, cards: all ranks, hosts, and ranks of each host.
        nics, nic, nic_per_card: network cards of a host; the line rate of each; a card's share.
        port: the rate that a network card's port reports.
        links, link_line, link_usable: a card's links; of one the line rate, and what is reached.
        inside: line rate of all a card's links, one way.
        advertised, duplex: a rate as sold, and whether it adds both directions.
        usable: what a library takes as the rate of all of a card's links, one way.
        expected: what somebody expected.
        busbw, algbw: measured, by the other words of their names.
        average, peak: of busbw over sizes.
        measured, network: measured, or stated, of the card's links and of the network.
        wire_test: what a test of the network alone gives.
        printed_rdma, printed_nvlink: as DeepEP prints them.
        before, after: measured before and after a change.
        together, apart: as DeepEP prints them: dispatch and combine timed in one, and each alone.
        per_connection, chunk_bytes, connections, by_chunk: the rate of one connection, its
            pieces' bytes, how many there are, and the rate with pieces of other sizes.
        max_bytes: the largest size that was measured.
        table_ranks: ranks that each printed table names.
        ports: of a bond.
        iterations: of the measurement.
        layouts, layout_times: busbw, and seconds of a call, by cards of each host (0: as many as
            elsewhere) and hosts.
        by_version, by_nodes, by_ranks, by_pair: busbw by a library's version, number of hosts,
            number of cards of one host, pair of hosts.
        times, sizes: seconds and bytes, by name.
        flags, settings: what is so or not, and what was set, by name.
        pcie, lanes: generation and lanes of the slot of a card.
        machine: an instance of a cloud, or a machine, by its maker's name.
        per_nic: what each network card was measured to carry.
        node_line: line rate of all network cards of a host.
        runs: busbw of the same test, one run after another.
        p2p: one way between two cards with P2P ("on") and without ("off").
        copies: between the host's memory and a card, by way ("in", "out") and what copies ("sm",
            "ce" or "").
        wrong: wrong elements.
        texts: sentences by name.
        evidence: where each was read.
        unknown: names that are not understood.
        odd: names and values that cannot be what the name says.
    """

    file: str = "-"
    collectives: tuple[str, ...] = ()
    card: str | None = None
    ranks: int | None = None
    nodes: int | None = None
    cards: int | None = None
    nics: int | None = None
    nic: float | None = None
    nic_per_card: float | None = None
    port: float | None = None
    links: int | None = None
    link_line: float | None = None
    link_usable: float | None = None
    inside: float | None = None
    advertised: float | None = None
    duplex: bool | None = None
    usable: float | None = None
    expected: float | None = None
    busbw: dict[str, float] = field(default_factory=dict)
    algbw: dict[str, float] = field(default_factory=dict)
    average: float | None = None
    peak: float | None = None
    measured: float | None = None
    network: float | None = None
    wire_test: float | None = None
    printed_rdma: float | None = None
    printed_nvlink: float | None = None
    before: float | None = None
    after: float | None = None
    together: float | None = None
    apart: tuple[float, float] | None = None
    per_connection: float | None = None
    chunk_bytes: int | None = None
    connections: int | None = None
    by_chunk: dict[int, float] = field(default_factory=dict)
    max_bytes: int | None = None
    table_ranks: int | None = None
    ports: int | None = None
    iterations: int | None = None
    layouts: dict[tuple[int, int | None], float] = field(default_factory=dict)
    layout_times: dict[tuple[int, int | None], float] = field(default_factory=dict)
    by_version: dict[str, float] = field(default_factory=dict)
    by_nodes: dict[int, float] = field(default_factory=dict)
    by_ranks: dict[int, float] = field(default_factory=dict)
    by_pair: dict[tuple[str, str], float] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    flags: dict[str, bool] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    pcie: int | None = None
    lanes: int | None = None
    machine: str | None = None
    per_nic: float | None = None
    node_line: float | None = None
    runs: tuple[float, ...] = ()
    p2p: dict[str, float] = field(default_factory=dict)
    copies: dict[tuple[str, str], float] = field(default_factory=dict)
    wrong: int | None = None
    evidence: dict[str, tuple[Evidence, ...]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    odd: tuple[tuple[str, str], ...] = ()

    def says(self, *parts: str) -> bool:
        """Whether a sentence, or a word of a name, has one of these in it."""
        text = " ".join((*self.texts.values(), *self.settings.values())).lower()
        return any(part in text for part in parts)

    def lacks(self, *parts: str) -> bool:
        """Whether something by such a name is said not to be there."""
        return any(not so and part in name for name, so in self.flags.items() for part in parts)

    def has(self, *parts: str) -> bool:
        """Whether something by such a name is said to be there."""
        return any(so and part in name for name, so in self.flags.items() for part in parts)

    def rates_in_texts(self) -> list[tuple[float, str]]:
        """Rates in sentences: the number as written, and its unit, GB/s or Gb/s."""
        found = _NAMED.findall(" ".join(self.texts.values()))
        return [(float(number), unit.replace("ps", "/s")) for number, unit in found]
