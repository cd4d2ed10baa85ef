"""Causes in what NCCL finds of the machine: its cards, PCIe, topology files and ways.

Sources of the words: NCCL's and RCCL's graph/*.cc, transport.cc and init.cc.
"""

from __future__ import annotations

from typing import Final

from .cause import cause

LAYOUT: Final = (
    cause("duplicate_card",
          r"Duplicate GPU detected\s*: rank (?P<rank>\d+) and rank (?P<other>\d+) both on "
          r"(?:CUDA|HIP) device (?P<bus>\w+)", "machine",
          "Rank {rank} and rank {other} use the same card (PCI address {bus}, in hexadecimal): "
          "each process must have a card of its own.",
          "Before the group is made have each process take its card: "
          "torch.cuda.set_device(int(os.environ['LOCAL_RANK'])); see that no program names cuda:0 "
          "for all, that there are as many cards as processes, and what CUDA_VISIBLE_DEVICES says "
          "in each."),
    cause("no_sysfs", r"Could not find real path of (?P<path>/sys/class/pci_bus\S*)", "machine",
          "NCCL does not find a card's place in PCIe ({path}): WSL and some containers and virtual "
          "machines do not show it in /sys. Versions before 2.10 stop there.",
          "Take a newer NCCL (2.10 or later knows WSL); in a container mount /sys, see lspci in "
          "it, or give NCCL a topology file (NCCL_TOPO_FILE)."),
    cause("too_many_nodes", r"too many XML nodes \(max (?P<limit>\d+)\)", "machine",
          "The description of the machine has more than {limit} elements, which is all that this "
          "version holds: many network cards, and trees of ranks put together, do that.",
          "Try a newer NCCL; until then show each process fewer devices: NCCL_IB_HCA with the "
          "network cards that are used, CUDA_VISIBLE_DEVICES."),
    cause("graph_file", r"XML Import Channel|(?:graph|NCCL_GRAPH_FILE).*?(?:dev|Dev|rank) \S+ not "
          r"found|\bdev (?P<device>\d+) not found", "machine",
          "A file of rings and trees (NCCL_GRAPH_FILE) names cards that this job does not have: it "
          "was made for another machine or number of cards.",
          "Unset NCCL_GRAPH_FILE, also in /etc/nccl.conf, ~/.nccl.conf and the image: NCCL "
          "searches for itself."),
    cause("not_in_topology", r"Could not find (?P<what>GPU|NET|NIC|CPU|NVS|NVSwitch|PCI)\w* "
          r"(?:with|in)", "machine",
          "NCCL looks for a device ({what}) that its picture of the machine does not have: the "
          "processes see different cards or network cards, hosts are not alike, or a topology or "
          "graph file is of another machine.",
          "Show all processes of a host the same devices (CUDA_VISIBLE_DEVICES, NCCL_IB_HCA), use "
          "the same network on all hosts, and unset NCCL_TOPO_FILE and NCCL_GRAPH_FILE.",
          confidence=0.75),
    cause("topology_file", r"Attribute (?P<attribute>\w+) of node (?P<node>\w+) not found|"
          r"XML (?:Parse|file) ?(?:error|.*?unable to)", "machine",
          "A topology file cannot be used: a mandatory attribute is missing or its XML is broken.",
          "See which file NCCL_TOPO_FILE (or the network plugin) names, give it to `roundelay "
          "topology`, or do without it: unset NCCL_TOPO_FILE."),
    cause("no_ways_found", r"Could not find a path for pattern (?P<pattern>\d+)", "machine",
          "NCCL's search finds no way through all cards in the machine as it sees it (pattern "
          "{pattern}; 4 is rings, 1 to 3 trees) and takes them in plain order, with few channels: "
          "it works, but slowly. As a rule the machine is hidden (virtual machine, WSL), a link is "
          "missing, or a topology file is wrong.",
          "Look at what NCCL sees: NCCL_TOPO_DUMP_FILE=topology.xml, then `roundelay topology "
          "topology.xml`; compare nvidia-smi topo -m; give a right NCCL_TOPO_FILE and unset "
          "NCCL_P2P_LEVEL and other settings of the search.", confidence=0.8),
    cause("one_way_link", r"Failed to find reverse path", "machine",
          "A link is known from one end only: one card says that it reaches the other, and the "
          "other does not. So it is where a virtual machine or container hides some cards or PCIe, "
          "where a card's links have not come up, or a topology file is wrong.",
          "Compare rocm-smi --showtopo or nvidia-smi nvlink -s on the host and inside; show all "
          "cards to the job, or give a topology file for this kind of machine (NCCL_TOPO_FILE).",
          confidence=0.75),
    cause("no_transport", r"No transport found for rank (?P<one>\d+)\S* -> rank (?P<other>\d+)",
          "machine",
          "There is no way from rank {one} to rank {other}: P2P, shared memory and the network "
          "between them are all turned off or not possible (ranks that NCCL holds to be on one "
          "host and that share nothing, as containers with the same host name).",
          "Unset NCCL_P2P_DISABLE, NCCL_SHM_DISABLE and NCCL_NET_DISABLE_INTRA; give each "
          "container a host name of its own (or NCCL_HOSTID)."),
    cause("p2p_disabled", r"P2P is disabled between .*?connected GPUs (?P<one>\d+) and "
          r"(?P<other>\d+)", "machine",
          "P2P is off between cards though they are connected, such as {one} and {other}: what "
          "they exchange goes through the host's memory, at a part of the rate.",
          "See what turns it off: NCCL_P2P_DISABLE or NCCL_P2P_LEVEL in the environment, a driver "
          "without P2P for these cards (GeForce), ACS or the IOMMU, a virtual machine; nvidia-smi "
          "topo -p2p r shows what the driver allows.", confidence=0.85),
    cause("old_for_card", r"ncclMaxSharedMem (?P<needed>\d+) exceeds .*?(?P<has>\d+)$", "machine",
          "NCCL's kernels want more shared memory ({needed_bytes}) than they may have on this card "
          "({has_bytes}): most likely this version of NCCL is older than the card.",
          "Take a newer NCCL, built for the card's compute capability.", confidence=0.7),
    cause("no_link_speed", r"could not read \S+max_link_(?:speed|width)", "machine",
          "NCCL cannot read how fast PCIe is and takes a default, 12 GB/s one way for each device "
          "(PCIe 3 x16): a virtual machine hides it. Paths, channels and the choice of algorithm "
          "rest on that figure, and GPUDirect RDMA may be ruled out.",
          "Have the host pass the PCIe layout on, or give NCCL a topology file of the host "
          "(NCCL_TOPO_FILE).", confidence=0.85),
    cause("no_nvls", r"NVLS multicast support is not available on dev (?P<device>\d+)", "machine",
          "Sums in the NVSwitch (NVLS) are not to be had on device {device}. Before Hopper, or "
          "without an NVSwitch, that is so; else all_reduce inside a node loses a quarter of its "
          "busbw.",
          "On Hopper and later see that driver (530 or later) and fabric manager are of one "
          "version, that the virtual machine or MIG does not take it away, and that "
          "NCCL_NVLS_ENABLE is not 0.", fault=False, confidence=0.8),
    cause("imex", r"MNNVL .*?(?:not working|not supported)", "machine",
          "NVLink over several hosts (MNNVL) is there but does not work: IMEX, which lets hosts "
          "map one another's memory, does not run on all hosts of the domain, or the container has "
          "no channel of it.",
          "nvidia-imex-ctl -N on every host (all READY); give the container "
          "/dev/nvidia-caps-imex-channels/channel0; NCCL_MNNVL_ENABLE=0 does without, at the rate "
          "of the network cards."),
)  # fmt: skip
