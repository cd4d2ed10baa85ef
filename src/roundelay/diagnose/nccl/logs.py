"""Rules about logs of NCCL: what it has found, chosen and connected."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from ...formats.nccl_log import NcclLog, Thread
from ...i18n import counted
from ..finding import Evidence, Figures, Finding, cited, names, numbers, tell
from .failed import ended_with, gave_up
from .hints import host_settings
from .interfaces import odd_interface, ports_differ
from .log_rates import far_apart, impossible, tiny_pcie
from .reaches import table_of_paths
from .searches import searched
from .told import calls_differ, settings
from .warnings import warning_findings
from .ways import in_memory, no_gpudirect, sockets_only

SLOWER: Final = 3.0
"""Times NCCL's own estimate, from which a measured time is off."""


def _local_size(log: NcclLog) -> int | None:
    """Ranks of a host: as said, else by the numbers of ranks and devices."""
    said = {t.local for t in log.threads.values() if t.local}
    if said:
        return said.pop() if len(said) == 1 else None
    first = {ring[0] - t.device for t in log.threads.values() if t.device is not None
             for ring in list(t.trees.values())[:1]}  # fmt: skip
    size = math.gcd(*(abs(b - a) for a, b in pairwise(sorted(first)))) if len(first) > 1 else 0
    size = size or max(first, default=0)
    devices = max((t.device or 0 for t in log.threads.values()), default=0)
    return size if size > devices else None


def _tree_edges(log: NcclLog) -> Iterator[tuple[int, int, int]]:
    """Channel, rank and the rank above or below it."""
    for thread in log.threads.values():
        for channel, (rank, above, below) in thread.trees.items():
            for other in (above, *below):
                if other >= 0:
                    yield channel, rank, other


