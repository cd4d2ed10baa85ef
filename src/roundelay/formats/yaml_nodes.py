"""YAML as mappings, lists and words, with lines, read within bounds. Needs the extra `yaml`.

Nothing is made of tags, and aliases are refused, so that nothing runs and nothing expands.
"""

from __future__ import annotations

import importlib
from typing import Any, Final, NamedTuple

from ..errors import RoundelayError
from .plain import text_of

BYTES: Final = 2**21
DEPTH: Final = 40


class Yaml(NamedTuple):
    """A file: its documents, made of dict, list and str; lines of dicts and lists by their id."""

    documents: tuple[Any, ...]
    lines: dict[int, int]

    def line(self, value: Any) -> int:
        """Where a dict or list begins, from 1; 0 where it is not known."""
        return self.lines.get(id(value), 0)


def read_yaml(data: bytes) -> Yaml:
    """The documents of a file.

    Raises:
        RoundelayError: it is no YAML, is too large or too deep, or has an alias; or PyYAML is
            missing.
    """
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise RoundelayError("reading YAML needs PyYAML: pip install 'roundelay[yaml]'") from None
    text = text_of(data, BYTES)
    if len(text) > BYTES:
        raise RoundelayError(f"{len(text):,} characters of YAML; expected at most {BYTES:,}")
    lines: dict[int, int] = {}
    try:
        nodes = list(yaml.compose_all(text, yaml.SafeLoader))
        seen: set[int] = set()
        documents = tuple(_value(node, lines, seen, 0) for node in nodes if node is not None)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, RoundelayError):
            raise
        raise RoundelayError(f"no sound YAML: {' '.join(str(error).split())[:300]}") from None
    return Yaml(documents, lines)


def _value(node: Any, lines: dict[int, int], seen: set[int], depth: int) -> Any:
    line = node.start_mark.line + 1
    if id(node) in seen:
        raise RoundelayError(f"line {line}: an alias, which may expand without end; write it out")
    seen.add(id(node))
    if depth > DEPTH:
        raise RoundelayError(f"line {line}: more than {DEPTH} levels inside one another")
    made: Any
    if node.id == "scalar":
        return str(node.value)
    if node.id == "sequence":
        made = [_value(child, lines, seen, depth + 1) for child in node.value]
    else:
        made = {}
        for key, child in node.value:
            if key.id != "scalar":
                raise RoundelayError(f"line {key.start_mark.line + 1}: a key that is no word")
            made[str(key.value)] = _value(child, lines, seen, depth + 1)
    lines[id(made)] = line
    return made
