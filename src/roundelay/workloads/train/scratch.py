"""A folder for the time of a training, which is gone afterwards, even if its owner was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

PREFIX: Final = "roundelay-train-"
_LOCK: Final = "lock"


@contextmanager
def scratch() -> Iterator[Path]:
    """A new folder; those whose owners have been killed are removed first.

    The owner holds a lock on a file in it, of which the system lets go when the process ends.
    """
    _sweep()
    with tempfile.TemporaryDirectory(prefix=PREFIX) as name:
        folder = Path(name)
        with (folder / "new").open("wb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            (folder / "new").rename(folder / _LOCK)  # nobody sees it without its lock
            yield folder


def _sweep() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            with (folder / _LOCK).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # it has an owner, or is being made or removed
            continue
