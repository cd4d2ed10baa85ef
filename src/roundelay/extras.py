"""Packages that only a part of the library needs."""

from __future__ import annotations

from importlib import import_module

from .errors import RoundelayError


def need(extra: str, what: str, *packages: str) -> None:
    """Raise where one is missing.

    Args:
        extra: that brings them.
        what: is done with them, as a clause such as "the page is served with it".
        packages: as they are imported.

    Raises:
        RoundelayError: with the extra.
    """
    for package in packages:
        try:
            import_module(package)
        except ImportError as error:
            raise RoundelayError(
                f"no package {error.name}, and {what}; try: pip install 'roundelay[{extra}]'"
            ) from None
