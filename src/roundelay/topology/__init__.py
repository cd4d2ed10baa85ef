"""Clusters: cards, network cards, switches, links, and the ways over them.

All rates are bytes a second one way; all times are seconds.
"""

from .cluster import Cluster, Generation, Processor
from .collisions import collision_factor
from .fabrics import Level
from .links import Links, Path
from .parts import MEDIA, Fabric, FabricKind, Inside, InsideKind, InsideMedium, NicMedium, Nics

__all__ = [
    "MEDIA",
    "Cluster",
    "Fabric",
    "FabricKind",
    "Generation",
    "Inside",
    "InsideKind",
    "InsideMedium",
    "Level",
    "Links",
    "NicMedium",
    "Nics",
    "Path",
    "Processor",
    "collision_factor",
]
