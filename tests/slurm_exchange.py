"""What ranks do under a real Slurm: those of a group all-reduce, all groups at once.

    python slurm_exchange.py NUMBERS GROUP ...

NUMBERS are those of the array; a GROUP is a list of ranks, such as 0,2,4,6. Every rank prints its
number, its host, and whether the sums are right.
"""

import socket
import sys

import numpy as np

from roundelay.communicator import init
from roundelay.run import Job

PORT = 31000

count, groups = int(sys.argv[1]), [list(map(int, text.split(","))) for text in sys.argv[2:]]
comm = init(timeout=30)
host = socket.gethostname()
hosts = comm.all_gather(np.array([int(host[1:])]))  # n3 is 3
own = next(group for group in groups if comm.rank in group)
job = Job(own.index(comm.rank), len(own), None, f"n{hosts[own[0]]}", PORT + 100 * groups.index(own),
          bytes(32), "the test")  # fmt: skip
group = init(timeout=30, job=job)
x = np.full(count, comm.rank, np.float32)
group.all_reduce(x, out=x, algorithm="ring")
right = bool((x == sum(own)).all())
group.close()
comm.close()
print(f"rank {comm.rank} on {host}: {'right' if right else 'wrong'}", flush=True)
