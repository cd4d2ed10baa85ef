"""What torch.save has put around a pickle: a zip archive, in which it is called data.pkl."""

from __future__ import annotations

import struct
import zipfile
import zlib
from io import BytesIO
from typing import Final

from ..errors import RoundelayError
from .plain import LIMIT

MARK: Final = b"PK\x03\x04"
NAME: Final = "data.pkl"
MEMBERS: Final = 10**4


def unsaved(data: bytes, limit: int = LIMIT) -> bytes:
    """The pickle in such an archive; other bytes as they are.

    Raises:
        RoundelayError: the archive is damaged, has no such pickle, or grows beyond the limit.
    """
    if not data.startswith(MARK):
        return data
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            members = archive.infolist()[:MEMBERS]
            pickled = next((m for m in members if m.filename.split("/")[-1] == NAME), None)
            if pickled is None:
                raise RoundelayError(
                    f"a zip archive without {NAME}; expected what torch.save writes of a dump of "
                    "the flight recorder. Unpack it and pass the files"
                )
            if pickled.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise RoundelayError("a zip archive packed in a way that torch.save does not use")
            with archive.open(pickled) as file:
                found = file.read(limit + 1)
    except RoundelayError:
        raise
    except (zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, RuntimeError,
            EOFError, OSError, ValueError, OverflowError) as error:  # fmt: skip
        raise RoundelayError(f"no sound zip archive: {error}; is the file whole?") from None
    if len(found) > limit:
        raise RoundelayError(f"a zip archive that grows beyond {limit:,} bytes")
    return found
