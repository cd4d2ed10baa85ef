"""Facts that are several values under one name: by version, node or pair, or run by run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from .facts import Facts
from .facts_names import LABEL_NODES, LABEL_PAIR, LABEL_RANKS, LABEL_VERSION
from .quantities import rate_of

MOST: Final = 1e9
"""GB/s, and more than any rate."""
LONGEST: Final = 10**4
"""Values of a list that is read."""
RUNS: Final = frozenset(("busbw", "bus", "runs", "measured", "bandwidth"))


def take_series(facts: Facts, name: str, values: Mapping[str, Any], unit: float) -> str | None:
    """Rates by version, by number of hosts, or by pair: what the labels are tells which."""
    kinds: tuple[tuple[re.Pattern[str], str, Callable[[re.Match[str]], Any]], ...] = (
        (LABEL_NODES, "by_nodes", lambda m: int(m[1])),
        (LABEL_RANKS, "by_ranks", lambda m: int(m[1])),
        (LABEL_VERSION, "by_version", lambda m: m[1]),
        (LABEL_PAIR, "by_pair", lambda m: (m[1] or m[3], m[2] or m[4])),
    )
    rates = {key: _rate_in(value, unit) for key, value in values.items()}
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
