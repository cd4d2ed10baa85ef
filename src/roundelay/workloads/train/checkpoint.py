"""Checkpoints that are whole or not there."""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import torch

from ...errors import RoundelayError

PART: Final = ".part"
"""What stands behind the name of a file that is not whole."""

_BROKEN: Final = (RuntimeError, EOFError, pickle.UnpicklingError, ValueError, zipfile.BadZipFile,
                  zlib.error, struct.error, LookupError, TypeError, AttributeError)  # fmt: skip
"""What reading a file raises whose bytes are others than those that were written."""


def part_of(file: Path) -> Path:
    """Where the file is written before it is whole."""
    return file.with_name(file.name + PART)


def save(file: Path, state: Any, midway: Callable[[], None] = lambda: None) -> int:
    """Write beside the file, have it on the disk, and only then put it into its place.

    Args:
        file: the last one stays until this one is whole.
        state: tensors, numbers and texts.
        midway: called when half of it is written.

    Returns:
        bytes of the file.

    Raises:
        OSError: it cannot be written, as where the disk is full; the last one is still there.
    """
    memory = io.BytesIO()
    torch.save(state, memory)
    data, part = memory.getbuffer(), part_of(file)
    try:
        with part.open("wb", buffering=0) as target:
            _write(target, data[: len(data) // 2])
            midway()
            _write(target, data[len(data) // 2 :])
            os.fsync(target.fileno())
        part.replace(file)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)  # the new name, too
    finally:
        os.close(folder)
    return len(data)


def _write(target: Any, data: memoryview) -> None:
    while data:
        data = data[target.write(data) :]


def load(file: Path) -> dict[str, Any]:
    """What was saved.

    Raises:
        RoundelayError: there is no such file, or it holds something else.
    """
    if file.exists() and not file.is_file():
        raise not_whole(file)
    try:
        with zipfile.ZipFile(file) as parts:  # torch keeps check sums, and does not look at them
            if parts.testzip() is not None:
                raise not_whole(file)
        state = torch.load(file, weights_only=True)
    except OSError as error:
        raise RoundelayError(
            f"{file}: {error.strerror}; expected a checkpoint of `roundelay train`"
        ) from None
    except _BROKEN:
        state = None
    if not isinstance(state, dict) or type(state.get("step")) is not int or state["step"] < 0:
        raise not_whole(file)
    return state


def not_whole(file: Path) -> RoundelayError:
    """The error of a file that is there, and holds something else."""
    return RoundelayError(f"{file} is no whole checkpoint of `roundelay train`; name another, or "
                          "train anew without --resume")  # fmt: skip
