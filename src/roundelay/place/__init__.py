"""Which cards a job should get, by what it exchanges.

>>> from roundelay.clusters import cluster
>>> job = parallel("small", {"tensor": 8, "data": 2}, volumes={"data": 1e9})
>>> found = place(job, Room.all_of(cluster("dgx-h100:4")))
>>> sorted({int(card) // 8 for card in found.cards})
[0, 1]
"""

from __future__ import annotations

from .job import Exchange, Job, Model, parallel
from .plan import Placement, Placing, order, place
from .reading import read_job
from .room import Room, numbers, read_room, slots

__all__ = [
    "Exchange",
    "Job",
    "Model",
    "Placement",
    "Placing",
    "Room",
    "numbers",
    "order",
    "parallel",
    "place",
    "read_job",
    "read_room",
    "slots",
]
