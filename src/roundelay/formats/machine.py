"""What is connected how in one machine, or in the few that share a file: every reader's result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from .note import Note

NEAR: Final = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB")
"""Ways that do not pass a processor."""
PATHS: Final = (*NEAR, "P2C", "PXN", "PHB", "NODE", "SYS", "NET", "DIS")
"""Classes of ways, the nearest first: NCCL's, and NODE of nvidia-smi (two host bridges of a NUMA
node)."""


@dataclass(frozen=True)
class Card:
    """A card.

    Attributes:
        name: as the file has it, else GPU with a number; unique in the machine.
        line: where it stands.
        host: number of its host in the file.
        numa: of its processor; None if not known.
        rank, device: numbers in the job and in the host.
        bus: PCI address.
        part: of a card that is parted among ranks; None for a whole one.
        links: NVLinks or xGMI links by what they lead to: "switch", or a bus or name.
        kind: of links: "nvlink" or "xgmi".
        model: such as "sm90" or "gfx942".
        pcie: GB/s one way of its own end; None if not known.
        c2c: links to its own processor, at least; 0 where none are known.
    """

    name: str
    line: int
    host: int = 0
    numa: int | None = None
    rank: int | None = None
    device: int | None = None
    bus: str = ""
    part: int | None = None
    links: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    kind: str = "nvlink"
    model: str = ""
    pcie: float | None = None
    c2c: int = 0

    @property
    def link_count(self) -> int:
        """All its links."""
        return sum(self.links.values())


@dataclass(frozen=True)
class Nic:
    """A network card.

    Attributes:
        name: as in `Card`.
        line, host, numa, bus, pcie: as in `Card`.
        device: of the system, such as "mlx5_0".
        ports: GB/s one way of each port; empty if not known.
        direct: whether NCCL has found GPUDirect RDMA for it; None if not known.
        told: whether the file tells all rates of its ports; NCCL takes 10 Gb/s for others.
    """

    name: str
    line: int
    host: int = 0
    numa: int | None = None
    bus: str = ""
    device: str = ""
    ports: tuple[float, ...] = ()
    pcie: float | None = None
    direct: bool | None = None
    told: bool = True

    @property
    def rate(self) -> float | None:
        """GB/s one way of all ports."""
        return sum(self.ports) or None


@dataclass(frozen=True)
class Slow:
    """A PCI bridge whose own figure is below what hangs under it: GB/s one way."""

    bus: str
    line: int
    text: str
    rate: float
    below: float


@dataclass(frozen=True)
class Machine:
    """Cards, network cards, and the ways between them.

    Attributes:
        source: "nccl", "nvidia-smi", "rocm-smi" or "hwloc".
        cards, nics: in the file's order.
        between: class of the way between two names, both orders; what is not there is not known.
        links_shown: whether the file shows NVLinks at all (`topo -mp` does not).
        slow: bridges whose figures are doubtful.
        unknown: PCI devices whose kind the file does not tell: address and line.
        missing: names that are in the head but have no row, or a row that is cut off; of XML,
            cards that are cut off.
        cut: whether the end is missing.
        notes: what was odd.
        numa_hidden: whether the file says of no processor which NUMA node it is.
        unequal: pairs of names between which the table says different things in its two rows: both
            cells, and the line of the second.
        folded: lines of host bridges in whose place the file puts network cards.
        unplaced: lines of cards that stand outside of any PCI device, where NCCL looks for none.
    """

    source: str
    cards: tuple[Card, ...]
    nics: tuple[Nic, ...]
    between: Mapping[tuple[str, str], str]
    links_shown: bool = True
    slow: tuple[Slow, ...] = ()
    unknown: tuple[tuple[str, int], ...] = ()
    missing: tuple[str, ...] = ()
    cut: bool = False
    notes: tuple[Note, ...] = ()
    numa_hidden: bool = False
    unequal: tuple[tuple[str, str, str, str, int], ...] = ()
    unplaced: tuple[int, ...] = ()
    folded: tuple[int, ...] = ()

    def way(self, a: Card | Nic, b: Card | Nic) -> str | None:
        """The class of the way between two of them."""
        return self.between.get((a.name, b.name))

    def nearest(self, card: Card) -> tuple[str, tuple[Nic, ...]] | None:
        """The class of a card's nearest way to a network card, and those that it reaches so."""
        ways = [(PATHS.index(way), nic) for nic in self.nics if (way := self.way(card, nic))]
        if not ways:
            return None
        best = min(rank for rank, _ in ways)
        return PATHS[best], tuple(nic for rank, nic in ways if rank == best)

    def usual_links(self) -> int:
        """Links that most cards have, of those that are whole if any is."""
        whole = [card for card in self.cards if card.name not in self.missing] or self.cards
        counts = Counter(card.link_count for card in whole)
        return max(counts, key=lambda count: (counts[count], count), default=0)

    def pairs(self) -> Iterator[tuple[Card, Card, str]]:
        """Pairs of cards whose way is known."""
        for i, a in enumerate(self.cards):
            for b in self.cards[i + 1 :]:
                way = self.way(a, b)
                if way is not None:
                    yield a, b, way
