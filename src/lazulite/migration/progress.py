"""How far a pass over a store has come, for people."""

from dataclasses import dataclass


@dataclass(slots=True)
class Tally:
    """What a pass has seen so far, and what it knows of the rest."""

    verb: str
    """What happens to the entities: they are copied, or compared."""
    entities: int = 0
    entities_total: int | None = None
    """None: nobody knows."""
    tables: int = 0
    tables_done: int = 0
