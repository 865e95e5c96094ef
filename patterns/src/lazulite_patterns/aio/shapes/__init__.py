"""The asynchronous twins of `lazulite_patterns.shapes`."""

from lazulite_patterns.aio.shapes.fat import Fat

__all__ = ["Fat"]
