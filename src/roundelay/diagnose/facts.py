"""Facts about a measurement that somebody wrote down, as a JSON object.

A name is read by its words, which `_` parts, and a unit among them; so `nic_Gbps`, `nics_per_node`
and `measured_busbw_GBps` need no list. A rate counts one direction, unless a word says `duplex` or
it is an advertised one. A text may hold a rate with its unit: "400 Gb/s".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

import msgspec

from ..collectives import COLLECTIVES
from ..errors import RoundelayError
from ..units import UnitError, parse_rate, parse_size
from .finding import Evidence

_GBPS: Final = MappingProxyType(
    {"GBps": 1.0, "GBs": 1.0, "Gbps": 0.125, "Gbs": 0.125, "TBps": 1e3, "Tbps": 125.0, "MBps": 1e-3}
)
"""Units in a name, in GB/s."""
_COUNTS: Final = MappingProxyType(
    {
        "gpus": "ranks", "ranks": "ranks", "n": "ranks", "nodes": "nodes", "hosts": "nodes",
        "gpus_per_node": "cards", "cards_per_node": "cards", "nics_per_node": "nics",
        "nics": "nics", "links": "links", "nvlinks": "links", "max_bytes": "max_bytes",
        "chunk_bytes": "chunk_bytes", "qps": "connections", "connections": "connections",
        "ranks_printed_per_table": "table_ranks", "ranks_per_table": "table_ranks",
    }
)  # fmt: skip
"""Fields of `Facts` that are whole numbers, by the names that give them."""
_MEASURES: Final = MappingProxyType({"ms": 1e-3, "us": 1e-6, "seconds": 1.0, "bytes": 1.0})
"""Last words of names of times and sizes, in seconds and bytes."""
_RATES: Final[tuple[tuple[frozenset[str], str], ...]] = tuple(
    (frozenset(words.split()), name)
    for words, name in (
        ("conn connection", "per_connection"),
        ("before", "before"),
        ("after", "after"),
        ("advertised datasheet marketed spec", "advertised"),
        ("expected theory theoretical", "expected"),
        ("avg average mean", "average"),
        ("busbw", "busbw"),
        ("algbw", "algbw"),
        ("maxbw usable", "usable"),
        ("perftest", "wire_test"),
        ("rdma", "printed_rdma"),
        ("nvl", "printed_nvlink"),
        ("port", "port"),
        ("nic", "nic"),
        ("ib roce", "network"),
        ("link", "link_usable"),
        ("paper measured reported peak", "measured"),
    )
)
"""Fields that are rates, by words of which one is in the name; the first that fits."""
_MODEL: Final = re.compile(r"\d\s*(?:$|[^\d\s.KMGTkmgt])")
"""A number without a unit of bytes or bits, as in the name of a network card."""
_BOTH: Final = frozenset(("bidirectional", "duplex", "bidir", "both"))
"""Words of a rate that adds both directions."""
_NAMED: Final = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?) ?(GB/s|Gb/s|GBps|Gbps)")
_QUANTITY: Final = re.compile(r"\d+(?:\.\d+)? ?[kKMGT]i?[Bb](?:ps|/s)(?: ?(?:oneway|duplex))?")
_LABEL_RANKS: Final = re.compile(r"(\d+) ?(?:gpus?|cards?|ranks?)")
_LABEL_NODES: Final = re.compile(r"(\d+) ?(?:nodes?|hosts?)")
_LABEL_VERSION: Final = re.compile(r"\d+\.\d+[\w.+]*")
_LABEL_PAIR: Final = re.compile(r"([^,\s]+)\s*,\s*([^,\s]+)")


@dataclass
class Facts:
    """What is known; None and empty for what is not. Rates are in GB/s.

    Attributes:
        collectives: their names.
        card: the kind of card.
        ranks, nodes, cards: all ranks, hosts, and ranks of each host.
        nics, nic, nic_per_card: network cards of a host; the line rate of each; a card's share.
        port: the rate that a network card's port reports.
        links, link_line, link_usable: a card's links; of one the line rate, and what is reached.
        inside: line rate of all a card's links, one way.
        advertised, duplex: a rate as sold, and whether it adds both directions.
        usable: what a library takes as the rate of all of a card's links, one way.
        expected: what somebody expected.
        busbw, algbw: measured, by the other words of their names.
        average, peak: of busbw over sizes.
        measured, network: measured, or stated, of the card's links and of the network.
        wire_test: what a test of the network alone gives.
        printed_rdma, printed_nvlink: as DeepEP prints them.
        before, after: measured before and after a change.
        together, apart: as DeepEP prints them: dispatch and combine timed in one, and each alone.
        per_connection, chunk_bytes, connections, by_chunk: the rate of one connection, its
            pieces' bytes, how many there are, and the rate with pieces of other sizes.
        max_bytes: the largest size that was measured.
        table_ranks: ranks that each printed table names.
        by_version, by_nodes, by_ranks, by_pair: busbw by a library's version, number of hosts,
            number of cards of one host, pair of hosts.
        times, sizes: seconds and bytes, by name.
        flags, settings: what is so or not, and what was set, by name.
        texts: sentences by name.
        evidence: where each was read.
        unknown: names that are not understood.
    """

    file: str = "-"
    collectives: tuple[str, ...] = ()
    card: str | None = None
    ranks: int | None = None
    nodes: int | None = None
    cards: int | None = None
    nics: int | None = None
    nic: float | None = None
    nic_per_card: float | None = None
    port: float | None = None
    links: int | None = None
    link_line: float | None = None
    link_usable: float | None = None
    inside: float | None = None
    advertised: float | None = None
    duplex: bool | None = None
    usable: float | None = None
    expected: float | None = None
    busbw: dict[str, float] = field(default_factory=dict)
    algbw: dict[str, float] = field(default_factory=dict)
    average: float | None = None
    peak: float | None = None
    measured: float | None = None
    network: float | None = None
    wire_test: float | None = None
    printed_rdma: float | None = None
    printed_nvlink: float | None = None
    before: float | None = None
    after: float | None = None
    together: float | None = None
    apart: tuple[float, float] | None = None
    per_connection: float | None = None
    chunk_bytes: int | None = None
    connections: int | None = None
    by_chunk: dict[int, float] = field(default_factory=dict)
    max_bytes: int | None = None
    table_ranks: int | None = None
    by_version: dict[str, float] = field(default_factory=dict)
    by_nodes: dict[int, float] = field(default_factory=dict)
    by_ranks: dict[int, float] = field(default_factory=dict)
    by_pair: dict[tuple[str, str], float] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    flags: dict[str, bool] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    evidence: dict[str, tuple[Evidence, ...]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()

    def says(self, *parts: str) -> bool:
        """Whether a sentence has one of these in it."""
        text = " ".join(self.texts.values()).lower()
        return any(part in text for part in parts)

    def rates_in_texts(self) -> list[tuple[float, str]]:
        """Rates in sentences: the number as written, and its unit, GB/s or Gb/s."""
        found = _NAMED.findall(" ".join(self.texts.values()))
        return [(float(number), unit.replace("ps", "/s")) for number, unit in found]


def read_facts(data: bytes, file: str) -> Facts:
    """The facts in a JSON object.

    Raises:
        RoundelayError: it is no such object, or a value cannot be what its name says.
    """
    try:
        found = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RoundelayError(f"{file}: no JSON object of facts: {error}") from None
    reader = _Reader(Facts(file), data.decode("utf-8", "replace"))
    for name, value in found.items():
        reader.take(name, value)
    return reader.facts


class _Reader:
    """Puts one named value after another into facts."""

    def __init__(self, facts: Facts, text: str) -> None:
        self.facts, self._text = facts, text

    def take(self, name: str, value: Any) -> None:
        """Understand one, or put its name with those that are not."""
        parts = name.split("_")
        unit = next((_GBPS[part] for part in parts if part in _GBPS), 1.0)
        words = [part.lower() for part in parts if part not in _GBPS]
        plain = "_".join(words)
        field_name: str | None
        if isinstance(value, Mapping):
            field_name = self._series(name, value, unit)
        elif isinstance(value, bool):
            self.facts.flags[plain] = value
            field_name = "flags"
        elif plain in _COUNTS and not _is_sentence(value):
            field_name = self._set(_COUNTS[plain], _count(self.facts.file, name, value))
        elif isinstance(value, int | float) and words[-1] in _MEASURES:
            field_name = self._measure(name, words, value)
        elif isinstance(value, int | float):
            sizes = filter(None, map(_size, parts))
            rate = _positive(self.facts.file, name, value) * unit
            field_name = self._rate(words, rate, next(sizes, None))
        elif isinstance(value, str):
            field_name = self._told(words, value) or self._words(plain, words, value)
        else:
            field_name = None
        if field_name is None:
            self.facts.unknown += (name,)
            return
        before = self._text[: max(0, self._text.find(f'"{name}"'))]
        shown = msgspec.json.encode(value).decode()[:200]
        evidence = Evidence(self.facts.file, before.count("\n") + 1, f'"{name}": {shown}')
        known = self.facts.evidence
        known[field_name] = (*known.get(field_name, ()), evidence)

    def _set(self, name: str, value: Any) -> str:
        setattr(self.facts, name, value)
        return name

    def _rate(self, words: list[str], rate: float, size: int | None) -> str | None:
        facts, has = self.facts, set(words)
        if has & _BOTH and has & {"measured", "busbw", "reported", "peak"}:
            rate /= 2
        one_way = {"each", "way"} <= has or "oneway" in has
        if "chunk" in has and size:
            facts.by_chunk[size] = rate
            return "by_chunk"
        if "link" in has and (one_way or "line" in has):
            return self._set("link_line", rate)
        if one_way and has & {"nvlink", "xgmi"}:
            return self._set("inside", rate)
        if "nic" in has and has & {"gpu", "card"}:
            return self._set("nic_per_card", rate)
        if {"peak", "busbw"} <= has:
            return self._set("peak", rate)
        name = next((name for some, name in _RATES if some & has), None)
        if name in ("busbw", "algbw"):
            label = "_".join(w for w in words if w not in (name, "measured", "reported"))
            self._ranks_in(words)
            if name == "busbw" and (nodes := _LABEL_NODES.fullmatch(label)):
                facts.by_nodes[int(nodes[1])] = rate
                return "by_nodes"
            getattr(facts, name)[label] = rate
            return name
        if name == "advertised":
            facts.duplex = False if one_way else facts.duplex
            facts.duplex = True if "duplex" in has else facts.duplex
        return self._set(name, rate) if name else None

    def _told(self, words: list[str], text: str) -> str | None:
        """A measured or expected rate that is written as a text, such as "600 Gb/s"."""
        if not _QUANTITY.fullmatch(text.strip()) or "nic" in words:
            return None
        return self._rate(words, _rate_of(self.facts.file, "_".join(words), text), None)

    def _measure(self, name: str, words: list[str], value: float) -> str:
        """A time or a size."""
        known = _positive(self.facts.file, name, value, 2.0**62, "a number")
        plain, unit = "_".join(words[:-1]), _MEASURES[words[-1]]
        if words[-1] == "bytes":
            self.facts.sizes[plain] = int(known)
            return "sizes"
        self.facts.times[plain] = known * unit
        return "times"

    def _ranks_in(self, words: list[str]) -> None:
        """`8gpu` in a name."""
        for word in words:
            if (found := re.fullmatch(r"(\d+)(?:gpus?|ranks?|cards?)", word)) is not None:
                self.facts.ranks = self.facts.ranks or int(found[1])

    def _words(self, plain: str, words: list[str], text: str) -> str | None:
        facts = self.facts
        if plain in ("op", "collective", "collectives"):
            named = [part.strip().lower() for part in text.split(",")]
            aliases = {name.replace("_", ""): name for name in COLLECTIVES}
            known = (aliases.get(part.replace("_", ""), part) for part in named)
            return self._set("collectives", tuple(known))
        if plain in ("gpu", "card"):
            return self._set("card", text)
        if "is" in words and "advertised" in words:
            both = any(part in text.lower() for part in ("both", "duplex", "bidirectional"))
            return self._set("duplex", both)
        nic = plain == "nic" or "nic" in words
        if nic and not _MODEL.search(text) and not _is_sentence(text):
            return self._set("nic", _rate_of(facts.file, plain, text))
        facts.texts[plain] = text
        return "texts"

    def _series(self, name: str, values: Mapping[str, Any], unit: float) -> str | None:
        """Rates by version, by number of hosts, or by pair: what the labels are tells which."""
        facts = self.facts
        kinds: tuple[tuple[re.Pattern[str], str, Callable[[re.Match[str]], Any]], ...] = (
            (_LABEL_NODES, "by_nodes", lambda m: int(m[1])),
            (_LABEL_RANKS, "by_ranks", lambda m: int(m[1])),
            (_LABEL_VERSION, "by_version", lambda m: m[0]),
            (_LABEL_PAIR, "by_pair", lambda m: (m[1], m[2])),
        )
        for pattern, into, label in kinds:
            matches = [pattern.fullmatch(key) for key in values]
            if values and all(matches):
                rates = [_positive(facts.file, f"{name}.{k}", v) * unit for k, v in values.items()]
                labels = [label(m) for m in matches if m is not None]
                getattr(facts, into).update(zip(labels, rates, strict=True))
                return into
        if values and all(isinstance(value, str) for value in values.values()):
            facts.settings.update(values)
            return "settings"
        return None


def _is_sentence(value: Any) -> bool:
    """Whether words stand where a number could."""
    return isinstance(value, str) and len(value.split()) > 2


def _size(word: str) -> int | None:
    try:
        return parse_size(word)
    except UnitError:
        return None


def _count(file: str, name: str, value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**62:
        return value
    raise RoundelayError(f"{file}: {name} = {value!r}; expected a whole number, 1 or more")


def _positive(file: str, name: str, value: Any, most: float = 1e9, what: str = "a rate") -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < most:
        return float(value)
    raise RoundelayError(f"{file}: {name} = {value!r}; expected {what}, 0 or more")


def _rate_of(file: str, name: str, text: str) -> float:
    """GB/s, one way; bytes without a direction are taken as one way, as is usual of networks."""
    try:
        rate = parse_rate(text)
    except UnitError as error:
        raise RoundelayError(f"{file}: {name}: {error}") from None
    return (rate.oneway if rate.direction == "duplex" else rate.bytes_per_second) / 1e9
