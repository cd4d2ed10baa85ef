"""Causes in what NCCL finds of the machine: its cards, PCIe, topology files and ways.

Sources of the words: NCCL's and RCCL's graph/*.cc, transport.cc and init.cc.
"""

from __future__ import annotations

from typing import Final

from .cause import cause

_ALIKE: Final = (
    "Show all processes of a host the same devices (CUDA_VISIBLE_DEVICES, NCCL_IB_HCA), use the "
    "same network on all hosts, and unset NCCL_TOPO_FILE and NCCL_GRAPH_FILE."
)

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
    cause("no_sysfs", r"Could not find real path of (?P<path>/\S+)", "machine",
          "NCCL does not find a device's place in PCIe ({path}): WSL and some containers and "
          "virtual machines do not show it in /sys. Older versions of NCCL stop there.",
          "Take a newer NCCL (2.11 or later knows WSL); in a container mount /sys, see lspci in "
          "it, or give NCCL a topology file (NCCL_TOPO_FILE)."),
    cause("too_many_nodes", r"(?:too many (?:XML (?:sub)?nodes|Topo links) \(max |XML parser is "
          r"limited to |to store found nodes.*?Filled )(?P<limit>\d+)", "machine",
          "The description of the machine has more than {limit} elements, which is all that this "
          "version holds: many network cards, and trees of ranks put together, do that.",
          "Try a newer NCCL; until then show each process fewer devices: NCCL_IB_HCA with the "
          "network cards that are used, CUDA_VISIBLE_DEVICES."),
    cause("graph_file", r"XML (?:Import|Export) Channel|XML Graph has wrong version|open XML graph "
          r"file|(?:graph|NCCL_GRAPH_FILE).*?(?:dev|Dev|rank) \S+ not "
          r"found|\bdev (?P<device>\d+) not found", "machine",
          "A file of rings and trees (NCCL_GRAPH_FILE) names cards that this job does not have: it "
          "was made for another machine or number of cards.",
          "Unset NCCL_GRAPH_FILE, also in /etc/nccl.conf, ~/.nccl.conf and the image: NCCL "
          "searches for itself."),
    cause("no_way_to_net", r"find any local path from gpu (?P<card>\d+) to net|No path computed to "
          r"go from", "machine",
          "In NCCL's picture of the machine no way leads from a card to a network card (or to "
          "another card): their PCIe trees hang together nowhere, as virtual machines and "
          "unfinished topology files have it.",
          "NCCL_TOPO_DUMP_FILE=topology.xml, then `roundelay topology topology.xml`; unset "
          "NCCL_TOPO_FILE or mend it, so that every card and network card is below a CPU.",
          confidence=0.8),
    cause("rings_differ", r"ring \d+ does not (?:contain rank (?P<rank>\d+)|loop back)|tree "
          r"already has \d+ children", "machine",
          "Ranks have put together rings or trees that do not fit one another: they do not see "
          "the same (other NCCL_ settings, graph or topology files, other cards visible, other "
          "versions of NCCL), or two communicators were mixed up.",
          "Compare env | grep NCCL, /etc/nccl.conf, the version of NCCL and CUDA_VISIBLE_DEVICES "
          "on all ranks; unset NCCL_GRAPH_FILE and NCCL_TOPO_FILE.", confidence=0.75),
    cause("hosts_unclear", r"Failed to determine (?:local|intra proc) ranks", "machine",
          "NCCL cannot tell which ranks are on its own host: the names by which it tells hosts and "
          "processes apart differ within one host, or ranks were given wrongly.",
          "Unset NCCL_HOSTID, or set it alike on all ranks of a host; see /etc/hostname, "
          "/proc/sys/kernel/random/boot_id and RANK in every container.", confidence=0.7),
    cause("not_in_topology", r"(?:Could not|unable to) find (?:(?:intermediate|local|any) "
          r")?(?P<what>GPU|NET|NIC|CPU|NVSwitch|NVS|PCI)\b", "machine",
          "NCCL looks for a device ({what}) that its picture of the machine does not have: the "
          "processes see different cards or network cards, hosts are not alike, or a topology or "
          "graph file is of another machine.", _ALIKE, confidence=0.75),
    cause("not_in_topology", r"requires NIC \d+ but|Could not find (?:id|rev link|node of type)",
          "machine",
          "NCCL looks for a device that its picture of the machine does not have: the processes "
          "see different cards or network cards, hosts are not alike, or a topology or graph file "
          "is of another machine.", _ALIKE, confidence=0.75),
    cause("plan_refused", r"Attribute (?P<attribute>\w+) of node (?P<node>algo|tb|step) not "
          r"found", "machine",
          "The file of an MSCCL algorithm is refused: its element {node} has no attribute "
          "{attribute}, which this version of the library insists on. As a rule it was made by "
          "tools of another version.",
          "Add what is missing (of algo: ngpus is the number of ranks, coll the collective, such "
          "as allgather), or make the file anew with msccl-tools of the library's version; "
          "unset MSCCL_XML_FILES (RCCL: RCCL_MSCCL_ENABLE=0) to do without it.", confidence=0.9),
    cause("topology_file", r"Attribute \w+ of node (?!(?:algo|tb|step)\b)\w+ not found|"
          r"XML (?:Parse|Mismatch|file)\b|KV Convert to|XML Topology has wrong version|"
          r"Error : (?:name|value) .* too long", "machine",
          "A topology file cannot be used: a mandatory attribute is missing, its XML is broken or "
          "it is of another version.",
          "See which file NCCL_TOPO_FILE (or the network plugin) names, give it to `roundelay "
          "topology`, or do without it: unset NCCL_TOPO_FILE."),
    cause("topology_file", r"Could not open XML topology file (?P<file>\S+)", "machine",
          "The topology file that was named cannot be opened: {file}. NCCL goes on with what it "
          "finds by itself, which in a virtual machine is often wrong and slow.",
          "Put the file where NCCL_TOPO_FILE says, in the container too, readable for the user of "
          "the job; or unset it.", confidence=0.85),
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
