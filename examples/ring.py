"""The ring all-reduce, written out and checked: two rounds, whatever the number of ranks."""

import numpy as np

from roundelay import COPY, REDUCE, Round, Schedule, cost, show, verify


def ring(n):
    """Pass one piece to the right neighbour, n - 1 times adding, then n - 1 times copying."""
    rank = np.arange(n)
    right = (rank + 1) % n
    add = Round(rank, right, rank, REDUCE, times=n - 1, shift=-1)
    share = Round(rank, right, (rank + 1) % n, COPY, times=n - 1, shift=-1)
    return Schedule("all_reduce", n, n, [add, share])


print(show(ring(3)))

for n in (3, 8, 1024, 16384):
    schedule = ring(n)
    verdict, count = verify(schedule), cost(schedule, size=2**20, with_depth=False)
    looked_at = f"{verdict.sampled or verdict.chunks} of {verdict.chunks} chunks"
    print(
        f"{n:6} ranks: right = {verdict.ok} ({looked_at}), {count.steps} steps, "
        f"{float(count.bytes_sent_max / 2**20):.4f} MiB sent for each MiB, "
        f"{schedule.expanded():,} moves in {schedule.nbytes:,} bytes"
    )
