"""What NCCL's warnings mean, and what to try: by a part of their text."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ..formats.nccl_log import NcclLog, Warned
from .finding import Area, Figures, Finding, cited, tell
from .hints import HINTS


class Cause(NamedTuple):
    """What a warning stands for.

    Attributes:
        kind: of the finding.
        pattern: of the warning's text; its named groups become figures.
        area: see `Finding`.
        reason, advice: sentences.
    """

    kind: str
    pattern: re.Pattern[str]
    area: Area
    reason: tuple[str, ...]
    advice: str


def _cause(kind: str, pattern: str, area: Area, reason: tuple[str, ...], advice: str) -> Cause:
    return Cause(kind, re.compile(pattern, re.I), area, reason, advice)


CAUSES: Final = (
    _cause("no_route", r"(?P<address>[\d.]+|\[?[\da-f:]+\]?)<\d+>.*?(?P<errno>113|101)"
           r"\((?:No route|Network is unreach)", "machine",
           ("errno {errno}: there is no route to {address}, the address at which another rank "
            "waits. It was chosen from an interface that this host cannot reach, or a firewall "
            "turns it away.",),
           "Name the interface that all hosts share: NCCL_SOCKET_IFNAME=eth0 (or =^docker,lo to "
           "leave some out), and open the ports between the hosts."),
    _cause("refused", r"(?P<address>[\d.]+)<\d+>.*?(?P<errno>111|110|104)\(", "machine",
           ("errno {errno} from {address}: the rank there does not listen (any more), or something "
            "between the hosts drops connections.",),
           "See whether the process at that address lives and what it said last; then look at "
           "firewalls and NCCL_SOCKET_IFNAME."),
    _cause("no_shared_memory", r"/dev/shm.*?(?:to|size) (?P<bytes>\d+)\b.*No space left", "machine",
           ("/dev/shm is full: a segment of {needed_bytes} did not fit. A container has 64 MiB "
            "there unless it is given more, and each pair of channels takes one.",),
           "Give the container more: --shm-size=8g or --ipc=host, in Kubernetes an emptyDir with "
           "medium Memory mounted at /dev/shm; remove what is left of earlier runs."),
    _cause("too_many_nodes", r"too many XML nodes \(max (?P<limit>\d+)\)", "machine",
           ("The description of the machine has more than {limit} elements, which is all that "
            "this version holds: many network cards, and trees of ranks put together, do that.",),
           "Try a newer NCCL; until then show each process fewer devices: "
           "NCCL_IB_HCA with the network cards that are used, CUDA_VISIBLE_DEVICES."),
    _cause("network_error", r"completion.*?(?:status|error)[= ]*(?P<error>\d+)", "machine",
           ("A network card reports error {error} (12 is: no answer from the other side after all "
            "retries). The other rank has died, a link is down, or packets are lost.",),
           "Look at the other rank first. Then ibstat, link counters, and on RoCE flow control; "
           "NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT only hide it."),
    _cause("memory_not_pinned", r"(?:ibv_reg_mr|mlock|RLIMIT_MEMLOCK|Cannot allocate memory)",
           "machine",
           ("Memory could not be registered with the network card: the limit of locked memory is "
            "too low, or there is none left.",),
           "ulimit -l unlimited for the job (limits.conf, the container, Slurm's prolog)."),
    _cause("card_failed", r"(?:uncorrectable ECC|an illegal memory access|CUDA error|Cuda failure)"
           r"(?P<what>.*)", "machine",
           ("A card's call failed: {what}. Other ranks then wait for this one.",),
           "Look at the first such line of all ranks, at Xid errors in dmesg, and run that rank "
           "with CUDA_LAUNCH_BLOCKING=1 if the program is at fault."),
)  # fmt: skip


def warning_findings(file: str, log: NcclLog) -> list[Finding]:
    """A finding for each cause; what has none of these is told as it stands, the first five."""
    found: dict[str, Finding] = {}
    plain: list[Finding] = []
    for count, warned in log.warned.values():
        if HINTS.search(warned.text):
            continue
        cause = next((c for c in CAUSES if c.pattern.search(warned.text)), None)
        if cause is None:
            plain.append(_plain(file, count, warned))
        elif cause.kind not in found:
            found[cause.kind] = _caused(file, count, warned, cause)
    return [*found.values(), *plain[:5]]


def _caused(file: str, count: int, warned: Warned, cause: Cause) -> Finding:
    match = cause.pattern.search(warned.text)
    figures: Figures = {"times": count, "host": warned.host or "?"}
    for name, value in (match.groupdict() if match else {}).items():
        text = (value or "").strip()
        name = "needed_bytes" if name == "bytes" else name
        figures[name] = int(text) if text.isdecimal() and len(text) < 16 else text[:200]
    return tell(cause.kind, warned.host or file, figures, cause.reason, cause.advice,
                cited(file, warned.line), fault=True, confidence=0.9, area=cause.area)  # fmt: skip


def _plain(file: str, count: int, warned: Warned) -> Finding:
    figures: Figures = {"times": count, "place": warned.place, "text": warned.text[:200]}
    return tell(
        "nccl_warns", warned.host or file, figures,
        ["NCCL warns (times: {times}): {text}"],
        "Look at the first warning of all ranks: later ones follow from it.",
        cited(file, warned.line), fault=True, confidence=0.6, area="machine",
    )  # fmt: skip
