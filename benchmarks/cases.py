"""How many of the given cases `roundelay diagnose` answers: `python benchmarks/cases.py [--write]`.

ROUNDELAY_DATA names the folder that holds `cases/`. A case is answered if a finding of the wanted
kind is there, is off or not as wanted, and its reason has the wanted words, figures included.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

from report import report

from roundelay import RoundelayError
from roundelay.clusters import cluster
from roundelay.diagnose.diagnosis import Diagnosis
from roundelay.diagnose.given import Given
from roundelay.diagnose.together import diagnose
from roundelay.simulate.nccl import predict


class Want(NamedTuple):
    """What an answer must have: a finding's kind, whether it is off, and words of its reason."""

    kind: str
    off: bool
    words: str
    where: str = ""


WANTED: dict[str, tuple[Want, ...]] = {
    "topo-xml/01": (Want("far_cards", True, r"GPU4, GPU5, GPU6, GPU7 .*across sockets.*GPU0"),),
    "topo-xml/03": (Want("nic_layout", False, r"of its own, by PIX: GPU0-NIC0.*GPU7-NIC7"),),
    "topo-xml/05": (Want("graphs", False, r"graph file.*no topology: ring \(id 0, pattern 4.*2 "
                         r"channels of 12 GB/s by SYS.*PIX.*tree.*4 channels"),),
    "topo-xml/07": (Want("unknown_kinds", False, "9 PCI devices have an address only"),),
    "topo-xml/09": (Want("nic_layout", False, r"2 ports of 22.5 GB/s, 45 GB/s.*360 GB/s"),
                    Want("virtual_pcie", False, "must not be taken literally")),
    "topo-xml/11": (Want("connected", False, "all 7 others by xGMI: a full mesh, 56 directed"),
                    Want("nic_layout", False, r"GPU7-NIC7.*50 GB/s one way")),
    "topo-xml/13": (Want("nic_layout", False, r"by PXB: GPU0-NIC0.*GPU3-NIC0.*GPU4 PHB.*GPU7 PHB"),
                    Want("connected", False, "over PCIe")),
    "topo-xml/15": (Want("virtual_pcie", True, "0.1875 GB/s.*must not be taken literally; 48 GB/s"),
                    Want("nic_layout", False, "25 GB/s one way")),
    "topo-xml/17": (Want("incomplete", True, "not whole .line 23.*cards: 1, network cards: 1"),),
    "topo-xml/19": (Want("linkless", True, r"GPU5 \(rank 5, device 1.*7 others have 18 links"),),
    "topo-xml/21": (Want("parted", False, r"2 parts of 1 card.*all 36 links.*not to be added"),),
    "topo-xml/23": (Want("incomplete", True, "not whole"),
                    Want("connected", False, r"12 links to an NVSwitch.*300 GB/s.*240 GB/s")),
    "topo-m/01": (Want("nic_layout", False, r"GPU0-NIC7.*GPU7-NIC0.*reversed"),
                  Want("connected", False, "18 links to an NVSwitch")),
    "topo-m/03": (Want("connected", False, r"PIX 4, PHB 8, SYS 16.*GPU0-GPU1, GPU2-GPU3"),),
    "topo-m/05": (Want("connected", False, r"PHB 2, SYS 13.*GPU0-GPU1, GPU3-GPU4"),),
    "topo-m/07": (Want("links_hidden", False, "does not mean that there is no NVLink"),
                  Want("nic_layout", False, "GPU1-mlx5_0, GPU2-mlx5_1")),
    "topo-m/09": (Want("hidden_pcie", True, "one NUMA node: a virtual machine that hides PCIe"),),
    "topo-m/11": (Want("nic_layout", False, r"by PXB: GPU0-NIC0, GPU1-NIC0, GPU2-NIC1, GPU3-NIC1"),
                  Want("connected", False, "all 3 others by NVLink.*300 GB/s one way")),
    "topo-m/13": (Want("incomplete", True, "NIC6, NIC7, NIC8"),
                  Want("nic_layout", False, r"GPU0-NIC8.*GPU7-NIC1.*No card is nearest to NIC0")),
    "topo-m/15": (Want("incomplete", True, "missing or cut off: GPU2, GPU3, NIC1"),),
    "topo-m/17": (Want("far_cards", True, r"GPU1, GPU3, GPU5.*GPU0, GPU2, GPU4, GPU6"),
                  Want("incomplete", True, "GPU7")),
    "topo-m/19": (Want("nic_layout", False, r"GPU0-NIC2, GPU1-NIC4, GPU2-NIC6, GPU3-NIC8, GPU4-NIC1"
                       r", GPU5-NIC3, GPU6-NIC5.*NIC0"), Want("connected", False, "400 duplex")),
    "topo-m/21": (Want("connected", False, r"4 cards.*over PCIe \(pairs by way: PHB 6"),),
    "nccl-log/01": (Want("virtual_pcie", True, "0.2 GB/s each: a virtual switch says 2.5 GT/s"),),
    "nccl-log/03": (Want("built", False, "shows 2 on 2 .*P2P/direct pointer 4, NET/IB 3"),),
    "nccl-log/05": (Want("cross_rails", False, r"cross rails.*10 - 19 \(channel 0"),),
    "nccl-log/07": (Want("no_gpudirect", True, r"NET/IB/1 \(channels 1, 3.*host's memory"),),
    "nccl-log/09": (Want("no_route", True, "errno 113: there is no route to 192.0.2.4"),),
    "nccl-log/11": (Want("no_shared_memory", True, "dev/shm is full.*64 MiB"),),
    "nccl-log/13": (Want("far_apart", False, r"SYS\), at 10 GB/s.*24 GB/s \(PHB"),),
    "nccl-log/15": (Want("cliques", False, r"1 clique.*0x7ffe.*state 3.*0xaa"),),
    "nccl-log/17": (Want("beside_estimate", True, r"ring / Simple.*86.07 ms.*3300 ms"),),
    "nccl-log/19": (Want("built", False, r"Ranks: 2.*shows 2.*Channels: 2.*P2P/direct pointer 1"),),
    "nccl-log/21": (Want("too_many_nodes", True, "more than 256 elements"),),
    "nccl-tests/01": (Want("measured", False, r"235.3 GB/s, at 8 GiB \(ranks: 8.*1.75 times"),),
    "nccl-tests/03": (Want("measured", False, r"reduce is 228.8 GB/s.*is 1 times"),),
    "nccl-tests/05": (Want("far_below", True, "57.78 GB/s"), Want("erratic", True, "")),
    "nccl-tests/07": (Want("measured", False, r"469.2 GB/s, at 16 GiB.*24.7 us"),
                      Want("average", False, "139.6 GB/s is the mean over all sizes")),
    "nccl-tests/09": (Want("falls_with_size", True, "29.5 GB/s at 32 MiB to 5.285.*RoCE"),
                      Want("measured", False, r"ranks: 24.*1.917 times")),
    "nccl-tests/11": (Want("one_rank", True, "One rank, nothing measured"),),
    "nccl-tests/13": (Want("measured", False, "largest relative rounding error, 1e-06, and no"),),
    "nccl-tests/15": (
        Want("no_fabric_manager", True, "system not yet initialized.*fabric manager"),
    ),
    "nccl-tests/17": (Want("measured", False, "send_recv is 195.6 GB/s"),),
    "nccl-tests/19": (Want("measured", False, r"74.36 GB/s.*ranks: 256.*1.992 times"),),
    "nccl-tests/21": (Want("waiting_counted", False, "0.1 and 1.24.*42.25 GB"),),
    "hang/01": (Want("stuck_together", True, "rank 0, 3, 4.*sequence 1580.*no mismatch.*1582"),),
    "hang/03": (Want("counts_differ", True, r"Rank 7 waits in sequence 64088, rank 0 in 96117.*2:3"
                     r".*25625613 ms"),),
    "hang/05": (Want("stuck_together", True, "rank 0, 1, 2.*sequence 808"),),
    "hang/07": (Want("sizes_differ", True, r"3104.*195812480.*51123456.*part of the model"),),
    "hang/09": (Want("never_called", True, "Rank 0 never enqueued call 288686 ._all_gather_base"),),
    "hang/11": (Want("matched", False, "All 2 ranks made the same 1 call"),),
    "hang/13": (Want("sizes_differ", True, r"sequence 1 of all_reduce.*\[5, 4\] on rank 1"),),
    "hang/15": (Want("never_called", True, "Rank 0 holds up rank 1: it never called all_reduce"),),
    "hang/17": (Want("matched", False, "All 3 ranks made the same 5 call"),),
    "hang/19": (Want("missing_dump", True, r"Rank 0 has left no dump.*sequence 3, all_reduce"),),
    "bandwidth/01": (Want("both_directions", False, "one way the line rate is 450 GB/s.*80 %"),),
    "bandwidth/03": (Want("not_flat", False, "not flat"), Want("link_usable", False, "240 of 300")),
    "bandwidth/05": (Want("link_usable", False, "721.8 of 900"), Want("adds_in_switch", False, "")),
    "bandwidth/07": (Want("tree_on_two_nodes", False, "algbw <= 12.5 GB/s.*23.4"),),
    "bandwidth/09": (Want("average", False, "84.8 GB/s is the mean.*96 GB/s"),),
    "bandwidth/11": (Want("two_levels", True, "2.091 GB/s a card and 16.73 GB/s a node"),),
    "bandwidth/13": (Want("adds_in_switch", False, "543.2 GB/s"),),
    "bandwidth/15": (Want("version_regression", True, "7.05 after 57.06.*fast path"),),
    "bandwidth/17": (Want("fixed_step", True, "10.01 us = 13.1 GB/s.*87.6"),),
    "bandwidth/19": (Want("own_node_counted", False, "21.5 GB/s"),),
    "bandwidth/21": (Want("both_directions", False, "200 GB/s.*80 %"),
                     Want("line_rate", False, "50 GB/s is the line rate")),
    "bandwidth/23": (Want("units", False, "49.5 GB/s"),),
    "bandwidth/25": (Want("ran_alone", True, "without MPI"),),
    "bandwidth/27": (Want("link_usable", False, "64 GB/s is the peak.*48 GB/s"),),
    "bandwidth/29": (Want("rings_between_nodes", False, "91 %"),),
    "bandwidth/31": (Want("slow_nodes", True, "single nodes"),),
    "sched/01": (Want("fabric", False, r"23 switches in 3 levels.*20 \+ 2 \+ 1; 400 hosts"),),
    "sched/03": (Want("fabric", False, r"8 blocks of 4 hosts, 32.*64 is never full"),),
    "sched/05": (Want("fabric", False, r"3 switches in 2 levels.*6 hosts"),),
    "sched/07": (Want("fabric", False, r"3 levels.*2 hosts"),),
    "sched/11": (Want("fabric", False, r"8 switches.*10 hosts.*4xHDR.*are no hosts.*node02"),),
    "sched/15": (Want("fabric", False, r"2:2.*up to 2 links.*No switch has more links down"),),
    "sched/19": (Want("incomplete", True, "not describe"), Want("fabric", False, "4xNDR")),
    "trace/01": (Want("traced", False, "rank 34 of 300.*10 process groups, of gloo.*No kernel "
                      "ran.*all_reduce 10"),),
    "trace/03": (Want("traced", False, "of rank 1; it does not say how many ranks there are"),),
    "trace/05": (Want("execution_trace", False, r"PyTorch, version 1\.0\.1.*38 nodes.*No node of "
                      "it communicates"),),
    "trace/07": (Want("execution_trace", False, "7 nodes: compute 4, collective 3.*broadcast 3"),
                 Want("incomplete", True, "3, 429, 434")),
    "trace/09": (Want("execution_trace", False, "20 nodes"),),
    "gloo/01": (Want("no_such_type", True, "bfloat16"),),
    "gloo/03": (Want("no_such_call", True, "Gloo of this version has no reduce_scatter"),),
    "gloo/05": (Want("count_of_32_bits", True, "14 GiB do not fit the 32 bits"),),
    "gloo/09": (Want("other_interface", True, "GLOO_SOCKET_IFNAME=eth0.*93.64 times as fast"),),
    "gloo/11": (Want("no_ports_left", True, r"n \(n - 1\)"),),
    "gloo/13": (Want("bond_of_one_connection", True, "2 cards.*50 %"),),
    "sched/09": (Want("fabric", False, "1 block of 2 hosts.*planning: 2"),),
    "sched/13": (Want("fabric", False, r"5 switches.*1 host.*4xHDR.*Aggregation nodes .1."),),
    "sched/17": (Want("slower_links", False, r"4 links of hosts run at 4xEDR .12.5 GB.*4xHDR"),),
    "sched/21": (Want("levels", False, r"3 levels.*block.*rack.*hostname"),),
    "sched/23": (Want("placement_asked", False, r"2 pods of 1 card.*within one "
                      r"cloud.google.com/gce-topology-block"),),
    "sched/25": (Want("fabric", False, r"7 switches in 3 levels.*72 hosts.*18, 36, 72"),),
    "sched/27": (Want("order_differs", False, r"same 8 nodes in another order.*SwitchAsNodeRank"),),
    "plan/01": (Want("plan", False, r"all_to_all of 8 ranks by LL.*15 thread blocks.*cpy 1, r 7, "
                     r"s 7.*0 to 9216 bytes.*is proved"),),
    "plan/03": (Want("plan_refused", True, r"outofplace, minBytes, maxBytes"),
                Want("plan", False, "is proved")),
    "plan/05": (Want("plan", False, r"2 ranks by Simple.*rres 8.*is proved"),),
    "plan/07": (Want("plan", False, r"named transfer_pack: all_gather of 2 ranks.*is proved"),),
    "plan/09": (Want("plan", False, r"4 ranks.*pipeline.*buffer_alignment, max_message_size, "
                     r"min_message_size.*is proved"),),
    "gloo/07": (Want("loopback", True, "127.0.0.1, its own loopback address"),),
    "gloo/19": (Want("timed_out", True, "waited 1800000 ms"),),
    "gloo/17": (Want("peer_lost", True, "closed from the other side"),),
}  # fmt: skip
"""What each case asks for, by the start of its name."""


