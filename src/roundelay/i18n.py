"""The language of text meant for people: English text is the key, a table gives the others.

>>> message("{k} pieces", k=3).tell(translator("zh"))
'3 个分块'
>>> str(message("{k:piece is|pieces are} left", k=1))
'1 piece is left'
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from string import Formatter
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from .errors import RoundelayError

Translate = Callable[[str], str]

LANGUAGES: Final = ("en", "zh")


class Message(NamedTuple):
    """Something to say, before it is known in which language; values may be messages too."""

    text: str
    values: Mapping[str, Any]

    def __str__(self) -> str:
        """The text in English."""
        return self.tell(str)

    def tell(self, translate: Translate) -> str:
        """The text in the language of `translate`, with the values put in."""
        values = {
            name: value.tell(translate) if isinstance(value, Message) else value
            for name, value in self.values.items()
        }
        return _COUNTING.vformat(translate(self.text), (), values)


def counted(count: object, one: str, many: str) -> str:
    """A number and what there are so many of: "1 card", "4 cards"."""
    return f"{count} {one if str(count) == '1' else many}"


class _Counting(Formatter):
    """As `str.format`; ``{k:card|cards}`` is a number with the word that fits it."""

    def format_field(self, value: Any, format_spec: str) -> str:
        one, bar, many = format_spec.partition("|")
        if bar:
            return counted(value, one, many)
        told: str = super().format_field(value, format_spec)
        return told


_COUNTING: Final = _Counting()


def message(text: str, /, **values: Any) -> Message:
    """A message: English text with ``{name}`` where the values go; see also `counted`."""
    return Message(text, MappingProxyType(values))


@cache
def translator(lang: str) -> Translate:
    """The function that puts English text into `lang`; what the table lacks stays English.

    Raises:
        RoundelayError: no such language.
    """
    if lang not in LANGUAGES:
        raise RoundelayError(f"language {lang!r}; expected one of {', '.join(LANGUAGES)}")
    table = {} if lang == "en" else _table(lang)
    return lambda text: table.get(text, text)


def default_lang(env: Mapping[str, str]) -> str:
    """The language that the locale in the environment variables `env` asks for."""
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    locale = next((env[name] for name in names if env.get(name)), "")
    return "zh" if locale.lower().startswith("zh") else "en"


def _table(lang: str) -> dict[str, str]:
    text = files(__package__).joinpath("lang", f"{lang}.toml").read_text("utf-8")
    return tomllib.loads(text)
