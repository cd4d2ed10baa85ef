"""What errors of cards stand for, by number (NVIDIA's GPU Debug Guidelines, Xid Errors)."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

_PROGRAM: Final = (
    "It is a fault of a kernel as a rule, such as a wrong address or index; the card is suspect "
    "only if it comes with many programs."
)
_MEMORY: Final = (
    "The card's memory has an error that cannot be corrected: the process is lost. Reset the card, "
    "and change it if that comes again."
)
_LINK: Final = (
    "NVLink has failed between this card and another or a switch: all cards of the job that use it "
    "stop."
)
_FIRMWARE: Final = (
    "The card's own firmware (GSP) does not answer: reset the card or restart the host, and update "
    "the driver."
)
FOLLOWS: Final = 45
"""The number that comes after another fault."""
XIDS: Final = MappingProxyType(
    {
        **dict.fromkeys((13, 31, 43), _PROGRAM),
        **dict.fromkeys((48, 64, 92, 94, 95, 140), _MEMORY),
        **dict.fromkeys((62, 119, 120), _FIRMWARE),
        **dict.fromkeys((74, *range(144, 151)), _LINK),
        FOLLOWS: "The driver has cleaned up after a process that ended: it follows from another "
        "error or from a kill, and is no cause.",
        63: "A part of the card's memory was set aside (row remapping): reset the card when the "
        "job is done.",
        137: "A card was refused access to another's memory over NVLink: a wrong address of the "
        "program, as a buffer that was freed while others used it.",
        79: "The card has fallen off the bus: PCIe, power or heat, and no fault of the program. "
        "The host must be restarted; if it comes again, change card or slot.",
        109: "A kernel or its switching took too long: a program that hangs on the card, or an "
        "error before.",
    }
)
