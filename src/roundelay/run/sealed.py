"""Frames that only the two ends of a connection can read, or make: ChaCha20-Poly1305 (RFC 8439)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ..errors import RoundelayError
from .environment import switch

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

_NONCE: Final = 12


def encrypts() -> bool:
    """Whether ROUNDELAY_ENCRYPT asks for sealed frames.

    Raises:
        RoundelayError: it is neither 0 nor 1, or what is needed for it is not installed.
    """
    asked = switch("ROUNDELAY_ENCRYPT")
    if asked:
        _cipher(bytes(32))
    return asked


class Seal:
    """What one end of a connection does to its frames.

    Each direction has a key of its own, used for no other connection, so that the number of a frame
    will do as its nonce: a frame that is changed, left out or sent again does not open.

    Args:
        own: key of what this end sends, 32 bytes.
        other: key of what the other end sends.
    """

    def __init__(self, own: bytes, other: bytes) -> None:
        self._own, self._other = _cipher(own), _cipher(other)
        self._closed = self._opened = 0

    def close(self, frame: bytes) -> bytes:
        """The next frame to send, 16 bytes longer."""
        sealed: bytes = self._own.encrypt(self._closed.to_bytes(_NONCE, "little"), frame, None)
        self._closed += 1
        return sealed

    def open(self, sealed: bytes) -> bytes | None:
        """The next frame that has come; None where it is not what the other end has sent."""
        from cryptography.exceptions import InvalidTag

        try:
            frame: bytes = self._other.decrypt(
                self._opened.to_bytes(_NONCE, "little"), sealed, None
            )
        except InvalidTag:
            return None
        self._opened += 1
        return frame


def _cipher(key: bytes) -> ChaCha20Poly1305:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    except ImportError as error:
        raise RoundelayError(
            "ROUNDELAY_ENCRYPT is 1, and the package cryptography is not installed; expected it. "
            "Install it with pip install 'roundelay[encryption]', or unset ROUNDELAY_ENCRYPT"
        ) from error
    return ChaCha20Poly1305(key)
