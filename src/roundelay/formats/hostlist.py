"""Lists of hosts as Slurm writes them: tux[0-3,12,018-020],login."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from ..errors import RoundelayError

MOST: Final = 2**18
"""Names of a list."""
LETTERS: Final = 2**25
"""Characters of all names of a list together."""
_PART: Final = re.compile(r"[^,\[\]]*(?:\[[^\[\]]*\][^,\[\]]*)*")
_BRACKET: Final = re.compile(r"\[([^\[\]]*)\]")
_RANGE: Final = re.compile(r"(\d{1,12})(?:-(\d{1,12}))?")
_LAST: Final = re.compile(r"(.*?)([0-9]{1,12})([^0-9]*)")


def hosts(text: str) -> tuple[str, ...]:
    """The names of a list, in its order; zeros in front are kept.

    Raises:
        RoundelayError: a bracket or a range is not sound, or there are too many names.
    """
    found: list[str] = []
    at, letters = 0, LETTERS
    while at < len(text):
        part = _PART.match(text, at)
        if part is None or not part[0].strip():
            raise RoundelayError(f"{text[:80]!r}: no list of hosts at {text[at : at + 20]!r}; "
                                 "expected such as node[01-16,20]")  # fmt: skip
        more = _expanded(part[0].strip(), MOST - len(found), letters)
        letters -= sum(map(len, more))
        found += more
        at = part.end()
        if at < len(text) and text[at] != ",":
            raise RoundelayError(f"{text[:80]!r}: a bracket that is not closed or not opened")
        at += 1
    return tuple(found)


def _expanded(part: str, left: int, letters: int) -> list[str]:
    names = [""]
    end = 0
    for bracket in _BRACKET.finditer(part):
        plain, numbers = part[end : bracket.start()], _numbers(bracket[1], left)
        count = len(names) * len(numbers)
        if count > left or count * len(part) > letters:
            raise RoundelayError(f"{part[:80]!r}: more than {MOST:,} names, or too long ones")
        names = [f"{name}{plain}{number}" for name in names for number in numbers]
        end = bracket.end()
    return [name + part[end:] for name in names]


def _numbers(text: str, left: int) -> list[str]:
    found: list[str] = []
    for word in text.split(","):
        bounds = _RANGE.fullmatch(word.strip())
        if bounds is None:
            raise RoundelayError(f"[{text[:60]}]: {word[:20]!r} is no range; expected such as 1-4")
        first, last = bounds[1], bounds[2] or bounds[1]
        if not 0 <= int(last) - int(first) < left - len(found):
            raise RoundelayError(f"[{text[:60]}]: {word[:20]!r} runs backwards, or is too long")
        wide = len(first)
        found += [str(number).zfill(wide) for number in range(int(first), int(last) + 1)]
    return found


class Lists:
    """Lists of hosts of one file, which must not grow beyond all bounds together."""

    def __init__(self) -> None:
        self._left = 2 * MOST

    def read(self, text: str, line: int) -> tuple[str, ...]:
        """The names of a list, none of an empty one.

        Raises:
            RoundelayError: as `hosts`, with the line; or there are too many in the file.
        """
        try:
            found = hosts(text) if text.strip() else ()
        except RoundelayError as error:
            raise RoundelayError(f"line {line}: {error}") from None
        self._left -= len(found)
        if self._left < 0:
            raise RoundelayError(f"line {line}: more than {2 * MOST:,} names in the file")
        return found


def compressed(names: Iterable[str]) -> str:
    """A list of the names as short as Slurm writes it; `hosts` gives the same names, sorted.

    The last number of a name makes the range. Zeros in front stay.
    """
    plain: set[str] = set()
    numbered: dict[tuple[str, str], set[str]] = {}
    for name in names:
        if (parts := _LAST.fullmatch(name)) is None:
            plain.add(name)
        else:
            numbered.setdefault((parts[1], parts[3]), set()).add(parts[2])
    groups: dict[tuple[str, int, str], set[int]] = {}
    for (before, behind), texts in numbered.items():
        padded = {len(text) for text in texts if text[0] == "0" and len(text) > 1}
        for text in texts:
            wide = len(text) if len(text) in padded else 0
            groups.setdefault((before, wide, behind), set()).add(int(text))
    words = sorted(plain)
    for (before, wide, behind), numbers in sorted(groups.items()):
        ranges = ",".join(_ranges(sorted(numbers), wide))
        inside = f"[{ranges}]" if "-" in ranges or "," in ranges else ranges
        words.append(f"{before}{inside}{behind}")
    return ",".join(words)


def _ranges(numbers: Sequence[int], wide: int) -> Iterator[str]:
    first = 0
    for i in range(1, len(numbers) + 1):
        if i == len(numbers) or numbers[i] != numbers[i - 1] + 1:
            low, high = (str(numbers[k]).zfill(wide) for k in (first, i - 1))
            yield low if low == high else f"{low}-{high}"
            first = i
