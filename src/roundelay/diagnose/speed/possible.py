"""Figures that cannot be: rates above any link's, negative times, rows at odds with themselves.

They are told as such, and nothing is concluded from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

from ...formats.nccl_tests import Row, Table, Timing, tells
from ...topology import Cluster
from ..finding import Area, Evidence, Figures, Finding, tell
from .facts import Facts

CARD: Final = 1800.0
"""GB/s one way of all links of a card: NVLink 6 (machines/vr200-nvl144.toml), the most there is."""
NIC: Final = 200.0
"""GB/s one way of a network card: twice the 800 Gb/s of the fastest named machines."""
PCIE: Final = 128.0
"""GB/s one way of PCIe: 16 lanes of 64 GT/s (PCI Express 6.0)."""
ADDED: Final = 2.0
"""Times a line rate that busbw stays below where a switch adds: 2 (n - 1) / (n + 1) with NVLS."""
APART: Final = 0.1
"""Share by which a rate may miss size over time: figures of two digits, such as 1.2e+06, are half
of it off."""
SMALL: Final = 0.1
"""GB/s below which a rate that is printed with two decimals says little."""
LISTED: Final = 4
LARGEST: Final = 10**9
"""Figures up to which are shown with all digits."""
GB: Final = 1e9
_FACTS: Final = ("average", "peak", "measured", "usable", "link_line", "link_usable", "inside",
                 "printed_rdma", "printed_nvlink", "together", "per_connection",
                 "wire_test")  # fmt: skip
_NICS: Final = ("nic", "nic_per_card")
_SERIES: Final = ("busbw", "algbw", "by_version", "by_nodes", "by_pair", "by_chunk",
                  "layouts")  # fmt: skip

Why = Literal["high", "time", "negative", "apart"]


class Odd(NamedTuple):
    """A figure that cannot be.

    Attributes:
        why: which of the sentences below says so.
        what: such as "busbw".
        found: GB/s, or microseconds.
        most: of `found` that can be; size over time where a row contradicts itself.
        at: where it stands.
    """

    why: Why
    what: str
    found: float
    most: float
    at: Evidence


_SAID: Final[Mapping[Why, str]] = {
    "high": "This cannot be: {what}, found {found_GBps} GB/s, at most {most_GBps} GB/s one way "
            "(figures like it: {count}).",
    "time": "This cannot be: a time, found {found_us} us, at least more than 0 "
            "(figures like it: {count}).",
    "negative": "This cannot be: {what}, found {found_GBps} GB/s, at least 0 "
                "(figures like it: {count}).",
    "apart": "This cannot be: algbw, found {found_GBps} GB/s, while size over time of the same row "
             "is {most_GBps} GB/s (figures like it: {count}).",
}  # fmt: skip


def odd_findings(subject: str, odd: Sequence[Odd], area: Area = "speed") -> list[Finding]:
    """One finding for each way in which figures of a file cannot be, and each bound."""
    by: dict[tuple[Why, float], list[Odd]] = {}
    for one in odd:
        by.setdefault((one.why, one.most if one.why == "high" else 0.0), []).append(one)
    ordered = sorted(by.items(), key=lambda item: list(_SAID).index(item[0][0]))
    return [_impossible(subject, some, area) for _, some in ordered]


def _impossible(subject: str, some: Sequence[Odd], area: Area) -> Finding:
    """The worst of figures of one kind, and how many there are."""
    worst = max(some, key=lambda one: abs(one.found - one.most))
    unit = "us" if worst.why == "time" else "GBps"
    figures: Figures = {"what": worst.what, f"found_{unit}": _whole(worst.found),
                        f"most_{unit}": _whole(worst.most), "count": len(some)}  # fmt: skip
    return tell(
        "impossible", subject, figures,
        [_SAID[worst.why], "Nothing is concluded from such figures."],
        "See where the figure comes from: a unit (Gb/s for GB/s, ms for us), a column that "
        "slipped, a number that was typed. Then give the output as it was printed.",
        tuple(one.at for one in some[:LISTED]), fault=True, confidence=0.95, area=area,
    )  # fmt: skip


def _whole(figure: float) -> float | int:
    """As a whole number where it is one, which is shown with all its digits."""
    return int(figure) if figure.is_integer() and abs(figure) < LARGEST else figure


@dataclass(frozen=True)
class Bounds:
    """What rates can be at most, in GB/s.

    Attributes:
        busbw: of a collective.
        links: of a card's links, one way.
        nic: of a network card, one way.
    """

    busbw: float = ADDED * CARD
    links: float = CARD
    nic: float = NIC

    @staticmethod
    def of(cluster: Cluster | None) -> Bounds:
        """On a cluster; where it has caches or no links of its own, what holds for any card."""
        if cluster is None or cluster.generation == "cpu" or cluster.inside.kind == "bus":
            return Bounds()
        line = cluster.inside.rate / GB
        return Bounds(line * (ADDED if cluster.inside.multicast else 1.0))


def sound_table(table: Table, file: str, bounds: Bounds) -> tuple[Table | None, list[Odd]]:
    """The table with what can be, if anything is left, and the rest."""
    rows, odd = [], list[Odd]()
    for row in table.rows:
        wrong = {place: why for place, timing in row.timings()
                 if (why := _wrong(row, timing, table.ranks, bounds))}  # fmt: skip
        at = Evidence(file, row.line, row.text)
        odd += [Odd(why, what, found, most, at) for why, what, found, most in wrong.values()]
        left = replace(row, out_of_place=None if False in wrong else row.out_of_place,
                       in_place=None if True in wrong else row.in_place)  # fmt: skip
        if left.out_of_place or left.in_place:
            rows.append(left)
    if not odd:
        return table, []
    return (replace(table, rows=tuple(rows), average=None) if rows else None), odd


def _wrong(
    row: Row, timing: Timing, ranks: int | None, bounds: Bounds
) -> tuple[Why, str, float, float] | None:
    """Why a form of a row cannot be, with what, how much and the most."""
    time, algbw, busbw = timing.time_us, timing.algbw, timing.busbw
    if time < 0 or (time == 0 and row.size and ranks != 1):
        return "time", "time", time, 0.0
    for what, rate in (("algbw", algbw), ("busbw", busbw)):
        if rate < 0:
            return "negative", what, rate, 0.0
    if ranks != 1 and busbw > bounds.busbw:  # one rank moves nothing, and takes no time for it
        return "high", "busbw", busbw, bounds.busbw
    rate = row.size / time / 1e3 if time else algbw
    if abs(rate - algbw) > SMALL + APART * max(rate, algbw) and not tells(row, timing):
        return "apart", "algbw", algbw, rate
    return None


def sound_facts(facts: Facts, bounds: Bounds) -> tuple[Facts, list[Odd]]:
    """The facts without those that cannot be, and these."""
    limits = dict.fromkeys(_FACTS, max(bounds.busbw, bounds.links))
    limits |= dict.fromkeys(_NICS, bounds.nic)
    changed: dict[str, Any] = {}
    odd: list[Odd] = []
    for name, most in limits.items():
        rate = getattr(facts, name)
        if rate is not None and rate > most:
            odd.append(_fact(facts, name, rate, most))
            changed[name] = None
    for name in _SERIES:
        rates: Mapping[Any, float] = getattr(facts, name)
        most = 2 * bounds.busbw if name == "algbw" else bounds.busbw
        high = {key: rate for key, rate in rates.items() if rate > most}
        odd += [_fact(facts, name, rate, most) for rate in high.values()]
        if high:
            changed[name] = {key: rate for key, rate in rates.items() if key not in high}
    if rate := _at_odds(facts):
        said = max(facts.algbw.values())
        odd.append(_fact(facts, "algbw", said, rate)._replace(why="apart"))
        changed["algbw"] = {}
    return (replace(facts, **changed) if changed else facts), odd


def _at_odds(facts: Facts) -> float:
    """Size over time, GB/s, where one of each is told and algbw is another rate; else 0."""
    told = (facts.sizes, facts.times, facts.algbw)
    if any(len(series) != 1 for series in told) or not max(facts.times.values()):
        return 0.0
    rate = max(facts.sizes.values()) / max(facts.times.values()) / GB
    said = max(facts.algbw.values())
    return rate if abs(rate - said) > SMALL + APART * max(rate, said) else 0.0


def _fact(facts: Facts, name: str, rate: float, most: float) -> Odd:
    lines = facts.evidence.get(name, ()) or (Evidence(facts.file, 0, name),)
    return Odd("high", name, rate, most, lines[0])
