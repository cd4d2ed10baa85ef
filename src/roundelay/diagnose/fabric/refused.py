"""What Slurm refuses in a topology file, or cannot use of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ...formats.fabric import Fabric
from ..finding import Evidence, Figures, Finding, names, numbers, tell


def refused_findings(file: str, fabric: Fabric) -> list[Finding]:
    """Faults that Slurm's own check would tell, or that it takes in silence."""
    if fabric.source != "slurm":
        return []
    return [found for rule in RULES if (found := rule(file, fabric)) is not None]


def _at(file: str, fabric: Fabric, switches: list[str]) -> tuple[Evidence, ...]:
    lines = fabric.lines or {}
    return tuple(Evidence(file, lines.get(name, 0), name) for name in switches[:4])


def _mixed(file: str, fabric: Fabric) -> Finding | None:
    """Lines of one kind where another is to be read (topology.conf(5))."""
    has, wanted = fabric.kind, fabric.plugin
    others = [kind for kind in fabric.kinds if kind != has]
    sizes = bool(fabric.block_sizes) and has != "block"
    if not others and not sizes and (not wanted or wanted in fabric.kinds):
        return None
    extra = names(others) or ("BlockSizes" if sizes else "-")
    figures: Figures = {"has": has, "others": extra, "plugin": wanted or "?"}
    reason = ["The file describes a {has}, and also has lines of another kind ({others}): "
              "slurmctld reads the lines of one plugin only, and stops at the others or plans "
              "without them."]  # fmt: skip
    if wanted and wanted not in fabric.kinds:
        reason = ["TopologyPlugin is topology/{plugin}, and the lines of the file describe a "
                  "{has}: that plugin finds nothing that it can read."]  # fmt: skip
    return tell(
        "plugin_differs", file, figures, reason,
        "tree takes SwitchName, block takes BlockName and BlockSizes; for both at once use "
        "topology.yaml with a topology of each (Slurm 25.05 and later).",
        _at(file, fabric, list(fabric.switches)), fault=True, confidence=0.85, area="machine",
    )  # fmt: skip


def _empty(file: str, fabric: Fabric) -> Finding | None:
    if fabric.kind not in ("tree", "block"):
        return None
    above = {cable.a for cable in fabric.cables}
    bare = [name for name, own in fabric.hosts.items() if not own and name not in above]
    if not bare or len(bare) == len(fabric.switches):
        return None
    return tell(
        "switch_empty", file, {"who": names(bare, 8), "count": len(bare)},
        ["{who}: neither hosts nor switches stand below. Slurm refuses such a line (lacks "
         "children), unless empty switches are allowed."],
        "Give its hosts (Nodes=...) or take the line out.",
        _at(file, fabric, bare), fault=True, confidence=0.85, area="machine",
    )  # fmt: skip


def _circle(file: str, fabric: Fabric) -> Finding | None:
    """Switches that are above themselves."""
    below: dict[str, list[str]] = {}
    for cable in fabric.cables if fabric.kind == "tree" else ():
        below.setdefault(cable.a, []).append(cable.b)
    left = {name: len([c for c in fabric.cables if c.b == name]) for name in fabric.switches}
    free = [name for name, count in left.items() if not count]
    for name in free:
        for low in below.get(name, ()):
            if low in left:
                left[low] -= 1
                if not left[low]:
                    free.append(low)
    caught = [name for name in fabric.switches if name not in set(free)]
    if not caught or fabric.kind != "tree":
        return None
    round_ = _round(caught, below)
    return tell(
        "no_tree", file, {"who": " > ".join(round_)},
        ["Switches hang on one another in a circle ({who}): that is no tree, and slurmctld does "
         "not start with it."],
        "Name below a switch only those that are nearer to the hosts.",
        _at(file, fabric, round_), fault=True, confidence=0.95, area="machine",
    )  # fmt: skip


def _round(caught: list[str], below: dict[str, list[str]]) -> list[str]:
    """One circle: from any of those that are caught, upwards until one comes again."""
    above = {low: name for name in caught for low in below.get(name, ()) if low in set(caught)}
    path = [caught[0]]
    while above.get(path[-1]) is not None and above[path[-1]] not in path:
        path.append(above[path[-1]])
    end = above.get(path[-1], path[-1])
    return [*path[path.index(end) if end in path else 0 :], end][::-1][:8]


def _sizes(file: str, fabric: Fabric) -> Finding | None:
    """Sizes that do not double, and blocks that are too small for the first (topology.conf(5))."""
    sizes = fabric.block_sizes
    if fabric.kind != "block" or not sizes or min(sizes) < 1:
        return None
    base = min(sizes)
    odd = [size for size in sizes if size % base or (size // base).bit_count() != 1]
    small = [name for name, own in fabric.hosts.items() if 0 < len(own) < base]
    if not odd and not small:
        return None
    told = [f"{name} ({len(fabric.hosts[name])})" for name in small]
    figures: Figures = {"base": base, "odd": numbers(odd),
                        "small": names(told, 8)}  # fmt: skip
    reason = []
    if odd:
        reason.append("BlockSizes has {odd}, which is not the first size ({base}) doubled once or "
                      "more; Slurm takes only such.")  # fmt: skip
    if small:
        reason.append("Blocks with fewer hosts than the first size ({base}): {small}. No job finds "
                      "a full block there, and older versions refuse such a file.")  # fmt: skip
    return tell(
        "block_sizes", file, figures, reason,
        "Begin BlockSizes with the smallest block that jobs are planned for, then double it.",
        _at(file, fabric, small or list(fabric.switches)), fault=True,
        confidence=0.85 if odd else 0.7, area="machine",
    )  # fmt: skip


RULES: Final[tuple[Callable[[str, Fabric], Finding | None], ...]] = (
    _mixed, _circle, _empty, _sizes,
)  # fmt: skip
