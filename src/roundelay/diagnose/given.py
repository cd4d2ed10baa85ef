"""A file that somebody has given: read whole, or line by line where it is long."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader, BytesIO, RawIOBase
from pathlib import Path
from typing import BinaryIO, Final, cast

from ..errors import RoundelayError
from ..formats.nccl_log import lines_of
from ..formats.plain import LIMIT, unpacked

HEAD: Final = 2**20
"""Bytes by which a file is recognised."""
OVERLAP: Final = 64
"""Bytes of a piece that are seen again with the next, so that no word is cut."""
WHOLE: Final = 2**29
"""Bytes of a file that is held as a whole."""


@dataclass(frozen=True)
class Given:
    """A file's name, and where its bytes are: on the disk, or here."""

    name: str
    path: Path | None = None
    data: bytes = b""

    def _open(self) -> tuple[BinaryIO, bool]:
        """The file, unpacked as it is read, and whether it is packed."""
        file = self.stream()
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not packed:
            return file, packed
        unpacking = cast(RawIOBase, gzip.GzipFile(fileobj=file))
        return BufferedReader(unpacking, HEAD), packed

    def stream(self) -> BinaryIO:
        """The file as it is, to be read piece by piece and closed.

        Raises:
            RoundelayError: it is a folder, a pipe or a device, which may never end.
        """
        if self.path is None:
            return BytesIO(self.data)
        if self.path.exists() and not self.path.is_file():
            raise RoundelayError(f"{self.name}: no regular file; save it as one first")
        return self.path.open("rb")

    def head(self) -> bytes:
        """The first bytes, unpacked.

        Raises:
            RoundelayError: it is a damaged gzip file.
        """
        file, _ = self._open()
        with file:
            try:
                return file.read(HEAD)
            except (OSError, EOFError, zlib.error) as error:
                raise RoundelayError(f"{self.name}: no sound gzip file: {error}") from None

    def pieces(self) -> Iterator[bytes]:
        """All bytes, unpacked, as pieces of `HEAD`, each with the end of the one before it.

        Raises:
            RoundelayError: it is a damaged gzip file, or grows without bound.
        """
        file, packed = self._open()
        end, left = b"", LIMIT if packed else 2**62
        with file:
            try:
                while piece := file.read(HEAD):
                    left -= len(piece)
                    if left < 0:
                        raise RoundelayError(f"{self.name} grows beyond {LIMIT:,} bytes")
                    yield end + piece
                    end = piece[-OVERLAP:]
            except (OSError, EOFError, zlib.error) as error:
                raise RoundelayError(f"{self.name}: no sound gzip file: {error}") from None

    def whole(self) -> bytes:
        """All bytes, unpacked.

        Raises:
            RoundelayError: there are too many.
        """
        size = self.path.stat().st_size if self.path else len(self.data)
        if size > WHOLE:
            raise RoundelayError(
                f"{self.name} has {size:,} bytes; expected at most {WHOLE:,} of a file of this kind"
            )
        with self.stream() as file:
            return unpacked(file.read())

    def lines(self) -> Iterator[bytes]:
        """The lines, unpacked, one by one; of a packed file as many bytes as `LIMIT` allows.

        Raises:
            RoundelayError: it is a damaged gzip file, or grows without bound.
        """
        file, packed = self._open()
        with file:
            left = LIMIT if packed else None
            try:
                for line in lines_of(file):
                    if left is not None:
                        left -= len(line)
                        if left < 0:
                            raise RoundelayError(f"{self.name} grows beyond {LIMIT:,} bytes")
                    yield line
            except (OSError, EOFError, zlib.error) as error:
                raise RoundelayError(f"{self.name}: no sound gzip file: {error}") from None
