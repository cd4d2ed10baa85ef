"""The algorithms, one short file each; `registry` finds them.

To add one, write one file: CONTRIBUTING.md walks through it.
"""

from .registry import Algorithm, Card, algorithm, algorithms, build, find

__all__ = ["Algorithm", "Card", "algorithm", "algorithms", "build", "find"]
