"""Dissemination: Bruck's all-gather of nothing; who has heard of all may go on."""

from dataclasses import replace

from ...schedule import Schedule
from ..registry import algorithm, pick


@algorithm(
    "barrier",
    messages="ceil_log(n)",
    bytes_sent="0",
    steps="ceil_log(n)",
    good="always: the fewest steps, for any n",
    bad="nothing without help from switches",
    source="Hensgen, Finkel and Manber 1988, doi:10.1007/BF01379320",
)
def dissemination(n: int) -> Schedule:
    return replace(pick("all_gather", "bruck", n), collective="barrier")
