"""What Slurm's controller says of its topology and nodes, and Kueue and Volcano of what waits."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ...errors import RoundelayError
from ...formats.pasted import pasted_lines
from ..finding import Evidence, Finding, tell


class _Saying(NamedTuple):
    """A message, and what it stands for; names of its groups may stand in the sentences."""

    text: re.Pattern[str]
    kind: str
    reason: str
    advice: str


_HOLES: Final = "Compare the lists of hosts in topology.conf with those of slurm.conf (NodeName)."
_TREE: Final = ("Mend topology.conf, then scontrol reconfigure; with a wrong tree slurmctld may "
                "not start.")  # fmt: skip
SAYINGS: Final = tuple(
    _Saying(re.compile(text), kind, reason, advice)
    for text, kind, reason, advice in (
        (r"(?:switches|blocks) lack access to (?P<count>\d{1,9}) nodes:? ?(?P<who>\S{0,300})",
         "not_on_a_switch",
         "{count} nodes are on no switch or block of the topology file ({who}): Slurm gives no job "
         "nodes of these together with others.",
         _HOLES),
        (r"no switch can reach all nodes", "no_common_switch",
         "No switch of the topology file is above all nodes, so no job spans the parts that it "
         "falls into.",
         "Add a switch above all: SwitchName=top Switches=..., unless jobs are to stay in a part."),
        (r"[Ss]witch configuration \(?(?P<who>[\w.-]{1,64})\)? lacks children", "switch_empty",
         "Switch {who} has neither nodes nor switches; slurmctld does not start with such a line.",
         _TREE),
        (r"switch (?P<who>[\w.-]{1,64}) has no nodes", "switch_empty",
         "Switch {who} has no nodes below it.", _TREE),
        (r"Switch configuration \(?(?P<who>[\w.-]{1,64})\)? has invalid child "
         r"\((?P<what>[^)]{1,80})\)",
         "switch_unknown",
         "Switch {who} names {what} below it, which the file does not describe.", _TREE),
        (r"Switch configuration is not a tree", "no_tree",
         "The switches of topology.conf hang on one another in a circle: that is no tree.", _TREE),
        (r"Invalid hostnames in switch configuration: (?P<who>\S{1,300})", "hosts_unknown",
         "The topology file names hosts that slurm.conf does not know: {who}.", _HOLES),
        (r"Multiple leaf switches contain nodes: (?P<who>\S{1,300})", "host_twice",
         "These hosts are on more than one leaf switch of topology.conf: {who}.",
         "Leave each on the switch that its cable leads to."),
        (r"Block configuration \((?P<who>[^)]{1,64})\) children count lower than bblock",
         "block_too_small",
         "Block {who} has fewer nodes than a base block, which this version of Slurm refuses.",
         "Make BlockSizes begin with the smallest block, or leave that block out."),
        (r"[Ss]etting node (?P<who>\S{1,80}) state to (?P<state>\S{1,30}) with reason:? ?"
         r"(?P<what>\S{0,40}count reported lower than configured \(\d{1,4} < \d{1,4}\))",
         "cards_missing",
         "Slurm takes node {who} out ({state}): {what}. slurmd finds fewer cards there than are "
         "configured: a card is missing, or the configuration names too many.",
         "On the node: nvidia-smi -L and Xid in dmesg; compare gres.conf and slurm.conf (Gres=)."),
        (r"[Ss]etting node (?P<who>\S{1,80}) state to (?P<state>\S{1,30}) with reason:? ?"
         r"(?P<what>(?!\S{0,40}count reported lower)\S.{0,160})", "nodes_out",
         "Slurm takes node {who} out ({state}) for this reason: {what}.",
         "Mend what is named, then scontrol update nodename=... state=resume."),
        (r"Invalid generic resource \(gres\) specification", "request_unfit",
         "Slurm does not know the resource that is asked for: no node of the partition is "
         "configured with that name or type of card, or it is misspelt.",
         "Compare --gres or --gpus with sinfo -o '%P %G'."),
        (r"couldn't assign flavors to pod set (?P<who>[\w.-]{1,80}): (?P<why>insufficient unused "
         r"quota for (?P<what>\S{1,80}) in flavor (?P<flavor>\S{1,80}), (?P<count>\S{1,20}) more "
         r"needed)", "quota_short",
         "Kueue does not admit pod set {who}: of {what} in flavour {flavor} the queue lacks "
         "{count}, as the rest is in use; it waits until as much is free.",
         "See the ClusterQueue (kubectl describe clusterqueue): what is used, borrowed and "
         "nominal; wait, or lower the request."),
        (r"insufficient quota for (?P<what>\S{1,80}) in flavor (?P<flavor>\S{1,80}), request > "
         r"maximum capacity \((?P<count>[^)]{1,60})\)", "quota_short",
         "The request for {what} is more than flavour {flavor} can ever give ({count}): waiting "
         "alone does not admit it.",
         "Ask for less, or raise the nominal quota or the borrowing limit of the ClusterQueue."),
        (r"(?P<fit>\d{1,6})/(?P<count>\d{1,6}) tasks in gang unschedulable: pod group is not "
         r"ready, (?P<what>.{0,120}?(?P<least>\d{1,6}) minAvailable)", "gang_waits",
         "The gang waits as a whole: {fit} of {count} pods find no room ({what}), and none starts "
         "before {least} fit together.",
         "See why those pods fit nowhere (kubectl describe pod, queue and quota); lower "
         "minAvailable only if the job runs with fewer."),
        (r"[Cc]annot find topo plugin for (?P<what>topology/\w{1,30})|"
         r"specified plugin name for (?P<what2>topology/\w{1,30})", "no_topology_plugin",
         "This Slurm has no plugin {what}.",
         "See TopologyPlugin in slurm.conf: topology/flat, tree, block are the names of today; "
         "older versions call flat topology/none or default."),
        (r"topology [\"'\\]{0,2}(?P<what>[^\"'\\]{1,80})[\"'\\]{0,2} allows to fit only "
         r"(?P<fit>-?\d{1,7}) out of (?P<count>\d{1,7}) (?P<unit>pod|slice)", "does_not_fit",
         "Topology {what} has room only for {fit} of {count} {unit}s where they may lie (within "
         "one domain of the level, if one is required), so Kueue does not admit the workload: it "
         "waits until there is room for all.",
         "Ask for a wider level, or prefer it (podset-preferred-topology) instead of requiring it; "
         "else free a domain, or take fewer pods."),
        (r"topology [\"'\\]{0,2}(?P<what>[^\"'\\]{1,80})[\"'\\]{0,2} doesn't allow to fit any of "
         r"(?P<count>\d{1,7}) (?P<unit>pod|slice)", "does_not_fit",
         "Topology {what} has no node for even one of {count} {unit}s: each asks for more than "
         "any node has free, or no node has the labels of the levels.",
         "Compare what a pod asks for with what nodes have free, and see that nodes carry the "
         "labels of all levels (kubectl get nodes -L ...)."),
    )
)  # fmt: skip
"""Of Slurm: src/plugins/topology, src/interfaces/gres.c; of Kueue: pkg/cache, pkg/scheduler."""
MARK: Final = re.compile(
    rb"(?:switches|blocks) lack access to \d|no switch can reach all nodes|lacks children|"
    rb"switch [\w.-]{1,64} has no nodes|has invalid child \(|Switch configuration is not a tree|"
    rb"Invalid hostnames in switch config|Multiple leaf switches contain|"
    rb"children count lower than bblock|topo plugin for topology/|"
    rb"[Ss]etting node \S{1,80} state to \S{1,30} with reason|"
    rb"Invalid generic resource|couldn't assign flavors|insufficient quota for|"
    rb"tasks in gang unschedulable|plugin name for topology/|allows to fit only -?\d|"
    rb"doesn't allow to fit any of \d"
)


def controller_findings(file: str, data: bytes) -> list[Finding]:
    """What each message stands for, once.

    Raises:
        RoundelayError: there is none.
    """
    found: dict[_Saying, Finding] = {}
    for number, line in pasted_lines(data):
        for saying in SAYINGS:
            said = saying.text.search(line)
            if said is None or saying in found:
                continue
            named = {name.rstrip("2"): value for name, value in said.groupdict().items() if value}
            found[saying] = tell(
                saying.kind, file, {"who": "?", **named}, [saying.reason], saying.advice,
                (Evidence(file, number, line.strip()[:300]),), fault=True, confidence=0.85,
                area="machine",
            )  # fmt: skip
    if not found:
        raise RoundelayError("no known message of Slurm's controller, of Kueue or of Volcano")
    return [found[saying] for saying in SAYINGS if saying in found]
