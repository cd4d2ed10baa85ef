"""The part of NCCL that a line comes from, where its text is not known, and how to go on."""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Place(NamedTuple):
    """A part of NCCL, by the names of its source files."""

    pattern: re.Pattern[str]
    reason: str
    advice: str


def _place(pattern: str, reason: str, advice: str) -> Place:
    return Place(re.compile(pattern, re.I), reason, advice)


PLACES: Final = (
    _place(r"net_ib|ib_plugin|ibvwrap|mlx5dv|gdaki|NET/IB",
           "It comes from the part for RDMA network cards (InfiniBand, RoCE).",
           "See ibv_devinfo and show_gids in the same container, NCCL_IB_HCA and "
           "NCCL_IB_GID_INDEX; NCCL_IB_DISABLE=1 (sockets) shows whether RDMA is at fault."),
    _place(r"NET/OFI|nccl_ofi",
           "It comes from the plugin of libfabric (EFA).",
           "FI_LOG_LEVEL=warn tells more; see fi_info -p efa in the same container, and that the "
           "plugin, libfabric and EFA's driver are of one release."),
    _place(r"sharp|coll_net",
           "It comes from SHARP, the sums in InfiniBand's switches.",
           "NCCL_COLLNET_ENABLE=0 shows whether it is at fault; see sharp_am's log."),
    _place(r"bootstrap|socket|NET/Socket|fastsocket|ras/",
           "It comes from the TCP sockets with which ranks find one another and exchange data.",
           "See that all ranks live and were started alike, NCCL_SOCKET_IFNAME, and firewalls "
           "between the hosts."),
    _place(r"shm|ipcsocket",
           "It comes from the memory that processes of one host share.",
           "See the size of /dev/shm, that the ranks of a host share it (--ipc=host) and run as "
           "one user; NCCL_SHM_DISABLE=1 shows whether it is at fault."),
    _place(r"p2p|nvls|mnnvl|multicast",
           "It comes from the ways between cards (P2P, NVLink, NVLS).",
           "NCCL_P2P_DISABLE=1 and NCCL_NVLS_ENABLE=0, one by one, show whether they are at fault; "
           "see nvidia-smi topo -p2p r, and that every process sees all cards."),
    _place(r"graph/|xml|topo|paths|search",
           "It comes from the search for rings and trees in the machine as NCCL sees it.",
           "NCCL_TOPO_DUMP_FILE=topology.xml, then `roundelay topology topology.xml`; unset "
           "NCCL_TOPO_FILE and NCCL_GRAPH_FILE."),
    _place(r"cudawrap|nvmlwrap|alloc\.h|rocm|gdrwrap|strongstream",
           "It comes from calls of CUDA (or HIP) and the driver.",
           "Run a small program of CUDA on that card in the same container; see dmesg (Xid), and "
           "that driver and CUDA fit one another."),
    _place(r"argcheck|collectives|enqueue|group|dev_runtime|init\.cc",
           "It comes from what the program asks of NCCL, or from the start of a communicator.",
           "Compare the ranks' calls and settings (NCCL_DEBUG_SUBSYS=INIT,COLL,ENV); take one "
           "version of NCCL everywhere."),
)  # fmt: skip
"""The more certain first."""
ELSEWHERE: Final = _place(
    "", "", "Look at the first warning of all ranks: later ones follow from it."
)


def place_of(text: str) -> Place:
    """The part that a source file, or a line's text, belongs to."""
    return next((place for place in PLACES if place.pattern.search(text)), ELSEWHERE)
