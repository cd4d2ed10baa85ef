"""Answers in a file of JSON lines, kept as they come, so that a sweep can go on where it ended."""

from __future__ import annotations

import fcntl
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec

from ..errors import RoundelayError

BEGIN: Final = b'{"key":"'
"""How every line begins."""
Row = dict[str, Any]


class Store:
    """A file with one line for each answer, by the key of its question.

    A last line without its end, as a crash leaves it, is dropped. While the file is open no other
    sweep can write to it.
    """

    def __init__(self, path: Path) -> None:
        """Open the file, or begin it.

        Raises:
            RoundelayError: it holds something else, or another sweep writes to it.
            OSError: it cannot be written.
        """
        self._path = path
        self._file = path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.rows: Mapping[str, Row] = self._read()
        except BlockingIOError:
            self._file.close()
            raise RoundelayError(f"{path}: another sweep is writing to it; give this one another "
                                 "file") from None  # fmt: skip
        except BaseException:
            self._file.close()
            raise

    def _read(self) -> dict[str, Row]:
        self._file.seek(0)
        *lines, rest = self._file.read().split(b"\n")
        rows: dict[str, Row] = {}
        for number, line in enumerate(lines, 1):
            row = self._row(number, line)
            rows[row.pop("key")] = row
        if rest:
            if not (rest.startswith(BEGIN) or BEGIN.startswith(rest)):
                raise self._strange(len(lines) + 1)
            self._file.truncate(sum(len(line) + 1 for line in lines))
        return rows

    def _row(self, number: int, line: bytes) -> Row:
        try:
            row = msgspec.json.decode(line, type=Row) if line.startswith(BEGIN) else None
        except msgspec.DecodeError:
            row = None
        if row is None:
            raise self._strange(number)
        return row

    def _strange(self, number: int) -> RoundelayError:
        return RoundelayError(f"{self._path}, line {number}: no line of a sweep; expected a file "
                              "that a sweep has written, or one that is not there yet")  # fmt: skip

    def add(self, key: str, row: Mapping[str, Any]) -> None:
        """Keep an answer."""
        self._file.write(msgspec.json.encode({"key": key, **row}) + b"\n")
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
