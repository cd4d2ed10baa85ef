"""Causes in the host's memory and limits: /dev/shm, descriptors, threads; a card's memory."""

from __future__ import annotations

from typing import Final

from .cause import cause

_ROOM: Final = (
    "Give the container more: --shm-size=8g or --ipc=host, in Kubernetes an emptyDir with medium "
    "Memory mounted at /dev/shm; remove what is left of earlier runs."
)

MEMORY: Final = (
    cause("window_space", r"No suitable space found to accommodate size=(?P<needed>\w+) within "
          r"limit=(?P<has>\w+)", "machine",
          "A window for symmetric memory does not fit: of the addresses that NCCL keeps for "
          "windows ({has_bytes}) no free stretch of {needed_bytes} is left. Windows that were "
          "registered before hold them; memory itself is not short by this.",
          "Register each buffer once, and deregister windows that are done with; NCCL_WIN_STRIDE "
          "larger keeps more addresses; a newer NCCL."),
    cause("segment_unnamed", r"(?:attaching to|open) .*?/dev/shm/nccl-(?:[\s(:,]|[^\x00-\x7f]|$)",
          "machine",
          "A segment of shared memory without a name was to be opened: one process allocates the "
          "host's memory by CUDA (cuMem) and the other takes its handle for a file. So it is where "
          "the two do not agree that cuMem may be used for the host's memory: a NUMA node without "
          "memory or that the container may not use, or different versions or settings.",
          "Set NCCL_CUMEM_HOST_ENABLE=0 for all ranks (or NCCL_CUMEM_ENABLE=0 in versions before "
          "2.23); see numactl -H for nodes without memory, and --cap-add=SYS_NICE for containers.",
          confidence=0.75),
    cause("segment_gone", r"(?:attaching to|open) .*?(?P<segment>/dev/shm/\S+).*?No such file",
          "machine",
          "A segment of shared memory ({segment}) is not there: the processes do not see the same "
          "/dev/shm (each in a container of its own), or the one that made it has ended.",
          "Give containers of one host the same one (--ipc=host, or a volume at /dev/shm), see "
          "whether another rank failed first, and try a newer NCCL; NCCL_SHM_DISABLE=1 shows "
          "whether that is it."),
    cause("no_shared_memory", r"/dev/shm.*?(?:to|size) (?P<bytes>\d+)\b.*No space left|"
          r"shared memory segment.*?size (?P<needed>\d+)\)$", "machine",
          "/dev/shm is full: a segment of {needed_bytes} did not fit. A container has 64 MiB there "
          "unless it is given more, and each pair of channels takes one.", _ROOM),
    cause("no_shared_memory", r"(?:posix_fallocate|/dev/shm|shared memory).*No space left|"
          r"failed to extend /dev/shm|failed to create shared memory file|Bus error", "machine",
          "/dev/shm is full. A container has 64 MiB there unless it is given more, and each pair "
          "of channels takes a segment.", _ROOM),
    cause("segment_refused", r"(?:/dev/shm|shm_open).*?(?P<what>Permission denied|"
          r"Operation not permitted|File exists)", "machine",
          "A segment of shared memory cannot be made or opened ({what}): processes of one host run "
          "as different users, or a segment of an earlier run of somebody else lies there.",
          "Run all ranks as one user, remove /dev/shm/nccl-* of earlier runs, and see the rights "
          "of /dev/shm (mode 1777)."),
    cause("no_local_socket", r"(?:UDS:|ncclIpcSocket|ipcsocket).*?(?:failed|error) ?:? ?"
          r"(?P<what>[A-Z][\w ]+)", "machine",
          "Processes of one host cannot pass memory handles to one another over a local socket "
          "({what}): they are in different containers or network namespaces, or the one at the "
          "other end has ended.",
          "Put the ranks of a host into one container, or give all the host's network namespace "
          "(--network host); NCCL_CUMEM_ENABLE=0 does without these sockets. See whether another "
          "rank failed first.", confidence=0.75),
    cause("handle_refused", r"(?:(?:im|ex)port fabric handle|cuMem(?:Import|Export)\w+Handle|"
          r"shareable (?:buffer|handle)|pidfd_\w+)", "machine",
          "One process cannot map the memory of another process's card through a handle: the "
          "containers of a host see different cards or may not exchange handles, or between "
          "hosts (NVLink over several) IMEX does not run or its channel is missing.",
          "Let every process see all cards of the host; on several hosts see nvidia-imex-ctl -N "
          "and /dev/nvidia-caps-imex-channels in the container; NCCL_CUMEM_ENABLE=0 (and "
          "NCCL_MNNVL_ENABLE=0) do without.", confidence=0.75),
    cause("no_memory_left", r"^(?!.*(?:ibv_|NET/IB|HCA)).*(?:Cannot allocate memory|Failed to "
          r"malloc|bad_alloc|Unable to allocate shared memory)", "machine",
          "The host (or the container's limit) has no memory left for what NCCL asks of it.",
          "free -g, docker stats, dmesg (oom); raise the container's memory limit and /dev/shm; "
          "fewer data workers; ulimit -v and vm.max_map_count.", confidence=0.75),
    cause("no_files_left", r"Too many open files", "machine",
          "The process has no file descriptor left: each connection takes some.",
          "ulimit -n 1048576 for the job (limits.conf, the container, Slurm's prolog)."),
    cause("no_threads_left", r"(?:pthread_create|create thread|(?<!Accept failed )Resource "
          r"temporarily unavailable)", "machine",
          "The host or container allows no further threads or processes.",
          "Raise ulimit -u and the pids limit of the container (--pids-limit=-1)."),
)  # fmt: skip
