"""What matrices of rates say: which pairs are slow, whether cards reach one another, which slot."""

from __future__ import annotations

from statistics import median
from typing import Final

from ...formats.bandwidth import Bandwidths, Matrix
from ..finding import Evidence, Figures, Finding, names, numbers, tell
from .cards import Card
from .quantities import slot_rate

DATA: Final = (0.72, 0.93)
"""Of a slot's line rate, what copies between a card and its host reach."""
LOW: Final = 0.6
"""Of what is usual in a matrix, or of a full slot."""
_LANES: Final = (
    "All pairs with card {card} are: its slot runs at fewer lanes or a lower "
    "generation, or its links are down."
)
_LINKS: Final = "All pairs with card {card} are: some of its links are down."
STUCK_US: Final = 1000.0
"""Microseconds: no way between cards of a host takes as long."""


def matrix_findings(file: str, found: Bandwidths, card: Card | None, name: str) -> list[Finding]:
    """What is to be said of matrices, and of cards that may not reach one another."""
    told: list[Finding | None] = []
    rates = [m for m in found.matrices if not m.latency and not m.both]
    on = next((m for m in rates if m.peers and not m.host), None)
    off = next((m for m in rates if m.peers is False and not m.host), None)
    plain = next((m for m in rates if m.peers is None and not m.host), None)
    stuck = [
        m for m in found.matrices if m.latency and m.peers and max(m.cells.values()) > STUCK_US
    ]
    broken = _broken(file, on, off, stuck)
    told.append(broken)
    told.append(_barred(file, found, on or off, card, name))
    best = on or plain or off
    if best is not None and broken is None:
        told.append(_uneven(file, best, card))
        if not (found.barred and told[1]):
            told.append(_ways(file, best, card, name))
    for matrix in rates:
        if matrix.host:
            told += _hosts(file, matrix, card, name)
    return [finding for finding in told if finding is not None]


def _cited(file: str, *matrices: Matrix | None) -> tuple[Evidence, ...]:
    return tuple(Evidence(file, m.lines[0][0], m.lines[0][1]) for m in matrices if m and m.lines)


def _broken(
    file: str, on: Matrix | None, off: Matrix | None, stuck: list[Matrix]
) -> Finding | None:
    """P2P that is slower than the way through the host."""
    slow = on is not None and off is not None and (
        median(on.cells.values()) < 0.5 * median(off.cells.values()))  # fmt: skip
    if not slow and not stuck:
        return None
    figures: Figures = {}
    reason = []
    if slow and on is not None and off is not None:
        figures |= {"on_GBps": median(on.cells.values()), "off_GBps": median(off.cells.values())}
        reason.append("With P2P a copy between two cards has {on_GBps} GB/s, without it {off_GBps} "
                      "GB/s: the direct way is slower than the one through the host.")  # fmt: skip
    if stuck:
        figures["latency_us"] = max(max(m.cells.values()) for m in stuck)
        reason.append("With P2P a small copy takes {latency_us} us, and should take 2 to 20.")
    reason.append("PCIe access control (ACS) or the IOMMU sends P2P the long way round, or loses "
                  "it; NCCL hangs or crawls on such a machine.")  # fmt: skip
    return tell("p2p_broken", file, figures, reason,
                "Turn ACS off (BIOS, or setpci on every bridge) and boot with iommu=pt or "
                "iommu=off; until then NCCL_P2P_DISABLE=1.",
                _cited(file, on, off, *stuck[:1]), fault=True, confidence=0.9, area="machine"
                )  # fmt: skip


