"""Causes in TCP sockets: addresses, interfaces, ports, and peers that are gone.

Sources of the words: NCCL's misc/socket.cc, bootstrap.cc and transport/net_socket.cc, and the
texts of Linux's errno.
"""

from __future__ import annotations

from typing import Final

from .cause import cause

_ADDRESS: Final = r"(?P<address>[\w.:%\[\]-]+)<\d+>.*?"
_MAGIC: Final = r"wrong magic (?:0x)?"
_KEEP_OUT: Final = (
    "Find who comes to this port (ss -tnp on that host; targets of Prometheus, a load balancer's "
    "checks, a scanner for security) and keep it from the ports that NCCL takes "
    "(net.ipv4.ip_local_port_range), or keep NCCL to an inner network (NCCL_SOCKET_IFNAME). If the "
    "job hangs behind it, take a newer NCCL."
)
_NAME_ONE: Final = (
    "Name the interface that all hosts share: NCCL_SOCKET_IFNAME=eth0 (or =^docker,lo to leave "
    "some out), and open the ports between the hosts."
)
_SHARED: Final = (
    "Name the interface that all hosts share: NCCL_SOCKET_IFNAME=eth0; open all ports between the "
    "hosts (nc -vz HOST PORT from the one to the other); see that the other host lives, and remove "
    "what an earlier run has left (a file of init_method)."
)

