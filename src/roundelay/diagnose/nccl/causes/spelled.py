"""Errors of CUDA and HIP by their names in the API and by their numbers, as their texts.

Sources: cudaError and CUresult in the CUDA Runtime and Driver API references; hipError_t in HIP's.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Final

_TEXTS: Final = MappingProxyType(
    {
        "illegaladdress": "illegal memory access",
        "launchfailure": "unspecified launch failure", "launchfailed": "unspecified launch failure",
        "launchtimeout": "launch timed out", "launchoutofresources": "too many resources requested",
        "misalignedaddress": "misaligned address", "illegalinstruction": "illegal instruction",
        "invalidpc": "invalid program counter", "assert": "device-side assert",
        "hardwarestackerror": "hardware stack error", "eccuncorrectable": "uncorrectable ECC",
        "eccnotcorrectable": "uncorrectable ECC", "nvlinkuncorrectable": "uncorrectable NVLink",
        "memoryallocation": "out of memory", "outofmemory": "out of memory",
        "invaliddevice": "invalid device ordinal", "nodevice": "no CUDA-capable device",
        "initializationerror": "initialization error", "notinitialized": "initialization error",
        "systemnotready": "system not yet initialized",
        "systemdrivermismatch": "system has unsupported display driver",
        "compatnotsupportedondevice": "forward compatibility was attempted",
        "insufficientdriver": "driver version is insufficient",
        "nokernelimagefordevice": "no kernel image is available",
        "nobinaryforgpu": "no kernel image is available",
        "sharedobjectinitfailed": "named symbol not found", "notfound": "named symbol not found",
        "invaliddevicefunction": "invalid device function",
        "unsupportedptxversion": "unsupported toolchain",
        "peeraccessunsupported": "peer access is not supported",
        "toomanypeers": "peer mapping resources exhausted",
        "deviceunavailable": "busy or unavailable", "devicesunavailable": "busy or unavailable",
        "devicealreadyinuse": "exclusive", "mpsconnectionfailed": "MPS client failed",
        "invalidvalue": "invalid argument", "invalidresourcehandle": "invalid resource handle",
        "invalidhandle": "invalid resource handle", "illegalstate":
        "cannot be performed in the present state", "notsupported": "operation not supported",
        "notpermitted": "operation not permitted", "operatingsystem": "OS call failed",
        "streamcaptureunsupported": "operation not permitted when stream is capturing",
        "contextisdestroyed": "context is destroyed", "cudartunloading": "driver shutting down",
        "deinitialized": "driver shutting down", "unknown": "unknown error",
        "stublibrary": "CUDA driver is a stub library",
    }
)  # fmt: skip
"""By names without their head, underlines and case."""
_NUMBERS: Final = MappingProxyType(
    {
        "2": "outofmemory", "34": "stublibrary", "35": "insufficientdriver", "46":
        "devicesunavailable", "100": "nodevice", "101": "invaliddevice",
        "209": "nokernelimagefordevice", "214": "eccuncorrectable", "217": "peeraccessunsupported",
        "220": "nvlinkuncorrectable", "500": "notfound", "700": "illegaladdress",
        "719": "launchfailed", "800": "notpermitted", "801": "notsupported",
        "802": "systemnotready", "803": "systemdrivermismatch",
        "804": "compatnotsupportedondevice", "999": "unknown",
    }
)  # fmt: skip
_NAME: Final = re.compile(r"\b(?:cuda|CUDA_|hip)Error_?(\w+)|\bCUDA_ERROR_(\w+)")
_NUMBER: Final = re.compile(r"\b(?:CUDA|Cuda|HIP) (?:error|failure):? ?\(?(\d{1,3})\)?(?![.\d])|"
                            r"\bError (80[234]): ")  # fmt: skip


def spelled(text: str) -> str:
    """The text, and behind it what an error stands for that it gives by name or number only."""
    found = _NAME.search(text)
    if found:
        name = (found[1] or found[2]).replace("_", "").lower()
        said = _TEXTS.get(name)
    elif found := _NUMBER.search(text):
        said = _TEXTS.get(_NUMBERS.get(found[1] or found[2], ""))
    else:
        return text
    return f"{text} CUDA error: {said}" if said and said.lower() not in text.lower() else text
