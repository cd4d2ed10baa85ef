"""What schedulers say of jobs that they end or do not start: Slurm and Kubernetes."""

from typing import Final

from .phrase import phrase

SCHEDULERS: Final = (
    phrase(
        "time_limit", r"CANCELLED AT \S{1,40} DUE TO TIME LIMIT|active longer than specified "
                      r"deadline", "hang",
        "The job was ended because its time was up; what ranks say after that only follows.",
        "Ask for more time, or save in time and go on from there (sbatch --signal=B:USR1@300 "
        "warns before). If it should long have been through, look for where it stood still.",
        confidence=0.95,
    ),
    phrase(
        "preempted", r"CANCELLED AT \S{1,40} DUE TO PREEMPTION|Preempted (?:by|in order)|"
                     r"imminent node shutdown", "hang",
        "The job was put aside for another, or its host is taken back: no error of its own.",
        "Let it be queued again (--requeue) and go on from its last checkpoint; save when the "
        "warning comes.", confidence=0.95,
    ),
    phrase(
        "host_lost", r"Node failure on (?P<host>[\w.\-\[\],]{1,200})|CANCELLED AT \S{1,40} DUE TO "
                     r"NODE FAILURE", "hang",
        "The scheduler has lost a node of the job ({host}); what other ranks say follows from it.",
        "See why it went down (sinfo -R, its console, dmesg), and start again without it "
        "(--exclude).", confidence=0.95,
    ),
    phrase(
        "killed", r"exceeded (?:job |step )?memory limit \((?P<said>[^)\n]{1,60})\)", "hang",
        "The scheduler has killed it because it took more of the host's memory than it had asked "
        "for ({said}).",
        "Ask for more (--mem), start fewer data workers, or hold fewer copies of the data.",
    ),
    phrase(
        "request_unfit", r"Requested node configuration is not available|More processors requested "
                         r"than permitted|Unable to create step for job", "hang",
        "The scheduler cannot start it: more nodes, tasks, cards or cores are asked for than the "
        "partition or the job has.",
        "Compare --nodes, --ntasks-per-node, --gpus-per-node and --cpus-per-task with scontrol "
        "show node and with what sbatch has asked for.",
    ),
    phrase(
        "cancelled", r"\*\*\* (?:JOB|STEP) \S{1,40} ON \S{1,100} CANCELLED AT \S{1,40} \*\*\*",
        "hang",
        "The scheduler has ended it, without a reason of its own: by scancel, or because a task "
        "had ended with an error.",
        "Look above for the first task with an exit code; sacct -j JOB shows each step's.",
        confidence=0.7,
    ),
    phrase(
        "killed", r"\bOOMKilled\b", "hang",
        "A container was killed because it took more of the host's memory than its limit allows.",
        "Raise resources.limits.memory; count data workers, pinned memory and /dev/shm (an "
        "emptyDir in memory counts) against it.", confidence=0.95,
    ),
    phrase(
        "evicted", r"The node was low on resource: (?P<what>[\w-]{1,40})|\bEvicted\b.{0,80}pod|"
                   r"Reason:\s+Evicted", "hang",
        "The pod was put out of its node, which had too little left: {what}.",
        "Ask for it in requests, and write large files to a volume rather than into the "
        "container.", below=r"The node was low on resource: (?P<what>[\w-]{1,40})",
    ),
    phrase(
        "told_to_stop", r"Exit ?Code: +143\b", "hang",
        "The container was told from outside to stop (143 is 128 and signal 15, SIGTERM): its pod "
        "was deleted, evicted or preempted, or another part of the job had failed.",
        "kubectl describe pod and kubectl get events tell who stopped it; read the logs of the "
        "job's other pods.",
    ),
    phrase(
        "not_scheduled",
        r"No available node types can fulfill resource request (?P<said>\{[^}\n]{1,200}\})|"
        r"resource request cannot be scheduled right now: (?P<said2>\{[^}\n]{1,200}\})", "hang",
        "Ray waits: no node has what is asked for ({said}).",
        "ray status shows what there is and what is taken; ask for fewer cards or cores a worker, "
        "or end what holds them.",
    ),
    phrase(
        "not_started", r"Task launch for \S{1,40} failed on node (?P<host>\S{1,100}): "
                       r"(?P<said>[^\n]{1,120})", "hang",
        "Slurm could not start the tasks on {host}: {said}.",
        "Read slurmd's log there; for a credential, compare clocks and munge's key on the hosts "
        "(munge -n | ssh HOST unmunge).",
    ),
    phrase(
        "not_scheduled", r"0/(?P<nodes>\d{1,6}) nodes are available: (?P<said>[^\n]{1,300})",
        "hang",
        "The pod waits: none of {nodes:node|nodes} can take it ({said}).",
        "Compare requests, node selectors, affinity and tolerations with kubectl describe node.",
    ),
)  # fmt: skip
