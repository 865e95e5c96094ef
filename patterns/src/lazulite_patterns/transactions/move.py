"""Move an entity to another table, or to another partition, without a transaction: an order of steps.

1. Before the message: mark the source, which is a write of nothing whose id is in `_Op`. This id is the move's.
2. Read the target's row. It is the base of step 4.
3. Read the source, after step 2. If it is absent or without the mark, the move is over.
4. Insert the target, or replace it If-Match the base.
5. Delete the source If-Match the ETag of step 3.

If another writer was faster in step 4 or 5, go on with step 2. Several workers may do this at the same time.

What holds at every instant: the entity, as it was last written, is in one of the tables or in both. A model checker
explores every interleaving of two workers and a writer, and shows that each rule is needed: reading the target first,
both conditions, the mark, copying before deleting. Without the mark, a message that is delivered late would move a
new entity with the same keys.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

from lazulite_patterns.auditing.finding import Check
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Properties, Stored
from lazulite_patterns.entities.rows_read import stored_of
from lazulite_patterns.indexes.errors import Busy, NotUnique
from lazulite_patterns.outcomes.errors import Absent, Conflict
from lazulite_patterns.outcomes.ring import BIRTH, RING, Ring
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.table.session import Session, key_of
from lazulite_patterns.transactions.checks import MoveCheck
from lazulite_patterns.transactions.messages import MessageFormatError, TaskMessage
from lazulite_patterns.transactions.task import Source, Task

E = TypeVar("E")
F = TypeVar("F")
_ATTEMPTS = 8


class Seen(NamedTuple):
    """What a worker read."""

    source: Stored
    there: Stored | None
    """The target's row."""
    copy: Properties
    """What the target shall have, with its keys."""


class Move(Task[E | EntityKey]):
    """Moves entities. `Tasks` starts moves, and its workers run them."""

    def __init__(
        self,
        name: str,
        *,
        source: Source[E],
        target: Source[F],
        convert: Callable[[E], F] | None = None,
    ) -> None:
        """Take the tables.

        Args:
            name: of the task, in messages.
            source: where the entities are.
            target: where they shall be. An entity that is there is replaced.
            convert: returns the target's entity, always the same one for an entity; None copies all properties.

        Raises:
            ValueError: the source's policy has no marks, or both tables are the same and nothing is converted.
        """
        super().__init__(name, source, target)
        self._source: Session[E] = source.session
        self._target: Session[F] = target.session
        self._convert = convert
        if not self._source.policy.marks:
            raise ValueError(f"move {name}: the source's policy has no marks, by which workers know the entity")
        if convert is None and self._source.name == self._target.name:
            raise ValueError(f"move {name}: source and target are the same")

    @property
    def source(self) -> Session[Any]:
        """Makes the protocols of the table where the entities are."""
        return self._source

    @property
    def target(self) -> Session[Any]:
        """Makes the protocols of the table where they shall be."""
        return self._target

    def checks(self) -> Sequence[Check]:
        """Return what an audit examines: entities that are in both tables."""
        return [MoveCheck(self)]

    def copy_of(self, source: Stored) -> Stored:
        """Return the row that the target has after a move, without an ETag.

        Raises:
            EntityFormatError: the row is none of the source's class.
        """
        return Stored(self._copy(source), "")

    def begin(self, argument: E | EntityKey) -> Protocol[TaskMessage]:
        """Mark the entity.

        Raises:
            Absent: there is none.
            Conflict: the entity was read, and has been changed since.
        """
        base = None if isinstance(argument, EntityKey) else stored_of(argument)
        key = self._source.key(argument)
        if base is not None:
            return (yield from self.mark(base))
        for number in range(_ATTEMPTS):
            if (base := (yield from self._source.stored(key))) is None:
                raise Absent(f"{key} is absent")
            try:
                return (yield from self.mark(base))
            except Conflict:
                if number == _ATTEMPTS - 1:
                    raise
        raise AssertionError

    def handle(self, message: TaskMessage) -> Protocol[None]:
        """Copy and delete, until there is nothing to do.

        Raises:
            Conflict: other writers were faster, each time. `NotUnique` and `Busy` are of the target's unique index.
            OutcomeUnknown: the result of a write is not known. The next delivery finds out.
        """
        key = _key(message)
        before: tuple[EntityKey, str] | None = None
        for _ in range(_ATTEMPTS):
            if (seen := (yield from self._seen(key, message.id))) is None:
                return
            place = key_of(seen.copy)
            if before is not None and before[0] != place:
                yield from self._discard(*before)
            try:
                etag = yield from self._put(seen)
                before = (place, etag) if etag else None
                yield from self._delete(seen.source)
            except (NotUnique, Busy):
                raise
            except Conflict:
                continue  # If the source is absent by now, the next read sees that.
            return
        raise Conflict(f"{key} was changed {_ATTEMPTS} times")

    def mark(self, base: Stored) -> Protocol[TaskMessage]:
        """Mark a row that was read, and return the message of its move.

        Raises:
            Conflict: the row has been changed since.
        """
        mark = Planned(Operation(Kind.MERGE, base.key, {}, base.etag), Ring.of(base.properties))
        written = yield from self._source.write([mark], [base])
        return TaskMessage(self.name, written.operation_id, list(base.key))

    def _seen(self, key: EntityKey, mark: str) -> Protocol[Seen | None]:
        """Read the target's row and then the source; None if there is nothing to move."""
        place: EntityKey | None = key
        if self._convert is not None:
            source = yield from self._source.stored(key)
            place = None if source is None else key_of(self._copy(source))
        while place is not None:
            there = yield from self._target.stored(place)
            source = yield from self._source.stored(key)
            if source is None or not self._is_marked(source, mark):
                return None
            copy = self._copy(source)
            if key_of(copy) == place:
                return Seen(source, there, copy)
            place = key_of(copy)
        return None

    def _is_marked(self, source: Stored, mark: str) -> bool:
        return mark in Ring.of(source.properties).ids

    def _copy(self, source: Stored) -> Properties:
        if self._convert is None:
            return {name: value for name, value in source.properties.items() if name not in {RING, BIRTH}}
        return self._target.encode(self._convert(self._source.decode(source)))

    def _put(self, seen: Seen) -> Protocol[str | None]:
        """Copy the entity, and return the ETag of the copy."""
        key = key_of(seen.copy)
        if seen.there is None:
            written = yield from self._target.write([Planned(Operation(Kind.INSERT, key, seen.copy))])
        else:
            operation = Operation(Kind.REPLACE, key, seen.copy, seen.there.etag)
            planned = Planned(operation, Ring.of(seen.there.properties))
            written = yield from self._target.write([planned], [seen.there])
        return written.etags[0]

    def _discard(self, place: EntityKey, etag: str) -> Protocol[None]:
        """Delete an own copy: since it was made, an update of the source changed the key that `convert` makes."""
        try:
            there = yield from self._target.stored(place)
            if there is not None and there.etag == etag:
                operation = Operation(Kind.DELETE, place, etag=etag)
                yield from self._target.write([Planned(operation, Ring.of(there.properties))], [there])
        except Conflict:
            return

    def _delete(self, source: Stored) -> Protocol[None]:
        operation = Operation(Kind.DELETE, source.key, etag=source.etag)
        yield from self._source.write([Planned(operation, Ring.of(source.properties))], [source])


def _key(message: TaskMessage) -> EntityKey:
    if not isinstance(message.body, list) or len(message.body) != 2:
        raise MessageFormatError(f"no message of a move: {message}")
    partition_key, row_key = cast(list[object], message.body)
    return EntityKey(str(partition_key), str(row_key))
