"""Rules about messages of Gloo, torch's backend for CPUs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ..formats.nccl_log import Line
from .finding import Area, Figures, Finding, cited, tell
from .seen import names

_PEER: Final = re.compile(r"\[([\d.]+|[\da-f:]+)\]:(\d+)")


class _Rule(NamedTuple):
    """A message by which it is known, and what is said of it; groups of the pattern are figures."""

    kind: str
    pattern: re.Pattern[str]
    figures: Callable[[re.Match[str]], Figures]
    reason: Sequence[str]
    advice: str
    confidence: float
    area: Area


def _nothing(found: re.Match[str]) -> Figures:
    return {}


_RULES: Final = (
    _Rule("loopback", re.compile(r"remote=\[(127\.[\d.]+|::1)\]"), lambda m: {"address": m[1]},
          ["A rank offers {address}, its own loopback address, to ranks on other hosts: the "
           "host's name leads there (/etc/hosts)."],
          "GLOO_SOCKET_IFNAME=eth0 (the interface between the hosts), or an address in "
          "/etc/hosts that others reach.", 0.9, "machine"),
    _Rule("timed_out", re.compile(r"Timed out waiting (\d{1,15})\s?ms"),
          lambda m: {"limit_ms": int(m[1])},
          ["A receive waited {limit_ms} ms in vain: another rank has not made this call."],
          "Get dumps of all ranks (torch's flight recorder) and compare them here.", 0.7, "hang"),
    _Rule("no_such_call", re.compile(r"ProcessGroup(\w+) does not support (\w+)"),
          lambda m: {"backend": m[1], "call": m[2]},
          ["The backend {backend} of this version has no {call}."],
          "Take a backend that has it (on CPUs: backend=\"roundelay\"), or put it together: a "
          "reduce_scatter is an all_reduce of which each rank keeps its piece, at twice the bytes.",
          0.95, "machine"),
    _Rule("no_such_type", re.compile(r"Invalid scalar type"), _nothing,
          ["The backend cannot add up elements of this type; bfloat16 and the 8-bit floats are "
           "what Gloo lacks in many versions."],
          "Convert to float32 for the call, or take a backend that adds them, in float32 "
          "(on CPUs: backend=\"roundelay\").", 0.85, "machine"),
    _Rule("no_ports_left", re.compile(r"listen: Address already in use"), _nothing,
          ["The host has no port left: Gloo takes ports for each pair of ranks, so n ranks on one "
           "host take up to n (n - 1), and there are about 28,000 "
           "(net.ipv4.ip_local_port_range)."],
          "Start fewer ranks a host, widen net.ipv4.ip_local_port_range, or take a backend that "
          "goes over shared memory inside a host (backend=\"roundelay\").", 0.8, "machine"),
    _Rule("peer_lost", re.compile(r"closed by peer|[Cc]onnection reset|[Bb]roken pipe"), _nothing,
          ["A connection was closed from the other side ({peers}): that rank has ended or was "
           "killed. These lines are of the ranks that lived on."],
          "Read the end of the log of the rank at that address: its error is the first one.",
          0.7, "hang"),
)  # fmt: skip
"""What weighs more comes first, and only the first that fits is told."""


def gloo_finding(file: str, lines: Sequence[Line]) -> Finding | None:
    """What Gloo's messages say."""
    for rule in _RULES:
        said = [line for line in lines if rule.pattern.search(line.text)]
        if not said:
            continue
        found = rule.pattern.search(said[0].text)
        figures = rule.figures(found) if found else {}
        if rule.kind == "peer_lost":
            ends = sorted({f"{a}:{p}" for line in said for a, p in _PEER.findall(line.text)})
            figures["peers"] = names(ends, 4) or "?"
        return tell(rule.kind, file, figures, rule.reason, rule.advice,
                    cited(file, *said[:4]), fault=True, confidence=rule.confidence,
                    area=rule.area)  # fmt: skip
    return None
