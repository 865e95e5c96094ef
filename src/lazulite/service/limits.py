"""The bounds of one page of a list or a query."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Bounds of one page of a query."""

    page_rows: int = 1000
    page_bytes: int = 16 * 1024 * 1024
    """Entities are not added to a page that has grown past this."""
    page_seconds: float = 5.0
    slice_seconds: float = 0.001
    """How long a page, a batch or the reading of a body may hold the event loop before others continue."""
    lookahead_rows: int = 1000
    """Rows looked at after a full page, to tell whether any other matches; past that a continuation is given."""
