"""Lazulite: self-hosted Azure Table, Queue and Blob storage, wire-compatible, durable and fast."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lazulite.app.application import create_app
    from lazulite.settings.config import Settings

__version__ = "0.2.0"
__all__ = ["Settings", "__version__", "create_app"]

_HOMES = {"create_app": "lazulite.app.application", "Settings": "lazulite.settings.config"}
"""Public name -> its module, which is imported when the name is first used: it brings the engine or the server."""


if not TYPE_CHECKING:  # A type checker would take every name for an attribute.

    def __getattr__(name: str) -> object:
        """Return a public name of `_HOMES`."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found: object = getattr(import_module(_HOMES[name]), name)
        return found
