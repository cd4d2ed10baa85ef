"""A job that runs on this machine now: what each rank does, and who keeps whom waiting."""

from __future__ import annotations

from typing import Any

from ...run.status import running, status_of


def live(job: str = "") -> dict[str, Any]:
    """The jobs of this user with ranks here, and the status of one.

    Args:
        job: its name; empty: the first of them. There is no status where none runs.

    Raises:
        RoundelayError: it does not answer.
    """
    jobs = sorted(running())
    chosen = next((name for name in jobs if job in ("", name)), None)
    return {"jobs": jobs, "status": status_of(chosen) if chosen else None}
