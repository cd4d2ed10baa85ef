"""Switches as text: a tree from the uppermost down, or level by level where it is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from ...formats.fabric import Fabric
from ...formats.hostlist import compressed
from ...i18n import Translate, message

MOST: Final = 4096
"""Lines of a tree."""
NAMED: Final = 512
"""Hosts of a switch that are named."""


def fabric_picture(fabric: Fabric, translate: Translate) -> str:
    """The switches with what hangs on them.

    Args:
        fabric: what a file describes.
        translate: for its few words.
    """
    head = message("{kind} {name}: {switches:switch|switches}, {hosts:host|hosts}",
                   kind=fabric.kind, name=fabric.name, switches=len(fabric.switches),
                   hosts=len(fabric.all_hosts) + len(fabric.loose))  # fmt: skip
    lines = [head.tell(translate).replace(" :", ":").replace(" ：", "：")]
    lines += _tree(fabric) if fabric.kind in ("tree", "block", "ring", "torus", "flat") else (
        _levels(fabric, translate))  # fmt: skip
    lines += [f"  ? {name}" for name in fabric.unlisted]
    if fabric.loose:
        lines.append(message("on no switch: {hosts}", hosts=compressed(fabric.loose))
                     .tell(translate))  # fmt: skip
    return "\n".join(lines)


def _own(fabric: Fabric, name: str) -> str:
    hosts = fabric.hosts.get(name, ())
    return f"  {compressed(hosts[:NAMED])} ({len(hosts)})" if hosts else ""


def _tree(fabric: Fabric) -> Iterator[str]:
    """Each switch below the one above it; one that was drawn already is only named."""
    below: dict[str, list[str]] = {}
    for cable in fabric.cables:
        below.setdefault(cable.a, []).append(cable.b)
    under = {cable.b for cable in fabric.cables}
    tops = [name for name in fabric.switches if name not in under] or list(fabric.switches)[:1]
    left: list[tuple[str, int]] = [(name, 1) for name in reversed(tops)]
    drawn = set[str]()
    for _ in range(MOST):
        if not left:
            return
        name, deep = left.pop()
        again = name in drawn
        yield f"{'  ' * deep}{name}{' ...' if again else _own(fabric, name)}"
        if not again and name in fabric.switches:
            drawn.add(name)
            left += [(low, deep + 1) for low in reversed(below.get(name, []))]
    yield "  ..."


def _levels(fabric: Fabric, translate: Translate) -> Iterator[str]:
    """From the top: the switches of a level, and what each is joined with above."""
    ups: dict[str, Counter[str]] = {}
    at = fabric.level_of
    for cable in fabric.cables:
        for low, high in ((cable.a, cable.b), (cable.b, cable.a)):
            if at.get(low, -1) < at.get(high, -1):
                ups.setdefault(low, Counter())[fabric.switches[high]] += 1
    for level in range(max(at.values(), default=-1), -1, -1):
        yield "  " + message("level {number}", number=level + 1).tell(translate)
        for name in [name for name, own in at.items() if own == level][:MOST]:
            above = ups.get(name, Counter()).most_common(8)
            joined = ", ".join(f"{high} x{n}" if n > 1 else high for high, n in above)
            up = f"  ^ {joined}" if joined else ""
            yield f"    {fabric.switches[name]}{_own(fabric, name)}{up}"
    for name in [name for name in fabric.switches if name not in at][:MOST]:
        yield f"    ? {fabric.switches[name]}"
