"""What torch says where ranks do not meet: its key-value store, by which they find one another.

Messages are those of PyTorch's TCPStore, ProcessGroupNCCL and elastic rendezvous (torch/csrc/
distributed/c10d, torch/distributed/elastic/rendezvous; versions 1.8 to 2.9).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ...formats.nccl_log import Line
from ..finding import Figures, Finding, cited, numbers, tell

KEPT: Final = 10**4
"""Lines of a kind."""
_WORDS: Final = (b"store", b"Store", b"endezvous", b"client socket", b"server socket",
                 b"EADDRINUSE", b"recvValue", b"ailed to recv", b"for clients",
                 b"gai error", b"connect() timed out", b"cket Timeout", b"keep-alive",
                 b"Wait timeout", b"imeout waiting for key", b"wait timeout after",
                 b"failed on SocketImpl")  # fmt: skip


class _Rule(NamedTuple):
    """Lines by which it is known, whose named groups are figures, and what is said of it."""

    kind: str
    pattern: re.Pattern[str]
    reason: Sequence[str]
    advice: str
    confidence: float
    fault: bool = True


_RULES: Final = (
    _Rule("too_many_ranks", re.compile(r"store[ -]based barrier on rank:? (?P<rank>\d+).*"
                                       r"world_size=(?P<world>\d+), (?:worker_count=(?P<there>\d+)|"
                                       r"num_workers_joined=(?P<joined>\d+))"), [], "", 0.85),
    _Rule("no_id", re.compile(r"\[(?P<rank>\d+)\] is setting up NCCL communicator and retr\w+ nccl"
                              r"UniqueId from \[(?P<root>\d+)\].*?got error: "
                              r"(?!Connection reset|Broken pipe|failed to recv)(?P<said>[^\"']+)"),
          ["Rank {rank} waited for what rank {root} leaves in the store before NCCL starts, and it "
           "was not there ({said}): rank {root} has not come to its first call of that group, has "
           "died, or is still busy before it."],
          "Read the end of the log of rank {root}; where it loads or prepares data alone for long, "
          "let all wait with a longer timeout (init_process_group), or do that before the group is "
          "made.", 0.85),
    _Rule("port_taken", re.compile(r"EADDRINUSE|server socket .*?(?:port: (?P<port>\d+).*)?"
                                   r"[Aa]ddress already in use"),
          ["The port at which rank 0 is to hold the store is taken: by a run before, by another "
           "job of this host, or because two processes both take themselves for rank 0."],
          "End what is left of the run before (ss -ltnp shows who listens), also runs that are "
          "only stopped (Ctrl-Z; jobs lists them), or take another port: torchrun --master-port "
          "(it does not heed MASTER_PORT), --standalone for one host, or MASTER_PORT where "
          "processes are started without torchrun.", 0.9),
    _Rule("no_ipv6", re.compile(r"errno: 97\b|Address family not supported|"
                                r"IPv6 network addresses of .*gai error: -[59]\b"),
          ["torch tries IPv6 first, which this host (or the name) does not have, and goes on with "
           "IPv4: alone this does no harm, and nothing has failed by it."],
          "Nothing, unless an error follows; a name in /etc/hosts that leads to an IPv4 address "
          "makes it silent.", 0.85, fault=False),
    _Rule("other_address", re.compile(r"to connect to .*\((?:\w+ error|errno): 10049\b"),
          ["One of the addresses that the host's name leads to cannot be used (on Windows Docker "
           "puts kubernetes.docker.internal into the file hosts), and torch goes on to the next: "
           "alone this does no harm."],
          "Nothing, unless an error follows; MASTER_ADDR=127.0.0.1 on one host makes it silent.",
          0.75, fault=False),
    _Rule("nameless", re.compile(r"hostname of the client socket cannot"),
          ["torch finds no name for the address of another process, which it only wants for its "
           "messages: that does no harm, but each such question may take seconds."],
          "Nothing; where start-up is slow, names in /etc/hosts or DNS for the addresses of all "
          "hosts.", 0.85, fault=False),
    _Rule("no_name", re.compile(r"addresses? of \(?\[?(?P<host>[^\],) ]+?)\]?, \d+\) "
                                r"cannot be retrieved|gai error: -\d+|"
                                r"getaddrinfo.{0,80}Name or service"),
          ["The name of rank 0's host ({host}) leads to no address on this host: it is not in DNS "
           "or /etc/hosts (yet), or misspelt. Where only IPv6 is named, torch goes on with IPv4, "
           "and it may do no harm."],
          "getent hosts NAME on that host; in Kubernetes the headless service must exist, and "
          "publish addresses before pods are ready; else give MASTER_ADDR as an address.", 0.9),
    _Rule("clients_missing", re.compile(r"Timed out after (?P<seconds>\d+) seconds waiting for "
                                        r"clients\. (?P<there>\d+)/(?P<world>\d+) clients joined"),
          ["Of {world} processes {there} came to the store within {seconds} s: the others were not "
           "started, ended before it, or look for it at another address or port."],
          "Count the processes on all hosts against nodes times processes a node; give all the "
          "same MASTER_ADDR and MASTER_PORT, and see the firewall (nc -vz HOST PORT).", 0.9),
    _Rule("store_unreachable", re.compile(
        r"client socket has .{0,80}connect to (?:\(?\[(?P<host>[^\]]{1,200})\](?:, |:)"
        r"(?P<port>\d+)|\(?(?P<host2>[^\],) ]+?)(?:, |:)(?P<port2>\d+))"),
          ["A rank cannot connect to the store of rank 0 at {host}, port {port}: rank 0 does not "
           "run there (yet), the name leads to another address on this host, or a firewall is in "
           "between."],
          "See that MASTER_ADDR is an address of rank 0's host that all reach (not localhost, not "
          "docker's), that the port is open (nc -vz HOST PORT), and that rank 0 has started.",
          0.85),
    _Rule("agent_lost", re.compile(r"The node '(?P<node>[^']{1,100})' has failed to send a "
                                   r"keep-alive"),
          ["The launcher of {node} cannot reach the rendezvous any more: the host that holds it "
           "has ended or is cut off. Ranks on that node may be sound."],
          "Read the log of the launcher at the --rdzv-endpoint: its end is the first one.", 0.8),
    _Rule("rendezvous_failed", re.compile(r"RendezvousTimeoutError|RendezvousConnectionError|"
                                          r"RendezvousClosedError"),
          ["The launchers of the hosts have not found one another: too few came in time, one "
           "cannot reach the endpoint, or what is left of a run before has closed it."],
          "Give every host the same --rdzv-endpoint (an address of one of them), --rdzv-id and "
          "--nnodes, start them within the timeout, and take a new --rdzv-id for a new run.", 0.8),
    _Rule("store_unanswered", re.compile(r"connect\(\) timed out\. Original timeout was|"
                                         r"\bSocket Timeout\b"),
          ["A rank waited in vain for rank 0's store: rank 0 has not started there, the address or "
           "port leads elsewhere, a firewall is in between, or rank 0 is busy or gone."],
          "See that MASTER_ADDR and MASTER_PORT are the same on all ranks and reach rank 0's host "
          "(nc -vz HOST PORT), and that rank 0 runs.", 0.75),
    _Rule("store_lost", re.compile(r"(?:[Ff]ailed to recv, got 0 bytes|recvValue failed|"
                                   r"(?:send|recv)\w{1,30} failed on|TCPStore.*?Broken pipe|"
                                   r"store->get\(.{0,60}got error: (?:Connection reset|Broken)|"
                                   r"TCPStore.*?Connection (?:reset|was likely closed))"),
          ["The connection to the store is gone: the process of rank 0 (or of its launcher) holds "
           "it, and as a rule that has ended. What is said of the store only follows."],
          "Read the end of rank 0's log, or of its launcher: its own error comes first. Where the "
          "job had done its work and rank 0 only ended before the others, it may be ignored.", 0.8),
    _Rule("file_waits", re.compile(r"Error: Wait timeout\b"),
          ["A rank waited in vain in the store for the others, by which they find one another: not "
           "all ranks were started or came there in time, or they do not see the same store. With "
           "init_method='file://...' that is another path, a folder that hosts do not share or "
           "that has no locks (Samba, some NFS), or a file that an earlier run has left."],
          "Count the processes against the world size; remove the file before each run; or meet "
          "by an address: init_method='tcp://HOST:PORT', or env:// with MASTER_ADDR.", 0.8),
    _Rule("store_waits", re.compile(r"(?:[Tt]imeout waiting for key|wait timeout after \d+ ?ms, "
                                    r"keys): ?(?P<key>[\w/.:-]+)"),
          ["A rank waited in vain for another's word in the store (key {key}): not all ranks have "
           "started, one has died before it came there, or they do not see the same store (another "
           "address, or with init_method='file://...' another file or one of an earlier run)."],
          "Count the processes on all hosts against the world size, and read the end of the logs "
          "of those that are missing.", 0.75),
)  # fmt: skip

TOO_MANY: Final = (
    "{there:process has|processes have} come to the barrier of {world:rank|ranks}: more than there "
    "are to be. The job was started twice (each of several launchers starts all), the world size "
    "is too small, or the store (a file of init_method, an address and port) is that of a run "
    "before.",
)
TOO_FEW: Final = (
    "{there} of {world:rank|ranks} have come to the barrier, {missing} have not: these did not "
    "start, died before it, or stand in a group of another name or size.",
)
START_ONCE: Final = (
    "Start each rank once: srun with one launcher a node, or no spawn inside srun; see that world "
    "size is nodes times processes; remove the file or take another port."
)
COUNT: Final = (
    "Count the processes on all hosts, and read the end of the logs of those that are missing."
)


def store_findings(file: str, lines: Iterable[bytes]) -> list[Finding]:
    """One for each kind of message, with the ranks that say it."""
    found: dict[str, list[tuple[re.Match[str], Line]]] = {}
    for number, raw in enumerate(lines, 1):
        if not any(map(raw.__contains__, _WORDS)):
            continue
        text = raw[:2000].decode("utf-8", "replace").strip()
        for rule in _RULES:
            if said := rule.pattern.search(text):
                kept = found.setdefault(rule.kind, [])
                kept += [(said, Line(number, text[:400], file))] if len(kept) < KEPT else []
                break
    failed = any(rule.fault for rule in _RULES if rule.kind in found)
    return [_told(rule, file, found[rule.kind]) for rule in _RULES
            if rule.kind in found and (rule.fault or not failed)]  # fmt: skip


def _told(rule: _Rule, file: str, said: Sequence[tuple[re.Match[str], Line]]) -> Finding:
    first = said[0][0].groupdict()
    figures: Figures = {name.rstrip("2"): "?" for name in first}
    figures |= {name.rstrip("2"): v.strip(" .,") for name, v in first.items() if v}
    ranks = sorted({int(m["rank"]) for m, _ in said if m.groupdict().get("rank")})
    if ranks:
        figures["rank"] = numbers(ranks, 8)
    kind, reason, advice = rule.kind, rule.reason, rule.advice
    if kind == "too_many_ranks":
        kind, reason, advice = _counted(first, figures)
    lines = cited(file, *[line for _, line in said][:4])
    return tell(kind, file, figures, reason, advice, lines, fault=rule.fault,
                confidence=rule.confidence, area="hang")  # fmt: skip


def _counted(
    said: dict[str, str | None], figures: Figures,
) -> tuple[str, Sequence[str], str]:  # fmt: skip
    """More or fewer ranks than there are to be have come to the barrier."""
    world, there = int(said["world"] or 0), int(said["there"] or said["joined"] or 0)
    figures |= {"world": world, "there": there, "missing": world - there}
    if there > world:
        return "too_many_ranks", TOO_MANY, START_ONCE
    return "ranks_missing", TOO_FEW, COUNT
