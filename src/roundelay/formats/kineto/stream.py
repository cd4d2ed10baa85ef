"""A trace file read in pieces that fit into memory, in one pass.

The file is an object with an array `traceEvents`, or that array alone. A piece ends where it looks
as if an event ended; that it decodes as a JSON list proves that it did. Where it does not, strings
and brackets are counted one by one; what is not JSON at all is left out, and said.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, BinaryIO, Final

import msgspec

from ...errors import RoundelayError

BLOCK: Final = 8 << 20
"""Bytes read at a time."""
HEAD: Final = 256 << 20
"""Bytes that what stands before or after the events may have."""
EVENT: Final = 64 << 20
"""Bytes that one event may have."""
MOST: Final = 64 << 30
"""Bytes that a file may have when it is unpacked."""
FREE: Final = 1 << 30
"""Bytes below which a packed file may be of any kind."""
RATIO: Final = 300
"""Bytes that one packed byte may become beyond that; traces become 30 or 40."""
PATIENCE: Final = 3
"""Events without an end, after which every place that looks like an event is taken for one."""
_GZIP: Final = b"\x1f\x8b"
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["{}\[\]]', re.DOTALL)
_BEGIN: Final = re.compile(rb'(?<=[,\s\[])\{\s*"(?:ph|name)"\s*:')
_ARRAY: Final = re.compile(rb'"traceEvents"\s*:\s*\[')
_NO_NUMBER: Final = re.compile(rb":\s*[+-]?(?:nan|inf|infinity)\b(?=\s*[,}])", re.IGNORECASE)
_CANDIDATES: Final = 64
_WHITE: Final = 64

Decode = Callable[[bytes], list[Any]]
"""A JSON list of events decoded; raises msgspec.DecodeError where it is none."""


class Stream:
    """The events of a file; see `__iter__`.

    Attributes:
        head, tail: what stands before and behind the events, as text of a JSON object, once all
            of them have been read.
        bad: line, and why, of what could not be read.
        cut: whether the file ended before the array did.
        read: bytes, unpacked.
    """

    def __init__(self, source: bytes | BinaryIO, decode: Decode) -> None:
        stream: Any = _Joined(io.BytesIO(source) if isinstance(source, bytes) else source)
        self._packed = stream
        self._stream = gzip.GzipFile(fileobj=stream) if stream.start == _GZIP else stream
        self._decode, self._ended, self._endless = decode, False, 0
        self.head, self.tail, self.cut, self.read = b"{}", b"{}", False, 0
        self.bad: list[tuple[int, str]] = []
        self._line = 1

    def __iter__(self) -> Iterator[list[Any]]:
        """Some events at a time, in the file's order.

        Raises:
            RoundelayError: it is no trace, or too large.
        """
        text = self._to_array()
        while True:
            if end := _guess(text):
                try:
                    yield self._decoded(text[:end])
                    text = self._behind(text, end)
                except (msgspec.DecodeError, RecursionError):
                    end = 0
            if not end:
                counted = Counted(text)
                yield self._each(text, counted.spans)
                text = self._behind(text, counted.end)
                if counted.closed:
                    self._finish(text)
                    return
                if not counted.end and (self._ended or len(text) > self._limit):
                    events, text = self._anew(text)
                    yield events
                    if self.cut:
                        return
            text += self._more()

    @property
    def _limit(self) -> int:
        return EVENT if self._endless < PATIENCE else BLOCK

    def _more(self) -> bytes:
        """The next block; nothing at the end."""
        try:
            block: bytes = self._stream.read(BLOCK)
        except (OSError, zlib.error, EOFError) as error:
            if not self.read:
                raise RoundelayError(f"the trace cannot be unpacked: {error}") from None
            self.bad.append((self._line, f"{error}"))
            block = b""
        self.read += len(block)
        most = min(MOST, max(FREE, RATIO * self._packed.read_bytes))
        if self.read > most:
            raise RoundelayError(
                f"the trace has more than {most:,} bytes unpacked; expected {RATIO} times its "
                "packed ones at most"
            )
        self._ended = not block
        return block

    def _to_array(self) -> bytes:
        """What has been read from the array's first event on."""
        text = b""
        while block := self._more():
            text = (text + block).removeprefix(b"\xef\xbb\xbf")
            plain = text.lstrip()
            if plain[:1] == b"[":
                return plain[1:]
            if len(text) > HEAD or plain[:1] not in (b"{", b""):
                break
            for found in _ARRAY.finditer(text):
                if _depth(text, found.start()) == 1:
                    self.head = text[: found.start()].rstrip(b", \t\r\n") + b"}"
                    return self._behind(text, found.end())
        raise RoundelayError(
            f"no trace: it begins with {text[:40]!r}; expected a JSON object with traceEvents, as "
            "torch.profiler's export_chrome_trace writes it"
        )

    def _behind(self, text: bytes, end: int) -> bytes:
        self._line += text.count(b"\n", 0, end)
        return text[end:]

    def _finish(self, text: bytes) -> None:
        """What follows the array's `]`."""
        while len(text) <= HEAD and (block := self._more()):
            text += block
        rest = text.lstrip()[1:].strip().removeprefix(b",")
        self.tail = b"{" + rest if rest else b"{}"

    def _anew(self, text: bytes) -> tuple[list[Any], bytes]:
        """Go on after an event without an end: what can be read, and what is left."""
        self._endless += 1
        starts = [found.start() for found in _BEGIN.finditer(text, 1)]
        if not starts:
            self.cut = self._ended
            if not self._ended or text.strip(b", \t\r\n"):
                self.bad.append((self._line, "an event without an end"))
            return [], b""
        if self._endless <= PATIENCE:
            self.bad.append((self._line, "an event without an end"))
            return [], self._behind(text, starts[0])
        last = len(text) if self._ended else starts[-1]
        bounds = [0, *(at for at in starts if at < last), last]
        spans = [(a, a + len(text[a:b].rstrip(b", \t\r\n"))) for a, b in pairwise(bounds)]
        return self._each(text, spans), self._behind(text, last)

    def _decoded(self, text: bytes) -> list[Any]:
        text = text.strip(b", \t\r\n")
        try:
            return self._decode(b"[" + text + b"]")
        except msgspec.DecodeError:
            mended = _NO_NUMBER.sub(b": null", text)
            if mended == text:
                raise
            return self._decode(b"[" + mended + b"]")

    def _each(self, text: bytes, spans: list[tuple[int, int]]) -> list[Any]:
        """The events of these spans; halved until those are found that cannot be read."""
        found: list[Any] = []
        left = [(0, len(spans))]
        while left:
            a, b = left.pop()
            if a == b:
                continue
            try:
                found += self._decoded(text[spans[a][0] : spans[b - 1][1]])
            except (msgspec.DecodeError, RecursionError) as error:
                middle = (a + b) // 2
                if b - a > 1:
                    left += [(middle, b), (a, middle)]
                else:
                    line = self._line + text.count(b"\n", 0, spans[a][0])
                    self.bad.append((line, str(error) or type(error).__name__))
        return found


