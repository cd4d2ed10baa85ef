"""Facts that are several values under one name: by version, node or pair, or run by run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from .facts import Facts
from .facts_names import LABEL_LAYOUT, LABEL_NODES, LABEL_PAIR, LABEL_RANKS, LABEL_VERSION, MEASURES
from .quantities import rate_of

MOST: Final = 1e9
"""GB/s, and more than any rate."""
LONGEST: Final = 10**4
"""Values of a list that is read."""
RATED: Final = frozenset(("busbw", "algbw", "bandwidth", "bw", "measured"))
"""Words of a name whose values are rates."""
RUNS: Final = frozenset(("busbw", "bus", "runs", "measured", "bandwidth"))


def take_series(facts: Facts, name: str, values: Mapping[str, Any], unit: float) -> str | None:
    """Rates by version, by number of hosts, or by pair: what the labels are tells which."""
    kinds: tuple[tuple[re.Pattern[str], str, Callable[[re.Match[str]], Any]], ...] = (
        (LABEL_NODES, "by_nodes", lambda m: int(m[1])),
        (LABEL_RANKS, "by_ranks", lambda m: int(m[1])),
        (LABEL_VERSION, "by_version", lambda m: m[1]),
        (LABEL_PAIR, "by_pair", lambda m: (m[1] or m[3], m[2] or m[4])),
    )
    if into := _layouts(facts, name, values, unit) or _times(facts, name, values):
        return into
    rates = {key: _rate_in(value, unit) for key, value in values.items()}
    if set(re.split(r"[_\s]+", name.lower())) & RATED and None not in rates.values() and not any(
        pattern.fullmatch(key.strip()) for key in values for pattern, _, _ in kinds
    ):  # fmt: skip
        return None  # of algorithms or collectives, each with a name
    for pattern, into, label in kinds:
        matches = {key: pattern.fullmatch(key.strip()) for key in values}
        if values and all(matches.values()):
            sound = {label(m): rates[key] for key, m in matches.items() if m
                     and rates[key] is not None}  # fmt: skip
            for key in values:
                if rates[key] is None:
                    odd(facts, f"{name}.{key}", values[key])
            getattr(facts, into).update(sound)
            return into
    if values and all(isinstance(v, str | int) for v in values.values()):
        shouted = all(key.isupper() for key in values)
        if shouted or all(isinstance(v, str) and not is_sentence(v) and rates[k] is None
                          for k, v in values.items()):  # fmt: skip
            facts.settings.update({key: str(value) for key, value in values.items()})
            return "settings"
    return None


def _layouts(facts: Facts, name: str, values: Mapping[str, Any], unit: float) -> str | None:
    """Times or rates by how many cards of each host take part."""
    found = [LABEL_LAYOUT.fullmatch(key.strip()) for key in values]
    numbers = [value for value in values.values() if isinstance(value, int | float)
               and not isinstance(value, bool) and 0 < value < MOST]  # fmt: skip
    if not values or None in found or len(numbers) != len(values):
        return None
    last = re.split(r"[_\s]+", name.lower())[-1]
    scale = MEASURES.get(last, 0.0) if last != "bytes" else 0.0
    if not scale and not set(re.split(r"[_\s]+", name.lower())) & RATED:
        return None
    into = facts.layout_times if scale else facts.layouts
    for match, number in zip(filter(None, found), numbers, strict=True):
        nodes = match[2] or match[3]
        into[int(match[1] or match[4]), int(nodes) if nodes else None] = number * (scale or unit)
    return "layout_times" if scale else "layouts"


def _times(facts: Facts, name: str, values: Mapping[str, Any]) -> str | None:
    """Times by any label."""
    *rest, last = re.split(r"[_\s]+", name.lower())
    whole = [v for v in values.values() if isinstance(v, int | float) and not isinstance(v, bool)]
    if last == "bytes" or last not in MEASURES or not values or len(whole) != len(values):
        return None
    if not all(0 <= v < MOST for v in whole):
        return None
    hosts = [LABEL_NODES.fullmatch(key.strip()) for key in values]
    if None not in hosts:
        for match, value in zip(filter(None, hosts), whole, strict=True):
            facts.layout_times[0, int(match[1])] = value * MEASURES[last]
        return "layout_times"
    facts.times |= {"_".join([*rest, str(k)]): v * MEASURES[last] for k, v in values.items()}
    return "times"


def take_runs(facts: Facts, words: list[str], values: list[Any], unit: float) -> str | None:
    """Rates of one run after another."""
    if not values or len(values) > LONGEST or not set(words) & RUNS:
        return None
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in values):
        return None
    facts.runs = tuple(v * unit for v in values if 0 <= v < MOST)
    return "runs"


def odd(facts: Facts, name: str, value: Any) -> str:
    """Put a value with those that cannot be what their name says."""
    facts.odd += ((name, msgspec.json.encode(value).decode()[:60]),)
    return "odd"


def is_sentence(value: Any) -> bool:
    """Whether words stand where a number could."""
    return isinstance(value, str) and len(value.split()) > 4


def _rate_in(value: Any, unit: float) -> float | None:
    """A rate that stands as a number or in a text."""
    if isinstance(value, str):
        rated = rate_of(value, unit)
        return rated.rate if rated is not None and rated.rate < MOST else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < MOST:
        return None
    return value * unit
