"""Two levels by rails from three parts, and what crosses between nodes beside a flat ring."""

import numpy as np

import roundelay as rl

NODES, CARDS = 4, 8
SIZE = 64 * 2**20

nodes = np.arange(NODES * CARDS).reshape(NODES, CARDS)
rails = nodes.T

two_level = rl.then(
    rl.on(nodes, rl.build("reduce_scatter/ring", CARDS)),
    rl.on(rails, rl.build("all_reduce/halving_doubling", NODES)),
    rl.on(nodes, rl.build("all_gather/ring", CARDS)),
)
flat = rl.build("all_reduce/ring", NODES * CARDS)


def sent_out_of_the_node(schedule, rank):
    """Bytes that one rank sends to other nodes."""
    chunks = sum(
        half.count * half.unit * half.times
        for half in schedule.part(rank)
        if not half.write and half.peer // CARDS != rank // CARDS
    )
    return chunks * SIZE // schedule.chunks


for name, schedule in (("flat ring", flat), ("two levels", two_level)):
    out = [sent_out_of_the_node(schedule, rank) / 2**20 for rank in range(NODES * CARDS)]
    senders = sum(x > 0 for x in out)
    print(f"{name}: right = {rl.verify(schedule).ok}, {schedule.steps} steps;")
    print(f"  of 64 MiB the busiest card sends {max(out):.1f} MiB to other nodes,")
    print(f"  and {senders} of {NODES * CARDS} network cards send at all")
