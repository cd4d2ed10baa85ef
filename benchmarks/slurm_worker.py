"""What ranks do under a real Slurm: those of a group all-reduce, all groups at once.

    python slurm_worker.py NUMBERS TIMES GROUP ...

NUMBERS are those of the array; a GROUP is a list of ranks, such as 0,2,4,6. Every rank prints its
number, its host, whether the sums are right, and the median of the seconds that all took.
"""

import socket
import statistics
import sys
import time

import numpy as np

from roundelay.communicator import init
from roundelay.run import Job

PORT = 31000

count, times = int(sys.argv[1]), int(sys.argv[2])
groups = [list(map(int, text.split(","))) for text in sys.argv[3:]]
comm = init(timeout=60)
host = socket.gethostname()
hosts = comm.all_gather(np.array([int(host[1:])]))  # n3 is 3
own = next(group for group in groups if comm.rank in group)
job = Job(own.index(comm.rank), len(own), None, f"n{hosts[own[0]]}", PORT + 100 * groups.index(own),
          bytes(32), "the groups")  # fmt: skip
group = init(timeout=60, job=job)
right, seconds = True, []
for _ in range(times):
    x = np.full(count, comm.rank, np.float32)
    comm.barrier()
    began = time.perf_counter()
    group.all_reduce(x, out=x, algorithm="ring")
    comm.barrier()
    seconds.append(time.perf_counter() - began)
    right = right and bool((x == sum(own)).all())
group.close()
comm.close()
print(f"rank {comm.rank} on {host}: {'right' if right else 'wrong'}, "
      f"{statistics.median(seconds):.6f} s", flush=True)  # fmt: skip
