"""Start a server inside of a test: `with lazulite.testing.server() as storage:`. See docs/testing.md."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lazulite.testing.faults import Faults
    from lazulite.testing.storage import Account, Storage, server

__all__ = ["Account", "Faults", "Storage", "server"]


if not TYPE_CHECKING:  # A type checker would take every name for an attribute.

    def __getattr__(name: str) -> object:
        """Return a public name. Its module is imported now: pytest loads the plugin beside it in every project."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found: object = getattr(import_module("lazulite.testing.storage"), name)
        return found
