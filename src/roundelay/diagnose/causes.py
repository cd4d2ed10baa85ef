"""What lines of NCCL's log stand for, and what to try: by a part of their text."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from .finding import Area


class Cause(NamedTuple):
    """What a line stands for.

    Attributes:
        kind: of the finding.
        pattern: of the line's text; its named groups become figures.
        area: see `Finding`.
        reason, advice: sentences.
        fault: whether something is off.
        confidence: see `Finding`.
    """

    kind: str
    pattern: re.Pattern[str]
    area: Area
    reason: tuple[str, ...]
    advice: str
    fault: bool = True
    confidence: float = 0.9


def _cause(
    kind: str, pattern: str, area: Area, reason: tuple[str, ...], advice: str, *,
    fault: bool = True, confidence: float = 0.9,
) -> Cause:  # fmt: skip
    return Cause(kind, re.compile(pattern, re.I), area, reason, advice, fault, confidence)


_ADDRESS: Final = r"(?P<address>[\w.:%\[\]-]+)<\d+>.*?"

CAUSES: Final = (
    _cause("docker_address", r"(?P<address>172\.17\.\d+\.\d+)<\d+>.*?(?:fail|return|abort)",
           "machine",
           ("{address} is an address of docker's own bridge (docker0), which every host has: seen "
            "from another host it leads nowhere. A process in a container without the host's "
            "network has offered it.",),
           "Start containers with --network host (in Kubernetes hostNetwork: true, or a second "
           "network), or name the interface that all hosts share: NCCL_SOCKET_IFNAME=eth0."),
    _cause("no_route", _ADDRESS + r"(?P<errno>113|101)"
           r"\((?:No route|Network is unreach)", "machine",
           ("errno {errno}: there is no route to {address}, the address at which another rank "
            "waits. It was chosen from an interface that this host cannot reach, or a firewall "
            "turns it away.",),
           "Name the interface that all hosts share: NCCL_SOCKET_IFNAME=eth0 (or =^docker,lo to "
           "leave some out), and open the ports between the hosts."),
    _cause("no_route", _ADDRESS + r"(?P<what>No route to host|Network is unreachable)", "machine",
           ("{what}: {address} is where another rank waits. It was chosen from an interface that "
            "this host cannot reach, or a firewall turns it away.",),
           "Name the interface that all hosts share: NCCL_SOCKET_IFNAME=eth0 (or =^docker,lo to "
           "leave some out), and open the ports between the hosts."),
    _cause("refused", _ADDRESS + r"(?P<errno>111|110|104)\(", "machine",
           ("errno {errno} from {address}: the rank there does not listen (any more), or something "
            "between the hosts drops connections.",),
           "See whether the process at that address lives and what it said last; then look at "
           "firewalls and NCCL_SOCKET_IFNAME."),
    _cause("refused", _ADDRESS + r"(?P<what>Connection refused|Connection timed out|"
           r"Connection reset|Software caused connection abort)", "machine",
           ("{what} at {address}: the rank there does not listen (any more), it is an address of "
            "another interface or of an earlier run, or something between the hosts drops "
            "connections.",),
           "See whether {address} is one of this job's hosts. If not, name the interface that all "
           "hosts share (NCCL_SOCKET_IFNAME=eth0) and remove what an earlier run has left (a file "
           "of init_method). If so, see what its process said last, and look at firewalls."),
    _cause("no_interface", r"no (?:usable |socket )?(?:listening )?interface found|Address family "
           r"not supported", "machine",
           ("NCCL finds no network interface that it may use: the container has none, or "
            "NCCL_SOCKET_IFNAME, NCCL_SOCKET_FAMILY or NCCL_COMM_ID asks for one that is not "
            "here.",),
           "Give the container the host's network (--network host), or set NCCL_SOCKET_IFNAME to a "
           "name that `ip -br addr` lists in it."),
    _cause("duplicate_card",
           r"Duplicate GPU detected\s*: rank (?P<rank>\d+) and rank (?P<other>\d+) both on "
           r"CUDA device (?P<bus>\w+)", "machine",
           ("Rank {rank} and rank {other} use the same card (PCI address {bus}, in hexadecimal): "
            "each process must have a card of its own.",),
           "Before the group is made have each process take its card: "
           "torch.cuda.set_device(int(os.environ['LOCAL_RANK'])); see that no program names cuda:0 "
           "for all, that there are as many cards as processes, and what CUDA_VISIBLE_DEVICES says "
           "in each."),
    _cause("calls_differ", r"Mismatched collective detected.*?around rank (?P<rank>\d+)", "hang",
           ("Ranks call different collectives, or with different sizes, at or near rank {rank}.",),
           "Compare the calls of all ranks (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=COLL, one file a "
           "process with NCCL_DEBUG_FILE=nccl.%h.%p): the first that differs is the one."),
    _cause("sizes_differ", r"collective mismatch error,? local size (?P<wanted>\d+) remote size "
           r"(?P<sent>\d+)|message truncated ?: receiving (?P<came>\d+) bytes instead of "
           r"(?P<room>\d+)", "hang",
           ("The two ends of a connection do not agree: one has {sent:byte|bytes} for what is "
            "{wanted:byte|bytes} to the other. Ranks call with different sizes or in another "
            "order, or hosts run NCCL with different settings or versions.",),
           "Compare on all hosts the version of NCCL and the environment (env | grep NCCL: "
           "NCCL_ALGO, NCCL_PROTO, NCCL_BUFFSIZE, a tuner's file), then the ranks' calls "
           "(NCCL_DEBUG_SUBSYS=COLL)."),
    _cause("segment_gone", r"(?:attaching to|open) .*?(?P<segment>/dev/shm/\S+).*?No such file",
           "machine",
           ("A segment of shared memory ({segment}) is not there: the processes do not see the "
            "same /dev/shm (each in a container of its own), or the one that made it has ended.",),
           "Give containers of one host the same one (--ipc=host, or a volume at /dev/shm), see "
           "whether another rank failed first, and try a newer NCCL; NCCL_SHM_DISABLE=1 shows "
           "whether that is it."),
    _cause("no_shared_memory", r"/dev/shm.*?(?:to|size) (?P<bytes>\d+)\b.*No space left|"
           r"shared memory segment.*?size (?P<needed>\d+)\)$", "machine",
           ("/dev/shm is full: a segment of {needed_bytes} did not fit. A container has 64 MiB "
            "there unless it is given more, and each pair of channels takes one.",),
           "Give the container more: --shm-size=8g or --ipc=host, in Kubernetes an emptyDir with "
           "medium Memory mounted at /dev/shm; remove what is left of earlier runs."),
    _cause("no_shared_memory", r"(?:posix_fallocate|/dev/shm|shared memory).*No space left|"
           r"failed to extend /dev/shm",
           "machine",
           ("/dev/shm is full. A container has 64 MiB there unless it is given more, and each pair "
            "of channels takes a segment.",),
           "Give the container more: --shm-size=8g or --ipc=host, in Kubernetes an emptyDir with "
           "medium Memory mounted at /dev/shm; remove what is left of earlier runs."),
    _cause("too_many_nodes", r"too many XML nodes \(max (?P<limit>\d+)\)", "machine",
           ("The description of the machine has more than {limit} elements, which is all that "
            "this version holds: many network cards, and trees of ranks put together, do that.",),
           "Try a newer NCCL; until then show each process fewer devices: "
           "NCCL_IB_HCA with the network cards that are used, CUDA_VISIBLE_DEVICES."),
    _cause("memory_refused", r"completion.*?(?:status|error)[= ]*(?P<error>4|10|11)\b", "machine",
           ("A network card reports error {error}: it may not use the memory that it was told to "
            "(4 is local protection, 10 and 11 are the other side's). The way to it works; what "
            "fails is the card's memory, as a rule with GPUDirect RDMA.",),
           "Try NCCL_NET_GDR_LEVEL=LOC: if that works, GPUDirect RDMA is at fault. See that "
           "nvidia_peermem (or nv_peer_mem) fits the driver, that ACS is off and the kernel runs "
           "with iommu=pt, and that a card has not failed (Xid in dmesg)."),
    _cause("flushed", r"completion.*?(?:status|error)[= ]*(?P<error>5)\b", "machine",
           ("A network card gave up what was still under way (error {error}), as it does once a "
            "connection has failed: another error came first.",),
           "Look at the first error of this connection, on either side."),
    _cause("network_error", r"completion.*?(?:status|error)[= ]*(?P<error>12|13)\b", "machine",
           ("A network card reports error {error}: no answer from the other side after all "
            "retries. Where it comes at the very start, the two cards do not reach one another by "
            "RDMA (on RoCE: GID, routes, a switch that filters); later the other rank has died, a "
            "link is down, or packets are lost.",),
           "Look at the other rank first. Then run ib_write_bw between these two cards, see ibstat "
           "and link counters; on RoCE the GID (show_gids, NCCL_IB_GID_INDEX) and flow control. "
           "NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT only hide it."),
    _cause("network_error", r"completion.*?(?:status|error)[= ]*(?P<error>\d+)", "machine",
           ("A network card reports error {error} (12 is: no answer from the other side after all "
            "retries). The other rank has died, a link is down, or packets are lost.",),
           "Look at the other rank first. Then ibstat, link counters, and on RoCE flow control; "
           "NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT only hide it."),
    _cause("no_rdma_way", r"ibv_modify_qp failed with (?:error )?(?P<what>[A-Z][\w ]+)", "machine",
           ("Two network cards cannot be joined by RDMA ({what}): they are of different networks "
            "or rails, one is RoCE and the other InfiniBand, or the GID that was taken (on RoCE an "
            "address) is not routed, as link-local fe80 ones are.",),
           "On both hosts compare show_gids and ibv_devinfo; set NCCL_IB_GID_INDEX to the entry of "
           "RoCE v2 with the routed address (often 3), and NCCL_IB_HCA to cards of one network. "
           "Where each rail is a network of its own, set NCCL_CROSS_NIC=0."),
    _cause("out_of_memory", r"out of memory|Failed to CUDA (?:calloc|malloc|host alloc) "
           r"(?P<size>\d+)", "hang",
           ("The card's memory is full: NCCL could not take what it needs for its buffers. What "
            "the program and torch's cache hold leaves too little; lost connections of other "
            "ranks follow from it.",),
           "Leave room: a smaller batch, PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, fewer "
           "communicators, NCCL_MAX_NCHANNELS or NCCL_BUFFSIZE smaller; see that no other process "
           "uses the card (nvidia-smi)."),
    _cause("no_cuda", r"Failed to find CUDA library (?P<library>\S+)", "machine",
           ("NCCL does not find {library}, the library of the driver: the container was started "
            "without the cards, or it lies in a folder that is not searched, as under WSL "
            "(/usr/lib/wsl/lib).",),
           "Start the container with --gpus all; put the folder of libcuda.so.1 into "
           "LD_LIBRARY_PATH, or name the file in NCCL_CUDA_PATH."),
    _cause("no_cuda", r"Cuda failure.*?(?P<what>initialization error|system not yet initialized|"
           r"no CUDA-capable device|driver version is insufficient|system has unsupported)",
           "machine",
           ("CUDA itself does not start in this process ({what}): driver, fabric manager or "
            "container are at fault, or the process was forked after CUDA was used. The network "
            "has no part in it.",),
           "Run a small program of CUDA in the same place; on machines with NVSwitch see that "
           "nvidia-fabricmanager runs and is of the driver's version; use spawn, not fork."),
    _cause("no_peer_access", r"(?P<what>failed to open CUDA IPC handle.*|peer access is not "
           r"supported|peer mapping resources exhausted)", "machine",
           ("One card cannot reach another's memory ({what}), though NCCL had chosen that way: "
            "each process sees other cards than it thinks, or the driver does not allow P2P "
            "between them.",),
           "Try NCCL_P2P_DISABLE=1: if that works, P2P is at fault. See nvidia-smi topo -p2p r, "
           "that CUDA_VISIBLE_DEVICES lets every process see all cards of the job, and that "
           "containers share the IPC namespace."),
    _cause("topology_file", r"Attribute (?P<attribute>\w+) of node (?P<node>\w+) not found|"
           r"XML (?:Parse|file) ?(?:error|.*?unable to)", "machine",
           ("A topology file cannot be used: a mandatory attribute is missing or its XML is "
            "broken.",),
           "See which file NCCL_TOPO_FILE (or the network plugin) names, give it to `roundelay "
           "topology`, or do without it: unset NCCL_TOPO_FILE."),
    _cause("no_files_left", r"Too many open files", "machine",
           ("The process has no file descriptor left: each connection takes some.",),
           "ulimit -n 1048576 for the job (limits.conf, the container, Slurm's prolog)."),
    _cause("no_threads_left", r"(?:pthread_create|create thread|Resource temporarily "
           r"unavailable)", "machine",
           ("The host or container allows no further threads or processes.",),
           "Raise ulimit -u and the pids limit of the container (--pids-limit=-1)."),
    _cause("memory_not_pinned", r"ibv_reg_mr|ibv_create_(?:cq|qp|srq)|mlock|RLIMIT_MEMLOCK|"
           r"Cannot allocate memory", "machine",
           ("Memory could not be registered with the network card: the limit of locked memory is "
            "too low, or there is none left.",),
           "ulimit -l unlimited for the job (limits.conf, the container, Slurm's prolog)."),
    _cause("no_verbs", r"Failed to open libibverbs", "machine",
           ("The library of RDMA (libibverbs) is not there, so NCCL uses TCP sockets. Where there "
            "is no InfiniBand or RoCE this is to be ignored.",),
           "Where there is: install rdma-core (libibverbs) in the container, and give it "
           "/dev/infiniband.", fault=False),
    _cause("card_failed", r"(?:uncorrectable ECC|an illegal memory access|CUDA error|Cuda failure)"
           r"(?P<what>.*)", "machine",
           ("A card's call failed: {what}. Other ranks then wait for this one.",),
           "Look at the first such line of all ranks, at Xid errors in dmesg, and run that rank "
           "with CUDA_LAUNCH_BLOCKING=1 if the program is at fault."),
    _cause("p2p_disabled", r"P2P is disabled between .*?connected GPUs (?P<one>\d+) and "
           r"(?P<other>\d+)", "machine",
           ("P2P is off between cards though they are connected, such as {one} and {other}: what "
            "they exchange goes through the host's memory, at a part of the rate.",),
           "See what turns it off: NCCL_P2P_DISABLE or NCCL_P2P_LEVEL in the environment, a driver "
           "without P2P for these cards (GeForce), ACS or the IOMMU, a virtual machine; "
           "nvidia-smi topo -p2p r shows what the driver allows.", confidence=0.85),
    _cause("old_for_card", r"ncclMaxSharedMem (?P<needed>\d+) exceeds .*?(?P<has>\d+)$", "machine",
           ("NCCL's kernels want more shared memory ({needed_bytes}) than they may have on this "
            "card ({has_bytes}): most likely this version of NCCL is older than the card.",),
           "Take a newer NCCL, built for the card's compute capability.", confidence=0.7),
    _cause("no_link_speed", r"could not read \S+max_link_(?:speed|width)", "machine",
           ("NCCL cannot read how fast PCIe is and takes a default, 12 GB/s one way for each "
            "device (PCIe 3 x16): a virtual machine hides it. Paths, channels and the choice of "
            "algorithm rest on that figure, and GPUDirect RDMA may be ruled out.",),
           "Have the host pass the PCIe layout on, or give NCCL a topology file of the host "
           "(NCCL_TOPO_FILE).", confidence=0.85),
    _cause("no_nvls", r"NVLS multicast support is not available on dev (?P<device>\d+)", "machine",
           ("Sums in the NVSwitch (NVLS) are not to be had on device {device}. Before Hopper, or "
            "without an NVSwitch, that is so; else all_reduce inside a node loses a quarter of its "
            "busbw.",),
           "On Hopper and later see that driver (530 or later) and fabric manager are of one "
           "version, that the virtual machine or MIG does not take it away, and that "
           "NCCL_NVLS_ENABLE is not 0.", fault=False, confidence=0.8),
    _cause("rank_twice", r"rank (?P<rank>\d+) of (?P<ranks>\d+) ranks has already checked in",
           "machine",
           ("Two processes say that they are rank {rank} of {ranks}: the launcher gives ranks "
            "twice, or processes of an earlier run still live.",),
           "See RANK and WORLD_SIZE in every process: under Slurm one task a card (srun "
           "--ntasks-per-node), with torchrun another --node-rank on each host; end what is left "
           "of earlier runs."),
    _cause("stranger", r"wrong (?:type|magic) (?P<found>\w+) != (?P<due>\w+)", "machine",
           ("A connection came that is of another kind ({found} where {due} was expected): "
            "hosts run NCCL of different versions or settings, or another job or a scanner of "
            "ports comes to this address.",),
           "Compare the version of NCCL and env | grep NCCL on all hosts; end what is left of "
           "earlier runs; name the interface between the hosts (NCCL_SOCKET_IFNAME).",
           confidence=0.6),
    _cause("no_rdma", r"NET/IB : No device found", "machine",
           ("NCCL finds no network card with RDMA (InfiniBand or RoCE) and goes over TCP sockets. "
            "Where there is none this is to be expected.",),
           "Where there is one: see ibv_devinfo in the container, give it /dev/infiniband, and "
           "look at NCCL_IB_HCA and NCCL_IB_DISABLE.", fault=False),
    _cause("peer_lost", r"Call to \w+ failed ?: (?P<what>Connection reset by peer|Broken pipe)",
           "hang",
           ("A connection was closed from the other side ({what}): that rank has ended, was killed "
            "or has given up. These lines are of ranks that lived on.",),
           "Read the end of the other ranks' logs: the one that stopped first has the first error; "
           "at the very start see that all use an interface that the hosts share.",
           confidence=0.6),
    _cause("peer_lost", r"Connection closed by (?:localRank|remote peer|peer) ?(?P<peer>\S*)",
           "hang",
           ("A connection was closed from the other side ({peer}): that rank has ended, was killed "
            "or has given up. These lines are of ranks that lived on.",),
           "Read the end of that rank's log: its error is the first one.", confidence=0.6),
)  # fmt: skip
"""What is looked for, the more certain first: the first that fits is told."""
FOLLOWS: Final = re.compile(
    r"Call to open failed|Socket recv failed|retcode \d|Failed to execute operation|recv failed|"
    r"Connection closed by",
    re.I,
)
"""Of lines that come after another error."""
