"""What kinds of cards there are: how they are joined inside a host, and the machines of clouds."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

Joined = Literal["switch", "mesh", "cube", "bridge", "none"]


class Card(NamedTuple):
    """How cards of a kind reach one another.

    Attributes:
        joined: by an NVSwitch, a mesh of xGMI, NVLink in a cube, bridges of two, or not at all.
        line: GB/s one way of all its links; 0 without any.
        pcie: the generation of its slot.
        direct: whether a driver lets such cards reach one another over PCIe (P2P).
        adds: whether its NVSwitch adds (NVLS).
    """

    joined: Joined
    line: float
    pcie: int
    direct: bool = True
    adds: bool = False


_CARDS: Final[tuple[tuple[re.Pattern[str], Card], ...]] = tuple(
    (re.compile(pattern, re.I), card)
    for pattern, card in (
        (r"\bG?B[23]00\b", Card("switch", 900.0, 5, adds=True)),
        (r"\bH800\b(?!.*PCIe)", Card("switch", 200.0, 5, adds=True)),
        (r"\bH20\b", Card("switch", 450.0, 5, adds=True)),
        (r"\bH200 ?NVL\b", Card("bridge", 450.0, 5)),
        (r"\bH100 ?NVL\b|\bH[18]00\b.*PCIe", Card("bridge", 300.0, 5)),
        (r"\bH[12]00\b", Card("switch", 450.0, 5, adds=True)),
        (r"\bA800\b.*PCIe", Card("bridge", 200.0, 4)),
        (r"\bA800\b", Card("switch", 200.0, 4)),
        (r"\bA100\b.*PCIe", Card("bridge", 300.0, 4)),
        (r"\bA100\b", Card("switch", 300.0, 4)),
        (r"\bA30\b", Card("bridge", 100.0, 4)),
        (r"\bA40\b|\bA[56]000\b|\bA5500\b", Card("bridge", 56.25, 4)),
        (r"\bRTX PRO [4-6]\d00\b", Card("none", 0.0, 5)),
        (r"\b[45]000 Ada\b|\b6000 Ada\b|\bL(?:2|4|20|40S?)\b|\bA(?:2|10G?|16)\b|\bA[24][05]00\b",
         Card("none", 0.0, 4)),
        (r"\b(?:RTX ?)?50[5-9]0\b", Card("none", 0.0, 5, direct=False)),
        (r"\b(?:RTX ?)?40[5-9]0\b", Card("none", 0.0, 4, direct=False)),
        (r"\b(?:RTX ?)?3090\b", Card("bridge", 56.25, 4, direct=False)),
        (r"\b(?:RTX ?)?30[5-8]0\b", Card("none", 0.0, 4, direct=False)),
        (r"\b(?:RTX ?)?20[78]0\b", Card("bridge", 50.0, 3, direct=False)),
        (r"\b(?:GTX ?)?10[678]0\b|\bTITAN\b|\bK80\b|\bT4\b|\bP(?:4|40)\b|\bM[46]0\b",
         Card("none", 0.0, 3)),
        (r"\bV100\b.*PCIe|\bP100\b.*PCIe", Card("none", 0.0, 3)),
        (r"\bV100S?\b", Card("cube", 150.0, 3)),
        (r"\bP100\b", Card("cube", 80.0, 3)),
        (r"\bMI(?:50|60|100)\b", Card("bridge", 138.0, 4)),
        (r"\bMI3[02]\d[AX]?\b", Card("mesh", 448.0, 5)),
        (r"\bMI35\d[X]?\b", Card("mesh", 537.6, 5)),
    )
)  # fmt: skip
"""The first that fits. NVIDIA's and AMD's data sheets, half of a figure that adds directions;
GeForce from RTX 20 on: NVIDIA's driver offers no P2P but over a bridge."""


def card_of(name: str) -> Card | None:
    """What is known of a card by its name."""
    return next((card for pattern, card in _CARDS if pattern.search(name)), None)


class Instance(NamedTuple):
    """A machine of a cloud.

    Attributes:
        pattern: of its name.
        machine: the named machine that it is; "" of one that is like the card's.
        card: its card.
        nics, nic: network cards, and GB/s one way of each.
    """

    pattern: re.Pattern[str]
    machine: str
    card: str
    nics: int
    nic: float

    @property
    def plugin(self) -> str:
        """The plugin of NCCL without which such a machine uses TCP sockets; "" where none is."""
        return next((name for part, name in _PLUGINS if part in self.pattern.pattern), "")


_PLUGINS: Final = (
    ("p4d", "aws-ofi-nccl"), ("p5", "aws-ofi-nccl"), ("p6", "aws-ofi-nccl"),
    ("high", "GPUDirect-TCPX"), ("mega", "GPUDirect-TCPXO"), ("ultra", "gIB"),
)  # fmt: skip
INSTANCES: Final = tuple(
    Instance(re.compile(rf"(?<![A-Za-z0-9])(?:{pattern})", re.I), machine, card, nics, nic)
    for pattern, machine, card, nics, nic in (
        (r"p3dn\b", "", "V100", 1, 12.5), (r"p3\.16x", "", "V100", 1, 3.125),
        (r"p4d\b", "aws-p4d", "A100", 4, 12.5),
        (r"p4de\b", "aws-p4de", "A100", 4, 12.5),
        (r"p5\.", "aws-p5", "H100", 32, 12.5),
        (r"p5en\b", "aws-p5en", "H200", 16, 25.0),
        (r"p6-b200\b", "aws-p6-b200", "B200", 8, 50.0),
        (r"ND96a\w*s?r?_(?:A100_)?v4\b|ND96amsr", "azure-nd-a100-v4", "A100", 8, 25.0),
        (r"ND96is\w*_H100_v5\b", "azure-nd-h100-v5", "H100", 8, 50.0),
        (r"ND96is\w*_H200_v5\b", "azure-nd-h200-v5", "H200", 8, 50.0),
        (r"ND96is\w*_MI300X_v5\b", "mi300x", "MI300X", 8, 50.0),
        (r"a3-?high\w*", "", "H100", 4, 25.0), (r"a3-?mega\w*", "", "H100", 8, 25.0),
        (r"a3-?ultra\w*", "", "H200", 8, 50.0), (r"a2-?[a-z]+gpu\w*", "", "A100", 1, 12.5),
        (r"a4-?h\w*", "", "B200", 8, 50.0),
        (r"BM\.GPU\.H100\.8\b", "", "H100", 16, 25.0),
        (r"BM\.GPU\.H200\.8\b", "", "H200", 8, 50.0),
        (r"BM\.GPU(?:4|\.A100-v2|\.B4)\.8\b", "", "A100", 16, 12.5),
        (r"BM\.GPU\.MI300X\.8\b", "", "MI300X", 8, 50.0),
        (r"DGX-?2\b", "", "V100", 8, 12.5), (r"DGX-?1V?\b", "", "V100", 4, 12.5),
        (r"DGX ?-?A100\b", "dgx-a100", "A100", 8, 25.0),
        (r"DGX ?-?H100\b", "dgx-h100", "H100", 8, 50.0),
    )
)  # fmt: skip
"""By the clouds' and NVIDIA's own pages."""


def instance_of(text: str) -> Instance | None:
    """The machine that a name stands for."""
    return next((one for one in INSTANCES if one.pattern.search(text)), None)
