"""What frameworks over several processes say: Horovod, TensorFlow, JAX, Ray, vLLM, SGLang."""

from typing import Final

from .phrase import phrase

_MISMATCH: Final = (
    "Print the tensor's name, shape and type on each rank before the call; uneven last batches and "
    "data of variable length are the usual reason."
)
FRAMEWORKS: Final = (
    phrase(
        "network_error", r"\[mori\].{0,160}?(?P<said>BuildRdmaConn|ibverbs.{0,60}failed.{0,60})",
        "hang",
        "MoRI, which moves data between servers over RDMA, could not set a connection up ({said}). "
        "Connections of others that are closed, and signals that end processes, follow from it.",
        "See that both servers live and run the same version of MoRI, that ibv_devinfo shows their "
        "network cards active in the container, and ib_write_bw between the two.",
        confidence=0.8,
    ),
    phrase(
        "never_called", r"submitted to be reduced, gathered or broadcasted by subset of ranks",
        "hang",
        "Rank {late} has not handed in tensors that others wait for ({what}): it is late, has "
        "ended, or takes another branch.",
        "See what rank {late} does (its log, py-spy dump); look for steps under a condition on "
        "the rank, uneven numbers of batches, a slow data source.",
        below=r"(?:^|[:>\s])(?P<late>\d{1,7})!?: \[(?P<what>[^\]\n]{1,160})|"
              r"(?P<what2>\S{1,160}) \[missing ranks: ?(?P<late2>[\d, ]{1,400})\]",
    ),
    phrase(
        "sizes_differ", r"Mismatched (?P<call>\w{1,30}) tensor shapes: (?P<said>[^\n]{1,200})",
        "hang", "Ranks call {call} with different shapes: {said}.", _MISMATCH,
    ),
    phrase(
        "types_differ", r"Mismatched data types: (?P<said>[^\n]{1,200})", "hang",
        "Ranks call with different types: {said}.", _MISMATCH,
    ),
    phrase(
        "calls_differ", r"Mismatched collective operations: (?P<said>[^\n]{1,200})", "hang",
        "Ranks call different things: {said}.", _MISMATCH,
    ),
    phrase(
        "sizes_differ",
        r"Shape mismatch in the collective instance (?P<instance>\d{1,12})\. Op at device "
        r"(?P<task>\S{1,100}) expected shape (?P<shape>\[[\d,]{0,100}\]) but another member in the "
        r"group expected shape (?P<other>\[[\d,]{0,100}\])", "hang",
        "Members of collective {instance} have different shapes: {shape} at {task}, {other} at "
        "another.", _MISMATCH,
    ),
    phrase(
        "task_lost",
        r"(?P<task>/job:\S{1,60}?task:\d{1,7})\W{1,4}(?:has )?heartbeat (?:timeout|timed out)",
        "hang",
        "{task} no longer answers: it has died, was taken away, or its host stands still; the "
        "others are ended because of that.",
        "Read the end of that task's log, and the scheduler's events of its host.",
    ),
    phrase(
        "task_lost", r"tasks? (?:is|are) unhealthy \(stopped sending heartbeats\)", "hang",
        "{task} no longer answers: it has died, was taken away, or its host stands still; the "
        "others are ended because of that.",
        "Read the end of that task's log, and the scheduler's events of its host.",
        below=r"(?P<task>/job:\S{1,60}/task:\d{1,7})",
    ),
    phrase(
        "ranks_missing", r"waited too long for some tasks to show up|"
                         r"Getting local topologies timed out|"
                         r"Missing processes: \[(?P<task>[\d, ]{1,400})\]", "hang",
        "Not all processes have come to JAX's coordinator (missing: {task}): they have ended "
        "before, were never started, or do not reach its address.",
        "Count the processes against num_processes; all need the same coordinator_address, which "
        "must be open from every host (nc -vz HOST PORT).",
        below=r"(?P<task>/job:\S{1,60}/task:\d{1,7})",
    ),
    phrase(
        "ranks_missing", r"Barrier timed out", "hang",
        "Not all tasks have come to a barrier in time ({there} of {tasks}); missing: {task}.",
        "Read the end of the logs of those that are missing: they have died, are late (compiling, "
        "loading), or never started.",
        below=r"tasks that reached the barrier: (?P<there>\d{1,7})/(?P<tasks>\d{1,7})"
              r"(?:.{0,300}?timed out task names?:\s*(?P<task>/job:\S{1,60}))?",
    ),
    phrase(
        "ranks_missing",
        r"Termination timeout for `(?P<call>[^`]{1,200})`.{0,200}?Expected (?P<ranks>\d{1,7}) "
        r"threads to join the rendezvous, but only (?P<there>\d{1,7})", "hang",
        "Only {there} of {ranks:device|devices} of this process came to {call}: one of them is "
        "held up, has failed, or runs another program.",
        "Look above for the first error of a device; see that all processes run the same program "
        "with the same shapes, and that the host has a core for each device.",
    ),
    phrase(
        "slow_to_join",
        r"waiting for `(?P<call>[^`]{1,200})` for (?P<seconds>\d{1,9}) seconds and may be stuck"
        r".{0,20}Expected (?P<ranks>\d{1,7}) threads", "hang",
        "Not all of {ranks:device|devices} of this process had come to {call} after {seconds} s: "
        "one is held up (compiling, loading, a host that is short of cores) or has failed.",
        "Look above for the first error of a device; where it goes on later, it was only slow.",
        confidence=0.7,
    ),
    phrase(
        "unstuck", r"Thread is unstuck! Warning above was a false-positive", "hang",
        "Devices of this process came late to a call, and it went on then: slow, not stuck.",
        "Give the host more cores, or warm up before the first collective.", fault=False,
    ),
    phrase(
        "killed", r"Task was killed due to the node running low on memory|killed due to memory "
                  r"pressure \(OOM\)", "hang",
        "Ray has killed a worker ({name}) because its host had no memory left ({used} of {room} "
        "used).",
        "Give that task more memory or fewer neighbours (num_cpus, memory=), hold less in the "
        "object store; RAY_memory_usage_threshold says from when it kills.",
        below=r"name=(?P<name>[^,)\n]{1,80}).{0,120}?was (?P<used>[\d.]{1,12} ?GB) / "
              r"(?P<room>[\d.]{1,12} ?GB)",
    ),
    phrase(
        "host_lost", r"marked dead because the detector has missed too many heartbeats|"
                     r"NodeDiedError", "hang",
        "Ray has lost a node: it went down, its network did, or it is too busy to answer.",
        "See whether that host is up, and its raylet.log; leave Ray's own process a core and some "
        "memory.",
    ),
    phrase(
        "worker_died", r"Worker exit type: SYSTEM_ERROR|The actor died unexpectedly before|"
                       r"worker died or was killed while executing a task", "hang",
        "A process of Ray's has died without an exception of its own: killed for memory, crashed "
        "(a signal), or stopped from outside.",
        "See dmesg of that host for killed processes and Xid errors, and the worker's own .err "
        "file under /tmp/ray/session_latest/logs.", confidence=0.75,
    ),
    phrase(
        "worker_died", r"Worker proc (?P<name>\S{1,60}) died unexpectedly(?: \(exit code: "
                       r"(?P<code>-?\d{1,5})\))?", "hang",
        "Worker {name} has died (exit code {code}); the engine ends because of that.",
        "Look above for that worker's own error (its lines carry its name); without one it was "
        "killed or crashed: dmesg.", confidence=0.75,
    ),
    phrase(
        "worker_died", r"Rank (?P<rank>\d{1,7}) scheduler is dead", "hang",
        "The scheduler of rank {rank} has ended; the server ends because of that.",
        "Look above for its own error; an exit code of -9 is a process that was killed, as a rule "
        "for want of memory.", confidence=0.75,
    ),
    phrase(
        "worker_stuck", r"RPC call to (?P<call>\w{1,60}) timed out", "hang",
        "A worker did not answer {call} in time: it is in a kernel or a collective that does not "
        "end, or compiles. Its own state tells, this line does not.",
        "py-spy dump of all workers; try --disable-custom-all-reduce and --enforce-eager to see "
        "which part it is; VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS where it is only slow.",
        confidence=0.8,
    ),
    phrase(
        "worker_stuck",
        r"(?:TP(?P<rank>\d{1,4})[^\]\n]{0,20}\] ?)?(?:Scheduler )?watchdog timeout \("
        r"self\.watchdog_timeout=(?P<seconds>[\d.]{1,9})", "hang",
        "One batch of rank {rank} took longer than {seconds} s, so SGLang ends itself: a kernel "
        "or a collective does not end, or the batch was compiled or loaded for that long.",
        "py-spy dump of all schedulers (newer versions print it above); --disable-cuda-graph and "
        "--disable-custom-all-reduce show which part it is; --watchdog-timeout where it is slow.",
        confidence=0.8,
    ),
    phrase(
        "worker_busy", r"No available shared memory broadcast block found in (?P<seconds>\d{1,6})",
        "hang",
        "A worker has not fetched its next message for {seconds} s: it compiles, loads, or is in "
        "a call that does not end.",
        "If it goes on later, nothing is wrong; if not, py-spy dump of all workers.", fault=False,
        confidence=0.75,
    ),
    phrase(
        "cache_unfit", r"No available memory for the cache blocks|larger than the (?:available KV "
                       r"cache|maximum number of tokens that can be stored in KV cache)|"
                       r"Not enough memory\. Please try to increase --mem-fraction", "machine",
        "After the weights too little memory is left on the card for the cache of keys and "
        "values.",
        "A larger share (--gpu-memory-utilization, --mem-fraction-static), shorter sequences "
        "(--max-model-len), more cards for one copy, or end what else uses the card.",
    ),
    phrase(
        "card_in_use", r"The memory capacity is unbalanced\. Some GPUs may be occupied", "machine",
        "The cards of this copy do not have the same memory free: another process uses one of "
        "them.",
        "nvidia-smi shows which; end what is left of a run before.",
    ),
    phrase(
        "custom_off", r"Custom allreduce is disabled because (?P<said>[^\n.]{1,160})", "speed",
        "The engine's own all-reduce is off: {said}. NCCL does it instead, which is slower for "
        "small sizes; nothing has failed.",
        "Nothing to be done where cards have no NVLink; disable_custom_all_reduce=True hides the "
        "line.", fault=False,
    ),
    phrase(
        "engine_failed", r"Engine core (?:initialization failed|proc \S{1,40} died)|"
                         r"EngineDeadError|Received sigquit from a child process|"
                         r"Horovod has been shut down|"
                         r"JAX distributed service detected fatal errors|"
                         r"Polled an error from coordination service", "hang",
        "This only tells that another process of the job has failed; which and why stands above, "
        "or in that process's log.",
        "Look for the first error of all processes, by time.", confidence=0.6,
    ),
    phrase(
        "coordinator_lost", r"Failed to send RPC to coordination service", "hang",
        "The leader (process 0), which holds JAX's coordination service, does not answer: it has "
        "ended, or the network to it is cut.",
        "Read the end of process 0's log: its own error comes first.", confidence=0.75,
    ),
    phrase(
        "ccl_error", r"\|CCL_ERROR\|\s*(?P<said>[^\n]{1,200})", "machine",
        "oneCCL reports an error: {said}.",
        "CCL_LOG_LEVEL=info, and the lines of the other ranks at that time.", confidence=0.6,
    ),
)  # fmt: skip
