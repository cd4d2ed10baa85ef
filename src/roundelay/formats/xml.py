"""XML as people paste it, read within bounds: also a part of a file, or one that is cut off.

Whatever is wrong becomes a note with its line. Document types are refused, so that nothing expands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from xml.parsers import expat

from ..errors import RoundelayError
from ..i18n import Message, message
from .note import Note
from .plain import text_of

BYTES: Final = 2**24
DEPTH: Final = 64
ELEMENTS: Final = 2**18
ATTRIBUTES: Final = 64
LENGTH: Final = 4096
"""Characters of an attribute."""
RESUMES: Final = 64
"""Closing tags without an opening one, after which nothing more is read."""
_OPEN: Final = b"<_>"


@dataclass(slots=True)
class Element:
    """An element; its line counts from 1. `whole` says whether its end was read."""

    name: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    whole: bool = True

    def named(self, name: str) -> Iterator[Element]:
        """The children of a name."""
        return (child for child in self.children if child.name == name)

    def text(self) -> str:
        """The opening tag, shortened."""
        inside = "".join(f' {k}="{v}"' for k, v in self.attributes.items())
        return f"<{self.name}{inside}>"[:200]

    def number(self, name: str, default: float | None = None) -> float | None:
        """An attribute as a finite number, decimal or 0x; the default where it is none."""
        value = self.attributes.get(name, "")
        try:
            found = float(int(value, 16)) if value.lower().startswith("0x") else float(value)
        except (ValueError, OverflowError):
            return default
        return found if abs(found) < float("inf") else default


class Tree(NamedTuple):
    """What was read; `cut` says whether the end is missing."""

    roots: tuple[Element, ...]
    notes: tuple[Note, ...]
    cut: bool


def read_xml(data: bytes) -> Tree:
    """The elements of a text.

    Raises:
        RoundelayError: it has a document type, is too large or too deep, or holds no element.
    """
    text = text_of(data, BYTES).encode()
    if len(text) > BYTES:
        raise RoundelayError(f"{len(text):,} bytes of XML; expected at most {BYTES:,}")
    for word in (b"<!DOCTYPE", b"<!ENTITY"):
        if word in text:
            line = text.count(b"\n", 0, text.index(word)) + 1
            raise RoundelayError(
                f"line {line}: {word.decode()} in XML, which may expand without end; expected "
                "elements and attributes only"
            )
    builder = _Builder()
    _feed(_without_prolog(text), builder)
    if not builder.root.children:
        raise RoundelayError('no element of XML; expected a tag such as <system version="1">')
    return Tree(tuple(builder.root.children), tuple(builder.notes), builder.cut)


def _without_prolog(text: bytes) -> bytes:
    """The text with spaces in place of its prolog, which stands inside an element here."""
    start = text.find(b"<?xml")
    end = text.find(b"?>", start)
    if start < 0 or end < 0:
        return text
    blank = bytes(10 if byte == 10 else 32 for byte in text[start : end + 2])
    return text[:start] + blank + text[end + 2 :]


class _Builder:
    """Takes tags as they come."""

    def __init__(self) -> None:
        self.root = Element("", {}, 0)
        self.stack = [self.root]
        self.notes: list[Note] = []
        self.count = 0
        self.cut = False
        self.line: Callable[[], int] = lambda: 1

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "_":
            return
        self.count += 1
        line = self.line()
        if len(self.stack) > DEPTH or self.count > ELEMENTS:
            raise RoundelayError(
                f"line {line}: more than {DEPTH} elements inside one another, or {ELEMENTS:,} in "
                "all; is this a topology?"
            )
        if len(attributes) > ATTRIBUTES or any(len(v) > LENGTH for v in attributes.values()):
            raise RoundelayError(
                f"line {line}: <{name[:40]}> has more than {ATTRIBUTES} attributes, or one of more "
                f"than {LENGTH:,} characters"
            )
        element = Element(name, attributes, line)
        self.stack[-1].children.append(element)
        self.stack.append(element)

    def end(self, name: str) -> None:
        """Close it, and with a note what stands open inside."""
        if name == "_":
            return
        for depth in range(len(self.stack) - 1, 0, -1):
            if self.stack[depth].name == name:
                for left in self.stack[depth + 1 :]:
                    self.note(left.line, message("<{name}> is not closed", name=left.name))
                del self.stack[depth:]
                return
        self.note(
            self.line(), message("</{name}> closes what is not open: a part of a file", name=name)
        )

    def note(self, line: int, what: Message) -> None:
        self.notes.append(Note(line, what))


def _feed(text: bytes, builder: _Builder) -> None:
    """Parse; after a closing tag that matches nothing go on with a fresh parser."""
    lines = 0
    for _ in range(RESUMES):
        parser = expat.ParserCreate("utf-8")
        parser.StartElementHandler = builder.start
        parser.EndElementHandler = builder.end
        builder.line = lambda p=parser, n=lines: p.CurrentLineNumber + n  # type: ignore[misc]
        try:
            parser.Parse(_OPEN, False)
            parser.Parse(text, False)
            parser.Parse(b"</_>", True)
        except expat.ExpatError as error:
            at = parser.ErrorByteIndex - len(_OPEN)
            rest = _behind(text, at) if error.code == _MISMATCH and at < len(text) else None
            if rest is not None:
                name, behind = rest
                builder.end(name)
                lines += text.count(b"\n", 0, behind)
                text = text[behind:]
                continue
            _cut(builder, error.lineno + lines, error)
            return
        if len(builder.stack) > 1:
            _cut(builder, builder.line(), None)
        return
    what = message("too many closing tags without an opening one; the rest is not read")
    builder.note(lines, what)
    builder.cut = True


_MISMATCH: Final = expat.errors.codes[expat.errors.XML_ERROR_TAG_MISMATCH]


def _behind(text: bytes, at: int) -> tuple[str, int] | None:
    """The name of the closing tag at a place, and the place behind it."""
    start = text.rfind(b"</", 0, at + 2)
    end = text.find(b">", start)
    if start < 0 or end < 0:
        return None
    return text[start + 2 : end].decode("utf-8", "replace").strip()[:40], end + 1


def _cut(builder: _Builder, line: int, error: expat.ExpatError | None) -> None:
    builder.cut = True
    for element in builder.stack:
        element.whole = False
    inside = builder.stack[-1]
    last = inside.children[-1] if inside.children else inside
    if len(builder.stack) == 1:
        what = expat.ErrorString(error.code) if error else ""
        told = message("no XML from here on ({what}); what stands before is read", what=what)
    else:
        told = message(
            "the file is cut off inside <{name}> of line {start}; the last element read is {last}",
            name=inside.name, start=inside.line, last=last.text(),
        )  # fmt: skip
    builder.note(line, told)
