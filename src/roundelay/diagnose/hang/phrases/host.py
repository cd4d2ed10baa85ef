"""What programs say where a host has too little of something: memory, files, threads, disk."""

from typing import Final

from .phrase import phrase

HOST: Final = (
    phrase(
        "no_shared_memory",
        r"insufficient shared memory|out of shared memory|"
        r"unable to (?:mmap|write to file|open shared memory object|allocate shared memory)"
        r".{0,80}/torch_|No space left on device.{0,80}/dev/shm|/dev/shm.{0,80}No space left",
        "machine",
        "/dev/shm is too small for what data workers and ranks pass through it (containers have "
        "64 MB unless told).",
        "docker run --shm-size=16g or --ipc=host; in Kubernetes an emptyDir with medium: Memory at "
        "/dev/shm; or fewer workers (num_workers).",
    ),
    phrase(
        "killed", r"DataLoader worker \(pid\(?s?\)? ?(?P<pid>[\d, ]{1,200})\) is killed by signal: "
                  r"Killed", "hang",
        "A data worker of rank {rank} (process {pid}) was killed: as a rule the host or the "
        "container had no memory left.",
        "Fewer workers (num_workers), less read ahead (prefetch_factor), data in arrays rather "
        "than lists of Python objects; see dmesg and the limits of cgroup and scheduler.",
        confidence=0.85,
    ),
    phrase(
        "crashed", r"DataLoader worker \(pid\(?s?\)? ?(?P<pid>[\d, ]{1,200})\) is killed by "
                   r"signal: (?P<said>Segmentation fault|Aborted|Illegal instruction)", "hang",
        "A data worker of rank {rank} (process {pid}) crashed: {said}.",
        "num_workers=0 shows the line that crashes; opencv and tokenizers are known for it after "
        "a fork (multiprocessing_context=\"spawn\").",
    ),
    phrase(
        "worker_died", r"DataLoader worker \(pid\(?s?\)? ?(?P<pid>[\d, ]{1,200})\) exited "
                       r"unexpectedly", "hang",
        "A data worker (process {pid}) has ended; why, its own error tells, which often stands "
        "above: killed for memory, /dev/shm full, or an exception.",
        "num_workers=0 shows the error itself; see dmesg for killed processes.", confidence=0.75,
    ),
    phrase(
        "no_files_left", r"received 0 items of ancdata|\bToo many open files\b", "machine",
        "The process has no file descriptor left; data workers take one for each tensor that they "
        "pass on.",
        "ulimit -n 65536 (LimitNOFILE, --ulimit nofile), or "
        "torch.multiprocessing.set_sharing_strategy(\"file_system\").",
    ),
    phrase(
        "no_threads_left",
        r"can't start new thread|pthread_create failed|fork: retry: Resource temporarily "
        r"unavailable|fork: Cannot allocate memory", "machine",
        "The host or container allows no further process or thread.",
        "ulimit -u, the cgroup's pids.max (docker --pids-limit); OMP_NUM_THREADS and fewer data "
        "workers.",
    ),
    phrase(
        "no_host_memory", r"std::bad_alloc|DefaultCPUAllocator: (?:can't|not enough memory)|"
                          r"^MemoryError|_ArrayMemoryError|Cannot allocate memory",
        "machine",
        "The host (or the container) had no memory left for what the program asked for.",
        "free -g and the limits of cgroup and scheduler; fewer data workers, fewer copies of model "
        "and data on a host, loading in parts (mmap, low_cpu_mem_usage).",
    ),
    phrase(
        "crashed", r"Fatal Python error: (?P<said>\w+): .{0,60}must be called with", "hang",
        "A process of Python has ended itself: {said} was called without the lock of the "
        "interpreter (GIL), by native code of an extension or a thread of it. The others lose "
        "their connections to it.",
        "Run that process with PYTHONFAULTHANDLER=1 and read its stacks (or gdb's, of the core): "
        "the extension that stands on top is at fault; take a version of it that is built for this "
        "Python and torch.",
        confidence=0.85,
    ),
    phrase(
        "disk_full", r"No space left on device|Disk quota exceeded", "machine",
        "A disk or a quota is full where something is written (a checkpoint, a cache, /tmp).",
        "df -h and df -i, quota; write elsewhere (TMPDIR, the checkpoints' folder), and remove "
        "what was cut off: the last checkpoint may be broken.",
    ),
)  # fmt: skip
