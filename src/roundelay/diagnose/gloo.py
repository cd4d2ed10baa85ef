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
    _Rule("loopback", re.compile(r"Using the loopback address"), _nothing,
          ["A rank could not find an address for its host's own name and offers the loopback "
           "address, at which ranks on other hosts find nobody."],
          "GLOO_SOCKET_IFNAME=eth0 (the interface between the hosts) in every process, also those "
          "that Ray or a launcher starts on other hosts; or the host's name in /etc/hosts.",
          0.9, "machine"),
    _Rule("loopback", re.compile(r"connect \[(127\.[\d.]+|::1)\]"), lambda m: {"address": m[1]},
          ["A rank is told to find another at {address}, its own loopback address: on that "
           "rank's host the host's name leads there (/etc/hosts)."],
          "GLOO_SOCKET_IFNAME=eth0 (the interface between the hosts) in every process, also those "
          "that Ray or a launcher starts; or the host's name in /etc/hosts.", 0.85, "machine"),
    _Rule("refused", re.compile(r"connect \[([\da-f.:]+)\]:\d+.*?refused"),
          lambda m: {"address": m[1]},
          ["Nobody listens at {address} (any more): the rank there has ended, or it is an address "
           "that leads to another host."],
          "Read the end of that rank's log; if it lives, name the interface that all hosts share "
          "(GLOO_SOCKET_IFNAME=eth0) and open the ports between them.", 0.75, "machine"),
    _Rule("refused", re.compile(r"SO_ERROR: Connection refused"), _nothing,
          ["Nobody listens (any more) where a rank connects to: the rank there has ended, has not "
           "begun, or offers an address that leads to another host."],
          "Read the end of the other ranks' logs; if they live, name the interface that all hosts "
          "share (GLOO_SOCKET_IFNAME=eth0) and open the ports between them.", 0.75, "machine"),
    _Rule("no_route", re.compile(r"Network is unreachable|No route to host"), _nothing,
          ["A host has no way to the address that a rank offers: it is of another interface or "
           "network than the one that the hosts share."],
          "GLOO_SOCKET_IFNAME=eth0 (the interface that all hosts share); then see routes and "
          "firewall (ip route get ADDRESS).", 0.85, "machine"),
    _Rule("no_name", re.compile(r"nable to resolve hostname(?:: *(?P<host>\S+))?|getaddrinfo"),
          lambda m: {"host": (m["host"] or "?")[:200]},
          ["A rank cannot find an address for its own host's name ({host}): it is not in DNS or "
           "/etc/hosts."],
          "An entry in /etc/hosts with the address that others reach, or GLOO_SOCKET_IFNAME=eth0 "
          "(the interface between the hosts), which needs no name.", 0.9, "machine"),
    _Rule("no_interface", re.compile(r"nable to find (?:interface|address) for: *(?P<name>\S+)"),
          lambda m: {"name": m["name"][:60]},
          ["GLOO_SOCKET_IFNAME names {name}, and this host has no such interface, or none with an "
           "address."],
          "ip -br addr lists them; hosts may call theirs differently, so set it host by host, or "
          "leave it out where the host's name leads to the right address.", 0.95, "machine"),
    _Rule("no_device", re.compile(r"makeDeviceFor\w+\(\): unsupported gloo device"), _nothing,
          ["This build of torch has no transport for Gloo, or the one that is asked for "
           "(GLOO_DEVICE_TRANSPORT) is not in it."],
          "Unset GLOO_DEVICE_TRANSPORT, or install a build with Gloo's TCP transport (on Windows "
          "that of torch 2.x, with USE_LIBUV=0 where it asks for it).", 0.8, "machine"),
    _Rule("sizes_differ",
          re.compile(r"op\.preamble\.length <= op\.nbytes\. (\d{1,15}) vs (\d{1,15})"),
          lambda m: {"sent_bytes": int(m[1]), "wanted_bytes": int(m[2]),
                     "sent": int(m[1]), "wanted": int(m[2])},
          ["A peer sent {sent:byte|bytes} ({sent_bytes}) where this rank has room for {wanted} "
           "({wanted_bytes}): ranks call with different sizes, or one of them is a call ahead. "
           "The rank that says so ends, and the others lose their connections to it."],
          "Compare shapes on all ranks before the call (TORCH_DISTRIBUTED_DEBUG=DETAIL does), and "
          "look for a rank that has joined or left, or skipped a step.", 0.9, "hang"),
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
    _Rule("mesh_failed", re.compile(r"connectFullMesh failed with \[[^\]]*\] no error"), _nothing,
          ["The ranks cannot connect to one another, and Gloo does not say why: as a rule a rank "
           "offers an address of an interface that others do not reach (docker, a second network, "
           "loopback)."],
          "GLOO_SOCKET_IFNAME=eth0 (the interface that all hosts share) in every process, also "
          "those that Ray or a launcher starts; see that ports between the hosts are open.",
          0.8, "machine"),
    _Rule("peer_lost", re.compile(r"closed by peer|[Cc]onnection reset|[Bb]roken pipe"), _nothing,
          ["A connection was closed from the other side ({peers}): that rank has ended or was "
           "killed. These lines are of the ranks that lived on."],
          "Read the end of the log of the rank at that address: its error is the first one.",
          0.7, "hang"),
    _Rule("gloo_error", re.compile(r"gloo/\S{1,120}:\d+\] (?P<said>.{1,200})"),
          lambda m: {"said": m["said"]},
          ["Gloo has failed: {said}"],
          "Look for the first such line of all ranks, by time; the line of Gloo's source that it "
          "names tells what was expected.", 0.5, "machine"),
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
