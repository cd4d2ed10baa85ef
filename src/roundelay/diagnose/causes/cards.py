"""Causes in CUDA, HIP and the driver, by the texts of their errors; and in ways between cards.

Sources of the texts: `cudaGetErrorString` as the CUDA Runtime API's "Error Handling" and
"Data types used by CUDA Runtime" (cudaError) list them; hip_runtime_api.h for HIP.
"""

from __future__ import annotations

from typing import Final

from .cause import cause

_FAILED: Final = r"(?:CUDA|HIP) (?:failure|error).*?"

CARDS: Final = (
    cause("captured", r"(?:operation (?:not permitted|failed due to|would)|capture).*captur|"
          r"stream is capturing", "machine",
          "The call came while a CUDA graph was recorded, which does not allow it: the first "
          "collective of a communicator sets connections up, or another thread used the card "
          "meanwhile.",
          "Run each collective once before the recording (a warm-up), and record with "
          "capture_error_mode='thread_local'."),
    cause("buffer_not_registered", r"failed to (?:\w+ )?register|register/\S* .*failure", "machine",
          "A buffer of the program cannot be registered with NCCL (for NVLS, P2P or the network): "
          "as a rule its memory was not taken with ncclMemAlloc, or it is of CUDA's virtual memory "
          "in several parts, which this version cannot look up. Where NCCL goes on it copies "
          "through buffers of its own.",
          "Take such buffers with ncclMemAlloc (in torch a MemPool of it), or a newer NCCL; "
          "NCCL_LOCAL_REGISTER=0 and NCCL_GRAPH_REGISTER=0 do without registration.",
          confidence=0.8),
    cause("nvls_failed", r"NVLink SHARP|cuMulticast|nvls\.cc\S* .*(?:CUDA|Cuda) (?:failure|error)",
          "machine",
          "Setting up the sums in the NVSwitch (NVLS) failed: NCCL believes that they are to be "
          "had, and the fabric manager or the driver refuses the memory for them. The fabric "
          "manager was restarted or is of another version, the container or virtual machine has no "
          "right to it, or other jobs hold all groups.",
          "NCCL_NVLS_ENABLE=0 does without (all_reduce inside a node loses a quarter of its "
          "busbw); to mend it see that nvidia-fabricmanager runs and is of the driver's version, "
          "restart it and reset the cards, and end jobs that still hold cards.", confidence=0.85),
    cause("out_of_memory", r"out of memory|Allocation failed|Failed to CUDA (?:calloc|malloc|host "
          r"alloc) (?P<size>\d+)", "hang",
          "The card's memory is full: NCCL could not take what it needs for its buffers. What the "
          "program and torch's cache hold leaves too little; lost connections of other ranks "
          "follow from it.",
          "Leave room: a smaller batch, PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, fewer "
          "communicators, NCCL_MAX_NCHANNELS or NCCL_BUFFSIZE smaller; see that no other process "
          "uses the card (nvidia-smi)."),
    cause("no_cuda", r"Failed to find (?:CUDA|ROCm runtime) library (?P<library>\S+)", "machine",
          "NCCL does not find {library}, the library of the driver: the container was started "
          "without the cards, or it lies in a folder that is not searched, as under WSL "
          "(/usr/lib/wsl/lib).",
          "Start the container with --gpus all; put the folder of libcuda.so.1 into "
          "LD_LIBRARY_PATH, or name the file in NCCL_CUDA_PATH."),
    cause("no_cuda", _FAILED + r"(?P<what>initialization error|system not yet initialized|"
          r"no CUDA-capable device|no ROCm-capable device)", "machine",
          "CUDA itself does not start in this process ({what}): driver, fabric manager or "
          "container are at fault, or the process was forked after CUDA was used. The network has "
          "no part in it.",
          "Run a small program of CUDA in the same place; on machines with NVSwitch see that "
          "nvidia-fabricmanager runs and is of the driver's version; use spawn, not fork."),
    cause("driver_unfit", r"(?P<what>driver version is insufficient|system has unsupported|"
          r"forward compatibility|not supported in the installed CUDA driver|"
          r"requires .{0,40}driver|driver/library version mismatch)", "machine",
          "The driver does not fit the library ({what}): it is older than the CUDA that NCCL or "
          "the program was built with, was updated without a restart, or a container brings a "
          "libcuda of its own.",
          "nvidia-smi shows the newest CUDA that the driver takes: update the driver (and "
          "restart), or take NCCL and torch of an older CUDA; take cuda-compat out of the image's "
          "LD_LIBRARY_PATH."),
    cause("nvml_fails", r"nvml\w*(?:\(\))? (?:failed|returned) ?:? ?(?P<what>.*)", "machine",
          "NVML, the driver's library for its state, refuses a question of NCCL's: {what}. The "
          "driver was updated under way, a card has fallen off the bus, or the container sees "
          "other cards than CUDA does.",
          "Run nvidia-smi in the same place; restart the host or container after an update; look "
          "for Xid 79 in dmesg; start the container anew with --gpus all.", confidence=0.8),
    cause("no_kernel", r"(?P<what>named symbol not found|no kernel image is available|"
          r"invalid device function|invalid (?:device )?kernel (?:image|file)|"
          r"unsupported toolchain|PTX JIT)", "machine",
          "NCCL's kernels cannot be loaded on this card ({what}): this library was not built for "
          "the card, or for a CUDA or ROCm that the driver does not take; or the container's "
          "libcuda is not the host's. The network has no part in it.",
          "Take an NCCL (RCCL) that is built for this card and for the CUDA of the driver "
          "(nvidia-smi; the version line of the log says +cudaX.Y), bring the driver up to date, "
          "and see that only one libnccl.so and one libcuda.so are found (ldd).", confidence=0.85),
    cause("no_such_card", r"(?P<what>invalid device ordinal|invalid device context)", "machine",
          "The process asks for a card that it does not see ({what}): there are more ranks than "
          "cards, the number of the card is counted over all hosts, or CUDA_VISIBLE_DEVICES hides "
          "the card from this process and not from its neighbour.",
          "torch.cuda.set_device(int(os.environ['LOCAL_RANK'])); torch.cuda.device_count() in "
          "every process; let all processes of a host see all its cards."),
    cause("card_busy", r"(?P<what>busy or unavailable|devices are busy|exclusive|"
          r"MPS (?:client|server))", "machine",
          "A card may not be used by this process ({what}): another process has it and it is in "
          "exclusive mode, or MPS or MIG is in the way.",
          "nvidia-smi shows processes and the compute mode; nvidia-smi -c 0 (default), end what is "
          "left of earlier runs."),
    cause("shutting_down", r"driver shutting down|context is destroyed", "hang",
          "The process was already ending when NCCL called CUDA: something before made it end.",
          "Look for the first error of this process, above; destroy the process group before the "
          "program ends.", confidence=0.6),
    cause("card_broken", _FAILED + r"(?P<what>uncorrectable (?:ECC|NVLink)[\w ]*|hardware stack "
          r"error|launch timed out[\w ]*|unknown error|no longer available|contained)|"
          r"(?P<said>uncorrectable ECC|fallen off the bus)", "machine",
          "A card or its link has failed: the driver reports a fault of the hardware or is no "
          "longer in order. All other ranks wait for this one.",
          "dmesg | grep -i xid on that host (48, 63, 64, 94, 95 memory; 74 NVLink; 79 off the "
          "bus); reset the card or restart the host, and take it out if it comes again."),
    cause("program_failed", _FAILED + r"(?P<what>illegal memory access|unspecified launch failure|"
          r"misaligned address|illegal instruction|device-side assert|invalid program counter|"
          r"launch out of resources|memory access fault)", "machine",
          "A kernel has failed on a card ({what}): as a rule one of the program's own, as an index "
          "beyond its tensor; NCCL only meets it. Seldom it is the card, or a buffer that was "
          "freed while a collective used it. All other ranks wait for this one.",
          "Run that rank with CUDA_LAUNCH_BLOCKING=1 (or compute-sanitizer): the first error names "
          "the kernel. See Xid errors in dmesg, and that tensors live until the collective is "
          "done.", confidence=0.8),
    cause("no_peer_access", r"(?P<what>failed to open CUDA IPC handle.*|peer access is not "
          r"supported|peer mapping resources exhausted)", "machine",
          "One card cannot reach another's memory ({what}), though NCCL had chosen that way: each "
          "process sees other cards than it thinks, or the driver does not allow P2P between them.",
          "Try NCCL_P2P_DISABLE=1: if that works, P2P is at fault. See nvidia-smi topo -p2p r, "
          "that CUDA_VISIBLE_DEVICES lets every process see all cards of the job, and that "
          "containers share the IPC namespace."),
    cause("no_peer_access", r"(?P<what>(?:hip|cuda)Ipc\w+.*|(?:p2p|transport)\.cc\S* .*(?:Cuda|"
          r"HIP) failure.*|(?:Cuda|HIP) failure.*(?:invalid device pointer|mapping of buffer "
          r"object).*)",
          "machine",
          "Passing a card's memory from one process to another failed ({what}), though NCCL had "
          "chosen that way (P2P by IPC): each process sees only its own card or containers do not "
          "share the IPC namespace, or driver or IOMMU do not allow it.",
          "Try NCCL_P2P_DISABLE=1: if that works, this is it. Let every process see all cards of "
          "the host (no CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES a rank, no container a card), "
          "run containers with --ipc=host, boot with iommu=pt (AMD), and bring the driver up to "
          "date.", confidence=0.8),
    cause("not_to_be_had", _FAILED + r"(?P<what>operation not supported|operation not permitted|"
          r"OS call failed[\w ]*|not supported on this OS)", "machine",
          "The driver does not offer here what NCCL asked it for ({what}): virtual cards (vGPU, "
          "MIG), WSL, Jetson and containers with few rights lack ways to share memory that NCCL "
          "takes for granted.",
          "Do without these ways one by one: NCCL_CUMEM_ENABLE=0, NCCL_NVLS_ENABLE=0, "
          "NCCL_P2P_DISABLE=1, NCCL_CUMEM_HOST_ENABLE=0; the line before, with NCCL_DEBUG=INFO, "
          "says which it was.", confidence=0.7),
    cause("call_refused", _FAILED + r"(?P<what>invalid argument|invalid resource handle|"
          r"invalid (?:device )?pointer|cannot be performed in the present state)", "machine",
          "CUDA refuses a call of NCCL's ({what}). As a rule it maps memory of other cards and may "
          "not: a process sees only its own card, or P2P, NVLS or shared memory by cuMem does not "
          "work in this container, virtual machine or driver.",
          "With NCCL_DEBUG=INFO the source file in the line says which (nvls.cc, p2p.cc, shm.cc); "
          "try NCCL_NVLS_ENABLE=0, NCCL_P2P_DISABLE=1 and NCCL_CUMEM_ENABLE=0 one by one; see that "
          "driver and fabric manager are of one version.", confidence=0.65),
    cause("card_failed", r"(?:an illegal memory access|CUDA error|Cuda failure|HIP failure)"
          r"(?P<what>.*)", "machine",
          "A card's call failed: {what}. Other ranks then wait for this one.",
          "Look at the first such line of all ranks, at Xid errors in dmesg, and run that rank "
          "with CUDA_LAUNCH_BLOCKING=1 if the program is at fault.", confidence=0.7),
    cause("p2p_disabled", r"Could not enable P2P between dev (?P<one>\d+).*?dev (?P<other>\d+)",
          "machine",
          "P2P could not be turned on between cards, such as {one} and {other}: what they exchange "
          "goes through the host's memory, at a part of the rate.",
          "See nvidia-smi topo -p2p r; a driver without P2P for these cards (GeForce), ACS or the "
          "IOMMU, and virtual machines do that.", confidence=0.8),
)  # fmt: skip
