"""A training that goes on when a rank dies. Run it with

roundelay launch -n 4 --elastic examples/elastic/train.py

Each rank holds all weights and a quarter of every batch; rank 2 is killed in the middle of step 20.
The others start that step anew, and share the batches among three.
"""

import os
import signal

import numpy as np

import roundelay

STEPS, BATCH, RATE = 60, 240, 0.05

comm = roundelay.init()
truth = np.linspace(-1, 1, 8)
weights = np.zeros(8)

step = 0
while step < STEPS:
    try:
        if comm.ranks == 4 and comm.rank == 2 and step == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        batch = np.random.default_rng(step).normal(size=(BATCH, 8))  # the same on all ranks
        mine = batch[comm.rank :: comm.ranks]
        error = mine @ (weights - truth)
        sums = comm.all_reduce(np.append(mine.T @ error, error @ error))
    except roundelay.PeerLost as lost:
        comm = comm.shrink()
        steps = comm.all_gather(np.array([step]))  # some may have made the step, others not
        step = int(steps.max())
        comm.broadcast(weights, root=int(steps.argmax()))
        if comm.rank == 0:
            print(f"step {step}: rank {lost.rank} has gone, {comm.ranks} ranks go on")
        continue
    weights -= RATE * sums[:-1] / BATCH
    step += 1
    if comm.rank == 0 and step % 20 == 0:
        print(f"step {step}: loss {sums[-1] / BATCH:.6f}")
comm.close()
