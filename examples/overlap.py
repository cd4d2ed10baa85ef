"""One training step of a model with 80 layers on 1,024 cards, cut in three ways.

What of the communication hides behind computing, what a single slow card costs, and how many
multiprocessors communication should get.
"""

from roundelay.clusters import cluster
from roundelay.simulate.overlap import CARDS, Group, Model, StepClock, fsdp, tensor_parallel

CARD = CARDS["h100"]
MODEL = Model(layers=80, hidden=8192, sequence=4096, batch=1)
TOGETHER = Model(layers=80, hidden=8192, sequence=4096, batch=8)  # of eight cards
STEPS = {
    "sharded over all 1,024": fsdp(MODEL, CARD),
    "sharded over 64": fsdp(MODEL, CARD, group=Group(64)),
    "each layer cut over 8": tensor_parallel(TOGETHER, CARD, 8),
}
CLUSTER = cluster("dgx-h100:128")

heads = ("step", "compute", "exposed", "hidden", "one slow", "best SMs")
print(f"{'seconds':24}" + "".join(f"{head:>10}" for head in heads))
for name, step in STEPS.items():
    clock = StepClock(step, CLUSTER)
    found = clock.time()
    slow = StepClock(step, CLUSTER, slow_ranks=[(37, 1.10)]).time()
    seconds = (found.time, found.mean.compute, found.mean.exposed, found.mean.hidden, slow.time)
    best = clock.best_share(CARD).best
    print(f"{name:24}" + "".join(f"{s:10.3f}" for s in seconds) + f"{best.sms:10}")
