"""Causes in the program, its launcher and its settings.

Sources of the words: NCCL's misc/argcheck.cc, init.cc, enqueue.cc, group.cc, transport/net_ib and
net_socket.
"""

from __future__ import annotations

from typing import Final

from .cause import cause

_SIZES: Final = (
    "Compare on all hosts the version of NCCL and the environment (env | grep NCCL: NCCL_ALGO, "
    "NCCL_PROTO, NCCL_BUFFSIZE, a tuner's file), then the ranks' calls (NCCL_DEBUG_SUBSYS=COLL)."
)
_UNSET: Final = (
    "Unset NCCL_ALGO and NCCL_PROTO, also in /etc/nccl.conf, or name per call: "
    "NCCL_ALGO=allreduce:tree,ring;ring (2.24 and later)."
)

PROGRAM: Final = (
    cause("experts_silent", r"NCCL EP timeout for (?P<what>\w+) receive, rank (?P<rank>\d+).*?"
          r"src_rank (?P<source>\d+)", "hang",
          "Rank {rank} waited in vain for tokens of rank {source} (NCCL EP, {what}), until its "
          "kernel gave up. A launch failure and warnings that follow come of that, and so does the "
          "rest of the way down.",
          "See whether rank {source} made the same dispatch or combine and in the same order, and "
          "that two handles of one group are not used at once; then look at the links between the "
          "two.", confidence=0.8),
    cause("rank_twice", r"rank (?P<rank>\d+) of (?P<ranks>\d+) ranks has already checked in",
          "machine",
          "Two processes say that they are rank {rank} of {ranks}: the launcher gives ranks twice, "
          "or processes of an earlier run still live.",
          "See RANK and WORLD_SIZE in every process: under Slurm one task a card (srun "
          "--ntasks-per-node), with torchrun another --node-rank on each host; end what is left of "
          "earlier runs."),
    cause("bad_ranks", r"(?:rank (?P<rank>-?\d+) exceeds|invalid (?:device count|rank|nranks)|"
          r"Invalid rank requested)", "machine",
          "A communicator was asked for with a rank or number of ranks that cannot be: a rank is "
          "from 0 to one below their number.",
          "See RANK, LOCAL_RANK and WORLD_SIZE in every process, and what the program makes of "
          "them."),
    cause("calls_differ", r"(?:Mismatched collective detected|collective mismatch).*?around rank "
          r"(?P<rank>\d+)", "hang",
          "Ranks call different collectives, or with different sizes, at or near rank {rank}.",
          "Compare the calls of all ranks (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=COLL, one file a "
          "process with NCCL_DEBUG_FILE=nccl.%h.%p): the first that differs is the one."),
    cause("sizes_differ", r"collective mismatch error,? local size (?P<wanted>\d+) remote size "
          r"(?P<sent>\d+)|message truncated ?: receiving (?P<came>\d+) bytes instead of "
          r"(?P<room>\d+)", "hang",
          "The two ends of a connection do not agree: one has {sent:byte|bytes} for what is "
          "{wanted:byte|bytes} to the other. Ranks call with different sizes or in another order, "
          "or hosts run NCCL with different settings or versions.", _SIZES),
    cause("sizes_differ", r"message truncated(?! ?: received)|collective mismatch|posted incorrect "
          r"receive info",
          "hang",
          "The two ends of a connection do not agree on how many bytes are sent. Ranks call with "
          "different sizes or in another order, or hosts run NCCL with different settings or "
          "versions.", _SIZES),
    cause("registration_differs", r"symmetric registration check failed on rank (?P<rank>\d+)",
          "hang",
          "Buffers registered as symmetric are not alike: rank {rank} has registered another one, "
          "or none, or uses it at another offset, than rank 0.",
          "Register on all ranks the same windows in the same order, and call with the same offset "
          "in them."),
    cause("bad_buffer", r"(?P<call>\w+) ?: (?P<buffer>\w*buff?\w*) (?:\S+ )?(?:is not a valid "
          r"pointer|argument is NULL)", "machine",
          "The program gives {call} a buffer that is no memory of a card ({buffer}): null (an "
          "empty tensor, one whose memory is not there yet or is kept elsewhere, as with meta "
          "tensors or sharded parameters), memory of the host, or freed.",
          "Print device, shape and data_ptr() of the tensor before the call on all ranks; move it "
          "to the card, and call no collective on an empty one."),
    cause("other_card", r"allocated on device (?P<one>\d+) mismatchs? with NCCL device "
          r"(?P<other>\d+)", "machine",
          "The program calls with a tensor on card {one}, and the communicator is of card {other}.",
          "torch.cuda.set_device(local_rank) before anything else, and .to() that card; no cuda:0 "
          "in code that all ranks run."),
    cause("communicator_unusable", r"root should be in the 0\.\.(?:0|-1) range|has already been "
          r"destroyed|is in abort state|corrupted comm object|communicator (?:was|is|has been) "
          r"aborted", "machine",
          "A communicator is used that is not (or no longer) usable: it has no ranks yet, or was "
          "aborted or destroyed before. It follows from an error that came earlier, from a use "
          "in the same group as its start, or from another thread that ended it.",
          "Look for the first error before this line; see that no thread destroys a process "
          "group that is in use; one group of calls must not both make a communicator and use it "
          "(mended in torch 1.4).", confidence=0.75),
    cause("bad_argument", r"(?P<call>\w+) ?: (?P<what>invalid (?:root|type|reduction operation) "
          r"-?\d+|reduction operation \d+ unknown)", "machine",
          "The program calls {call} with an argument that cannot be: {what}.",
          "Root is a rank in this group, not in the world; types and operations are those of this "
          "NCCL: torch and NCCL of different versions may not agree on their numbers."),
    cause("bad_argument", r"(?P<call>\w+) ?: (?P<what>\w+ argument is NULL)", "machine",
          "The program calls {call} with an argument that cannot be: {what}.",
          "Look at what was to be made before: a communicator or window that failed to start is "
          "null; see the first error."),
    cause("too_early", r"Attempt to use communicator before", "machine",
          "A communicator was used though what it did before has not ended well: an error came "
          "earlier (its own warning tells), or it starts without waiting (blocking = 0) and is not "
          "through.",
          "Look for the first warning of this process. If there is none: ask ncclCommGetAsyncError "
          "until it is ncclSuccess; in torch use a newer version, or unset "
          "TORCH_NCCL_USE_COMM_NONBLOCKING.", confidence=0.7),
    cause("torn_down", r"Service thread\] (?:Accept failed|Could not receive type)|operation Close "
          r"from rank", "hang",
          "A helper thread of NCCL met connections that were closed already: the process ends, or "
          "its communicators are torn down. It comes after whatever ended them, and after a sound "
          "run it may be ignored.",
          "If results are missing look for the first error before; else destroy the process group "
          "(torch.distributed.destroy_process_group()) before the program ends.", fault=False,
          confidence=0.7),
    cause("proxy_failed", r"Failed to execute operation (?P<what>Connect) from rank (?P<rank>\d+), "
          r"retcode 6", "hang",
          "The connection over the network that NCCL's helper thread of rank {rank} was setting "
          "up was broken off by the other side ({what}, result 6: remote error): the process "
          "there failed or ended first, or the two hosts do not reach one another. What this "
          "process says of closed sockets follows.",
          "Read the first error in the logs of the other ranks; if there is none, "
          "name the interface that all hosts share (NCCL_SOCKET_IFNAME=eth0) and open the ports "
          "between them.", confidence=0.7),
    cause("proxy_failed", r"Proxy Call to rank (?P<rank>\d+) failed \((?P<what>\w+)\)", "hang",
          "What NCCL's helper thread of rank {rank} was asked for has failed ({what}: Connect is "
          "the network between hosts, Init and Setup are memory of cards and of the host). The "
          "cause is what that process said before.",
          "Run again with NCCL_DEBUG=INFO on all ranks and read the first warning of that one; for "
          "Connect name the interface that all hosts share (NCCL_SOCKET_IFNAME=eth0) and open the "
          "ports between them; for Setup see /dev/shm and the cards' memory.", confidence=0.6),
    cause("msccl_refused", r"MSCCL:? (?P<what>.*(?:not supported|not found|limit|fail|wrong|cannot|"
          r"invalid|mismatch).*)", "machine",
          "An algorithm file of MSCCL cannot be used ({what}): it is of another number of ranks, "
          "machine or version, or asks for more than this library holds.",
          "Give the XML to `roundelay diagnose`, which proves it and names the wrong step; "
          "RCCL_MSCCL_ENABLE=0 (or no MSCCL_XML_FILES) does without.", confidence=0.75),
    cause("rendezvous_stuck", r"Expected (?P<wanted>\d+) threads to join the rendezvous, but "
          r"(?:only |not all (?:of them )?)?(?P<came>\d*)", "hang",
          "XLA waits for threads of one process that are to meet before a collective ({wanted} are "
          "due, one a card): some have not come, as their card is still busy or has failed, or "
          "because they run the program's operations in another order.",
          "See what the missing threads do (py-spy dump --native); update jaxlib; "
          "XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=false shows whether order is at "
          "fault.", confidence=0.7),
    cause("ranks_missing", r"submitted to be reduced, gathered or broadcasted by subset", "hang",
          "Horovod: some ranks have submitted tensors for which others have not, and wait. The "
          "lines below Missing ranks name who has not, and for what: these are late, have ended, "
          "or run another branch of the program.",
          "Look at the ranks under Missing ranks: their logs' ends, a different number of batches "
          "(hvd.join()), operations under a condition that only some ranks meet.", confidence=0.8),
    cause("bad_group", r"(?P<what>not in a group call|Blocking and nonblocking communicators|host "
          r"threads racing to launch|root with rank)", "machine",
          "The program's groups of calls do not hold together ({what}): ncclGroupStart and "
          "ncclGroupEnd are not paired, communicators of different kinds are in one group, or "
          "several threads use one card's communicators at once.",
          "Pair each start with an end, also where an error leaves the function; one thread a "
          "communicator, or a lock around groups.", confidence=0.8),
    cause("bad_type", r"FP8 reduction support|Data type supplied to user-created|type .* not "
          r"supported", "machine",
          "A type of numbers is not supported for this call: FP8 sums want Hopper or later, and an "
          "operation that was made for one type takes no other.",
          "Sum in bfloat16 or float16; make the operation (ncclRedOpCreatePreMulSum) for the type "
          "that the call uses."),
    cause("inner_check", r"Proxy append|proxy op chain|(?<!polling )for opId|nonexistent async|"
          r"Could not find pool of op|called when comm->\S*ready == 0|req->type=|Inactive op|"
          r"List loop|plan not aligned|schedule creation has bugs|mr \S+ inside cache", "machine",
          "A check inside NCCL failed, which should never happen: a bug of this version, memory "
          "that the program has overwritten, a communicator used after it was aborted, or "
          "versions of NCCL mixed in one process.",
          "See whether an error came before; take the newest NCCL; see that one libnccl.so is "
          "loaded (lsof -p PID | grep nccl).", confidence=0.6),
    cause("self_send", r"(?:send|recv|receive) (?:to|from) self.*without|Peer .*? invalid", "hang",
          "A rank sends to itself and does not receive it in the same group of calls, or names a "
          "rank that is not in the group.",
          "Put the send and the receive between ncclGroupStart and ncclGroupEnd "
          "(batch_isend_irecv in torch)."),
    cause("no_algorithm", r"No algorithm/protocol available for function (?P<call>\w+)", "machine",
          "The settings leave no algorithm for {call}: NCCL_ALGO or NCCL_PROTO name only such as "
          "cannot do it, or not on this machine.",
          _UNSET),
    cause("no_algorithm", r"no algorithm/protocol available", "machine",
          "The settings leave no algorithm for a call: NCCL_ALGO or NCCL_PROTO name only such as "
          "cannot do it, or not on this machine (CollNet and NVLS need their switches).", _UNSET),
    cause("versions_differ", r"Invalid config (?P<what>\w+) attribute value -2147483648", "machine",
          "The program leaves a setting ({what}) to NCCL and this library does not understand "
          "that: the program (torch) was built with another version of NCCL than the one that is "
          "loaded.",
          "See which libnccl.so is loaded (LD_LIBRARY_PATH, LD_PRELOAD, a second package "
          "nvidia-nccl) and take the one that torch was built with (torch.cuda.nccl.version())."),
    cause("bad_setting", r"(?P<name>NCCL_\w+)(?: |=)(?P<value>-?\d*)[^,;]*?(?:is (?:not valid|"
          r"too (?:low|big|small)|being ignored|greater|less|not a power)|has invalid value|"
          r"longer than|more than)|Unrecognized (?:element|prefix) token (?P<token>\S+)|must "
          r"have a prefix: (?P<prefix>\S+)|Unable to recognize (?P<said>\S+),|"
          r"(?P<group>NCCL_NET_FORCE_MERGE)", "machine",
          "A variable of the environment has a value that NCCL does not take, and is ignored or "
          "refused.",
          "See env | grep NCCL and /etc/nccl.conf against the user guide of this version.",
          confidence=0.75),
    cause("bad_setting", r"Invalid value (?P<value>\S+) for (?P<name>\w+)|Invalid config "
          r"(?P<what>.*)|unrecogni[sz]ed .*(?P<said>NCCL_\w+)", "machine",
          "A setting has a value that NCCL does not take.",
          "See env | grep NCCL, /etc/nccl.conf and the program's ncclConfig_t, against the user "
          "guide of this version."),
    cause("versions_differ", r"undefined symbol:? ?(?P<symbol>p?nccl\w+)", "machine",
          "A library wants {symbol}, and the libnccl.so that was loaded does not have it: it is of "
          "another version, as a rule older, than the one that the library was built with.",
          "See which libnccl.so.2 is found first (LD_LIBRARY_PATH, LD_PRELOAD, ldd "
          "libtorch_cuda.so), and take the package nvidia-nccl that torch asks for."),
    cause("versions_differ", r"(?:NCCL|(?<!driver/)library) version.*?(?:mismatch|differ)|"
          r"mismatched NCCL version|mixing .*version", "machine",
          "Processes, or a program and its plugin, run different versions of NCCL.",
          "Take one library everywhere: print torch.cuda.nccl.version() in every process, and "
          "look for a second libnccl.so in LD_LIBRARY_PATH and LD_PRELOAD."),
    cause("no_plugin", r"(?:NET|TUNER|PROFILER|ENV)/Plugin ?: ?(?:Failed to find|No plugin|Could "
          r"not|Plugin load .*No such file)|Unable to load libnccl-net", "machine",
          "NCCL looks for network plugins and for each version of their interface that it knows: "
          "that one is not found is no fault, it takes the next or its own network.",
          "Nothing, unless a plugin (EFA, SHARP) was to be used: then see Using network further "
          "down.", fault=False, confidence=0.8),
)  # fmt: skip