def _barred(
    file: str, found: Bandwidths, matrix: Matrix | None, card: Card | None, name: str
) -> Finding | None:
    """Cards that can not access one another."""
    if not found.barred:
        return None
    figures: Figures = {"pairs": found.barred, "card": name or "?"}
    reason = ["{pairs:ordered pair|ordered pairs} of cards can not access one another directly (no "
              "P2P): copies pass through the host's memory, and NCCL takes SHM."]  # fmt: skip
    if matrix is not None:
        figures["rate_GBps"] = median(matrix.cells.values())
        reason.append("They reach {rate_GBps} GB/s one way that way.")
    usual = card is not None and not card.direct and not found.reached
    if found.reached:
        figures["reached"] = found.reached
        reason.append("{reached:pair|pairs} can: cards of different kinds have no P2P with one "
                      "another, and a ring over all of them passes through the host.")  # fmt: skip
    elif usual:
        reason.append("Of {card} that is usual: the driver offers no P2P between such cards.")
    else:
        reason.append("The driver, cards of different kinds, the IOMMU or a virtual machine "
                      "forbids it.")  # fmt: skip
    return tell("no_peer_access", file, figures, reason,
                "Expect a quarter to a half of PCIe's line rate as busbw. See nvidia-smi topo "
                "-p2p r for each pair's reason; within a virtual machine pass the switches through "
                "as well.",
                _cited(file, matrix), fault=not usual and card is not None, confidence=0.85,
                area="machine")  # fmt: skip


def _uneven(file: str, matrix: Matrix, card: Card | None) -> Finding | None:
    """A card all of whose pairs are slow, or pairs that are."""
    usual = median(matrix.cells.values())
    slow = {pair for pair, rate in matrix.cells.items() if rate < LOW * usual}
    if not slow or 2 * len(slow) > len(matrix.cells):
        return None
    cards = sorted({a for pair in matrix.cells for a in pair})
    guilty = [c for c in cards if len(cards) > 2 and all(p in slow for p in matrix.cells if c in p)]
    figures: Figures = {
        "slow_GBps": median(matrix.cells[p] for p in slow), "usual_GBps": usual,
        "pairs": names([f"{a}-{b}" for a, b in sorted(slow)], 6), "slow": len(slow),
        "all": len(matrix.cells),
    }  # fmt: skip
    reason = ["{slow} of {all:ordered pair is|ordered pairs are} slow: {slow_GBps} instead of "
              "{usual_GBps} GB/s one way ({pairs})."]  # fmt: skip
    if guilty:
        figures["card"] = ", ".join(map(str, guilty))
        reason.append(_LINKS if card is not None and card.joined in ("switch", "mesh") else _LANES)
    elif card is not None and card.joined in ("none", "bridge", "cube"):
        reason.append("Those pairs lie further apart (other PCIe switches or sockets, no bridge), "
                      "and a ring goes at the rate of its slowest pair.")  # fmt: skip
    fault = bool(guilty) or card is None or card.joined in ("switch", "mesh")
    return tell("uneven_pairs", file, figures, reason,
                "See nvidia-smi topo -m for the way between them, nvidia-smi nvlink -s for links "
                "that are down, and nvidia-smi -q (PCI, Link Width) under load.",
                _cited(file, matrix), fault=fault, confidence=0.75, area="machine")  # fmt: skip


def _ways(file: str, matrix: Matrix, card: Card | None, name: str) -> Finding | None:
    """What carries copies between cards."""
    usual = median(matrix.cells.values())
    figures: Figures = {"usual_GBps": usual, "least_GBps": min(matrix.cells.values()),
                        "most_GBps": max(matrix.cells.values()), "card": name or "?"}  # fmt: skip
    reason = ["Copies between two cards have {usual_GBps} GB/s one way (from {least_GBps} to "
              "{most_GBps})."]  # fmt: skip
    fault = False
    if card is not None and card.joined == "switch":
        figures |= {"line_GBps": card.line, "share": usual / card.line}
        reason.append("The links of {card} carry {line_GBps} GB/s one way; that is {share} of it.")
        if usual < 0.5 * card.line:
            fault = True
            reason.append("So they do not go over all of its NVLinks: links are down, or the "
                          "fabric manager does not run, and it is PCIe that carries them."
                          )  # fmt: skip
    elif usual > 70:
        reason.append("More than PCIe carries: they go over NVLink or xGMI.")
    elif card is not None and card.joined in ("none", "bridge"):
        line = slot_rate(card.pcie, 16)
        figures |= {"line_GBps": line, "share": usual / line, "generation": card.pcie}
        if usual <= line:
            reason.append("PCIe {generation} x16 carries {line_GBps} GB/s one way; that is {share} "
                          "of it, and 0.7 to 0.85 is usual with P2P.")  # fmt: skip
        else:
            reason.append("More than PCIe {generation} x16 carries ({line_GBps} GB/s): an NVLink "
                          "bridge does.")  # fmt: skip
        fault = usual < 0.2 * line
    elif "copy peak" not in matrix.title:
        reason.append("PCIe 4 x16 carries 31.5 GB/s one way and PCIe 5 x16 63 GB/s, of which 0.7 "
                      "to 0.85 is usual with P2P; one NVLink of a bridge or cube carries 20 to 25."
                      )  # fmt: skip
    else:
        reason.append("One link of xGMI carries 50 to 64 GB/s one way, of which 37 to 50 are "
                      "usual; PCIe 4 x16 carries 31.5 GB/s, PCIe 5 x16 63 GB/s.")  # fmt: skip
    return tell("ways_between", file, figures, reason,
                "Copies by the copy engines may be a little faster than NCCL's kernels; expect "
                "0.8 to 0.9 of it as busbw of a ring.",
                _cited(file, matrix), fault=fault, confidence=0.8, area="machine")  # fmt: skip


