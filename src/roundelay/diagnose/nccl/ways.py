"""Rules about the ways that data take between hosts, by logs of NCCL."""

from __future__ import annotations

from ...formats.nccl_log import NcclLog
from ..finding import Figures, Finding, cited, names, numbers, tell


def no_gpudirect(file: str, log: NcclLog) -> Finding | None:
    """Connections over InfiniBand without GPUDirect RDMA."""
    ways = [w for w in log.networks.values() if not w.name.startswith("Socket")]
    direct = any(w.direct for w in ways)
    staged = [w for w in ways if w.staged > (w.staged_sends if direct else 0)]
    if not staged:
        return None
    good = [w for w in ways if w.direct and not w.staged]
    figures: Figures = {
        "devices": names([f"{w.host} NET/{w.name}" for w in staged], 8),
        "channels": numbers(sorted({c for w in staged for c in w.channels})),
        "good": names([f"{w.host} NET/{w.name}" for w in good], 8),
        "staged": sum(w.staged for w in staged), "direct": sum(w.direct for w in ways),
    }  # fmt: skip
    reason = ["No GDRDMA on {devices} (channels {channels}; connections: {staged} without, "
              "{direct} with): data pass through the host's memory there."]  # fmt: skip
    hosts = {w.host for w in ways if w.direct}
    without = {w.host for w in staged} - hosts
    if hosts and without == {w.host for w in staged}:
        figures |= {"without": names(sorted(without)), "with": names(sorted(hosts))}
        return tell(
            "no_gpudirect", str(figures["without"]), figures,
            [*reason, "Host {without} has none at all, while {with} has it: what GPUDirect RDMA "
             "needs is missing on that host, most likely the module nvidia_peermem (nv_peer_mem)."],
            "On {without}: lsmod | grep peermem, modprobe nvidia_peermem, and compare driver, "
            "OFED and kernel with {with}.",
            cited(file, *(w.first_staged for w in staged[:2]),
                  *[w.first_direct for w in ways if w.direct][:1]),
            fault=True, confidence=0.9, area="machine",
        )  # fmt: skip
    if good:
        reason.append("{good} have it. So the card and that network card are too far apart, most "
                      "likely on different sockets.")  # fmt: skip
    return tell(
        "no_gpudirect", names(sorted({w.host for w in staged})), figures, reason,
        "See with nvidia-smi topo -m which network card is near which card; use one on the same "
        "socket (NCCL_IB_HCA), load nvidia_peermem, and allow longer ways only on purpose "
        "(NCCL_NET_GDR_LEVEL).",
        cited(file, *(w.first_staged for w in staged[:2]), *(w.first_direct for w in good[:1])),
        fault=True, confidence=0.85 if good else 0.7, area="machine",
    )  # fmt: skip


def sockets_only(file: str, log: NcclLog) -> Finding | None:
    """Traffic between hosts goes over plain sockets."""
    ways = [w for w in log.networks.values() if w.name.startswith("Socket")]
    if not ways or len(ways) < len(log.networks):
        return None
    figures: Figures = {"connections": sum(w.staged for w in ways)}
    off = {f"NCCL_{way}_DISABLE": log.environment.get(f"NCCL_{way}_DISABLE", ("", None))
           for way in ("P2P", "SHM")}  # fmt: skip
    if all(value.rstrip(".") == "1" for value, _ in off.values()):
        return tell(
            "sockets_only", names(sorted({w.host for w in ways})), figures,
            ["All connections ({connections}) go over TCP sockets, also those between ranks of one "
             "host: the environment turns off P2P and shared memory."],
            "Unset NCCL_P2P_DISABLE and NCCL_SHM_DISABLE, also in /etc/nccl.conf.",
            cited(file, *(line for _, line in off.values()), *(w.first_staged for w in ways[:1])),
            fault=True, area="machine",
        )  # fmt: skip
    if {t.nodes for t in log.threads.values() if t.nodes} == {1}:
        return tell(
            "sockets_only", names(sorted({w.host for w in ways})), figures,
            ["All connections ({connections}) go over TCP sockets, though all ranks are on one "
             "host: P2P and shared memory are turned off, or cannot be used between these "
             "processes."],
            "Unset NCCL_P2P_DISABLE and NCCL_SHM_DISABLE; give containers of one host the same "
            "/dev/shm and IPC namespace (--ipc=host).",
            cited(file, *(w.first_staged for w in ways[:2])), fault=True, area="machine",
        )  # fmt: skip
    return tell(
        "sockets_only", names(sorted({w.host for w in ways})), figures,
        ["All connections between hosts ({connections}) go over TCP sockets: no RDMA network card "
         "is used."],
        "See that the container has /dev/infiniband, that NCCL_IB_DISABLE is not 1 and NCCL_IB_HCA "
        "names cards that exist; on clouds see that the network plugin is loaded.",
        cited(file, *(w.first_staged for w in ways[:2])), fault=True, area="machine",
    )  # fmt: skip


def in_memory(file: str, log: NcclLog) -> Finding | None:
    """Cards of one host exchange through its memory."""
    staged = sum(v for k, v in log.transports.items() if k.startswith("SHM"))
    direct = sum(v for k, v in log.transports.items() if k.startswith("P2P"))
    if not staged:
        return None
    figures: Figures = {"staged": staged, "direct": direct, "all": staged + direct}
    reason = ["{staged} of {all} connections inside hosts go through the host's memory (SHM), each "
              "byte twice over PCIe, and {direct} directly from card to card (P2P)."]  # fmt: skip
    if direct and (shared := _shared(log)):
        figures["shared"] = names(shared, 4)
        reason.append("More than one process tells of card {shared}, so these connections are of "
                      "several communicators, which need not go the same way.")  # fmt: skip
    elif direct:
        reason.append("So it is where some cards are on different sockets or PCIe roots, which "
                      "NCCL does not join by P2P; they bound the ring."
                      if not log.networks else
                      "So it is where some cards are on different sockets or PCIe roots, which "
                      "NCCL does not join by P2P.")  # fmt: skip
    else:
        reason.append("Without NVLink that is usual: the driver offers no P2P for these cards "
                      "(GeForce), they are far apart, or NCCL_P2P_DISABLE or NCCL_P2P_LEVEL, a "
                      "virtual machine or a container's limits rule it out.")  # fmt: skip
    return tell(
        "in_memory", file, figures, reason,
        "See nvidia-smi topo -p2p r and topo -m; where P2P is to be had and works, NCCL_P2P_LEVEL="
        "SYS allows it over longer ways: measure both.", confidence=0.85, area="machine",
    )  # fmt: skip


def _shared(log: NcclLog) -> list[str]:
    """Cards of which more than one process tells."""
    pids: dict[tuple[str, int], set[str]] = {}
    for thread in log.threads.values():
        if thread.device is not None and thread.vias:
            pids.setdefault((thread.host, thread.device), set()).add(thread.pid)
    return sorted(str(card) for (_, card), seen in pids.items() if len(seen) > 1)
