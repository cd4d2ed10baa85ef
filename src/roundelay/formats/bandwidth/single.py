"""Programs that print a rate in a sentence: iperf3, and all_reduce_bench."""

from __future__ import annotations

import re
from typing import Final

from .measured import Curve, Point

_TCP: Final = re.compile(
    r"\[ *(SUM|\d+)\] +[\d.]+ ?- ?[\d.]+ +sec +[\d.]+ +[KMGT]?Bytes +([\d.]{1,12}) +"
    r"([KMGT]?)bits/sec"
)
_AVERAGE: Final = re.compile(
    r"average bandwidth of (\w+) with a ([\d.]{1,12}) ?GB payload \(\d+ trials, (\d{1,7}) ranks\)"
)
_RATE: Final = re.compile(r"\b(algbw|busbw): ([\d.]{1,12}) GBps")


class Singles:
    """Takes lines one by one."""

    def __init__(self) -> None:
        self._tcp: list[tuple[bool, Point]] = []
        self._curves: list[Curve] = []
        self._open: tuple[int, str, str, int, int] | None = None
        self._algbw = 0.0

    def take(self, number: int, text: str) -> bool:
        """Whether the line is of such a program."""
        if found := _TCP.search(text):
            bits = _float(found[2]) * 10 ** (3 * " KMGT".index(found[3] or " "))
            point = Point(number, text.strip()[:200], 0, bits / 8e9)
            self._tcp.append((found[1] == "SUM", point))
            return True
        if found := _AVERAGE.search(text):
            size = int(_float(found[2]) * 2**30)
            self._open = (number, text.strip()[:200], found[1], size, int(found[3]))
            return True
        if self._open is None or not (found := _RATE.search(text)):
            return False
        if found[1] == "algbw":
            self._algbw = _float(found[2])
            return True
        line, said, name, size, ranks = self._open
        point = Point(number, text.strip()[:200], size, self._algbw, _float(found[2]))
        self._curves.append(Curve(line, f"{name}: {said}"[:80], "collective", (point,), ranks))
        self._open = None
        return True

    def done(self) -> tuple[Curve, ...]:
        """One table of all that TCP carried, and what else there was."""
        summed = any(whole for whole, _ in self._tcp)
        points = tuple(point for whole, point in self._tcp if whole or not summed)
        title = "iperf3, all connections" if summed else "iperf3"
        tcp = (Curve(points[0].line, title, "tcp", points),) if points else ()
        return (*self._curves, *tcp)


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0
