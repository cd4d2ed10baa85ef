"""How many instances of a model a service needs, as its traffic comes and goes.

An instance is a gang: the ranks over which a model is cut start together and end together.
`policy` says how many there should be, `simulate` tries that on traffic, and `roundelay llm
--replicas auto` does it.
"""

from __future__ import annotations

from .choose import best_target, least_fixed
from .policy import POLICIES, Fixed, Forecast, Policy, Queue, Scaler, Seen, Utilisation, policy
from .simulate import Outcome, Service, simulate
from .speed import Speed
from .traffic import Request, poisson, read_requests

__all__ = [
    "POLICIES",
    "Fixed",
    "Forecast",
    "Outcome",
    "Policy",
    "Queue",
    "Request",
    "Scaler",
    "Seen",
    "Service",
    "Speed",
    "Utilisation",
    "best_target",
    "least_fixed",
    "poisson",
    "policy",
    "read_requests",
    "simulate",
]
