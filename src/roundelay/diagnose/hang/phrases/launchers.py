"""What launchers say: torchrun, Open MPI, MPICH and their like."""

from typing import Final

from .phrase import phrase

LAUNCHERS: Final = (
    phrase(
        "hung_up", r"SignalException: Process \d{1,9} got signal: (?:1\b|SIGHUP)|"
                   r"Received (?:1|Signals\.SIGHUP)\b.{0,20}death signal", "hang",
        "The launcher was ended because its terminal went away (signal 1, SIGHUP): the session "
        "was closed or lost.",
        "Start it in tmux or screen, with nohup or setsid, or as a job of the scheduler.",
    ),
    phrase(
        "told_to_stop", r"SignalException: Process \d{1,9} got signal: (?:15|SIGTERM)|"
                        r"Received (?:15|Signals\.SIGTERM)\b.{0,20}death signal", "hang",
        "The launcher was told from outside to stop (signal 15, SIGTERM): by the scheduler (time "
        "limit, preemption, another node of the job that failed), by the container's end, or by "
        "hand. It was no error of this process.",
        "Ask the scheduler why (sacct -j JOB, kubectl describe pod), and read the logs of the "
        "other nodes.",
    ),
    phrase(
        "interrupted", r"SignalException: Process \d{1,9} got signal: (?:2\b|SIGINT)|"
                       r"Received (?:2|Signals\.SIGINT)\b.{0,20}death signal|^KeyboardInterrupt",
        "hang",
        "It was interrupted by hand (Ctrl-C, signal 2). Where it stood then tells what it waited "
        "for, not what is wrong.",
        "For a hang, see where every rank stands (py-spy dump --pid PID) before it is ended.",
        fault=False,
    ),
    phrase(
        "program_ended", r"MPI_ABORT was invoked on rank (?P<rank>\d{1,7})", "hang",
        "Rank {rank} ended the job itself (MPI_Abort, code {code}): its own error stands above.",
        "Read what that rank wrote before.", below=r"error ?code:? (?P<code>-?\d{1,12})",
    ),
    phrase(
        "program_ended",
        r"application called MPI_Abort\([^)\n]{0,80}?(?P<code>-?\d{1,12})\) - process "
        r"(?P<rank>\d{1,7})", "hang",
        "Rank {rank} ended the job itself (MPI_Abort, code {code}): its own error stands above.",
        "Read what that rank wrote before.",
    ),
    phrase(
        "no_slots", r"not enough slots available in the system to satisfy the (?P<count>\d{1,9})",
        "hang",
        "mpirun is to start {count} processes, and its list of hosts has fewer slots.",
        "Give each host its slots (hostfile: node1 slots=8, or -H node1:8,node2:8), ask the "
        "scheduler for as many tasks, or --oversubscribe (for a test).",
    ),
    phrase(
        "no_program",
        r"was unable to find the specified executable file|as it could not access\b"
        r".{0,40}executable|(?:execvp|execve).{0,60}No such file or directory", "hang",
        "A host does not find the program that is to be started.",
        "Give its whole path, on a file system that all hosts share, and the same environment.",
    ),
    phrase(
        "not_started",
        r"(?:ORTE|PRTE|PRRTE) was unable to reliably start one or more daemons|"
        r"Host key verification failed|Permission denied \(publickey|"
        r"ssh: connect to host (?P<host>\S{1,200}) port|"
        r"ssh: Could not resolve hostname (?P<name>[^\s:]{1,200})", "hang",
        "The launcher cannot start its helpers on other hosts: ssh does not get there without a "
        "password, or MPI is not to be found there.",
        "Try ssh HOST which orted from the first host; set PATH and LD_LIBRARY_PATH for shells "
        "that are not interactive (or --prefix); see firewalls between the hosts.",
    ),
    phrase(
        "host_lost", r"(?:ORTE|PRTE|PRRTE) has lost communication with a remote daemon|"
                     r"lost connection to (?:its|the) (?:parent|daemon)", "hang",
        "The launcher has lost a host: it went down, its network did, or its helper was killed.",
        "See whether that host is up (dmesg, scheduler), and start the job without it.",
    ),
    phrase(
        "unreachable_host",
        r"unable to complete a TCP connection|"
        r"WARNING: Open MPI failed to TCP connect to a peer MPI process|"
        r"HYDU_sock_connect.{0,80}unable to connect from", "machine",
        "MPI processes cannot connect over the addresses that they offer one another: of an "
        "interface that the hosts do not share, or behind a firewall.",
        "--mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 (the interface that all "
        "share), and open the ports between the hosts.", confidence=0.85,
    ),
    phrase(
        "no_pmi",
        r"not built with SLURM's PMI support|PMI2?_Init.{0,40}failed|"
        r"(?:OPAL|PMIX) ERROR: Unreachable|unable to initiali[sz]e PMIx", "hang",
        "Processes were started by srun, and their MPI cannot speak with it (PMI): each believes "
        "that it is alone, or ends.",
        "srun --mpi=pmix (srun --mpi=list shows what there is), or start with mpirun, or take an "
        "MPI that was built for this scheduler.", confidence=0.85,
    ),
    phrase(
        "sizes_differ",
        r"MPI_ERR_TRUNCATE|Message truncated[;:] +(?P<sent>\d{1,18}) bytes received but buffer "
        r"size is (?P<room>\d{1,18})", "hang",
        "An MPI call was sent more than it has room for: ranks call with different counts or "
        "types, or one of them is a call ahead.",
        "Compare counts and types of that call on all ranks, and the order of calls before it.",
    ),
    phrase(
        "mpi_error", r"\bMPI_ERR_(?P<name>[A-Z]{1,30}): (?P<said>[^\n]{1,120})", "hang",
        "A call of MPI refuses its arguments, or fails: {said} (MPI_ERR_{name}).",
        "Look at the call that the line above names (An error occurred in ...).", confidence=0.75,
    ),
)  # fmt: skip
