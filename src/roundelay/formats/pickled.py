"""A pickle of plain values: dicts, lists, tuples, texts, numbers. Nothing in it is ever called.

The bytes are gone through before they are unpickled: an instruction that names a class or calls
something is refused, and so is an index into the memo that would have it grow without bound.
"""

from __future__ import annotations

import io
import pickle
from types import MappingProxyType
from typing import Any, Final

from ..errors import RoundelayError

_FIXED: Final = MappingProxyType(
    {
        # constants, marks, containers, memo: the bytes behind each instruction's own
        **dict.fromkeys(b"N()]}tluaesd012.\x85\x86\x87\x88\x89\x8f\x90\x91\x94", 0),
        **dict.fromkeys(b"Kqh\x80", 1), **dict.fromkeys(b"M", 2), **dict.fromkeys(b"Jj", 4),
        **dict.fromkeys(b"G\x95", 8),
    }
)  # fmt: skip
_COUNTED: Final = MappingProxyType(
    {b"X"[0]: 4, b"T"[0]: 4, b"B"[0]: 4, b"U"[0]: 1, b"C"[0]: 1, 0x8C: 1, 0x8D: 8, 0x8E: 8, 0x96: 8,
     0x8A: 1, 0x8B: 4}
)  # fmt: skip
"""Instructions that a length follows, of so many bytes, and then as many bytes as it says."""
_LINES: Final = frozenset(b"IFLSVg")
"""Instructions whose value is a line of text."""
_PUTS: Final = frozenset(b"pr")
GLOBAL, STACK_GLOBAL = b"c"[0], 0x93
"""Instructions that name a class: in two lines behind it, or by what was read before."""
LONGEST: Final = 4096
"""Digits of a number: more would take long to convert."""


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        raise _refused(f"the class {module}.{name}"[:200])

    def persistent_load(self, pid: Any) -> Any:
        raise _refused("an object of another file")


def read_pickle(data: bytes) -> Any:
    """The value.

    Raises:
        RoundelayError: it is no pickle, is cut off, or holds anything but plain values.
    """
    try:
        _check(data)
        return _Plain(io.BytesIO(data), encoding="utf-8", errors="replace").load()
    except RoundelayError:
        raise
    except (pickle.UnpicklingError, ValueError, EOFError, IndexError, KeyError, TypeError,
            AttributeError, OverflowError, MemoryError) as error:  # fmt: skip
        raise RoundelayError(
            f"no sound pickle: {str(error) or type(error).__name__}; is the file whole?"
        ) from None


def _refused(what: str) -> RoundelayError:
    return RoundelayError(
        f"a pickle that asks for {what}; expected plain values only, as torch's flight recorder "
        "writes. It was not run; give the dump as torch wrote it, or as JSON"
    )


def _check(data: bytes) -> None:
    """Go through the instructions; each takes at least a byte, so memo indices are below that."""
    at, end, fixed = 0, len(data), _steps()
    while at < end:
        op = data[at]
        step = fixed[op]
        if step:
            at += step
            if op == 46:  # the end
                return
        elif op in _COUNTED:
            wide = _COUNTED[op]
            length = int.from_bytes(data[at + 1 : at + 1 + wide], "little")
            if op in (0x8A, 0x8B) and length > LONGEST:
                raise _refused(f"a number of {length:,} bytes")
            at += 1 + wide + length
        elif op in _PUTS or op in _LINES:
            at = _text_or_put(data, at, op)
        else:
            raise _refused(_wanted(data, at, op))
    raise RoundelayError(f"a pickle that is cut off after {end:,} bytes")


def _wanted(data: bytes, at: int, op: int) -> str:
    """What an instruction that is refused is after."""
    if op == GLOBAL:
        module, name, *_ = [*data[at + 1 : at + 400].split(b"\n"), b"", b""]
        return f"the class {module.decode('utf-8', 'replace')}.{name.decode('utf-8', 'replace')}"
    what = "a class" if op == STACK_GLOBAL else f"the instruction {bytes([op])!r}"
    return f"{what} at byte {at}"


def _text_or_put(data: bytes, at: int, op: int) -> int:
    if op == 114:  # r, with an index of four bytes
        index, behind = int.from_bytes(data[at + 1 : at + 5], "little"), at + 5
    else:
        behind = data.find(b"\n", at) + 1
        if not behind:
            raise RoundelayError("a pickle that is cut off in a line of text")
        if op in b"IFL" and behind - at > LONGEST:
            raise _refused(f"a number of {behind - at:,} digits")
        index = int(data[at + 1 : behind]) if op == 112 and behind - at < 32 else 0
    if not 0 <= index <= len(data):
        raise _refused(f"place {index:,} of its memo")
    return behind


def _steps() -> list[int]:
    """By instruction, the bytes that it takes with what follows; 0 where they must be read."""
    steps = [0] * 256
    for op, behind in _FIXED.items():
        steps[op] = 1 + behind
    return steps