class _Joined:
    """A stream whose first bytes have been looked at."""

    def __init__(self, stream: BinaryIO) -> None:
        self.start = self._left = stream.read(2)
        self._rest = stream
        self.read_bytes = 0

    def read(self, size: int = -1) -> bytes:
        left, self._left = self._left, b""
        data = left + self._rest.read(size if size < 0 else max(0, size - len(left)))
        self.read_bytes += len(data)
        return data


def _guess(text: bytes) -> int:
    """Where the last event but one seems to end, or 0."""
    at = len(text)
    for _ in range(_CANDIDATES):
        at = text.rfind(b"{", 0, at)
        if at <= 0:
            break
        start = max(0, at - _WHITE)
        before = text[start:at].rstrip()
        if before.endswith(b",") and before[:-1].rstrip().endswith(b"}"):
            return start + len(before) - 1
    return 0


def _depth(text: bytes, to: int) -> int:
    """Brackets that are open at a place; -1 where that is inside a string."""
    depth = 0
    for token in _TOKEN.finditer(text, 0, to):
        word = token[0]
        if word == b'"':
            return -1
        depth += (word in (b"{", b"[")) - (word in (b"}", b"]"))
    return depth


class Counted:
    """How far a text consists of whole events.

    Attributes:
        spans: [event], where it begins and ends.
        end: of the last whole event.
        closed: whether the array's `]` follows.
    """

    def __init__(self, text: bytes) -> None:
        self.spans: list[tuple[int, int]] = []
        self.end, self.closed = 0, False
        depth = begin = 0
        for token in _TOKEN.finditer(text):
            word = token[0]
            if word == b'"':  # a string that goes on behind the text
                return
            if word in (b"{", b"["):
                begin = token.start() if depth == 0 else begin
                depth += 1
            elif len(word) == 1:
                depth -= 1
                if depth < 0:
                    self.closed, self.end = True, token.start()
                    return
                if depth == 0:
                    self.end = token.end()
                    self.spans.append((begin, self.end))