def files_of(case: Path) -> list[Given]:
    """A case's files: of a folder, all but those that say the same in JSON."""
    paths = [case] if case.is_file() else sorted(p for p in case.iterdir() if p.suffix != ".json")
    return [Given(path.name, path) for path in paths]


def answer(case: Path) -> Diagnosis | str:
    """What is said of a case; an error's text where that is all."""
    try:
        return diagnose(files_of(case), None, predict, cluster)
    except RoundelayError as error:
        return str(error)


def lacks(found: Diagnosis | str, wanted: tuple[Want, ...]) -> list[str]:
    """Kinds of findings that are wanted and not there."""
    if isinstance(found, str):
        return [want.kind for want in wanted]
    return [
        want.kind for want in wanted
        if not any(f.kind == want.kind and f.fault == want.off
                   and re.search(want.words, str(f.reason), re.S) for f in found.findings)
    ]  # fmt: skip


def cases(folder: Path) -> list[tuple[str, Path]]:
    """All cases: the start of the name, and the file or folder."""
    kinds = sorted(p for p in folder.iterdir() if p.is_dir())
    return [(f"{kind.name}/{path.name[:2]}", path) for kind in kinds for path in
            sorted(kind.iterdir())]  # fmt: skip


def body(folder: Path) -> list[str]:
    """Go through all cases."""
    rows: list[str] = []
    counts: dict[str, tuple[int, int]] = {}
    for name, path in cases(folder):
        wanted = WANTED.get(name)
        missing = lacks(answer(path), wanted) if wanted else ["no rule for it yet"]
        told = "yes" if not missing else "no: " + ", ".join(missing)
        rows.append(f"| {path.name} | {', '.join(w.kind for w in wanted or ())} | {told} |")
        done, all_ = counts.get(path.parent.name, (0, 0))
        counts[path.parent.name] = done + (not missing), all_ + 1
    good, total = (sum(count[i] for count in counts.values()) for i in (0, 1))
    return ["", f"Answered: {good} of {total} ({100 * good / total:.0f} %).", "",
            "| kind | answered | of |", "|---|---|---|",
            *(f"| {kind} | {done} | {all_} |" for kind, (done, all_) in counts.items()), "",
            "| case | findings wanted | answered |", "|---|---|---|", *rows]  # fmt: skip


if __name__ == "__main__":
    if not (data := os.environ.get("ROUNDELAY_DATA")):
        sys.exit("ROUNDELAY_DATA names no folder; expected one that holds cases/")
    report(__file__, "Cases answered", "", lambda: body(Path(data, "cases")))