def cross_rails(file: str, log: NcclLog) -> Finding | None:
    """Trees go from one rail to another."""
    size = _local_size(log)
    if not size or size < 2:
        return None
    edges = {(c, min(a, b), max(a, b)) for c, a, b in _tree_edges(log) if a // size != b // size}
    crossing = sorted(e for e in edges if e[1] % size != e[2] % size)
    if not crossing:
        return None
    figures: Figures = {
        "crossing": len(crossing), "edges": len(edges), "local": size,
        "examples": names([f"{a} - {b} (channel {c})" for c, a, b in crossing], 6),
    }  # fmt: skip
    return tell(
        "cross_rails", f"trees, {counted(size, 'rank', 'ranks')} a node", figures,
        ["Trees cross rails: of {edges:edge|edges} between nodes {crossing} join cards of "
         "different "
         "numbers (of {local} on a node): {examples}."],
        "Where each rail has switches of its own, such edges pass the spine: see NCCL_CROSS_NIC=0, "
        "and compare with NCCL_ALGO=Ring.", _trees_cited(file, log), confidence=0.8, area="machine",
    )  # fmt: skip


def _trees_cited(file: str, log: NcclLog) -> tuple[Evidence, ...]:
    return cited(file, *[t.first_tree for t in log.threads.values() if t.first_tree][:2])


def cliques(file: str, log: NcclLog) -> Finding | None:
    """Multi-node NVLink: in how many cliques the cards are."""
    if not log.health:
        return None
    found = {(h.fabric, h.clique) for h in log.health}
    done = {h.state for h in log.health} == {3}
    figures: Figures = {
        "cards": len({h.bus for h in log.health}), "cliques": len(found),
        "clique": names(sorted(c for _, c in found), 4),
        "mask": names(sorted({h.mask for h in log.health}), 4),
        "state": numbers(sorted({h.state for h in log.health})),
    }  # fmt: skip
    reason = ["NVLink between nodes: the cards seen here ({cards}) are in {cliques:clique|cliques} "
              "({clique}), state {state} (3: registered), health mask {mask}."]  # fmt: skip
    if len(found) > 1:
        reason.append("Cards of different cliques do not reach one another by NVLink.")
    return tell(
        "cliques", counted(figures["cards"], "card", "cards"), figures, reason,
        "See nvidia-smi -q (Fabric) on a card that differs, and nvidia-imex-ctl -N.",
        cited(file, log.health[0].line), fault=len(found) > 1 or not done, area="machine",
    )  # fmt: skip


def beside_estimate(file: str, log: NcclLog) -> Finding | None:
    """A measured time far above what NCCL itself had reckoned for the call."""
    for _, choice in log.choices():
        for time, rate, line in log.measured:
            same = abs(time * 1e-6 * rate * 1e9 - choice.size) < 0.05 * choice.size
            if choice.time_us and same and time > SLOWER * choice.time_us:
                figures: Figures = {
                    "size_bytes": choice.size, "algorithm": choice.algorithm,
                    "protocol": choice.protocol, "estimate_us": choice.time_us, "time_us": time,
                    "estimate_ms": choice.time_us / 1e3, "time_ms": time / 1e3,
                    "times": time / choice.time_us,
                }  # fmt: skip
                return tell(
                    "beside_estimate", choice.function or file, figures,
                    ["{size_bytes} by {algorithm} / {protocol}: NCCL reckons {estimate_ms} ms, and "
                     "it takes {time_ms} ms, {times} times as long.",
                     "NCCL's choice rests on links that do not give what it believes."],
                    "Test the network alone (ib_write_bw between each pair of hosts), look for "
                    "loss (RoCE flow control) and for ways without GDRDMA.",
                    cited(file, choice.line, line), fault=True, confidence=0.8,
                )  # fmt: skip
    return None


def chosen(file: str, log: NcclLog) -> Finding | None:
    """What NCCL has chosen."""
    choices = sorted(log.choices(), key=lambda c: -c[0])
    if not choices:
        return None
    listed = [f"{c.function or '?'} {c.size} B: {c.algorithm} / {c.protocol}" for _, c in choices]
    figures: Figures = {"choices": names(listed, 6), "calls": sum(count for count, _ in choices)}
    return tell(
        "chosen", file, figures,
        ["NCCL has chosen (calls: {calls}): {choices}. (Old logs write Algo 0 for tree, 1 for "
         "ring; proto 0 for LL, 1 for LL128, 2 for Simple.)"],
        "Compare with `roundelay explain` for your cluster.",
        cited(file, *(c.line for _, c in choices[:2])), confidence=0.9,
    )  # fmt: skip


def built(file: str, log: NcclLog) -> Finding | None:
    """Ranks, rings, trees and transports that the log shows."""
    threads = [t for t in log.threads.values() if t.rings or t.trees or t.rank is not None]
    if not threads and not log.transports:
        return None
    channels = {c for t in threads for c in (*t.rings, *t.trees)}
    transports = ", ".join(f"{k} {v}" for k, v in log.transports.most_common(6))
    seen = {_rank(t) for t in threads} - {None}
    more = len(log.threads) > len(threads)  # of threads that do not say their rank
    figures: Figures = {
        "ranks": log.size or "?", "seen": len(seen), "channels": len(channels),
        "transports": transports or "-", "versions": names(list(log.versions), 4) or "?",
        "hosts": len({t.host for t in log.threads.values()} - {""}),
    }  # fmt: skip
    if not figures["hosts"]:
        reason = ["Ranks: {ranks}." if more else "Ranks: {ranks}, of which the log shows {seen}."]
    elif log.size:
        reason = [
            "Ranks: {ranks}, on {hosts:host|hosts} in this log."
            if more
            else "Ranks: {ranks}, of which the log shows {seen} on {hosts:host|hosts}."
        ]
    elif seen:
        reason = ["The log does not say how many ranks there are, and shows {seen} on "
                  "{hosts:host|hosts}."]  # fmt: skip
    else:
        reason = ["The log does not say how many ranks there are; its lines are of "
                  "{hosts:host|hosts}."]  # fmt: skip
    reason += ["Channels: {channels}."] if channels else []
    reason += ["Connections: {transports}."] if transports else []
    reason += ["Version: {versions}."] if log.versions else []
    ring = _ring(threads)
    if ring:
        figures["ring"] = ring
        reason.append("Ring 0: {ring}.")
    lines = [t.complete or t.started or t.first_tree for t in threads]
    return tell("built", file, figures, reason, "With NCCL_DEBUG_SUBSYS=INIT,GRAPH,TUNING there is "
                "more to read.", cited(file, *[line for line in lines if line][:2]),
                confidence=0.9, area="machine")  # fmt: skip


def _rank(thread: Thread) -> int | None:
    for rings in thread.rings.values():
        return rings[1]
    for trees in thread.trees.values():
        return trees[0]
    return thread.rank


def _ring(threads: Sequence[Thread]) -> str:
    """The first ring from the lowest rank on, as far as it is known."""
    behind = {t.rings[0][1]: t.rings[0][2] for t in threads if 0 in t.rings}
    rank = min((r for pair in behind.items() for r in pair), default=-1)
    order: list[int] = []
    while rank in behind and rank not in order and len(order) < 16:
        order.append(rank)
        rank = behind[rank]
    return " -> ".join(map(str, [*order, rank])) if order else ""


def stuck_in_start(file: str, log: NcclLog) -> Finding | None:
    """Ranks that have begun to start up and are not through."""
    begun = [t for t in log.threads.values() if t.started]
    waiting = [t for t in begun if not t.complete]
    if not waiting:
        return None
    seen = {t.rank for t in begun}
    missing = [str(r) for r in range(min(log.size or 0, 10**5)) if r not in seen]
    if _explained(log, waiting) and not 0 < len(missing) <= len(begun):
        return None  # a warning says why; ranks that are not in this log may have logs of their own
    figures: Figures = {
        "waiting": names([str(t.rank) for t in waiting]), "begun": len(begun),
        "missing": names(missing), "ranks": log.size or 0,
    }  # fmt: skip
    reason = ["Start-up is not through on rank {waiting} (begun: {begun} of {ranks})."]
    if (len(waiting) == len(begun) and not _explained(log, waiting)
            and (log.warned or not log.others)):  # fmt: skip
        return _cut_off(file, figures, waiting)
    if missing:
        reason.append("Nothing is heard here from rank {missing}: unless it has a log of its own, "
                      "the others wait for it.")  # fmt: skip
    advice = (
        "Look at the ranks that are not heard from: their host, their own log, the address "
        "at which rank 0 waits."
        if missing
        else "Look at what these ranks said last, at the interface that they use "
        "(NCCL_SOCKET_IFNAME) and at firewalls; py-spy dump shows where they stand."
    )
    return tell("stuck_in_start", file, figures, reason, advice,
                cited(file, *[t.started for t in waiting][:3]),
                fault=True, confidence=0.7, area="hang")  # fmt: skip


def _explained(log: NcclLog, waiting: Sequence[Thread]) -> bool:
    """Whether a warning or a failure tells why the start, once begun, is not through."""
    begun = {t.started.file: t.started.number for t in reversed(waiting) if t.started}
    return any(t.failed for t in log.threads.values()) or any(
        said.line.number > begun.get(said.line.file, 0) for _, said in log.warned.values()
    )


def _cut_off(file: str, figures: Figures, waiting: Sequence[Thread]) -> Finding:
    """Of a log that ends within the start, which may go on elsewhere."""
    reason = ["The log ends before the start-up of rank {waiting} is through (begun: {begun} of "
              "{ranks})."]  # fmt: skip
    if figures["missing"]:
        reason.append("If it hangs there, the others wait for rank {missing}, of which nothing is "
                      "heard here.")  # fmt: skip
    return tell("start_not_through", file, figures, reason,
                "If it hangs: look at the ranks that are not heard from (their host, their own "
                "log), at the interface that ranks use (NCCL_SOCKET_IFNAME) and at firewalls.",
                cited(file, *[t.started for t in waiting][:3]), confidence=0.75,
                area="hang")  # fmt: skip


def stands_after_start(file: str, log: NcclLog) -> Finding | None:
    """A log that tells of no error and ends with a progress bar at its start."""
    through = [t for t in log.threads.values() if t.complete]
    bad = log.warned or log.results or any(t.aborted for t in log.threads.values())
    if log.standing is None or not through or bad:
        return None
    if any(t.started and not t.complete for t in log.threads.values()):
        return None
    direct = any(way.startswith(("P2P", "SHM")) for way in log.transports)
    reason = ["This log tells of no error in NCCL's start, and ends with a progress bar at its "
              "start. If that does not move, it stands in the first work after NCCL's start, not "
              "in the start."]  # fmt: skip
    if direct:
        reason.append("Then data between the cards of a host may not arrive: PCIe access control "
                      "(ACS) or an IOMMU is known to do that.")  # fmt: skip
    return tell("stands_after_start", file, {"ranks": log.size or "?"}, reason,
                "See where processes stand (py-spy dump) and whether cards are busy; as a test "
                "NCCL_P2P_DISABLE=1, and turn off ACS and the IOMMU (or iommu=pt) if that helps; "
                "run all_reduce_perf of nccl-tests with -c 1 on the same cards.",
                cited(file, log.standing), confidence=0.65, area="hang")  # fmt: skip


def aborted(file: str, log: NcclLog) -> Finding | None:
    """Communicators that were aborted, in a log that does not say why."""
    ended = [t for t in log.threads.values() if t.aborted]
    if not ended or log.warned:
        return None
    figures: Figures = {"ranks": names([str(t.rank) for t in ended]), "count": len(ended)}
    return tell("aborted", file, figures,
                ["The communicator of rank {ranks} was aborted: the program gave it up, as a "
                 "watchdog does after a timeout or an error elsewhere, and as torch does when it "
                 "ends. NCCL itself tells of no error here."],
                "Read what the program (the watchdog) wrote before, and the ends of the other "
                "ranks' logs: who stopped first?", cited(file, *[t.aborted for t in ended][:3]),
                confidence=0.7, area="hang")  # fmt: skip


Rule = Callable[[str, NcclLog], Finding | None]
RULES: Final[tuple[Rule, ...]] = (
    calls_differ, gave_up, ended_with, stuck_in_start, stands_after_start,
    aborted, odd_interface, ports_differ, tiny_pcie, settings,
    no_gpudirect, sockets_only, beside_estimate, cliques, in_memory, searched, far_apart,
    table_of_paths,
    cross_rails, host_settings, chosen, built,
)  # fmt: skip
"""What weighs more comes first."""
PLAIN: Final = "no_plugin"
"""What is said only of a log of which nothing else is."""


def log_findings(file: str, log: NcclLog) -> list[Finding]:
    """All that the rules find in a log, warnings first."""
    found = [finding for rule in RULES if (finding := rule(file, log)) is not None]
    warned = warning_findings(file, log)
    if found:
        warned = [finding for finding in warned if finding.kind != PLAIN]
    return [*warned, *impossible(file, log), *found]
