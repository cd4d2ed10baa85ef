"""Causes in networks that come as a plugin: libfabric (EFA), SHARP, FastSocket; and loading them.

Sources of the words: aws-ofi-nccl, nccl-rdma-sharp-plugins and nccl-fastsocket, their issues.
"""

from __future__ import annotations

from typing import Final

from .cause import cause

PLUGINS: Final = (
    cause("harmless", r"Cannot get incoming CPU|Maximum retry reached for (?:accept|connect)",
          "machine",
          "The plugin for sockets (FastSocket) has looked for the processor of a connection, or "
          "for a queue of its own, and not got it; the connection stands all the same. This may be "
          "ignored.",
          "Measure all_reduce_perf with and without the plugin; only if it is slower without is "
          "there something to gain.", fault=False),
    cause("sharp_busy", r"SHARP group create|Streaming Tree lock|Failed to lock SAT", "machine",
          "SHARP, the sums in InfiniBand's switches, has no tree left for this group: another job "
          "or communicator holds it (a streaming tree serves one at a time), or an ended one has "
          "not given it back. NCCL goes on without it, at the rate of its rings and trees.",
          "See sharp_am's log and jobs for who holds the tree, restart sharp_am if it is nobody, "
          "and let one communicator use CollNet (NCCL_COLLNET_ENABLE=0 for the others).",
          confidence=0.8),
    cause("no_sharp", r"CollNet currently only supports|less than CollNet node threshold|CollNet "
          r"is not supported or fails|CollNet sizes", "machine",
          "SHARP (CollNet) is not used for this communicator: it has too few nodes or too many "
          "cards a node, or the network plugin does not have it. NCCL goes on point to point.",
          "NCCL_COLLNET_NODE_THRESHOLD sets the least number of nodes; unset NCCL_ALGO where it "
          "names CollNet.", fault=False, confidence=0.8),
    cause("no_sharp", r"SHARP (?:coll )?init|Cannot create SHARP job|initialize CollNet|"
          r"sharp_(?:coll_)?(?:init|caps)|sharp_get_local_data|SHARP:? (?:unsupported|int8)",
          "machine",
          "SHARP, the sums in InfiniBand's switches (CollNet), was asked for and is not to be "
          "had: the fabric runs no aggregation manager, its switches do not have it, or it is "
          "not set up for these hosts. NCCL goes on point to point.",
          "Ask whether sharp_am runs beside the subnet manager, and run ibdiagnet --sharp; where "
          "there is none unset NCCL_COLLNET_ENABLE, and this goes away.", confidence=0.8),
    cause("tuner_refused", r"tuner plugin can ?not be loaded", "machine",
          "The tuner of a network plugin is not used, as NCCL_ALGO or NCCL_PROTO is set: by the "
          "environment, or by the plugin itself, which some versions do and then refuse their own "
          "tuner, so that the start ends.",
          "Unset NCCL_ALGO and NCCL_PROTO, also in /etc/nccl.conf; else NCCL_TUNER_PLUGIN=none, or "
          "another version of the plugin.", confidence=0.85),
    cause("no_efa", r"NET/OFI.*?(?:Only EFA provider|No eligible provider|"
          r"initiali[sz](?:ation|ing plugin) failed|optimal provider|No provider|"
          r"protocol that worked)|aws-ofi-nccl.*fail", "machine",
          "The plugin of libfabric finds no network card of EFA (or another one that it may use), "
          "so NCCL goes over TCP sockets or stops: the instance has none, the container does not "
          "see it, or this libfabric was built without its provider (see FI_PROVIDER).",
          "Run fi_info -p efa on the host and in the container; give it /dev/infiniband and the "
          "device plugin's vpc.amazonaws.com/efa, and a kind of instance with EFA. Where there is "
          "none remove the plugin (NCCL_NET_PLUGIN=none).", confidence=0.85),
    cause("rails_differ", r"Unexpected number of remote rails for dev (?P<device>\d+)\. Expected "
          r"(?P<wanted>\d+) but got (?P<found>\d+)", "machine",
          "Two hosts do not put their network cards (EFA) together alike: of device {device} one "
          "side has {wanted} rails and the other {found}, so that no connection is made.",
          "Let all hosts group alike: the same number of network cards in each container, one "
          "version of the plugin and one topology file; OFI_NCCL_FORCE_NUM_RAILS sets the number "
          "for all."),
    cause("efa_transfer", r"NET/OFI.*?(?:completed with error|CQE|completion.*error|"
          r"Request .*error)", "machine",
          "A transfer over libfabric (EFA) has failed: the rank at the other end is gone, or the "
          "two hosts do not let one another through.",
          "Look at the other ranks first. Then see that the security group allows all traffic from "
          "and to itself, and that hosts are in one subnet; FI_LOG_LEVEL=warn tells more.",
          confidence=0.75),
    cause("efa_refuses", r"NET/OFI (?P<what>(?:Could(?:n't| not)|Unable|Failed|Creating|Error|"
          r"Cannot|Can't|Call).*)|NET/OFI (?P<said>.*(?:failed|RC: ?-?\d+).*)", "machine",
          "The plugin of libfabric (EFA) cannot set a network card up. As a rule the driver of "
          "EFA, libfabric and the plugin are of versions that do not go together, or the host's "
          "limits (locked memory, huge pages) or the card's are used up by processes left over.",
          "Install all three from one version of the EFA installer, in the image too; ulimit -l "
          "unlimited; end old processes; then FI_LOG_LEVEL=warn and dmesg.", confidence=0.7),
    cause("plugin_refused", r"Failed to initiali[sz]e (?:any )?NET plugin|network (?P<name>\S+) "
          r"not found|(?:plugin|libnccl-\S+).*undefined symbol|External \w+ plugin .* is "
          r"unsupported|Plugin load .*returned", "machine",
          "The network plugin that was asked for (NCCL_NET, NCCL_NET_PLUGIN, or one in the "
          "image) cannot be used: it is not there, lacks what it needs, or was built for another "
          "version of NCCL.",
          "ldd libnccl-net.so shows what is missing; try NCCL_NET_PLUGIN=none (NCCL's own "
          "network) and unset NCCL_NET; take a plugin built for this NCCL."),
)  # fmt: skip
