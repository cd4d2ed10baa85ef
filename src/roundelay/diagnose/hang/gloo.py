"""Rules about messages of Gloo, torch's backend for CPUs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ...formats.nccl_log import Line
from ..finding import Area, Figures, Finding, cited, names, tell

_FALLBACK: Final = "loopback_used"
"""What is a fault only beside another."""
_JOINING: Final = frozenset({"refused", "peer_lost", "mesh_failed", "unanswered", "timed_out"})
"""Kinds that may come of a group that not all ranks make."""
_FAILS: Final = re.compile(r"gloo/\S{1,120}:\d|connectFullMesh failed|closed by peer|imed out")
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
          ["A rank offers {address}, its own loopback address, as the host's name leads there "
           "(/etc/hosts): ranks on other hosts find nobody at it. Where all ranks are on one host, "
           "the rank there has ended or is late."],
          "GLOO_SOCKET_IFNAME=eth0 (the interface between the hosts), or an address in "
          "/etc/hosts that others reach; on one host read the other ranks' logs.", 0.85,
          "machine"),
    _Rule(_FALLBACK, re.compile(r"Using the loopback address"), _nothing,
          ["A rank could not find an address for its host's own name and offers the loopback "
           "address. On one host that does no harm; ranks on other hosts find nobody at it."],
          "GLOO_SOCKET_IFNAME=eth0 (the interface between the hosts) in every process, also those "
          "that Ray or a launcher starts on other hosts; or the host's name in /etc/hosts.",
          0.9, "machine"),
    _Rule("loopback", re.compile(r"connect \[(127\.[\d.]+|::1)\]"), lambda m: {"address": m[1]},
          ["A rank is told to find another at {address}, its own loopback address, as on that "
           "rank's host the host's name leads there (/etc/hosts). Ranks on other hosts find nobody "
           "at it; where all are on one host, the rank there has ended or not begun."],
          "GLOO_SOCKET_IFNAME=eth0 (the interface between the hosts) in every process, also those "
          "that Ray or a launcher starts; or the host's name in /etc/hosts.", 0.85, "machine"),
    _Rule("docker_address",
          re.compile(r"(?:connect |remote=)\[(172\.17\.[\d.]+|192\.168\.122\.[\d.]+)\]"),
          lambda m: {"address": m[1]},
          ["A rank is to be found at {address}, as a rule an address of a bridge for containers or "
           "virtual machines (docker0, virbr0), which many hosts have: from another host it leads "
           "nowhere."],
          "GLOO_SOCKET_IFNAME=eth0 (the interface that all hosts share) in every process; start "
          "containers with --network host.", 0.85, "machine"),
    _Rule("refused", re.compile(r"connect \[([\da-f.:]+)\]:\d+.*?refused"),
          lambda m: {"address": m[1]},
          ["Nobody listens at {address} (any more): the rank there has ended or does not take "
           "part in this set-up, it is an address that leads to another host, or a firewall turns "
           "connections away."],
          "Read the end of that rank's log; if it lives, name the interface that all hosts share "
          "(GLOO_SOCKET_IFNAME=eth0) and open the ports between them.", 0.75, "machine"),
    _Rule("refused", re.compile(r"SO_ERROR: Connection refused(?:.{0,20}remote=\[([\da-f.:]+)\])?"),
          lambda m: {"address": m[1] or "?"},
          ["Nobody listens (any more) where a rank connects to ({address}): the rank there has "
           "ended or not begun, it is an address that leads to another host, or a firewall turns "
           "connections away."],
          "Read the end of the other ranks' logs; if they live, name the interface that all hosts "
          "share (GLOO_SOCKET_IFNAME=eth0) and open the ports between them.", 0.75, "machine"),
    _Rule("unanswered", re.compile(r"(?:connect \[([\da-f.:]+)\]:\d+|SO_ERROR): Connection timed "
                                   r"out(?:.{0,20}remote=\[([\da-f.:]+)\])?|timed out connecting"),
          lambda m: {"address": m[1] or m[2] or "?"},
          ["Nothing answers where a rank connects to ({address}): a firewall drops what comes, the "
           "rank offers an address of an interface that the hosts do not share, or its host is "
           "down."],
          "GLOO_SOCKET_IFNAME=eth0 (the interface that all hosts share) in every process, also "
          "those that Ray or a launcher starts; open all ports between the hosts (nc -vz HOST "
          "PORT).", 0.8, "machine"),
    _Rule("families_differ", re.compile(r"address family mismatch"), _nothing,
          ["Two ranks offer addresses of different kinds, one of IPv4 and the other of IPv6: on "
           "one host the host's name (or its interface) leads to the one, on the other to the "
           "other."],
          "GLOO_SOCKET_IFNAME=eth0 (an interface that on all hosts has the same kind of address), "
          "or in /etc/hosts of every host an IPv4 address for its own name.", 0.9, "machine"),
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
          ["Gloo finds no address for {name}. As a rule GLOO_SOCKET_IFNAME names it, and this host "
           "has no such interface, or none with an address (it takes whole names only: no ^, no "
           "beginning, no address); if it is a host's name, that leads to an address that is not "
           "this host's."],
          "ip -br addr lists them; hosts may call theirs differently, so set it host by host, or "
          "leave it out where the host's name leads to the right address.", 0.9, "machine"),
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
    _Rule("sizes_differ",
          re.compile(r"(?P<said>(?:offset|length|nbytes|size|total|elements)\w*[^\n]{0,80}?"
                     r"(?:<=|==|>=) [^\n]{0,60}?(?:size|bytes|length|elements)\w*)\W{1,3}"
                     r"(?P<one>\d{1,15}) vs (?P<two>\d{1,15})"),
          lambda m: {"said": m["said"][:120], "one": int(m["one"]), "two": int(m["two"])},
          ["Two sides do not agree on a buffer: Gloo's check ({said}) finds {one} against {two}. "
           "Ranks call with different sizes, or in another order, or two calls run at once on one "
           "context (from two threads) and take one another's messages."],
          "Compare sizes and the order of calls on all ranks; give each thread, and calls that run "
          "at once, a context (a process group) or a slot of its own.", 0.8, "hang"),
    _Rule("network_error", re.compile(r"wc->status == IBV_WC_SUCCESS\W{1,3}(?P<error>12|13) vs 0"),
          lambda m: {"error": int(m["error"])},
          ["A network card reports error {error}: no answer from the other side over InfiniBand or "
           "RoCE after all retries. The other rank has ended, the two ports do not reach one "
           "another (another subnet, device or GID), or a link is down."],
          "Look at the other rank first. Then see that all ranks use the same kind of device, port "
          "and GID index, ibstat on both hosts, and ib_write_bw between the two.", 0.85,
          "machine"),
    _Rule("memory_refused", re.compile(r"wc->status == IBV_WC_SUCCESS\W{1,3}(?P<error>4|8|10|11) "
                                       r"vs 0"),
          lambda m: {"error": int(m["error"])},
          ["A network card reports error {error}: it may not use the memory that it was told to (4 "
           "and 8 are local protection, 10 and 11 are the other side's). A buffer was freed or is "
           "of another size on the other rank."],
          "See that buffers live until the call is done, and that all ranks give the same sizes.",
          0.75, "machine"),
    _Rule("flushed", re.compile(r"wc->status == IBV_WC_SUCCESS\W{1,3}5 vs 0"), _nothing,
          ["A network card gave up what was still under way (error 5), as it does once a "
           "connection has failed: another error came first."],
          "Look at the first error of all ranks.", 0.8, "machine"),
    _Rule("timed_out", re.compile(r"Timed out waiting (\d{1,15})\s?ms"),
          lambda m: {"limit_ms": int(m[1])},
          ["A transfer waited {limit_ms} ms in vain: another rank has not made this call (it is "
           "late, has ended or stands elsewhere), or what it sent did not come through."],
          "Get dumps of all ranks (torch's flight recorder) and compare them here.", 0.7, "hang"),
    _Rule("unanswered", re.compile(r"Connect timeout"), _nothing,
          ["A rank had no connection with another within the limit: that rank was late, has ended "
           "or never came to init_process_group, or the address that it offers (by its host's name "
           "or interface) leads nowhere from here."],
          "Look first whether another process has ended or not begun; then GLOO_SOCKET_IFNAME=eth0 "
          "(the interface that all hosts share; lo on one host) in every process, and a longer "
          "timeout of init_process_group.", 0.75, "hang"),
    _Rule("timed_out", re.compile(r"(?:Read|Write) timeout \[([\da-f.:]+)\]"),
          lambda m: {"address": m[1]},
          ["A transfer with the rank at {address} did not end in time: that rank has not made this "
           "call (it is late, has ended or stands elsewhere), or what it sent did not come "
           "through."],
          "Read the end of that rank's log, and see where it stands (py-spy dump).", 0.7, "hang"),
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
    _Rule("no_ports_left", re.compile(r"gloo.*listen: Address already in use"), _nothing,
          ["As a rule the host has no port left: Gloo takes ports for each pair of ranks, so n "
           "ranks on one host take up to n (n - 1), and there are about 28,000 "
           "(net.ipv4.ip_local_port_range)."],
          "Start fewer ranks a host, widen net.ipv4.ip_local_port_range, or take a backend that "
          "goes over shared memory inside a host (backend=\"roundelay\").", 0.8, "machine"),
    _Rule("mesh_failed", re.compile(r"connectFullMesh failed with \[[^\]]*\] no error"), _nothing,
          ["The ranks cannot connect to one another, and Gloo does not say why: as a rule a rank "
           "offers an address of an interface that others do not reach (docker, a second network, "
           "loopback), or a rank has ended meanwhile."],
          "GLOO_SOCKET_IFNAME=eth0 (the interface that all hosts share) in every process, also "
          "those that Ray or a launcher starts; see that ports between the hosts are open.",
          0.8, "machine"),
    _Rule("peer_lost", re.compile(r"(?:closed by peer|[Cc]onnection reset|[Bb]roken pipe).*?"
                                  + _PEER.pattern), _nothing,
          ["A connection was closed from the other side ({peers}): that rank has ended, was killed "
           "or has given up. Who says so only follows."],
          "Read the end of the log of the rank at that address: it ended before, by an error of "
          "its own or because its time limit was over.",
          0.7, "hang"),
    _Rule("peer_lost", re.compile(r"(?i:closed by peer|connection reset|broken pipe)"), _nothing,
          ["A connection was closed from the other side: that rank has ended, was killed or has "
           "given up. Who says so only follows."],
          "Read the ends of the other ranks' logs: the one that stopped first has the first error.",
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
        reason, fault = list(rule.reason), True
        if rule.kind in _JOINING and any("new_group(" in line.text for line in lines):
            reason.append("It is in new_group, which all ranks must call for all groups in the "
                          "same order, also for those that they are not in; where each rank makes "
                          "only its own, some wait for ranks that do not come.")  # fmt: skip
        if rule.kind == _FALLBACK:
            fault = any(_FAILS.search(line.text) for line in lines)
        kind = "loopback" if rule.kind == _FALLBACK else rule.kind
        return tell(kind, file, figures, reason, rule.advice, cited(file, *said[:4]),
                    fault=fault, confidence=rule.confidence, area=rule.area)  # fmt: skip
    return None
