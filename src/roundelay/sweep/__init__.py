"""Many questions at once: what a sweep goes over, who answers, and where answers are kept.

>>> [point["nodes"] for point in grid([read_axis("nodes=1,2,4..16")])]
[1, 2, 4, 8, 16]
"""

from __future__ import annotations

from .axes import Axis, grid, read_axis
from .chart import Chart
from .plot import plotter
from .processes import over_processes
from .ray import over_ray
from .store import Store

__all__ = ["Axis", "Chart", "Store", "grid", "over_processes", "over_ray", "plotter", "read_axis"]