def _hosts(file: str, matrix: Matrix, card: Card | None, name: str) -> list[Finding]:
    """Between cards and their host."""
    if "<->" in matrix.title:
        return []
    best = max(matrix.cells.values())
    slow = sorted({b for (_, b), rate in matrix.cells.items() if rate < LOW * best})
    if slow:
        figures: Figures = {"count": len(slow), "cards": numbers(slow, 8),
                            "best_GBps": best,
                            "slow_GBps": min(matrix.cells.values())}  # fmt: skip
        return [tell(
            "slow_slot", file, figures,
            ["Between the host and {count:card|cards} ({cards}): {slow_GBps} GB/s, where the "
             "others have {best_GBps}: the slot runs at fewer lanes or a lower generation, or the "
             "memory lies on another socket."],
            "See nvidia-smi -q (PCI, Link Width and Generation) under load; reseat the card, and "
            "bind the test to the card's socket (numactl).",
            _cited(file, matrix), fault=True, confidence=0.8, area="machine",
        )]  # fmt: skip
    finding = slot_like(median(matrix.cells.values()), card, name, _cited(file, matrix))
    return [finding] if finding else []


def slot_like(
    rate: float, card: Card | None, name: str, cited: tuple[Evidence, ...]
) -> Finding | None:
    """Which slot gives a rate between a card and its host."""
    if not rate:
        return None
    fits = [(generation, lanes) for lanes in (16, 8, 4, 1) for generation in (6, 5, 4, 3, 2, 1)
            if DATA[0] * slot_rate(generation, lanes) <= rate <= DATA[1] * slot_rate(generation,
                                                                                     lanes
                                                                                     )]  # fmt: skip
    figures: Figures = {"rate_GBps": rate, "card": name or "?"}
    reason = ["Between the card and its host: {rate_GBps} GB/s one way, over PCIe."]
    full = slot_rate(card.pcie, 16) if card else 0.0
    if full:
        figures |= {"pcie_GBps": full, "share": rate / full, "generation": card.pcie if card else 0}
        reason.append("PCIe {generation} x16, which {card} has, carries {pcie_GBps} GB/s; that is "
                      "{share} of it.")  # fmt: skip
    low = bool(full) and rate < LOW * full
    if fits and (low or not full):
        figures["slots"] = ", ".join(f"PCIe {g} x{lanes}" for g, lanes in fits[:3])
        reason.append("It is what {slots} gives: see how many lanes the link has.")
    if low and not fits:
        reason.append("No slot gives just that: memory on another socket, pageable memory or a "
                      "busy link bounds it.")  # fmt: skip
    return tell("slow_slot" if low else "host_link", name or "PCIe", figures, reason,
                "See nvidia-smi -q (PCI, Link Width and Generation: current and max) under load, "
                "reseat the card or mend the BIOS setting, and bind the test to the card's socket."
                if low else "Nothing is wrong: 0.75 to 0.9 of the line are usual with pinned "
                "memory.",
                cited, fault=low, confidence=0.8, area="machine")  # fmt: skip
