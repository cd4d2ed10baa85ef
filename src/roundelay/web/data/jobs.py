"""Jobs on a cluster over time."""

from __future__ import annotations

from typing import Any

from ...collectives import UnknownName
from ...place.sim import Log
from ..jobs import EXAMPLE, Logs


def logs(logs: Logs) -> list[dict[str, Any]]:
    """Which there are."""
    return [
        {"name": name, "cluster": log.cluster, "nodes": log.nodes, "cards": log.cards,
         "jobs": len(log.jobs), "policies": [told.policy for told in log.policies]}
        for name, log in logs.items()
    ]  # fmt: skip


def jobs(logs: Logs, name: str = EXAMPLE) -> Log:
    """One of them.

    Raises:
        UnknownName: there is none of this name.
    """
    if name not in logs:
        raise UnknownName("jobs", name, logs)
    return logs[name]
