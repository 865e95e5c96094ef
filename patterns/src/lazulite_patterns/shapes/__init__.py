"""Shapes of entities: of any size, of many properties, series of numbers, log tails, copies and links."""

from lazulite_patterns.shapes.errors import Inconsistent
from lazulite_patterns.shapes.fat import Fat

__all__ = ["Fat", "Inconsistent"]
