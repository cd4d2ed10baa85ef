"""Rules about interfaces, connections and sizes that somebody has written down."""

from __future__ import annotations

import re
from typing import Final

from ...finding import Figures, Finding
from ..case import Case, found

LIMIT: Final = 2**31
"""What does not fit a signed count of 32 bits."""
TIMES: Final = 1.5
_BEFORE, _AFTER = re.compile(r"before|without|old"), re.compile(r"after|with|new")


def interface_matters(case: Case) -> Finding | None:
    """Times before and after an interface was named."""
    facts = case.facts
    names = [name for name in facts.settings if name.endswith("SOCKET_IFNAME")]
    before = next((t for name, t in facts.times.items() if _BEFORE.search(name)), None)
    after = next((t for name, t in facts.times.items()
                  if _AFTER.search(name) and not _BEFORE.search(name)), None)  # fmt: skip
    if not names or not before or not after or before < TIMES * after:
        return None
    figures: Figures = {
        "setting": f"{names[0]}={facts.settings[names[0]]}", "times": before / after,
        "before_ms": f"{before * 1e3:g}", "after_ms": f"{after * 1e3:g}",
    }  # fmt: skip
    return found(
        case, "other_interface", figures,
        ["With {setting} the call takes {after_ms} ms instead of {before_ms} ms, {times} times as "
         "fast: as where without it another interface is taken, a slower one or one that goes a "
         "long way round."],
        "Set it for every rank. ip -br addr lists interfaces, /sys/class/net/*/speed their rates "
        "in Mb/s; docker, virtual and management ones are the usual mistake.",
        case.cited("times", "settings"), fault=True, confidence=0.9,
    )  # fmt: skip


def count_of_32_bits(case: Case) -> Finding | None:
    """A size that does not fit 32 bits, and an error that speaks of them."""
    facts = case.facts
    size = max(facts.sizes.values(), default=0)
    if size < LIMIT or not facts.says("int32", "32-bit", "32 bit", "overflow", "2147483647"):
        return None
    pieces = -(-size // (LIMIT - 1))
    return found(
        case, "count_of_32_bits", {"bytes": size, "pieces": pieces},
        ["{bytes} do not fit the 32 bits in which this backend counts (2 GiB less 1)."],
        "Exchange it in {pieces} pieces or more, or take a backend that counts in 64 bits.",
        case.cited("sizes"), fault=True, confidence=0.9,
    )  # fmt: skip


def bond(case: Case) -> Finding | None:
    """One connection over cards that are bonded."""
    facts = case.facts
    bonded = facts.flags.get("bonded") or facts.flags.get("bond")
    if not bonded or (facts.nics or 0) < 2 or (facts.connections or 1) > 1:
        return None
    return found(
        case, "bond_of_one_connection", {"nics": facts.nics or 0, "share": 1 / (facts.nics or 1)},
        ["A bond puts whole connections on its {nics:card|cards}, not the bytes of one. With one "
         "connection for each pair of ranks a pair gets {share} of the bond at most."],
        "Let the library open several connections (NCCL_NSOCKS_PERTHREAD, NCCL_SOCKET_NTHREADS), "
        "hash by ports (xmit_hash_policy layer3+4), or give ranks one card each.",
        case.cited("flags"), fault=True, confidence=0.8,
    )  # fmt: skip
