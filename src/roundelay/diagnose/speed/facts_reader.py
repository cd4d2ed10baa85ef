"""Reads facts that somebody wrote down as a JSON object.

A name is read by its words, which `_` parts, and a unit among them; so `nic_Gbps`, `nics_per_node`
and `measured_busbw_GBps` need no list. A rate counts one direction, unless a word says `duplex` or
it is an advertised one. A text may hold any quantity: "400 Gb/s", "4x HDR", "two". What is not
understood is named, and nothing is refused for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ...collectives import COLLECTIVES
from ...errors import RoundelayError
from ...formats.nccl_tests import bus_factor
from ...units import UnitError, parse_size
from ..finding import Evidence
from .facts import Facts
from .facts_names import BOTH, COUNTS, GBPS, LABEL_NODES, MACHINES, MEASURES, RATES, SETTING
from .facts_series import LONGEST, MOST, is_sentence, odd, take_runs, take_series
from .quantities import count_of, number_in, rate_of, said, slot_in

OFF: Final = frozenset(("off", "disabled", "without"))
ON_OFF: Final = OFF | {"on", "enabled", "with"}
MEASURED_WORDS: Final = frozenset(("measured", "busbw", "got", "achieved", "write", "iperf"))
PROCESSES: Final = frozenset(("processes_per_node", "ranks_per_node", "nproc_per_node", "ppn"))
"""Names that count cards of a host only where nothing else does."""
DEEP: Final = 3
"""Objects in one another that are read."""


def read_facts(data: bytes, file: str) -> Facts:
    """The facts in a JSON object.

    Raises:
        RoundelayError: it is no such object.
    """
    try:
        found = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RoundelayError(f"{file}: no JSON object of facts: {error}") from None
    reader = _Reader(Facts(file), data.decode("utf-8", "replace"))
    for name, value in found.items():
        reader.take(name, value)
    reader.settle()
    return reader.facts


class _Reader:
    """Puts one named value after another into facts."""

    def __init__(self, facts: Facts, text: str) -> None:
        self.facts, self._text = facts, text
        self._each: int | None = None
        self._processes: int | None = None

    def take(self, name: str, value: Any, deep: int = 0) -> None:
        """Understand one, or put its name with those that are not."""
        parts = [part for part in re.split(r"[_\s()\[\]-]+", name) if part]
        unit = next((GBPS[part] for part in parts if part in GBPS), None)
        words = [part.lower() for part in parts if part not in GBPS] or [name.lower()]
        plain = "_".join(words)
        if isinstance(value, Mapping):
            found = take_series(self.facts, name, value, unit or 1.0) or self._nested(
                name, value, deep
            )
        elif isinstance(value, list):
            found = take_runs(self.facts, words, value, unit or 1.0) or self._words_of(words, value)
        elif isinstance(value, bool):
            self.facts.flags[plain] = value
            found = "flags"
        elif plain in COUNTS and not is_sentence(value):
            found = self._count(COUNTS[plain], name, value)
        elif isinstance(value, int | float):
            found = self._number(name, parts, words, value, unit or 1.0)
        elif isinstance(value, str):
            found = self._text_of(name, plain, words, value, unit)
        else:
            found = None
        if found is None:
            self.facts.unknown += (name,)
            return
        before = self._text[: max(0, self._text.find(f'"{name}"'))]
        shown = msgspec.json.encode(value).decode()[:200]
        evidence = Evidence(self.facts.file, before.count("\n") + 1, f'"{name}": {shown}')
        known = self.facts.evidence
        known[found] = (*known.get(found, ()), evidence)

    def settle(self) -> None:
        """What is only known once all is read: of how many cards "8 x H100" speaks."""
        facts, each = self.facts, self._each
        facts.cards = facts.cards or self._processes
        self._times_by_nodes()
        if each and facts.ranks is None and facts.cards is None:
            if (facts.nodes or 1) > 1:
                facts.cards = each
            else:
                facts.ranks = each
        if facts.nodes is None and not (facts.by_nodes or facts.nics or facts.nic):
            where = " ".join(facts.texts.values()).lower()
            if "single node" in where or "one node" in where or "single host" in where:
                facts.nodes = 1

    def _times_by_nodes(self) -> None:
        """Of a call's times by hosts: busbw, where size, cards and collective are told."""
        facts = self.facts
        name = facts.collectives[0] if facts.collectives else ""
        size = max(facts.sizes.values(), default=0)
        told = {nodes: t for (cards, nodes), t in facts.layout_times.items() if not cards and nodes}
        if not told or not facts.cards or len(facts.sizes) != 1 or name not in COLLECTIVES:
            return
        for nodes, seconds in told.items():
            if nodes * facts.cards > 1 and seconds > 0:
                factor = float(bus_factor(name, nodes * facts.cards))
                facts.by_nodes[nodes] = size / seconds / 1e9 * factor
            del facts.layout_times[0, nodes]
        facts.evidence.setdefault("by_nodes", facts.evidence.get("layout_times", ()))

    def _set(self, name: str, value: Any) -> str:
        setattr(self.facts, name, value)
        return name

    def _count(self, field: str, name: str, value: Any) -> str | None:
        count = count_of(value)
        if field == "cards" and name.lower() in PROCESSES and count is not None:
            self._processes = count  # each may have several cards
            return field
        if count is not None:
            return self._set(field, count)
        if field == "wrong" and value == 0:
            return self._set(field, 0)
        if isinstance(value, str) and re.match(r"(?:several|multiple|many)\b", value, re.I):
            self.facts.texts[name.lower()] = value
            return "texts"
        return None if value is None else odd(self.facts, name, value)

    def _number(
        self, name: str, parts: list[str], words: list[str], value: float, unit: float
    ) -> str | None:
        if not 0 <= value < 2.0**62:
            return odd(self.facts, name, value)
        if words[-1] in MEASURES and (len(words) > 1 or words[-1] != "s"):
            return self._measure(words, value)
        if words[-1] in ("qps", "iters", "iterations") and len(words) > 1:  # of a test of the wire
            self.facts.texts["_".join(words)] = str(value)
            return "texts"
        whole = isinstance(value, int) and 0 < value <= 8 and not set(parts) & set(GBPS)
        if whole and "nic" in words and {"gpu", "card"} & set(words):  # a count, not a rate
            self.facts.texts["_".join(words)] = str(value)
            return "texts"
        if "pcie" in words or "pci" in words:
            found = self._slot(words, value)
            if found:
                return found
        if not value * unit < MOST:
            return odd(self.facts, name, value)
        sizes = filter(None, map(_size, parts))
        return self._rate(words, value * unit, next(sizes, None))

    def _slot(self, words: list[str], value: float) -> str | None:
        if {"gen", "generation", "version"} & set(words) and value in (1, 2, 3, 4, 5, 6):
            return self._set("pcie", int(value))
        if {"lanes", "width", "lane"} & set(words) and value in (1, 2, 4, 8, 16):
            return self._set("lanes", int(value))
        return None

    def _rate(self, words: list[str], rate: float, size: int | None) -> str | None:
        facts, has = self.facts, set(words)
        if has & BOTH and has & {"measured", "busbw", "reported", "peak"}:
            rate /= 2
        one_way = {"each", "way"} <= has or {"one", "way"} <= has or "oneway" in has
        if "chunk" in has and size:
            facts.by_chunk[size] = rate
            return "by_chunk"
        if "link" in has and (one_way or "line" in has):
            return self._set("link_line", rate)
        if "bond" in has and not has & MEASURED_WORDS:
            facts.flags["bonded"] = True
            return self._set("nic", rate)
        if (one_way or "line" in has) and has & {"nvlink", "xgmi"} and not has & BOTH:
            return self._set("inside", rate)
        if "nic" in has and has & {"gpu", "card"} and not has & {"measured", "busbw"}:
            return self._set("nic_per_card", rate)
        if (
            "node" in has
            and has & {"bandwidth", "bw", "network"}
            and not has & {"measured", "busbw"}
        ):
            return self._set("node_line", rate)
        if {"host", "device", "to"} <= has and has & {"memcpy", "copy"}:
            into = words.index("host") < words.index("device")
            by = next((way for way in ("sm", "ce") if way in has), "")
            facts.copies["in" if into else "out", by] = rate / 2 if has & BOTH else rate
            return "copies"
        if "p2p" in has and has & ON_OFF:
            facts.p2p["off" if has & OFF else "on"] = rate / 2 if has & BOTH else rate
            return "p2p"
        if "to" in has and len(has) < 5:  # a test of the wire, with memory of the host or the cards
            if has & {"host", "cpu"} and not has & {"gpu", "device", "cuda"}:
                return self._set("wire_test", rate)
            if has & {"gpu", "device", "cuda"} and not has & {"host", "cpu"}:
                return self._set("per_nic", rate)
        if "ib" in has and has & {"write", "send", "read"}:
            return self._set("wire_test", rate)
        if "per" in has and has & {"nic", "hca", "rail"} and not has & {"gpu", "line"}:
            return self._set("per_nic", rate)
        if {"avg", "average", "mean"} & has and has & {"bus", "busbw", "bandwidth"}:
            return self._set("average", rate)
        if {"peak", "busbw"} <= has:
            return self._set("peak", rate)
        name = next((name for some, name in RATES if some & has), None)
        if name in ("busbw", "algbw"):
            label = "_".join(w for w in words if w not in (name, "bus", "measured", "reported"))
            self._ranks_in(words)
            if name == "busbw" and (nodes := LABEL_NODES.fullmatch(label)):
                facts.by_nodes[int(nodes[1])] = rate
                return "by_nodes"
            getattr(facts, name)[label] = rate
            return name
        if name == "advertised":
            facts.duplex = False if one_way else facts.duplex
            facts.duplex = True if has & BOTH else facts.duplex
        return self._set(name, rate) if name else None

    def _measure(self, words: list[str], value: float) -> str:
        """A time or a size."""
        plain, unit = "_".join(words[:-1]), MEASURES[words[-1]]
        if words[-1] == "bytes":
            self.facts.sizes[plain] = int(value)
            return "sizes"
        self.facts.times[plain] = value * unit
        return "times"

    def _ranks_in(self, words: list[str]) -> None:
        """`8gpu` in a name."""
        for word in words:
            if (found := re.fullmatch(r"(\d{1,9})(?:gpus?|ranks?|cards?)", word)) is not None:
                self.facts.ranks = self.facts.ranks or int(found[1])

    def _words_of(self, words: list[str], values: list[Any]) -> str | None:
        """A list of words, such as of settings."""
        if not values or len(values) > LONGEST or not all(isinstance(v, str) for v in values):
            return None
        plain = "_".join(words)
        return self._text_of(plain, plain, words, ", ".join(values), None)

    def _text_of(
        self, name: str, plain: str, words: list[str], text: str, unit: float | None
    ) -> str | None:
        facts, has = self.facts, set(words)
        if settings := dict(SETTING.findall(text)):
            facts.settings.update(settings)
            facts.texts[plain] = text
            return "settings"
        if name.isupper() and "_" in name:
            facts.settings[name] = text
            return "settings"
        if plain in ("op", "ops", "collective", "collectives", "operation", "test"):
            return self._collectives(text, plain)
        if plain in ("gpu", "card", "gpu_type", "gpu_model", "accelerator", "gpus", "cards"):
            return self._card(text)
        if "is" in has and "advertised" in has:
            both = any(part in text.lower() for part in ("both", "duplex", "bidirectional"))
            return self._set("duplex", both)
        if (so := said(text)) is not None:
            facts.flags[plain] = so
            facts.texts[plain] = text
            return "flags"
        if has & MACHINES:
            facts.machine = facts.machine or text
        return self._quantity(plain, words, text, unit)

    def _quantity(self, plain: str, words: list[str], text: str, unit: float | None) -> str:
        """A text with a slot of PCIe, a size, network cards or a rate in it; else a sentence."""
        facts, has = self.facts, set(words)
        facts.texts[plain] = text
        if has & {"pcie", "pci", "slot"} and (slot := slot_in(text)):
            facts.pcie, facts.lanes = slot.generation or facts.pcie, slot.lanes or facts.lanes
            return "texts"
        if words[-1] in ("size", "payload", "message") and (size := _size(text)):
            facts.sizes[plain] = size
            return "sizes"
        if has & {"nic", "nics", "hca", "network", "ib", "fabric", "interconnect", "roce"} and not (
            has & {"measured", "busbw", "got", "perftest", "write", "send", "read"}
        ):
            return self._network(text, unit)
        if is_sentence(text) and not has & {"measured", "busbw", "expected", "peak"}:
            return "texts"
        bare = has & {"busbw", "algbw", "bus", "bandwidth", "avg", "average"}
        rated = rate_of(text, unit or (1.0 if bare else None))
        if rated is None or rated.rate >= MOST:
            return "texts"
        if rated.duplex:
            words = [*words, "duplex"]
        if re.search(r"\bper (?:card|nic|hca|rail|port|network card)\b", text, re.I):
            words = [*words, "per", "nic"]
        found = self._rate(words, rated.rate, None)
        if found is not None and not is_sentence(text):
            del facts.texts[plain]
        return found or "texts"

    def _collectives(self, text: str, plain: str) -> str:
        aliases = {name.replace("_", ""): name for name in COLLECTIVES}
        named = [
            re.sub(r"_perf$|^nccl|^\W+|\W+$", "", part.strip().lower()) for part in text.split(",")
        ]
        known = tuple(aliases.get(re.sub(r"[_\s-]", "", part), part) for part in named)
        if plain == "test" and not set(known) & set(COLLECTIVES):
            self.facts.texts[plain] = text
            return "texts"
        return self._set("collectives", known)

    def _card(self, text: str) -> str:
        self._each = self._each or (count_of(text) if re.match(r"\W*\d+\s?x|\W*\d+ ", text, re.I)
                                    else None)  # fmt: skip
        return self._set("card", re.sub(r"^\W*\d+\s?[xX×]?\s+", "", text))

    def _network(self, text: str, unit: float | None) -> str:
        """The network cards: how many of what rate; the line of one is known by its name."""
        rated = rate_of(text, unit)
        if rated is None or not 0 < rated.rate < MOST:
            return "texts"
        facts = self.facts
        facts.nic = facts.nic or rated.rate
        if "bond" in text.lower():
            facts.flags["bonded"] = True
        if rated.many and facts.nics is None:
            facts.nics = rated.many
        return "nic"

    def _nested(self, name: str, values: Mapping[str, Any], deep: int) -> str | None:
        """An object in an object: its names are taken as if they stood outside."""
        if deep >= DEEP or not values:
            return None
        for key, value in values.items():
            inner = str(key) if str(key) in COUNTS else f"{name}_{key}"
            self.take(inner, value, deep + 1)
        return "texts"


def _size(word: str) -> int | None:
    try:
        return parse_size(word)
    except UnitError:
        pass
    number = number_in(word)
    return int(number) if number and word.strip().lower().endswith("bytes") else None
