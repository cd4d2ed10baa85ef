"""Text to tokens and back: byte-pair encoding as of GPT-2, with SmolLM2's splitting.

First every digit stands alone; then contractions, words, and what is neither letter nor digit are
parted; then bytes are joined pair by pair, the pair of the lowest rank first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import heappop, heappush
from typing import Final

from ...errors import RoundelayError
from .gguf_file import GgufFile

SYSTEM: Final = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
"""What the model's own template says where a chat has no system message."""
_WORDS: Final = re.compile(
    r"[0-9]|'(?:s|t|re|ve|m|ll|d)| ?[A-Za-z]+| ?[^\sA-Za-z0-9]+|\s+(?![^\s0-9])|\s+", re.ASCII
)
_CONTROL: Final = 3
_BEGIN, _END, _STOP = "<|im_start|>", "<|im_end|>", "<|endoftext|>"
KEPT: Final = 64
"""Characters of a word whose tokens are kept for the next time, at most."""


class Tokenizer:
    """Encodes and decodes.

    Attributes:
        stops: tokens that end a text.
        size: how many tokens there are.
    """

    def __init__(self, file: GgufFile) -> None:
        """Take the vocabulary of a model.

        Raises:
            RoundelayError: it is another kind of vocabulary.
        """
        kind = (file.fact("tokenizer.ggml.model", str), file.fact("tokenizer.ggml.pre", str, "?"))
        if kind != ("gpt2", "smollm"):
            raise RoundelayError(
                f"the vocabulary is of kind {'/'.join(kind):.80}; expected gpt2/smollm, as of "
                "SmolLM2"
            )
        names, kinds, pairs = (file.fact(f"tokenizer.ggml.{what}", list)
                               for what in ("tokens", "token_type", "merges"))  # fmt: skip
        if len(kinds) != len(names) or not all(isinstance(t, str) for t in (*names, *pairs)):
            raise RoundelayError(f"the vocabulary has {len(names)} tokens of {len(kinds)} types, "
                                 "not all of them texts; expected as many texts")  # fmt: skip
        self._signs, self.size = _signs(), len(names)
        self._numbers = {name: i for i, name in enumerate(names)}
        self._special = {n: i for i, n in enumerate(names) if kinds[i] == _CONTROL}
        if missing := {_BEGIN, _END, _STOP} - self._special.keys():
            raise RoundelayError(f"the vocabulary has no {', '.join(sorted(missing))}; expected "
                                 "those of SmolLM2")  # fmt: skip
        values = {sign: byte for byte, sign in enumerate(self._signs)}
        self._bytes = [b"" if kinds[i] == _CONTROL else _meant(name, values)
                       for i, name in enumerate(names)]  # fmt: skip
        self._ranks = {tuple(pair.split(" ")): i for i, pair in enumerate(pairs)}
        self.stops = {file.fact("tokenizer.ggml.eos_token_id", int), self._special[_STOP]}
        self._longest = max(map(len, self._bytes))
        self._word = lru_cache(1 << 14)(self._join)

    def encode(self, text: str, most: int | None = None) -> list[int]:
        """The tokens of a text, in which nothing is special.

        Args:
            text: any.
            most: tokens that there is room for. A text with more is not read to its end.

        Bytes that the vocabulary lacks are left out: SmolLM2's has no token for some control
        characters, nor for the planes 4 to 15 of Unicode.

        Raises:
            RoundelayError: it has half of a surrogate pair, which is no character; or more tokens
                than there is room for.
        """
        try:
            size = len(text.encode())
        except UnicodeEncodeError as error:
            raise RoundelayError(
                f"the text is not valid Unicode at character {error.start}; expected UTF-8"
            ) from None
        room = size if most is None else most
        if size > room * self._longest:
            raise _too_long(room)
        found: list[int] = []
        for word in split(text):
            found += self._word(word) if len(word) <= KEPT else self._join(word)
            if len(found) > room:
                raise _too_long(room)
        return found

    def chat(self, messages: Sequence[tuple[str, str]], most: int | None = None) -> list[int]:
        """The tokens of a chat after which the assistant speaks, by the model's template.

        Args:
            messages: role and content of each.
            most: as for `encode`.

        Raises:
            RoundelayError: as of `encode`.
        """
        if not messages or messages[0][0] != "system":
            messages = [("system", SYSTEM), *messages]
        begin, end = self._special[_BEGIN], self._special[_END]
        line = self.encode("\n")
        found: list[int] = []
        for role, content in messages:
            found += [begin, *self.encode(f"{role}\n{content}", most), end, *line]
            if most is not None and len(found) > most:
                raise _too_long(most)
        return [*found, begin, *self.encode("assistant\n")]

    def bytes_of(self, token: int) -> bytes:
        """What a token stands for: a part of UTF-8 text, or nothing if it is a special one."""
        return self._bytes[token]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens; bytes that are no UTF-8 become U+FFFD."""
        return b"".join(map(self.bytes_of, tokens)).decode("utf-8", "replace")

    def _join(self, word: str) -> list[int]:
        """The tokens of a word: the pair of the lowest rank is joined first, the leftmost of those.

        A part stands at the place of its first byte; what was joined to one before it is empty.
        """
        parts = [self._signs[byte] for byte in word.encode()]
        size = len(parts)
        after, before = [*range(1, size + 1)], [*range(-1, size - 1)]
        pairs: list[tuple[int, int, str, str]] = []

        def offer(left: int) -> None:
            if left >= 0 and (right := after[left]) < size:
                rank = self._ranks.get((parts[left], parts[right]))
                if rank is not None:
                    heappush(pairs, (rank, left, parts[left], parts[right]))

        for left in range(size):
            offer(left)
        while pairs:
            _, left, first, second = heappop(pairs)
            right = after[left]
            if parts[left] != first or right >= size or parts[right] != second:
                continue  # one of them has been joined to another since
            parts[left], parts[right] = first + second, ""
            after[left] = after[right]
            if after[right] < size:
                before[after[right]] = left
            offer(left)
            offer(before[left])
        return [self._numbers[part] for part in parts if part in self._numbers]


def _too_long(most: int) -> RoundelayError:
    return RoundelayError(f"the prompt has more than {most:,} tokens, and the context is "
                          f"{most + 1:,}, the answer included; expected a shorter one")  # fmt: skip


def split(text: str) -> Iterator[str]:
    """The words of a text, which are encoded one by one; together they are the text."""
    plain = "".join(c if c < "\x80" else _stand_in(c) for c in text)
    for match in _WORDS.finditer(plain):
        yield text[match.start() : match.end()]


@lru_cache(1 << 12)
def _stand_in(c: str) -> str:
    """An ASCII character of the same kind; no letter of a contraction."""
    if c.isspace():
        return "\t"
    return {"L": "a", "N": "0"}.get(unicodedata.category(c)[0], "!")


def _meant(name: str, values: Mapping[str, int]) -> bytes:
    """What a token stands for; one that was added by hand stands for itself."""
    if all(c in values for c in name):
        return bytes(values[c] for c in name)
    return name.encode()


def _signs() -> list[str]:
    """[byte], the character that stands for it in the vocabulary: itself where it can be seen."""
    seen = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in seen else chr(next(others)) for byte in range(256)]
