"""A partition as the documentation has it, one operation after the other: what each does, and what it answers.

Each write is known by the moment of its invocation, and writes that number into the rows that it touches: so a content
names the write that left it, and stands for the ETag that the row has with it.
"""

from enum import Enum
from typing import NamedTuple

ROWS = 3
ANY = -1
"""The condition `*`."""


class Entity(NamedTuple):
    """The content of a row: its last writer, and the writer of each of its two properties."""

    writer: int
    a: int | None
    b: int | None


Partition = tuple[Entity | None, ...]
"""Its rows, in order; None: there is none."""
EMPTY: Partition = (None,) * ROWS


class Verb(Enum):
    """What a write does to its row."""

    INSERT = "POST"
    REPLACE = "PUT"
    MERGE = "MERGE"
    DELETE = "DELETE"


class Change(NamedTuple):
    """One write to one row."""

    verb: Verb
    row: int
    condition: int | None
    """The writer that If-Match names by its ETag, or ANY; None: no If-Match, so that an update is an upsert."""
    only_b: bool
    """Which of the two properties it brings."""

    def rejection(self, current: Entity | None) -> int | None:
        """Return the status that the row's state earns it, if it is not done."""
        if self.verb is Verb.INSERT:
            return None if current is None else 409
        if self.condition is None:
            return None
        if current is None:
            return 404
        return None if self.condition in (ANY, current.writer) else 412

    def result(self, current: Entity | None, writer: int) -> Entity | None:
        """Return what it makes of the row."""
        if self.verb is Verb.DELETE:
            return None
        kept = current if self.verb is Verb.MERGE and current is not None else Entity(writer, None, None)
        return Entity(writer, kept.a, writer) if self.only_b else Entity(writer, writer, kept.b)


class Get(NamedTuple):
    """A point query that was answered."""

    invoked: int
    returned: int
    row: int
    found: Entity | None

    @property
    def changes_nothing(self) -> bool:
        """See `Operation.changes_nothing`."""
        return True

    def apply(self, state: Partition) -> Partition | None:
        """See `Operation.apply`."""
        return state if state[self.row] == self.found else None


class Query(NamedTuple):
    """A query of the whole partition that was answered, in one page."""

    invoked: int
    returned: int
    found: Partition

    @property
    def changes_nothing(self) -> bool:
        """See `Operation.changes_nothing`."""
        return True

    def apply(self, state: Partition) -> Partition | None:
        """See `Operation.apply`."""
        return state if state == self.found else None


class Rejection(NamedTuple):
    """The first change that was rejected, and its status."""

    position: int
    status: int


class Write(NamedTuple):
    """A write, or several in one transaction."""

    invoked: int
    returned: int | None
    changes: tuple[Change, ...]
    rejected: Rejection | None = None

    @property
    def changes_nothing(self) -> bool:
        """See `Operation.changes_nothing`."""
        return self.rejected is not None

    def apply(self, state: Partition) -> Partition | None:
        """See `Operation.apply`."""
        rows = list(state)
        for index, change in enumerate(self.changes):
            status = change.rejection(rows[change.row])
            if status is not None:
                return state if self.rejected == (index, status) else None
            rows[change.row] = change.result(rows[change.row], self.invoked)
        return tuple(rows) if self.rejected is None else None