SOCKETS: Final = (
    cause("docker_address", r"(?P<address>172\.17\.\d+\.\d+)<\d+>.*?(?:fail|return|abort)",
          "machine",
          "{address} is as a rule an address of docker's own bridge (docker0), which many hosts "
          "have: seen from another host it leads nowhere. A process in a container without the "
          "host's network offers it.",
          "Start containers with --network host (in Kubernetes hostNetwork: true, or a second "
          "network), or name the interface that all hosts share: NCCL_SOCKET_IFNAME=eth0."),
    cause("peer_lost", r"Call to (?:recv|send|read|write|sendmsg|recvmsg)\w*(?: (?:from|to) \S+)? "
          r"failed ?: (?P<what>Connection reset by peer|Broken pipe)", "hang",
          "A connection was closed from the other side ({what}): that rank has ended, was killed "
          "or has given up. Who says so only follows.",
          "Read the end of the other ranks' logs: the one that stopped first has the first error; "
          "at the very start see that all use an interface that the hosts share.",
          confidence=0.6),
    cause("peer_silent", r"Call to (?:recv|send|read|write|sendmsg|recvmsg)\w*(?: (?:from|to) "
          r"\S+)? failed ?: (?P<what>Connection timed out|No route to host|Network is \w+)",
          "hang",
          "A connection that stood has no answer any more ({what}): the host at its other end is "
          "down or hangs, the network between the two was cut, or a firewall has forgotten the "
          "connection.",
          "See whether that host lives and what its ranks said last; then links, switches and "
          "firewalls between the two (ping, dmesg of both).", confidence=0.7),
    cause("loopback", r"onnect to (?P<address>127\.[\d.]+|::1)<\d+>.*?(?:fail|return|abort)",
          "machine",
          "{address} means this host itself: another rank has offered its loopback (lo), at "
          "which only processes of its own host reach it. Either ranks are on several hosts and "
          "took the wrong interface, or on one and that rank has ended.",
          "Name the interface that all hosts share: NCCL_SOCKET_IFNAME=eth0; in /etc/hosts a "
          "host's own name must not stand for 127.0.0.1 or 127.0.1.1.", confidence=0.85),
    cause("link_local", r"(?P<address>fe80:[\w:%.-]+)<\d+>.*?(?:fail|return|abort)", "machine",
          "{address} is a link-local address (IPv6): it holds on one wire only, and with its own "
          "interface's name, which other hosts do not have.",
          "NCCL_SOCKET_FAMILY=AF_INET, or name an interface that has a routed address: "
          "NCCL_SOCKET_IFNAME=eth0."),
    cause("no_route", _ADDRESS + r"(?P<errno>113|101)\((?:No route|Network is unreach)", "machine",
          "errno {errno}: there is no route to {address}, the address at which another rank waits. "
          "It was chosen from an interface that this host cannot reach, or a firewall turns it "
          "away.", _NAME_ONE),
    cause("no_route", _ADDRESS + r"(?P<what>No route to host|Network is unreachable)", "machine",
          "{what}: {address} is where another rank waits. It was chosen from an interface that "
          "this host cannot reach, or a firewall turns it away.", _NAME_ONE),
    cause("refused", _ADDRESS + r"(?P<errno>111|110|104)\(", "machine",
          "errno {errno} from {address} (111 is refused, 110 timed out, 104 reset): the rank there "
          "does not listen (any more), it is an address of another interface or of an earlier run, "
          "or something between the hosts drops connections.",
          "See whether the process at that address lives and what it said last; then look at "
          "firewalls and NCCL_SOCKET_IFNAME."),
    cause("unanswered", _ADDRESS + r"(?P<what>Connection timed out)", "machine",
          "{what} at {address}: nothing answers there. A firewall drops what comes, the address "
          "is of an interface that the two hosts do not share or of an earlier run, or that host "
          "is down.", _SHARED, confidence=0.8),
    cause("refused", _ADDRESS + r"(?P<what>Connection refused|"
          r"Connection reset|Software caused connection abort)", "machine",
          "{what} at {address}: the rank there does not listen (any more), it is an address of "
          "another interface or of an earlier run, or a firewall turns connections away.",
          "See whether {address} is one of this job's hosts. If not, name the interface that all "
          "hosts share (NCCL_SOCKET_IFNAME=eth0) and remove what an earlier run has left (a file "
          "of init_method). If so, see what its process said last, and look at firewalls."),
    cause("retrying", r"returned (?:\d+\()?(?P<what>Connection refused|Connection timed out|"
          r"No route to host|Network is unreachable)\)?.*retrying", "hang",
          "{what}, again and again: the address at which another rank should wait is not answered, "
          "and the start does not go on. That rank was not started or has ended, the address is of "
          "an earlier run or of an interface that this host cannot reach, or a firewall drops "
          "connections.",
          "See that all ranks were started and live, and remove what an earlier run has left (a "
          "file of init_method); name the interface that all hosts share "
          "(NCCL_SOCKET_IFNAME=eth0); open the ports between the hosts.", confidence=0.7),
    cause("unanswered", r"connect\b.*?(?:failed ?: |returned (?:\d+\()?)(?P<what>Connection "
          r"timed out)", "machine",
          "{what}: nothing answers at the address at which another rank should wait. A firewall "
          "drops what comes, the address is of an interface that the two hosts do not share or of "
          "an earlier run, or that host is down.", _SHARED, confidence=0.8),
    cause("no_route", r"connect\b.*?(?:failed ?: |returned (?:\d+\()?)(?P<what>No route to host|"
          r"Network is unreachable)", "machine",
          "{what}: this host has no way to the address at which another rank waits. It is of an "
          "interface or network that the two do not share, or a firewall turns connections away.",
          _NAME_ONE),
    cause("refused", r"connect\b.*?(?:failed ?: |returned (?:\d+\()?)(?P<what>Connection refused|"
          r"Software caused connection abort)", "machine",
          "{what}: nobody listens (any more) at the address at which another rank should wait. "
          "That rank has ended or was not started, the address is of another interface or of an "
          "earlier run, or a firewall turns connections away.",
          "See that all ranks were started and that MASTER_ADDR (or the file of init_method, which "
          "an earlier run may have left) is right; name the interface that all hosts share "
          "(NCCL_SOCKET_IFNAME=eth0); open the ports between the hosts.", confidence=0.75),
    cause("no_interface", r"no (?:usable |socket |IP )?(?:listening )?interface found|"
          r"Address family not supported", "machine",
          "NCCL finds no network interface that it may use: the container has none, or "
          "NCCL_SOCKET_IFNAME, NCCL_SOCKET_FAMILY or NCCL_COMM_ID asks for one that is not here.",
          "Give the container the host's network (--network host), or set NCCL_SOCKET_IFNAME to a "
          "name that `ip -br addr` lists in it."),
    cause("ras_port", r"RAS failed to establish a client listening socket", "machine",
          "The port by which NCCL can be asked for its state (RAS, 28028) is another process's, as "
          "whenever two jobs run on one host. Only ncclras is affected; it may be ignored.",
          "NCCL_RAS_ADDR=localhost:PORT gives each job its own; NCCL_RAS_ENABLE=0 turns it off.",
          fault=False),
    cause("ras_peer_silent", r"RAS .*?(?:timeout|dead).*?(?P<peer>[\d.]+<\d+>)?$", "hang",
          "RAS, by which processes of a job watch one another, hears nothing of a peer: its "
          "process has ended or hangs, its host is gone, or a firewall stops it.",
          "Look at the process at that address; ncclras (or port 28028 of any host) lists ranks "
          "that are missing.", confidence=0.7),
    cause("no_port", r"(?:bind|listen)\b.*?(?P<what>Address already in use|Permission denied)",
          "machine",
          "{what}: this process cannot listen at the port that was chosen. It is another process's "
          "(an earlier run, another rank told the same NCCL_COMM_ID or MASTER_PORT), no port is "
          "left, or (Permission denied) ports below 1024 or all listening are not allowed here.",
          "End what is left of earlier runs (ss -ltnp), choose another MASTER_PORT above 1024, and "
          "see net.ipv4.ip_local_port_range."),
    cause("no_address", r"(?:bind|listen)\b.*?(?P<what>Cannot assign requested address)",
          "machine",
          "{what}: the address at which this process is to listen is not one that this host can "
          "use. The interface that was chosen has no usable address (none, or only a link-local "
          "one of IPv6, fe80), it went down meanwhile, or NCCL_COMM_ID names another host.",
          "Choose an interface that has an address which others reach (ip -br addr): "
          "NCCL_SOCKET_IFNAME=eth0, with NCCL_SOCKET_FAMILY=AF_INET where IPv6 is in the way; or "
          "give the chosen one an IPv4 address."),
    cause("socket_closed", r"(?:accept|poll|recv|send|listen|connect)\w*\b.*Bad file descriptor",
          "hang",
          "A socket of this process was closed under it while NCCL used it: another thread of it "
          "gave up and tore the communicator down, or the program closes files that are not its "
          "own (a daemon, a fork). Network and other hosts have no part in it.",
          "Look for the first error of this process's other threads (one communicator a thread: "
          "which failed first?); do not close descriptors of others, and use spawn, not fork.",
          confidence=0.7),
    cause("no_name", r"address info ?: (?P<what>.+)|(?P<said>Name or service not known|"
          r"Temporary failure in name resolution|Host is down)", "machine",
          "The name of a host cannot be turned into an address.",
          "getent hosts NAME on all hosts; give MASTER_ADDR or NCCL_COMM_ID as an address, mend "
          "/etc/hosts, or in Kubernetes wait for the headless service's names."),
    cause("bad_setting", r"(?P<what>Invalid NCCL_COMM_ID.*|No valid .*:(?:<port>|port) pair found)",
          "machine",
          "NCCL_COMM_ID is not an address and a port.",
          "Set it to address:port (of rank 0's host) on all ranks, or unset it."),
    cause("address_empty", r"address +(?:\S+ )?with family (?P<family>\d+) is neither|"
          r"unsupported IP family", "machine",
          "The address of another rank that has come is none: the two sides do not use the same "
          "network (one loads a network plugin, the other goes over NCCL's own sockets), run "
          "different versions of NCCL or of the plugin, or that rank has failed before it filled "
          "it in.",
          "Compare Using network (NCCL_DEBUG=INFO), NCCL_NET and NCCL_NET_PLUGIN, and NCCL's "
          "version in every process (torch.cuda.nccl.version()): one library and one plugin on all "
          "hosts; else see the first error of the other ranks. Where two ranks send to one another "
          "before they receive, put ncclSend and ncclRecv into one group.",
          confidence=0.75),
    cause("stranger", _MAGIC + r"(?P<found>\w*(?:20544547|54534f50|44414548|20545550|20495250|"
          r"4954504f|50545448))\b", "machine",
          "A connection came that speaks HTTP: the bytes at the place of NCCL's mark ({found}, the "
          "last first) begin a request, as a monitor such as Prometheus, a health check or a "
          "scanner of ports sends it. No rank of the job sends that.", _KEEP_OUT),
    cause("stranger", _MAGIC + r"(?P<found>\w*(?:2d485353|\w{12}0316))\b", "machine",
          "A connection came that speaks SSH or TLS: the bytes at the place of NCCL's mark "
          "({found}, the last first) begin so, as a scanner of ports or another program's client "
          "sends. No rank of the job sends that.", _KEEP_OUT),
    cause("stranger", r"wrong (?:type|magic) (?P<found>\w+) != (?P<due>\w+)", "machine",
          "A connection came that is of another kind ({found} where {due} was expected): hosts run "
          "NCCL of different versions or settings, or another job or a scanner of ports comes to "
          "this address.",
          "Compare the version of NCCL and env | grep NCCL on all hosts; end what is left of "
          "earlier runs; name the interface between the hosts (NCCL_SOCKET_IFNAME).",
          confidence=0.6),
    cause("stranger", r"Unknown command (?P<found>\S+) from|unknown type (?P<type>\d+) from|"
          r"bootstrap.*?(?:mismatch in magic|wrong magic)", "machine",
          "Something came to NCCL's port that is none of its commands: another program of that "
          "host or a scanner of ports speaks to it, or a process of another version of NCCL, or "
          "memory was overwritten.",
          "If the job goes on it may be ignored. See what else runs on the host and whether a "
          "scanner for security does its rounds; keep NCCL to an inner network "
          "(NCCL_SOCKET_IFNAME); take one version of NCCL everywhere.", confidence=0.65),
    cause("messages_differ", r"Message truncated ?: received (?P<sent>\d+)(?:,\d+)? bytes instead "
          r"of (?P<wanted>\d+)", "hang",
          "While they start, two ranks exchange messages of different sizes ({sent} bytes came "
          "where {wanted} were expected): they run different versions of NCCL, are not in the same "
          "step (one splits a communicator, another does not), or belong to different jobs.",
          "Take one version of NCCL on all hosts, see that all ranks make the same communicators "
          "in the same order, and that no process of an earlier run is left.", confidence=0.8),
    cause("ranks_differ", r"mismatch in (?:rank count|info) from procs,?\s*(?:nranks )?"
          r"(?P<one>\d+) (?:vs|:) (?P<other>\d+)", "machine",
          "Processes that come to one rank 0 do not agree on how many ranks there are ({one} and "
          "{other}): WORLD_SIZE differs, or two jobs meet at one address.",
          "See WORLD_SIZE in every process and how many the launcher started on each host; give "
          "each job a MASTER_PORT of its own and end what is left of earlier runs."),
    cause("peer_lost", r"Connection closed by (?:localRank|remote peer|peer) ?(?P<peer>\S*)",
          "hang",
          "A connection was closed from the other side ({peer}): that rank has ended, was killed "
          "or has given up. Who says so only follows.",
          "Read the end of that rank's log: its error is the first one.", confidence=0.6),
)  # fmt: skip
