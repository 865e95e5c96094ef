"""Indexes: entities found by other fields than their keys."""

from lazulite_patterns.indexes.errors import Busy, NotUnique
from lazulite_patterns.indexes.index import Index, Listing

__all__ = ["Busy", "Index", "Listing", "NotUnique"]
