"""What torch says of calls, models and groups that do not fit together (versions 1.5 to 2.10)."""

from typing import Final

from .phrase import phrase

_MODELS: Final = (
    "Build the same model on all ranks: the same settings, vocabulary and frozen parts; no part "
    "under a condition on the rank, and one checkpoint for all."
)
TORCH: Final = (
    phrase(
        "unused_parameters", r"Expected to have finished reduction in the prior iteration", "hang",
        "DDP misses gradients: parameters of the model (on rank {rank}: {which}) had no part in "
        "the loss of the step before, so their all-reduce never began.",
        "Leave those parameters out or let them take part (a zero-weighted term); else "
        "find_unused_parameters=True. TORCH_DISTRIBUTED_DEBUG=DETAIL names them.",
        below=r"Parameter(?:s| indices) which did not receive grad for rank (?P<rank>\d{1,7}): "
              r"(?P<which>[^\n]{1,200})",
    ),
    phrase(
        "ready_twice", r"Expected to mark a variable ready only once", "hang",
        "A parameter's gradient was ready twice in one step ({which}): it is used in several "
        "forward passes, or activation checkpointing runs its part again while DDP looks for "
        "unused parameters.",
        "Checkpoint with use_reentrant=False, set find_unused_parameters=False, or "
        "static_graph=True where the graph does not change.",
        below=r"Parameter at index (?P<which>\d+(?: with name \S{1,200})?)",
    ),
    phrase(
        "graph_changed", r"Your training graph has changed in this iteration", "hang",
        "With static_graph=True DDP expects every step to use the same parameters, and this one "
        "does not.",
        "Leave static_graph off, with find_unused_parameters=True where parameters are left out "
        "at times.",
    ),
    phrase(
        "models_differ",
        r"DDP expects same model across all ranks, but Rank (?P<rank>\d{1,7}) has "
        r"(?P<count>\d{1,9}) params, while rank (?P<other>\d{1,7}) has inconsistent "
        r"(?P<there>[1-9]\d{0,8})", "hang",
        "The ranks have built different models: rank {rank} has {count} parameters, rank {other} "
        "has {there}.", _MODELS,
    ),
    phrase(
        "stuck_in_start",
        r"DDP expects same model across all ranks, but Rank \d{1,7} has \d{1,9} params, while rank "
        r"(?P<other>\d{1,7}) has inconsistent 0 params", "hang",
        "DDP could not compare the models: 0 parameters of rank {other} is what stands there "
        "before that rank has told its number, so this first exchange has not ended. It says "
        "nothing of the models.",
        "Look for the time limit or the error that ended the exchange. If all ranks stand in it, "
        "test the way between cards with NCCL_P2P_DISABLE=1, and the network between hosts.",
    ),
    phrase(
        "models_differ",
        r"\[(?P<rank>\d{1,7})\]: params\[(?P<index>\d{1,9})\] in this process with "
        r"(?:sizes|strides) (?P<shape>\[[\d, ]{0,200}\]) appears not to match", "hang",
        "The ranks have built different models: parameter {index} is {shape} on rank {rank}, and "
        "something else on rank 0.", _MODELS,
    ),
    phrase(
        "sizes_differ",
        r"Error when verifying shape tensors for collective (?P<call>\w{1,60}) on rank "
        r"(?P<rank>\d{1,7})(?:.{0,300}?Got shapes: *(?P<shape>\[[\d, ]{0,200}\]))?", "hang",
        "Ranks call {call} with tensors of different shapes; rank {rank} has {shape}.",
        "Print the shape on every rank before that call; fill up or cut the tensors to one shape.",
    ),
    phrase(
        "sizes_differ",
        r"output tensor size must be equal to world_size times input tensor size", "hang",
        "A call is given an output that is not as long as the pieces of all ranks together.",
        "Make the output world size times as long as the input (all_gather), or the input world "
        "size times as long as the output (reduce_scatter).",
    ),
    phrase(
        "never_called",
        r"Ranks? (?P<late>[\d, ]{1,2000}) failed to pass monitoredBarrier in (?P<limit>\d{1,12}) "
        r"ms", "hang",
        "Rank {late} did not come to the barrier within {limit} ms: it is late, in another call, "
        "or has ended; the others only wait for it.",
        "Read the end of that rank's log, and see where it stands (py-spy dump).",
    ),
    phrase(
        "broke_off",
        r"Rank (?P<rank>\d{1,7}) (?:successfully reached|failed to pass) monitoredBarrier"
        r".{0,80}?(?:from|on) rank (?P<late>\d{1,7})", "hang",
        "Rank {rank} came to the barrier, and rank {late} did not answer or broke off: the error "
        "is rank {late}'s, or of a rank that it waited for.",
        "Read the end of that rank's log: its own error comes first.", confidence=0.8,
    ),
    phrase(
        "no_group", r"Default process group has not been initialized", "hang",
        "A call is made before init_process_group in that process (or after "
        "destroy_process_group).",
        "Call init_process_group first, in every process; where the program is meant to run "
        "alone, too, ask dist.is_initialized() before the call.",
    ),
    phrase(
        "not_launched",
        r"environment variable (?P<name>RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT|LOCAL_RANK) "
        r"expected, but not set|KeyError: '(?P<key>RANK|WORLD_SIZE|MASTER_ADDR|LOCAL_RANK)'",
        "hang",
        "The program was started without a launcher, which would set RANK, WORLD_SIZE, "
        "LOCAL_RANK, MASTER_ADDR and MASTER_PORT.",
        "Start it with torchrun --nproc-per-node N, or set these variables in the job script "
        "(SLURM_PROCID, SLURM_NTASKS and SLURM_LOCALID tell them).",
    ),
    phrase(
        "wrong_device",
        r"No backend type associated with device type (?P<device>\w{1,20})|"
        r"Tensors must be CUDA and dense|Tensors must be on the same GPU device", "hang",
        "A tensor is given to a group whose backend does not take it (device: {device}): NCCL "
        "takes dense tensors on cards only.",
        "Move it to the card first, or make the group with backend=\"cpu:gloo,cuda:nccl\".",
    ),
    phrase(
        "not_in_group",
        r"(?:Global|Group) rank (?P<rank>\d{1,7}) is not (?:part of|in) group", "hang",
        "A call names rank {rank}, which is no member of its group: the root, source and target "
        "of a call are counted over all ranks, not in the group.",
        "Pass dist.get_global_rank(group, i), or group_src, group_dst (torch 2.6 and later).",
    ),
    phrase(
        "no_backend", r"Distributed package doesn't have (?P<name>\w{1,20}) built in", "hang",
        "This build of torch has no {name}.",
        "Install a build for cards (NCCL is not in those for CPUs, macOS and Windows), or take "
        "backend=\"gloo\".",
    ),
    phrase(
        "size_unfit",
        r"world[_ ]?size \(?(?P<world>\d{1,9})\)? (?:is not|must be|should be) divisible by "
        r"[^\d\n]{0,120}(?P<by>\d{1,9})", "hang",
        "The number of ranks ({world}) cannot be divided by what tensor, pipeline and context "
        "parallelism take together ({by}).",
        "Change the number of ranks, or these sizes, so that their product divides it.",
    ),
    phrase(
        "index_out_of_range",
        r"(?:Index\w{0,20}|ScatterGather\w{0,20}|\w{0,20}Loss\w{0,20}|Embedding\w{0,20})\.(?:cu|hip)"
        r".{0,300}?Assertion `(?P<said>[^`'\n]{1,120})['`] failed", "hang",
        "An index is outside of its table in a kernel ({said}): token ids beyond the vocabulary, "
        "labels beyond the number of classes, or positions beyond the longest sequence. What is "
        "said of CUDA and NCCL later follows from it.",
        "Check the range of indices on the host before the call; CUDA_LAUNCH_BLOCKING=1 shows the "
        "line.",
    ),
    phrase(
        "card_failed",
        r"\b(?:CUDA|HIP) error: (?P<said>uncorrectable[\w ,]{0,80}|hardware stack error|"
        r"[\w ]{0,40}fallen off the bus)", "machine",
        "The driver reports a fault of the card of rank {rank}, its memory or a link: {said}.",
        "dmesg | grep -i xid and nvidia-smi -q -d ECC on that host; reset the card or take the "
        "host out of use.", confidence=0.95,
    ),
    phrase(
        "kernel_failed",
        r"terminated with exception: .{0,200}?\b(?:CUDA|HIP) error: (?P<said>[^\n.]{1,120})",
        "hang",
        "A kernel on the card of rank {rank} has failed ({said}); torch's watchdog only passes it "
        "on. Any kernel that ran before may be the one, and as a rule it is not NCCL's.",
        "CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer on that rank names the kernel; look for Xid "
        "errors in dmesg.",
    ),
    phrase(
        "kernel_failed", r"\b(?:CUDA|HIP) error: device-side assert triggered", "hang",
        "An assertion in a kernel on the card of rank {rank} failed: as a rule an index outside of "
        "its table (a label, a token id, a position). What NCCL says later follows from it.",
        "Look above for Assertion ... failed, which names it; CUDA_LAUNCH_BLOCKING=1 shows the "
        "line of the program.",
    ),
    phrase(
        "initialised_twice", r"trying to initialize the default process group twice", "hang",
        "init_process_group is called twice in one process: by the program and by a framework, or "
        "by a module that is loaded twice.",
        "Call it only if not dist.is_initialized(), or leave it to the framework.",
    ),
    phrase(
        "uneven_inputs", r"has exhausted inputs|Detected uneven inputs", "hang",
        "A rank has no further batches while others have: the data do not divide evenly.",
        "drop_last=True, a DistributedSampler, or with model.join() where they are to differ.",
    ),
    phrase(
        "aborted_first",
        r"Found key in store: \S{1,200} ?, from rank: (?P<first>\d{1,7})", "hang",
        "Rank {first} gave up its communicators first; rank {rank} only follows.",
        "Read the log of rank {first}: its own error or timeout stands there.",
    ),
    phrase(
        "barrier_device",
        r"\[?PG.{0,80}using GPU (?P<card>\d{1,4}) (?:to perform barrier )?as devices? used by this "
        r"process (?:is|are) currently unknown|Guessing device ID based on global rank", "hang",
        "A barrier was called before it was known which card the rank uses, so torch guesses. "
        "That is harmless where ranks and cards are numbered alike, and hangs where two ranks get "
        "one card.",
        "Pass device_id to init_process_group, or call torch.cuda.set_device(local_rank) before "
        "it.", fault=False, confidence=0.8,
    ),
    phrase(
        "harmless",
        r"process group has NOT been destroyed before (?:we destruct|it is being destructed)|"
        r"destroy_process_group\(\) was not called before program exit", "hang",
        "Torch asks for destroy_process_group() at the end of the program: nothing has failed "
        "because of that.",
        "Call destroy_process_group() last; look for the cause of a failure elsewhere.",
        fault=False,
    ),
)  # fmt: skip
"""What is more certain comes first: of one kind the first that fits is told."""
