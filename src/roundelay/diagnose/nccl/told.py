"""Rules about what logs of NCCL tell of calls and of settings."""

from __future__ import annotations

from collections.abc import Iterator
from types import MappingProxyType
from typing import Final, NamedTuple

from ...formats.nccl_log import Last, NcclLog, last_of
from ...i18n import counted
from ..finding import Figures, Finding, cited, names, tell

OFF: Final = MappingProxyType(
    {
        "NCCL_P2P_DISABLE": frozenset(("1",)), "NCCL_P2P_LEVEL": frozenset(("LOC", "0")),
        "NCCL_SHM_DISABLE": frozenset(("1",)), "NCCL_IB_DISABLE": frozenset(("1",)),
        "NCCL_NET_GDR_LEVEL": frozenset(("LOC", "0")),
    }
)  # fmt: skip
"""Variables by the values that turn a way off (NCCL's user guide, Environment Variables)."""
BETWEEN_TWO: Final = frozenset(("Send", "Recv"))


class _Told(NamedTuple):
    who: str
    last: Last


def _told(log: NcclLog) -> Iterator[_Told]:
    """The last call of each process in its only communicator of a size."""
    ranks: dict[tuple[str, str], set[int]] = {}
    for thread in log.ranks():
        ranks.setdefault((thread.host, thread.pid), set()).add(thread.rank or 0)
    for thread in log.threads.values():
        calls = [last for last in last_of(thread) if last.function not in BETWEEN_TWO]
        sizes = [last.ranks for last in calls]
        known = ranks.get((thread.host, thread.pid), set())
        who = (f"rank {next(iter(known))}" if len(known) == 1
               else f"device {thread.device} of {thread.host}")  # fmt: skip
        yield from (_Told(who, last) for last in calls if sizes.count(last.ranks) == 1)


def calls_differ(file: str, log: NcclLog) -> Finding | None:
    """The same number of a call is another function, or another size, to other ranks."""
    made: dict[tuple[int, int], list[_Told]] = {}
    for told in _told(log):
        made.setdefault((told.last.ranks, told.last.count), []).append(told)
    for (size, count), calls in sorted(made.items()):
        by: dict[tuple[str, int], list[_Told]] = {}
        for told in calls:
            by.setdefault((told.last.function, told.last.elements), []).append(told)
        if size < 2 or len(by) < 2:
            continue
        functions = {function for function, _ in by}
        parts = [f"{function} of {counted(elements, 'element', 'elements')} on "
                 f"{names([t.who for t in told], 8)}"
                 for (function, elements), told in by.items()]  # fmt: skip
        figures: Figures = {"count": f"{count:x}", "ranks": size, "parts": "; ".join(parts[:8])}
        return tell(
            "calls_differ" if len(functions) > 1 else "sizes_differ", f"n = {size}", figures,
            ["At opCount {count} (hexadecimal) ranks of a communicator of {ranks} call different "
             "things: {parts}."],
            "Look for the first opCount at which they differ (NCCL_DEBUG_SUBSYS=COLL on all "
            "ranks), and in the program for a branch that one rank takes, or for a second stream "
            "or thread that calls in another order.",
            cited(file, *[told[0].last.line for told in by.values()][:4]),
            fault=True, confidence=0.85, area="hang",
        )  # fmt: skip
    return None


def settings(file: str, log: NcclLog) -> Finding | None:
    """Variables that turn a fast way off."""
    found = {name: value for name, value in log.environment.items()
             if value[0].upper() in OFF.get(name, ())}  # fmt: skip
    if not found:
        return None
    figures: Figures = {
        "settings": names([f"{name}={value}" for name, (value, _) in found.items()])
    }
    return tell(
        "turned_off", file, figures,
        ["The environment turns off what NCCL would use: {settings}."],
        "Unset it (also in /etc/nccl.conf, ~/.nccl.conf and the image) unless it is there for a "
        "reason that still holds, and measure again.",
        cited(file, *[line for _, line in found.values()][:4]),
        fault=True, confidence=0.85, area="machine",
    )  # fmt: skip
