"""The progress of a pass over a store, for display."""

from dataclasses import dataclass


@dataclass(slots=True)
class Progress:
    """The numbers of rows and parts done, and their totals."""

    verb: str
    """The past participle for messages: `copied` or `compared`."""
    rows: int = 0
    """Entities, messages and rows of blobs."""
    rows_total: int | None = None
    """None: unknown."""
    parts: int = 0
    """Tables, queues and containers."""
    parts_done: int = 0
