"""Causes in CUDA, HIP and the driver, by the texts of their errors; and in ways between cards.

Sources of the texts: `cudaGetErrorString` as the CUDA Runtime API's "Error Handling" and
"Data types used by CUDA Runtime" (cudaError) list them; hip_runtime_api.h for HIP.
"""

from __future__ import annotations

from typing import Final

from .cause import cause

_FAILED: Final = r"(?:CUDA|HIP)(?: driver| runtime)? (?:failure|error).*?"

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
    cause("nvls_full", r"all the NVSwitch multicast (?P<what>.{0,40}) are used", "machine",
          "Every place for sums in the NVSwitches (NVLS, multicast) is taken, so that NCCL gets "
          "none for a further communicator: an out of memory that stands beside it means these "
          "places, and not the card's memory.",
          "NCCL_NVLS_ENABLE=0 does without; else make fewer communicators that use NVLS, destroy "
          "those that are no longer needed, and end jobs that still hold cards."),
    cause("nvls_failed", r"NVLink SHARP|cuMulticast|nvls\.cc\S* .*(?:CUDA|Cuda) (?:failure|error)",
          "machine",
          "Setting up the sums in the NVSwitch (NVLS) failed: NCCL believes that they are to be "
          "had, and the fabric manager or the driver refuses the memory for them. The fabric "
          "manager was restarted or is of another version, the container or virtual machine has no "
          "right to it, other jobs hold all groups, or (out of memory) the card is full.",
          "NCCL_NVLS_ENABLE=0 does without (all_reduce inside a node loses a quarter of its "
          "busbw); to mend it see that nvidia-fabricmanager runs and is of the driver's version, "
          "restart it and reset the cards, and end jobs that still hold cards.", confidence=0.85),
    cause("out_of_memory", r"out of memory|Allocation failed", "hang",
          "The card's memory is full: NCCL could not take what it needs for its buffers. What the "
          "program and torch's cache hold leaves too little; lost connections of other ranks "
          "follow from it.",
          "Leave room: a smaller batch, PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, fewer "
          "communicators, NCCL_MAX_NCHANNELS or NCCL_BUFFSIZE smaller; see that no other process "
          "uses the card (nvidia-smi)."),
    cause("out_of_memory", r"Failed to CUDA (?:calloc|malloc|host alloc)(?: async)? "
          r"(?P<size>\d+)", "hang",
          "NCCL could not take {size} bytes for its buffers: as a rule the card's memory is full. "
          "If another error of CUDA's stands before it, that one is the cause.",
          "See the line before; leave room on the card (a smaller batch, no other process: "
          "nvidia-smi).", confidence=0.7),
    cause("no_cuda", r"CUDA unknown error", "machine",
          "CUDA does not start in this process (unknown error): the module nvidia_uvm is not "
          "loaded or its device file is missing (after a sleep of the machine, in a container), "
          "the fabric manager does not run, or CUDA_VISIBLE_DEVICES was changed after CUDA was "
          "first used.",
          "nvidia-smi and deviceQuery in the same place; modprobe nvidia_uvm (rmmod it first "
          "after a sleep), see /dev/nvidia-uvm in the container, restart the host.",
          confidence=0.8),
    cause("out_of_memory", r"CUBLAS_STATUS_(?P<what>ALLOC_FAILED|NOT_INITIALIZED)", "hang",
          "cuBLAS could not start on a card (CUBLAS_STATUS_{what}): as a rule the card's memory is "
          "full. Other ranks then wait for this one.",
          "Leave room: a smaller batch, no other process on the card (nvidia-smi); if memory is "
          "free, look for an earlier error of this process with CUDA_LAUNCH_BLOCKING=1.",
          confidence=0.75),
    cause("no_cuda", r"Cannot re-initialize CUDA in forked", "machine",
          "A process was forked after its parent had used CUDA: in the child CUDA cannot start.",
          "Start processes by spawn (torch.multiprocessing.set_start_method('spawn')), or touch "
          "CUDA only in the children: no torch.cuda call, also not in imports, before the fork."),
    cause("no_cuda", r"Failed to find (?:CUDA|ROCm runtime) library (?P<library>\S+)", "machine",
          "NCCL does not find {library}, the library of the driver: the container was started "
          "without the cards, or it lies in a folder that is not searched, as under WSL "
          "(/usr/lib/wsl/lib).",
          "Start the container with --gpus all; put the folder of libcuda.so.1 into "
          "LD_LIBRARY_PATH, or name the file in NCCL_CUDA_PATH."),
    cause("stub_driver", r"CUDA driver is a stub library", "machine",
          "The process has loaded the stub of libcuda.so, which is only for linking, instead of "
          "the driver's.",
          "Take /usr/local/cuda/lib64/stubs out of LD_LIBRARY_PATH; start the container with "
          "--gpus all, so that the driver's libcuda.so.1 is there."),
    cause("no_fabric_manager", r"system not yet initialized", "machine",
          "CUDA error 802, system not yet initialized: on a machine with NVSwitches CUDA waits for "
          "the fabric manager, and it does not run, is of another version than the driver, or has "
          "failed to bring a switch up.",
          "systemctl status nvidia-fabricmanager; install the version of the driver, exactly, and "
          "start it; nvidia-smi -q (Fabric: Completed). In a virtual machine it runs on the host."),
    cause("no_cuda", r"Failed to (?:load CUDA driver|open lib(?:cuda|nvidia-ml))|load CUDA "
          r"missing symbol", "machine",
          "NCCL cannot load the driver's library (libcuda.so.1 or libnvidia-ml.so.1): the "
          "container was started without the cards, or the driver is missing or too old.",
          "nvidia-smi in the same place; start the container with --gpus all; update the driver."),
    cause("no_cuda", _FAILED + r"(?P<what>initialization error|system not yet initialized|"
          r"no CUDA-capable device|no ROCm-capable device)", "machine",
          "CUDA itself does not start in this process ({what}): driver, fabric manager or "
          "container are at fault, or the process was forked after CUDA was used. The network has "
          "no part in it.",
          "Run a small program of CUDA in the same place; on machines with NVSwitch see that "
          "nvidia-fabricmanager runs and is of the driver's version; use spawn, not fork."),
    cause("driver_unfit", r"(?P<what>Insufficient driver|older than the minimum version|NCCL "
          r"cannot be captured in a graph|driver version is insufficient|system has unsupported|"
          r"forward compatibility|not supported in the installed CUDA driver|requires "
          r".{0,40}driver|driver/library version mismatch)", "machine",
          "The driver does not fit the library ({what}): it is older than the CUDA that NCCL or "
          "the program was built with, was updated without a restart, or a container brings a "
          "libcuda of its own.",
          "nvidia-smi shows the newest CUDA that the driver takes: update the driver (and "
          "restart), or take NCCL and torch of an older CUDA; take cuda-compat out of the "
          "image's LD_LIBRARY_PATH."),
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
    cause("launch_refused", r"(?P<what>too many resources requested|invalid configuration "
          r"argument|too many blocks in cooperative launch|launch error has occurred|include one "
          r"or more)", "machine",
          "A kernel of NCCL's cannot be started on this card ({what}): this library was built "
          "for other cards or with a compiler's options that ask for too much, or the card is "
          "shared (MPS, MIG) and has too few units left.",
          "Take a library built for this card (torch's own or NVIDIA's package); "
          "NCCL_MAX_NCHANNELS or NCCL_MAX_CTAS smaller; end other work on the card.",
          confidence=0.7),
    cause("rocm_fails", r"(?P<what>hsa_init|ROCr missing symbol|hsa_system_get_info|"
          r"HSA_STATUS_\w+|HSA failure.*|rsmi_\w+|amdsmi_\w+|/dev/kfd|rocm.?smi\S* .*(?:fail|"
          r"error).*)", "machine",
          "ROCm's own libraries refuse ({what}): the process may not use the cards (/dev/kfd, "
          "/dev/dri), a card has failed, or ROCm in the container does not fit the kernel's "
          "driver.",
          "rocminfo and rocm-smi in the same place; run containers with --device=/dev/kfd "
          "--device=/dev/dri --group-add video --security-opt seccomp=unconfined; dmesg | grep "
          "amdgpu.", confidence=0.75),
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
    cause("helper_without_card", r"Failed to (?:set|create) CUDA (?:context|device)", "machine",
          "A helper thread of NCCL cannot use its card: the card or its context had failed before, "
          "its memory is full, or it is in exclusive mode.",
          "Look for the first CUDA error of this process, Xid errors in dmesg, and nvidia-smi "
          "(memory, compute mode).", confidence=0.65),
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
          "A kernel has failed on a card ({what}), and NCCL only meets it at its next call. It may "
          "be one of the program's own (an index beyond its tensor), a buffer that was freed while "
          "a collective used it, or the card or its links (then dmesg has an Xid). Other ranks "
          "wait for this one.",
          "Run that rank with CUDA_LAUNCH_BLOCKING=1 (or compute-sanitizer): the first error names "
          "the kernel. See Xid errors in dmesg, and that tensors live until the collective is "
          "done.", confidence=0.8),
    cause("card_failed", r"HW Exception by GPU (?P<what>[\w-]{1,40}).{0,80}?reason ?: ?"
          r"(?P<said>GPU Hang|[A-Z][\w ]{2,40})", "machine",
          "The driver has found that card {what} no longer answers ({said}) and ends the processes "
          "on it: their ranks die, and all others wait for them until their time limit.",
          "dmesg | grep amdgpu on that host (ring timeout, RAS, reset), amd-smi for its state and "
          "temperature; reset the card or restart the host. If it comes on any card at the same "
          "step, a kernel is the cause: AMD_SERIALIZE_KERNEL=3; try another ROCm version.",
          confidence=0.85),
    cause("program_failed", r"Memory access fault by GPU(?P<what>[^(]*)", "machine",
          "A kernel has touched memory that is not its own (memory access fault by GPU {what}): "
          "as a rule one of the program's, or a buffer that was freed while others used it. All "
          "other ranks wait for this one.",
          "Run with AMD_SERIALIZE_KERNEL=3 (HIP_LAUNCH_BLOCKING=1) to find the kernel; with more "
          "cards try NCCL_P2P_DISABLE=1 and iommu=pt; see dmesg | grep amdgpu.", confidence=0.75),
    cause("no_peer_access", r"shm\.cc\S* .*(?P<what>peer access is not supported[\w ]*)", "machine",
          "One card cannot reach another's memory ({what}), and NCCL meets it where ranks exchange "
          "through the host's memory (shm.cc), not in P2P: as a rule cuMem takes the host's "
          "buffers, and the driver, a virtual machine or the PCIe switches do not allow it "
          "between these cards.",
          "NCCL_CUMEM_HOST_ENABLE=0 takes the host's buffers in /dev/shm instead, NCCL_SHM_DISABLE="
          "1 does without them; NCCL_P2P_DISABLE=1 alone does not help. See nvidia-smi topo -p2p "
          "r, and another version of NCCL.", confidence=0.8),
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
          "CUDA refuses a call of NCCL's ({what}). Where the source file in the line is of memory "
          "(alloc.h, nvls.cc, p2p.cc, shm.cc), it maps memory of other cards and may not: a "
          "process sees only its own card, or P2P, NVLS or cuMem does not work in this container, "
          "virtual machine or driver. Where it is of starting kernels (enqueue.cc), a stream or "
          "context is of another card or gone, or an error of this process came before.",
          "Look for an earlier error of this process; if there is none, try NCCL_NVLS_ENABLE=0, "
          "NCCL_P2P_DISABLE=1 and NCCL_CUMEM_ENABLE=0 one by one, and see that driver and fabric "
          "manager are of one version.", confidence=0.6),
    cause("card_failed", r"(?:an illegal memory access|(?:CUDA|HIP)(?: driver| runtime)? "
          r"(?:error|failure)|(?:cuda|hip)Error|CUDA_ERROR_)"
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
ONE_PROCESS: Final = cause(
    "no_peer_access", r"(?P<what>(?:hip|cuda)Ipc\w+.*|p2p\.cc\S* .*(?:Cuda|HIP) failure.*)",
    "machine",
    "A card's memory cannot be handed on to another ({what}), though NCCL had chosen that way "
    "(P2P), and all ranks are of one process, which sees their cards: driver, kernel or IOMMU do "
    "not allow P2P between these cards.",
    "Try NCCL_P2P_DISABLE=1: if that works, this is it. Bring the driver up to date (for AMD that "
    "of ROCm instead of the kernel's own), boot with iommu=pt (AMD), and see nvidia-smi topo -p2p "
    "r or rocm-smi --showtopo.", confidence=0.8,
)  # fmt: skip
"""Where no process lacks a card of another's."""
