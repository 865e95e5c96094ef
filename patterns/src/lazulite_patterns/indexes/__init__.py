"""Indexes: entities found by other fields than their keys."""

from lazulite_patterns.indexes.errors import Busy, NotUnique

__all__ = ["Busy", "NotUnique"]
