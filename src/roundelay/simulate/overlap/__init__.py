"""A step of training: computing and communication side by side, and what of it is exposed."""

from __future__ import annotations

from .cards import CARDS, Card, Share, card
from .clock import Shares, StepClock
from .models import Model, data_parallel, fsdp, tensor_parallel
from .prices import Price
from .tasks import Exchange, Group, Step, Task
from .timing import Parts, StepTiming

__all__ = [
    "CARDS",
    "Card",
    "Exchange",
    "Group",
    "Model",
    "Parts",
    "Price",
    "Share",
    "Shares",
    "Step",
    "StepClock",
    "StepTiming",
    "Task",
    "card",
    "data_parallel",
    "fsdp",
    "tensor_parallel",
]
