"""The classes and functions that send requests, for asynchronous programs.

What sends none, such as a column or a `Move`, is in `lazulite_patterns` and serves both.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import lazulite_patterns as root

if TYPE_CHECKING:  # What `_MODULES` says, for type checkers.
    from lazulite_patterns.aio.auditing import audit
    from lazulite_patterns.aio.encryption import EncryptedTable, reencrypt
    from lazulite_patterns.aio.leases import Lease
    from lazulite_patterns.aio.query import IndexQuery, Query
    from lazulite_patterns.aio.shapes.blob_log import BlobLog
    from lazulite_patterns.aio.shapes.copies import Copies
    from lazulite_patterns.aio.shapes.fat import Fat
    from lazulite_patterns.aio.shapes.large import Large
    from lazulite_patterns.aio.shapes.lookup import Lookup
    from lazulite_patterns.aio.shapes.periods import Periods
    from lazulite_patterns.aio.shapes.series import Series
    from lazulite_patterns.aio.shapes.tail import Tail
    from lazulite_patterns.aio.shapes.wide import Wide
    from lazulite_patterns.aio.streams import Stream
    from lazulite_patterns.aio.table import Table
    from lazulite_patterns.aio.tasks import Tasks

__all__ = [
    "BlobLog",
    "Copies",
    "EncryptedTable",
    "Fat",
    "IndexQuery",
    "Large",
    "Lease",
    "Lookup",
    "Periods",
    "Query",
    "Series",
    "Stream",
    "Table",
    "Tail",
    "Tasks",
    "Wide",
    "audit",
    "reencrypt",
]

_MODULES = {
    "aio.auditing": "audit",
    "aio.encryption": "EncryptedTable reencrypt",
    "aio.leases": "Lease",
    "aio.query": "IndexQuery Query",
    "aio.shapes.blob_log": "BlobLog",
    "aio.shapes.copies": "Copies",
    "aio.shapes.fat": "Fat",
    "aio.shapes.large": "Large",
    "aio.shapes.lookup": "Lookup",
    "aio.shapes.periods": "Periods",
    "aio.shapes.series": "Series",
    "aio.shapes.tail": "Tail",
    "aio.shapes.wide": "Wide",
    "aio.streams": "Stream",
    "aio.table": "Table",
    "aio.tasks": "Tasks",
}
"""The modules that have the names; each is imported when one of its names is asked for."""
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}


if not TYPE_CHECKING:  # A type checker would take any name for one of the package.

    def __getattr__(name: str) -> Any:
        """Import what is asked for.

        Raises:
            ImportError: the name is in `lazulite_patterns`; `from … import` would drop the text of another error.
            AttributeError: there is no such name.
        """
        if name in _PLACES:
            return getattr(import_module(f"lazulite_patterns.{_PLACES[name]}"), name)
        if name in root.__all__:
            raise ImportError(f"{name} serves synchronous and asynchronous programs: import it from {root.__name__}")
        raise AttributeError(f"module {__name__} has no attribute {name}")


def __dir__() -> list[str]:
    """Return the names, imported or not."""
    return sorted({*globals(), *__all__})
