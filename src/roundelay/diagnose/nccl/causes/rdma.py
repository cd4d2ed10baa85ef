"""Causes in RDMA: network cards, their queues and events.

Sources of the numbers: `ibv_wc_status` and `ibv_event_type` of rdma-core's verbs.h, and NCCL's
transport/net_ib, which prints them.
"""

from __future__ import annotations

from typing import Final

from .cause import cause

_DONE: Final = r"completion.*?(?:status|error)[= ]*(?:IBV_WC_\w+\()?"

RDMA: Final = (
    cause("memory_refused", _DONE + r"(?P<error>4|8|10|11)\b", "machine",
          "A network card reports error {error}: it may not use the memory that it was told to "
          "(4 and 8 are local protection, 10 and 11 are the other side's). The way to it works; "
          "what fails is the card's memory, as a rule with GPUDirect RDMA.",
          "Try NCCL_NET_GDR_LEVEL=LOC: if that works, GPUDirect RDMA is at fault. See that "
          "nvidia_peermem (or nv_peer_mem) fits the driver, that ACS is off and the kernel runs "
          "with iommu=pt, and that a card has not failed (Xid in dmesg)."),
    cause("flushed", _DONE + r"(?P<error>5)\b", "machine",
          "A network card gave up what was still under way (error {error}), as it does once a "
          "connection has failed: another error came first.",
          "Look at the first error of this connection, on either side."),
    cause("request_refused", _DONE + r"(?P<error>1|2|6|7|9)\b", "machine",
          "A network card reports error {error}: what was asked for is not valid (1 is a message "
          "longer than the buffer, 2 a request that the queue cannot do, 9 one that the other card "
          "refuses). The link works; the two ends do not agree, or a card's firmware or driver "
          "does not do what NCCL asks of it.",
          "See that all hosts run one version of NCCL and of the network plugin with the same "
          "settings, that driver and firmware of the network cards are of one release, and try "
          "NCCL_NET_GDR_LEVEL=LOC, NCCL_IB_PCI_RELAXED_ORDERING=0 and NCCL_IB_ADAPTIVE_ROUTING=0 "
          "one by one.", confidence=0.75),
    cause("network_error", _DONE + r"(?P<error>12|13)\b", "machine",
          "A network card reports error {error}: no answer from the other side after all retries. "
          "Where it comes at the very start, the two cards do not reach one another by RDMA (on "
          "RoCE: GID, routes, a switch that filters); later the other rank has died, a link is "
          "down, or packets are lost.",
          "Look at the other rank first. Then run ib_write_bw between these two cards, see ibstat "
          "and link counters; on RoCE the GID (show_gids, NCCL_IB_GID_INDEX) and flow control. "
          "NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT only hide it."),
    cause("network_error", _DONE + r"(?P<error>\d+)", "machine",
          "A network card reports error {error} (a number of ibv_wc_status): a transfer has "
          "failed.",
          "Look for the first such error on both hosts, and what the other rank said last; then "
          "ibstat, link counters and dmesg."),
    cause("sm_notice", r"async event ?: ?(?P<what>SM change|client reregist\w+)", "machine",
          "The subnet manager of InfiniBand was restarted or changed ({what}): a notice that "
          "network cards pass on. By itself nothing fails from it.",
          "Nothing, unless it comes again and again or errors of the network follow: then see the "
          "subnet manager's log.", fault=False, confidence=0.85),
    cause("sm_moved", r"async event ?: ?(?P<what>LID change|P_?Key change)", "machine",
          "The subnet manager has given a network card's port another address or partition "
          "({what}): connections that were made before may no longer reach it.",
          "See the subnet manager's log for why it did so while jobs ran; if errors follow, start "
          "the job anew.", confidence=0.7),
    cause("link_down", r"async event ?: ?(?P<what>port active|device speed change)", "machine",
          "The network card reports: {what}. Its link has come up or changed while the job ran, so "
          "it was down or not steady before.",
          "Look for port error on the same host, at ibstat, dmesg and ibqueryerrors or ethtool -S "
          "(link downs, symbol errors).", confidence=0.7),
    cause("link_down", r"async event ?: ?(?P<what>port (?:error|down))", "machine",
          "The network card reports: {what}. Its link has gone down: a cable, transceiver or "
          "switch port as a rule, seldom the card, or somebody has switched it off. Errors 12 and "
          "hangs of other ranks follow from it.",
          "On that host: ibstat, dmesg, ibqueryerrors or ethtool -S (link downs, symbol errors); "
          "reseat or change the cable; take the host out until the link stays up."),
    cause("network_card_failed", r"local catastrophic error|async fatal event: |device fatal",
          "machine",
          "A network card has itself failed (catastrophic error): firmware, PCIe or the card. All "
          "its connections are gone, whatever the program does.",
          "dmesg on that host (mlx5_core: health, assert, AER), reset or power-cycle it, update "
          "the firmware; if it comes again, change the card."),
    cause("queue_failed", r"async (?:fatal )?event(?: on [CS]?R?[QP]+)? ?(?:\(\w+\))?: ?(?P<what>"
          r"(?:local access violation|invalid request|local work queue|CQ|SRQ).*)", "machine",
          "A queue of a network card has failed: {what}. The card was asked for something that it "
          "cannot do or may not touch: memory that is not registered for it, or a request that its "
          "driver or firmware does not take. It is no lost link.",
          "Try NCCL_NET_GDR_LEVEL=LOC (GPUDirect RDMA), NCCL_IB_PCI_RELAXED_ORDERING=0 and "
          "NCCL_IB_QPS_PER_CONNECTION=1 one by one; bring driver (OFED), firmware and NCCL to one "
          "release on all hosts.", confidence=0.75),
    cause("gid_changed", r"GID table change", "machine",
          "The address of a RoCE network card (its GID) changed while the job ran: an interface "
          "was set up anew (DHCP, a bond, NetworkManager, a container's network). Connections to "
          "the old address are lost.",
          "Give the interfaces of RoCE fixed addresses and take them out of NetworkManager's "
          "hands; set NCCL_IB_GID_INDEX."),
    cause("no_device_access", r"Unable to (?:open|query) device (?P<device>\w+)|"
          r"ibv_open_device\(?\)? failed", "machine",
          "A network card for RDMA is listed but may not be opened, so NCCL does without it: in a "
          "container its device file is missing (/dev/infiniband/uverbsN) or not allowed, or it "
          "belongs to somebody else (a virtual function). If no card is left NCCL goes over TCP "
          "sockets, slowly; if hosts end up with different cards, they may hang.",
          "Start the container with --device=/dev/infiniband (or the RDMA device plugin) and "
          "--cap-add=IPC_LOCK; name the cards that all hosts may use: NCCL_IB_HCA=mlx5_0,mlx5_1. "
          "If the others are used and all is well, it may be ignored.", confidence=0.85),
    cause("no_rdma_way", r"ibv_modify_qp failed with (?:error )?(?:\d+ )?(?P<what>No such device)",
          "machine",
          "Two network cards cannot be joined by RDMA ({what}): the address (GID) that was taken "
          "belongs to an interface that is not in this network namespace. In a container without "
          "the host's network, a GID index names another address than on the host.",
          "Use the host's network (--network host), or give the container a network interface of "
          "that card (SR-IOV, macvlan with RDMA in exclusive mode); look at show_gids inside it "
          "and set NCCL_IB_GID_INDEX to an entry whose interface is there."),
    cause("no_rdma_way", r"ibv_modify_qp failed with (?:error )?(?:\d+ )?(?P<what>Invalid "
          r"argument)",
          "machine",
          "Two network cards cannot be joined by RDMA ({what}): a card's port is down, the GID "
          "that was taken is empty, the two ends differ in MTU or link layer, or the driver does "
          "not take what NCCL sets.",
          "On both hosts: ibv_devinfo (state PORT_ACTIVE, the same active_mtu and link_layer), "
          "show_gids (set NCCL_IB_GID_INDEX to RoCE v2 with a routed address, often 3), and "
          "NCCL_IB_HCA to cards that are up; test with ib_write_bw -d CARD -x INDEX."),
    cause("no_rdma_way", r"ibv_modify_qp failed with (?:error )?(?:\d+ )?(?P<what>[A-Z][\w ]+)",
          "machine",
          "Two network cards cannot be joined by RDMA ({what}): they are of different networks or "
          "rails, one is RoCE and the other InfiniBand, or the GID that was taken (on RoCE an "
          "address) is not routed, as link-local fe80 ones are.",
          "On both hosts compare show_gids and ibv_devinfo; set NCCL_IB_GID_INDEX to the entry of "
          "RoCE v2 with the routed address (often 3), and NCCL_IB_HCA to cards of one network. "
          "Where each rail is a network of its own, set NCCL_CROSS_NIC=0."),
    cause("no_gid", r"ncclIbRoceGetVersionNum|ibv_query_gid failed", "machine",
          "NCCL cannot read the addresses (GIDs) of a RoCE network card: the container does not "
          "show them in /sys/class/infiniband, or the card has none.",
          "See show_gids inside the container; mount /sys or set NCCL_IB_GID_INDEX, so that NCCL "
          "need not look."),
    cause("mixed_links", r"Attempted to connect incompatible devices|is incompatible with the "
          r"local", "machine",
          "A network card of InfiniBand is to talk to one of Ethernet (RoCE): the two hosts use "
          "cards of different kinds, and these do not reach one another.",
          "Name cards of one kind that all hosts have: NCCL_IB_HCA=mlx5_0,mlx5_1 (see "
          "ibv_devinfo, link_layer)."),
    cause("nics_differ", r"mismatched physical devices|different number of devices|(?:virtual "
          r"device|vNic|virtual NIC)", "machine",
          "Hosts put ports of network cards together differently (NICs that NCCL joins to one): "
          "the two ends have other numbers or rails, so that traffic crosses rails or does not "
          "fit.",
          "Set the same NCCL_IB_HCA on all hosts, or NCCL_IB_MERGE_NICS=0; see that no host lacks "
          "a card or has a port down (ibv_devinfo).", confidence=0.75),
    cause("mixed_links", r"Attempted to merge incompatible devices", "machine",
          "Network cards of InfiniBand and of Ethernet are to be joined to one: NCCL does not mix "
          "them.",
          "Name cards of one kind: NCCL_IB_HCA=mlx5_0,mlx5_1 (see ibv_devinfo, link_layer); "
          "NCCL_IB_MERGE_NICS=0."),
    cause("memory_not_registered", r"(?:ibv|mlx5dv)_reg_(?:dmabuf_)?mr\w* failed with error "
          r"(?P<what>Bad address|Invalid argument|Operation not \w+|Bad file descriptor)",
          "machine",
          "A card's memory could not be registered with the network card ({what}): the module "
          "for GPUDirect RDMA is missing or does not fit the driver, or the memory is of a kind "
          "that it does not know (managed or virtual memory, or another process's).",
          "Load nvidia_peermem, or use a kernel and driver with DMA-BUF; NCCL_NET_GDR_LEVEL=LOC "
          "shows whether that is it; NCCL_CUMEM_ENABLE=0 where the program's own allocator is "
          "new.", confidence=0.75),
    cause("queue_refused", r"ibv_create_\w+ failed with error (?P<what>Invalid argument|"
          r"Operation not \w+|Function not implemented|No such device|Permission denied|"
          r"Input/output error)", "machine",
          "The driver of a network card does not make a queue as NCCL asks for it ({what}): the "
          "library in the container and the kernel's driver are of different releases, the card "
          "is a virtual function with fewer abilities, or it is being reset.",
          "Take rdma-core or OFED of one release in host and container; ib_write_bw in the same "
          "container shows whether RDMA works there at all; dmesg (mlx5_core).", confidence=0.75),
    cause("post_failed", r"ibv_post_(?:send|recv|srq)\w*|ibv_poll_cq", "machine",
          "A request could not be put on (or taken from) a network card's queue: the queue has "
          "failed before (look at what comes earlier, on either side), or it is full.",
          "Look for the first completion with an error or async event on this host and its peers; "
          "if there is none, see driver and firmware of the card (dmesg).", confidence=0.65),
    cause("verbs_failed", r"ibv_(?:query_(?:device|port|qp)|alloc_pd|fork_init)|"
          r"Unable to query port|load IB Verbs functions|load symbol ibv_", "machine",
          "The library of RDMA fails at a simple call: the network card is not usable in this "
          "container (device files, rights), it is being reset or has failed, or library and "
          "kernel driver do not fit one another.",
          "ibv_devinfo in the same container; --device=/dev/infiniband and --cap-add=IPC_LOCK; "
          "dmesg (mlx5_core) on the host; NCCL_IB_DISABLE=1 does without.", confidence=0.7),
    cause("memory_not_pinned", r"ibv_reg_mr|ibv_create_(?:cq|qp|srq)|mlock|RLIMIT_MEMLOCK|"
          r"max locked memory", "machine",
          "Memory could not be registered with the network card: the limit of locked memory is too "
          "low, or there is none left.",
          "ulimit -l unlimited for the job (limits.conf, the container, Slurm's prolog)."),
    cause("no_peermem", r"No module present for GPU Direct RDMA|GPU Direct RDMA Disabled for HCA",
          "machine",
          "GPUDirect RDMA is off on this host: no module for it is loaded, and the kernel or "
          "driver has no DMA-BUF. Data between hosts go through the host's memory.",
          "modprobe nvidia_peermem, or a driver (open kernel modules) and kernel with DMA-BUF.",
          confidence=0.8),
    cause("too_far", r"GPU Direct RDMA Disabled for GPU (?P<card>\w+) / HCA (?P<nic>\w+) "
          r"\(distance (?P<far>\d+) > (?P<most>\d+)\)", "machine",
          "GPUDirect RDMA is not used between card {card} and network card {nic}: they are too "
          "far apart for NCCL (distance {far}, allowed up to {most}; beyond 4 lies the "
          "processor). Data between them go through the host's memory.",
          "See nvidia-smi topo -m for a network card nearer to that card (NCCL_IB_HCA); allow "
          "longer ways only where a measurement gains by it (NCCL_NET_GDR_LEVEL=SYS).", fault=False,
          confidence=0.85),
    cause("no_dmabuf", r"DMA_BUF_SUPPORT Failed|should be set for DMA_BUF|not support dmabuf|"
          r"Dmabuf feature disabled", "machine",
          "RCCL does not use DMA-BUF for GPUDirect RDMA: the kernel lacks "
          "CONFIG_DMABUF_MOVE_NOTIFY or CONFIG_PCI_P2PDMA, ROCm is too old, or it was not asked "
          "for. Where the module for peer memory (ib_peer_mem, amdgpu's) is loaded that does no "
          "harm; else data between hosts go through the host's memory.",
          "See whether connections say GDRDMA; NCCL_DMABUF_ENABLE=1 with a kernel that has both "
          "options, or the peer memory of the OFED with which amdgpu was built.", fault=False,
          confidence=0.75),
    cause("no_provider", r"no userspace device-specific driver found", "machine",
          "The library of RDMA (libibverbs) is there, and the driver for this network card in "
          "user space is not (libmlx5 and the like): a package is missing, or it is of "
          "another version than the host's kernel driver.",
          "Install ibverbs-providers (Debian, Ubuntu) or rdma-core in the image, of the OFED of "
          "the host; NCCL_IB_DISABLE=1 does without RDMA."),
    cause("no_verbs", r"Failed to open libibverbs", "machine",
          "The library of RDMA (libibverbs) is not there, so NCCL uses TCP sockets. Where there is "
          "no InfiniBand or RoCE this is to be ignored.",
          "Where there is: install rdma-core (libibverbs) in the container, and give it "
          "/dev/infiniband.", fault=False),
    cause("no_rdma", r"NET/IB : No device found", "machine",
          "NCCL finds no network card with RDMA (InfiniBand or RoCE) and goes over TCP sockets. "
          "Where there is none this is to be expected.",
          "Where there is one: see ibv_devinfo in the container, give it /dev/infiniband, and look "
          "at NCCL_IB_HCA and NCCL_IB_DISABLE.", fault=False),
)  # fmt: skip
