"""What traces say of time: where it goes on each rank, who is late, and what that costs."""

from .findings import time_findings

__all__ = ["time_findings"]
