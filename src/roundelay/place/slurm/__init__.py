"""Slurm: nodes and switches as its files and scontrol give them, and what sbatch takes."""

from .reading import slurm_site
from .script import files

__all__ = ["files", "slurm_site"]
