"""What launchers, schedulers, frameworks and torch write is understood, and told first."""

import re

import pytest

from roundelay.diagnose.given import Given
from roundelay.diagnose.hang.phrases import ANCHORS, PHRASES, phrase_findings
from roundelay.diagnose.together import diagnose

# A line or some, the kind of the finding, words of its reason.
SAID = [
    # Torch.
    ("RuntimeError: Expected to have finished reduction in the prior iteration before\n"
     "Parameter indices which did not receive grad for rank 4: 7 8\n", "unused_parameters",
     "on rank 4: 7 8"),
    ("[rank2]: RuntimeError: Expected to mark a variable ready only once. This\n"
     "[rank2]: Parameter at index 9 with name a.b has been marked as ready twice.\n",
     "ready_twice", "9 with name a.b"),
    ("Your training graph has changed in this iteration, e.g.\n", "graph_changed", "static_graph"),
    ("RuntimeError: DDP expects same model across all ranks, but Rank 3 has 5 params, while rank 0 "
     "has inconsistent 4 params.\n", "models_differ", "rank 3 has 5 parameters, rank 0 has 4"),
    ("RuntimeError: DDP expects same model across all ranks, but Rank 0 has 5 params, while rank 2 "
     "has inconsistent 0 params.\n", "stuck_in_start", "0 parameters of rank 2"),
    ("[mori] application/rdma: BuildRdmaConn gave up\n", "network_error", "(BuildRdmaConn)"),
    ("RuntimeError: [2]: params[7] in this process with sizes [3, 4] appears not to match sizes\n",
     "models_differ", r"parameter 7 is [3, 4] on rank 2"),
    ("RuntimeError: Error when verifying shape tensors for collective ALLGATHER on rank 6. This "
     "likely. Got shapes:  [2, 2]\n", "sizes_differ", "rank 6 has [2, 2]"),
    ("ValueError: output tensor size must be equal to world_size times input tensor size\n",
     "sizes_differ", "pieces of all ranks"),
    ("RuntimeError: [Rank 0]: Ranks 2, 5 failed to pass monitoredBarrier in 900 ms\n",
     "never_called", "Rank 2, 5 did not come to the barrier within 900 ms"),
    ("Rank 4 successfully reached monitoredBarrier, but received errors while waiting for "
     "send/recv from rank 1. Please check\n", "broke_off", "rank 1 did not answer"),
    ("ValueError: Default process group has not been initialized, please\n", "no_group", "before"),
    ("ValueError: environment variable MASTER_PORT expected, but not set\n", "not_launched",
     "without a launcher"),
    ("RuntimeError: No backend type associated with device type cpu\n", "wrong_device",
     "(device: cpu)"),
    ("ValueError: Global rank 9 is not part of group <x>\n", "not_in_group", "names rank 9"),
    ("RuntimeError: Distributed package doesn't have NCCL built in\n", "no_backend", "no NCCL"),
    ("RuntimeError: world_size (6) is not divisible by tensor_model_parallel_size (4)\n",
     "size_unfit", "(6) cannot be divided by .* (4)"),
    ("ScatterGatherKernel.cu:1: op: block: [0,0,0], thread: [1,0,0] Assertion `idx >= 0 && idx < n"
     "` failed.\n", "index_out_of_range", "idx >= 0 && idx < n"),
    ("[rank5]:[E] watchdog thread terminated with exception: CUDA error: an illegal memory access "
     "was encountered\n", "kernel_failed", "card of rank 5 has failed"),
    ("RuntimeError: CUDA error: uncorrectable ECC error encountered\n", "card_failed", "ECC"),
    ("[Rank 3] Found key in store: NCCLABORTEDCOMM:07, from rank: 2. This means\n",
     "aborted_first", "Rank 2 gave up .* rank 3 only"),
    ("RuntimeError: trying to initialize the default process group twice!\n", "initialised_twice",
     "twice"),
    ("RuntimeError: Detected that at least one rank has exhausted inputs.\n", "uneven_inputs",
     "no further batches"),
    # Launchers.
    ("application called MPI_Abort(MPI_COMM_WORLD, 3) - process 2\n", "program_ended",
     "Rank 2 .*code 3"),
    ("[proxy:0:1@n2] HYDU_sock_connect (sock.c:1): unable to connect from \"n2\" to \"n1\"\n",
     "unreachable_host", "do not share"),
    ("SignalException: Process 71 got signal: 15\n", "told_to_stop", "SIGTERM"),
    ("SignalException: Process 71 got signal: 1\n", "hung_up", "SIGHUP"),
    ("MPI_ABORT was invoked on rank 6 in communicator MPI_COMM_WORLD\nwith errorcode 4.\n",
     "program_ended", "Rank 6 .* code 4"),
    ("There are not enough slots available in the system to satisfy the 12\n", "no_slots", "12"),
    ("mpirun was unable to find the specified executable file, and\n", "no_program", "does not"),
    ("ORTE was unable to reliably start one or more daemons.\n", "not_started", "ssh"),
    ("PRTE has lost communication with a remote daemon.\n", "host_lost", "lost a host"),
    ("A process or daemon was unable to complete a TCP connection\n", "unreachable_host",
     "do not share"),
    ("OMPI was not built with SLURM's PMI support and\n", "no_pmi", "srun"),
    ("*** MPI_ERR_TRUNCATE: message truncated\n", "sizes_differ", "more than it has room for"),
    ("*** MPI_ERR_COMM: invalid communicator\n", "mpi_error", "invalid communicator"),
    # Schedulers.
    ("slurmstepd: error: *** JOB 7 ON a1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***\n",
     "time_limit", "its time was up"),
    ("*** STEP 7.0 ON a1 CANCELLED AT 2026-01-01T00:00:00 DUE TO PREEMPTION ***\n", "preempted",
     "put aside"),
    ("srun: error: Node failure on a7\n", "host_lost", "(a7)"),
    ("slurmstepd: error: Step 7.0 exceeded memory limit (900 > 800), being killed\n", "killed",
     "900 > 800"),
    ("srun: error: Unable to create step for job 7: More processors requested than permitted\n",
     "request_unfit", "more nodes"),
    ("error: *** STEP 7.0 ON a1 CANCELLED AT 2026-01-01T00:00:00 ***\n", "cancelled", "scancel"),
    ("    Reason:       OOMKilled\n    Exit Code:    137\n", "killed", "container was killed"),
    ("Reason: Evicted\nMessage: The node was low on resource: memory. Threshold\n", "evicted",
     "too little left: memory"),
    ("0/5 nodes are available: 5 Insufficient nvidia.com/gpu. preemption\n", "not_scheduled",
     "none of 5 nodes .*Insufficient"),
    ("    Exit Code:    143\n", "told_to_stop", "143 is 128 and signal 15"),
    ("Error: No available node types can fulfill resource request {'GPU': 8.0}. Add\n",
     "not_scheduled", "({'GPU': 8.0})"),
    ("srun: error: Task launch for StepId=7.0 failed on node n2: Invalid job credential\n",
     "not_started", "on n2: Invalid job credential"),
    # Hosts.
    ("  what():  std::bad_alloc\n", "no_host_memory", "no memory left"),
    ("RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus error. It is possible that "
     "dataloader's workers are out of shared memory.\n", "no_shared_memory", "/dev/shm is too"),
    ("[rank1]: RuntimeError: DataLoader worker (pid 9) is killed by signal: Killed.\n", "killed",
     "rank 1 (process 9)"),
    ("RuntimeError: DataLoader worker (pid 9) is killed by signal: Segmentation fault.\n",
     "crashed", "Segmentation fault"),
    ("RuntimeError: DataLoader worker (pid(s) 8, 9) exited unexpectedly\n", "worker_died", "8, 9"),
    ("RuntimeError: received 0 items of ancdata\n", "no_files_left", "descriptor"),
    ("RuntimeError: can't start new thread\n", "no_threads_left", "thread"),
    ("OSError: [Errno 28] No space left on device: 'ck.pt'\n", "disk_full", "full"),
    # Frameworks.
    ("DEADLINE_EXCEEDED: Getting local topologies timed out after 2m. Missing\n/job:j/task:3\n",
     "ranks_missing", "missing: /job:j/task:3"),
    ("W One or more tensors were submitted to be reduced, gathered or broadcasted by subset of "
     "ranks\nMissing ranks:\n3: [grad.a, grad.b]\n", "never_called", "Rank 3 .*grad.a"),
    ("tensors were submitted to be reduced, gathered or broadcasted by subset of ranks\nStalled "
     "ops:\ngrad.a [missing ranks: 1, 2]\n", "never_called", "Rank 1, 2 .*grad.a"),
    ("Mismatched allreduce tensor shapes: One rank sent [2], another [3].\n", "sizes_differ",
     "One rank sent"),
    ("Mismatched data types: One rank had type float32, another int.\n", "types_differ", "float32"),
    ("Mismatched collective operations: One rank did an allreduce, another\n", "calls_differ",
     "allreduce"),
    ("Shape mismatch in the collective instance 7. Op at device /job:w/task:1 expected shape [2] "
     "but another member in the group expected shape [3].\n", "sizes_differ", "collective 7"),
    ("Task /job:w/replica:0/task:4 heartbeat timeout. This indicates\n", "task_lost", "task:4"),
    ("The following tasks are unhealthy (stopped sending heartbeats):\n/job:j/replica:0/task:2\n",
     "task_lost", "/job:j/replica:0/task:2"),
    ("DEADLINE_EXCEEDED: Barrier timed out. Id: a\n# of tasks that reached the barrier: 3/4. Some "
     "timed out task names:\n/job:j/task:2\n", "ranks_missing", r"3 of 4"),
    ("Termination timeout for `first call` of 40 seconds exceeded. Exiting. Expected 4 threads to "
     "join the rendezvous, but only 3 of them\n", "ranks_missing", "Only 3 of 4 devices"),
    ("This thread has been waiting for `first call` for 20 seconds and may be stuck. Expected 4 "
     "threads to join\n", "slow_to_join", "first call after 20 s"),
    ("OutOfMemoryError: Task was killed due to the node running low on memory.\nMemory on the node "
     "(IP: 1, name=Actor, pid=3) was running was 9.5GB / 10.0GB (0.95)\n", "killed",
     "(Actor) .*9.5GB of 10.0GB"),
    ("The node has been marked dead because the detector has missed too many heartbeats\n",
     "host_lost", "Ray has lost"),
    ("The actor is dead. Worker exit type: SYSTEM_ERROR Worker exit detail: x\n", "worker_died",
     "Ray's"),
    ("Worker proc VllmWorker-2 died unexpectedly (exit code: -9), shutting\n", "worker_died",
     "VllmWorker-2 .*-9"),
    ("Rank 5 scheduler is dead. Please check\n", "worker_died", "rank 5"),
    ("TimeoutError: RPC call to execute_model timed out.\n", "worker_stuck", "execute_model"),
    ("[2026-01-01 00:00:00 TP6] Watchdog timeout (self.watchdog_timeout=300)\n", "worker_stuck",
     "rank 6 took longer than 300 s"),
    ("RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n",
     "cache_unfit", "cache"),
    ("ValueError: The memory capacity is unbalanced. Some GPUs may be occupied by other\n",
     "card_in_use", "another process"),
    ("RuntimeError: Engine core initialization failed. See root cause above.\n", "engine_failed",
     "another process"),
    ("Failed to send RPC to coordination service. Either the leader\n", "coordinator_lost",
     "process 0"),
    ("|CCL_ERROR| atl_ofi.cpp:9 fi_getinfo failed\n", "ccl_error", "fi_getinfo"),
]  # fmt: skip
# What is said, and is no fault.
HARMLESS = [
    ("W process group has NOT been destroyed before we destruct ProcessGroupNCCL\n", "harmless"),
    ("[PG 0 Rank 1] using GPU 1 as device used by this process is currently unknown. This can\n",
     "barrier_device"),
    ("INFO No available shared memory broadcast block found in 60 seconds. This\n", "worker_busy"),
    ("may be stuck. Expected 4 threads to join\nThread is unstuck! Warning above was a "
     "false-positive.\n", "unstuck"),
    ("Custom allreduce is disabled because it's not supported on more than two PCIe-only GPUs.\n",
     "custom_off"),
    ("Traceback (most recent call last):\nKeyboardInterrupt\n", "interrupted"),
]  # fmt: skip


