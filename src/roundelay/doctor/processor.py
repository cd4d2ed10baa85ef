"""The processor: its model, cores, and which instructions add."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from ..i18n import message
from .check import Check
from .host import Host, whole

ARM: Final = {"0xd0c": "Neoverse N1", "0xd40": "Neoverse V1", "0xd49": "Neoverse N2",
              "0xd4f": "Neoverse V2", "0xd84": "Neoverse V3"}  # fmt: skip
"""Parts that Arm designs, which the kernel does not name; from Arm's reference manuals (MIDR)."""
TELLING: Final = (
    "avx2", "f16c", "avx512f", "avx512bw", "avx512_bf16", "avx512_fp16", "amx_bf16", "sse4_2",
    "asimd", "asimdhp", "bf16", "sve", "sve2", "crc32",
)  # fmt: skip
"""Instruction sets that matter to adding and to check sums."""
AVX512: Final = {"avx512f", "avx512bw", "avx512dq", "avx512vl"}

_Check = partial(Check, "processor")


def probe(host: Host) -> Iterator[Check]:
    """Model, cores, instruction sets."""
    model = _model(host)
    if model:
        yield _Check(message("model"), "present", message("Adds where no GPU does."), model)
    else:
        text = message("The kernel does not name it.")
        yield _Check(message("model"), "absent", text)
    yield _cores(host)
    flags = _flags(host)
    if flags:
        text = message("Of those the processor has, the ones that adding and check sums can use.")
        value = " ".join(f for f in TELLING if f in flags) or "-"
        yield _Check(message("instruction sets"), "present", text, value)
    yield _reductions(host, flags)


def _model(host: Host) -> str:
    text = host.field("/proc/cpuinfo", "model name")
    part = host.field("/proc/cpuinfo", "CPU part")
    return text or ARM.get(part, f"Arm {part}" if part else "")


def _flags(host: Host) -> set[str]:
    line = host.field("/proc/cpuinfo", "flags") or host.field("/proc/cpuinfo", "Features")
    return set(line.split())


def _cores(host: Host) -> Check:
    """Those this process may use, of all that the kernel runs."""
    usable = _count(host.field("/proc/self/status", "Cpus_allowed_list"))
    every = _count(host.text("/sys/devices/system/cpu/online")) or usable
    if not usable:
        return _Check(message("cores"), "absent", message("The kernel does not tell how many."))
    if usable < every:
        text = message("This process may use {usable} of {every}: ranks beyond {usable} take turns "
                       "and are slow.", usable=usable, every=every)  # fmt: skip
    else:
        text = message("Up to {usable} ranks run at once here; more take turns and are slow.",
                       usable=usable)  # fmt: skip
    return _Check(message("cores"), "present", text, usable)


def _count(text: str) -> int:
    """How many are in a list such as "0-3,8"."""
    total = 0
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        low, high = whole(first.strip()), whole((last or first).strip())
        if low is not None and high is not None:
            total += max(0, high - low + 1)
    return total


def instruction_sets(flags: set[str]) -> tuple[str, ...]:
    """Kernels of reductions that a processor can run, the least first; as the core finds them."""
    if "asimd" in flags:
        return ("neon",)
    if "sse2" not in flags:
        return ("generic",)
    if not {"avx2", "f16c"} <= flags:
        return ("sse2",)
    return ("sse2", "avx2", "avx512") if flags >= AVX512 else ("sse2", "avx2")


def _reductions(host: Host, flags: set[str]) -> Check:
    name, known = message("reductions"), instruction_sets(flags)
    asked = host.environ.get("ROUNDELAY_ISA", "")
    if asked and asked not in known:
        text = message("ROUNDELAY_ISA asks for it, and this processor runs: {known}. Unset it.",
                       known=", ".join(known))  # fmt: skip
        return _Check(name, "wrong", text, asked)
    text = message("The instructions that add; results have the same bits with any.")
    return _Check(name, "present", text, asked or known[-1])
