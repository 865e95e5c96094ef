"""Why a unique index rejects a value."""

from collections.abc import Callable
from typing import TypeAlias

from lazulite_patterns.effects.tables import EntityKey, Properties
from lazulite_patterns.indexes.entries import Entry
from lazulite_patterns.outcomes.errors import Conflict


class NotUnique(Conflict):
    """Another entity has the values of a unique index. The entity was not written.

    Attributes:
        columns: names of the columns of the index.
        values: values of these columns.
        owner: keys of the entity that has them.
    """

    def __init__(
        self,
        message: str = "",
        columns: tuple[str, ...] = (),
        values: tuple[object, ...] = (),
        owner: EntityKey = EntityKey("", ""),  # noqa: B008 - it is frozen
    ) -> None:
        """Take what is known."""
        super().__init__(message)
        self.columns = columns
        self.values = values
        self.owner = owner


NotUniqueOf: TypeAlias = Callable[[Entry, EntityKey, Properties], NotUnique]
"""Returns the error for a unique entry, from the keys and the properties of the entity that has it."""


def not_unique(entry: Entry, owner: EntityKey, _: Properties) -> NotUnique:
    """Return the error for an entry of which nothing but its keys is known."""
    return NotUnique(f"{tuple(owner)} has {entry.key}", owner=owner)


class Busy(Conflict):
    """Another writer has just claimed the value of a unique index, and did not commit yet. The entity was not written.

    If that writer crashed, the value can be taken when its claim is older than `GRACE_SECONDS`.
    """