def look(text):
    return diagnose([Given("f", data=text.encode())], None, None, None).findings


@pytest.mark.parametrize(("text", "kind", "words"), SAID)
def test_what_is_said_is_understood(text, kind, words):

    found = look(text)
    assert [(f.kind, f.fault) for f in found] == [(kind, True)]
    pattern = re.escape(words).replace(r"\ \.\*", ".*").replace(r"\.\*", ".*")
    assert re.search(pattern, str(found[0].reason)), str(found[0].reason)


@pytest.mark.parametrize(("text", "kind"), HARMLESS)
def test_what_is_no_fault_is_blamed_for_none(text, kind):
    assert [(f.kind, f.fault) for f in look(text)] == [(kind, False)]


@pytest.mark.parametrize("text", [text for text, *_ in SAID + HARMLESS])
def test_heads_of_launchers_colours_and_quotation_hide_nothing(text):
    plain = look(text)
    for head in ("> ", "\x1b[31m", "[1,3]<stderr>:", "3: ", "(Worker pid=7, ip=1.2.3.4) "):
        found = look("".join(head + line for line in text.splitlines(keepends=True)))
        assert [f.kind for f in found] == [f.kind for f in plain], head


def test_every_kind_of_phrase_has_its_line():
    known = {kind for _, kind, *_ in SAID + HARMLESS}
    assert {phrase.kind for phrase in PHRASES} - known == set()
    for text, *_ in SAID + HARMLESS:
        assert any(anchor in text.encode() for anchor in ANCHORS)


def test_lines_that_only_follow_are_left_out():
    follows = "RuntimeError: Engine core initialization failed. See root cause above.\n"
    first = "TimeoutError: RPC call to execute_model timed out.\n"
    assert [f.kind for f in look(follows + first)] == ["worker_stuck"]
    exited = "srun: error: a1: task 5: Exited with exit code 1\n"
    ended = "error: *** STEP 7.0 ON a1 CANCELLED AT 2026-01-01T00:00:00 ***\n"
    found = look(exited + ended)
    assert [f.kind for f in found] == ["ended_first"]
    assert "Rank 5 ended with exit code 1" in str(found[0].reason)


def test_an_error_that_is_explained_is_not_told_again():
    error = "ValueError: Default process group has not been initialized, please\n"
    trace = 'Traceback (most recent call last):\n  File "t.py", line 3, in <module>\n'
    killed = "/bin/sh: line 1: 4711 Killed                  python t.py\n"
    assert [f.kind for f in look(trace + error + killed)] == ["no_group"]


def test_lines_of_nccl_are_not_looked_at():
    line = b"a:1:2 [0] NCCL INFO Default process group has not been initialized\n"
    assert phrase_findings("f", [line] * 3) == ([], set(), set())
