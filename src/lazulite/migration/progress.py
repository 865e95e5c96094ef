"""The progress of a pass over a store, for display."""

from dataclasses import dataclass


@dataclass(slots=True)
class Progress:
    """The numbers of entities and tables done, and their totals."""

    verb: str
    """The past participle for messages: `copied` or `compared`."""
    entities: int = 0
    entities_total: int | None = None
    """None: unknown."""
    tables: int = 0
    tables_done: int = 0
