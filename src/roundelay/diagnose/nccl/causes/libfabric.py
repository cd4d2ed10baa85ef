"""Causes that other libraries of networks tell: libfabric (EFA), UCX, and Google's plugins.

Sources of the words: prov/efa of libfabric (efa_errno.h, efa_strerror.c), UCX's ib_mlx5_log.c and
ucp, and nccl-plugin-gpudirecttcpx.
"""

from __future__ import annotations

from typing import Final

from .cause import cause

_EFA_NET: Final = (
    "Look at the other ranks first: which ended or was killed? Then see that the security group "
    "allows all traffic from and to itself, in and out, and that hosts are in one subnet and "
    "placement group; fi_pingpong -p efa between the two; FI_LOG_LEVEL=warn names the peer."
)

LIBFABRIC: Final = (
    cause("efa_peer", r"(?P<what>Unresponsive re(?:ceiver|mote)|Unreach\w* (?:remote|peer)|"
          r"UNDELIVERABLE|Invalid address handle|Destination QPN|peer process no longer)|(?:OFI|"
          r"\befa\b|\bRC: ).*?(?P<said>No route to host|Connection refused|Connection timed out)",
          "machine",
          "A network card of EFA gets no answer from the other side: the process there has ended "
          "or its host has failed, or, at the very start, the security group does not let the "
          "two hosts through.", _EFA_NET, confidence=0.8),
    cause("efa_busy", r"Receiver not ready|Resource temporarily unavailable.*(?:fi_|efa)",
          "machine",
          "The other side of EFA takes nothing more for now (receiver not ready): its process is "
          "stopped or far behind, so that its queue has no buffer left.",
          "See what that rank does (a breakpoint, a checkpoint, swapping); take one release of "
          "EFA's installer everywhere.", confidence=0.65),
    cause("network_error", r"(?P<what>Transport retry count exceeded|Endpoint timeout|RNR retry "
          r"(?:count )?exceeded)(?: on (?P<device>\S+))?", "machine",
          "UCX: a network card has no answer from the other side after all retries ({what}). The "
          "other rank has died, a link is down or loses packets, or (RoCE) the GID or flow control "
          "is wrong.",
          "Look at the other rank first. Then ibstat and link counters on both hosts, ib_write_bw "
          "between them, on RoCE UCX_IB_GID_INDEX and flow control; UCX_NET_DEVICES names the "
          "cards to use; UCX_RC_TIMEOUT only hides it."),
    cause("ucx_no_way", r"(?P<what>no usable transports/devices|Destination is unreachable|"
          r"no (?:remote|active messages?|auxiliary) \w* ?transport|network device \S+ is not "
          r"available)", "machine",
          "UCX finds no way between the two processes ({what}): UCX_TLS or UCX_NET_DEVICES name "
          "what is not on both hosts, or a container does not see the network card.",
          "ucx_info -d on both hosts; unset UCX_TLS and UCX_NET_DEVICES, or name what both have "
          "(rc,cuda_copy,cuda_ipc,sm,self)."),
    cause("ucx_refuses", r"UCX +ERROR.*failed to (?P<what>insert region|reg\w* )", "machine",
          "UCX cannot register memory with the network card (failed to {what}), and the connection "
          "is not made: as a rule it is a card's memory for GPUDirect RDMA, which this build of "
          "UCX (without CUDA or ROCm) or the driver does not take.",
          "Take the plugin's own RDMA instead of UCX (NCCL_PLUGIN_P2P=ib), or a UCX that is built "
          "for this CUDA or ROCm (ucx_info -d); NCCL_NET_GDR_LEVEL=LOC shows whether GPUDirect "
          "RDMA is at fault.", confidence=0.8),
    cause("ucx_refuses", r"UCX error \S+ '-?\d+' (?P<what>.+)", "machine",
          "The network plugin goes over UCX, which refuses a call ({what}); the connection is not "
          "made.",
          "Lines of UCX before it say more (UCX_LOG_LEVEL=info); NCCL_PLUGIN_P2P=ib takes the "
          "plugin's own RDMA instead of UCX.", confidence=0.7),
    cause("tcpx", r"ctrl timeout cnt|tcpx\w*.*(?P<what>timeout|fail\w*|error|cannot|could not)|"
          r"(?:FasTrak|fastrak|GPUDirectTCPX).*?(?P<said>timeout|fail\w*|error|cannot|could not|"
          r"unable)", "machine",
          "Google's plugin (GPUDirect-TCPX or FasTrak) does not get on: its manager on the host "
          "(tcpgpudmarxd, or fastrak's receive daemon) does not run or is of another version than "
          "the plugin, its sockets are not mounted into the container, or the other host does not "
          "answer.",
          "See that the daemon runs on every host and its folder is mounted; take plugin, daemon "
          "and NCCL of one release and source its nccl-env-profile.sh; firewall rules must let "
          "all card networks through.", confidence=0.65),
)  # fmt: skip
