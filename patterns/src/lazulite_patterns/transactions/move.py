"""Move an entity to another table, or to another partition, without a transaction: an order of steps.

0. Before the message: mark the source. The mark has an id of the move, and the target's partition: its *home*.
1. Insert an *inbox row* into the home, or read the one that is there.
2. Read the source. If it is absent or without the mark, the move is over: delete the inbox row, If-Match.
3. In one transaction, write the copy, and the source's ETag into the inbox row, If-Match. If the inbox row has this
   ETag already, the copy was made: write nothing.
4. Delete the source If-Match the ETag of step 2.
5. Delete the inbox row If-Match.

If another writer was faster, go on with step 1. Several workers may do this at the same time.

The inbox row decides what the copy alone cannot tell: whether an absent copy was never made, or was deleted. Its ETag
fences every copy: a request that arrives late finds another inbox row, or none. An inbox row is deleted only after the
source is gone, or has another mark, or has another home. So a worker that read the inbox row before the source knows
all copies of this source.

An update of the source after the copy is copied again, if the copy is still the one that was made. If not, the entity
was changed in both tables. It stays in both, as nothing tells which change is the later one.

If `convert` makes a key in another partition, a worker first deletes the copy and the inbox row of the old home, and
then writes the new home into the mark, If-Match the ETag of step 2.

What holds at every instant: the entity, as it was last written, is in one of the tables or in both, unless a program
deleted it. No copy is made again after its deletion. When the source is gone, there is one copy at most. A model
checker explores workers, writers, readers that delete and late requests, and shows that each rule is needed.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from lazulite_patterns.auditing.finding import Check
from lazulite_patterns.effects.effect import Protocol, perform
from lazulite_patterns.effects.runtime import NewId
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Properties, Stored
from lazulite_patterns.entities.errors import EntityValueError
from lazulite_patterns.entities.rows_read import stored_of
from lazulite_patterns.indexes.errors import Busy, NotUnique
from lazulite_patterns.outcomes.errors import Absent, Conflict, Exists, OutcomeUnknown
from lazulite_patterns.outcomes.ring import KEPT, MOVING, RING, WriteIds
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import Joined, write
from lazulite_patterns.table.inbox import INBOX
from lazulite_patterns.table.session import Session, key_of
from lazulite_patterns.transactions.checks import MoveCheck
from lazulite_patterns.transactions.messages import MessageFormatError, TaskMessage
from lazulite_patterns.transactions.moving import Inbox, PendingMove
from lazulite_patterns.transactions.task import Source, Task

E = TypeVar("E")
F = TypeVar("F")
_ATTEMPTS = 8


class ChangedInBoth(Conflict):
    """The source was changed after its copy, and so was the copy, or it was deleted. The entity stays where it is."""


class Move(Task[E | EntityKey]):
    """Moves entities. `Tasks` starts moves, and its workers handle them."""

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
            ValueError: the target's policy has no marks, or both tables are the same and nothing is converted.
        """
        super().__init__(name, source, target)
        self._source: Session[E] = source.session
        self._target: Session[F] = target.session
        self._convert = convert
        if not self._target.policy.marks:
            raise ValueError(f"move {name}: the target's policy has no marks, by which workers know their copies")
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
        """Return what an audit examines: entities whose moves are not done, and inbox rows that are left."""
        return [MoveCheck(self)]

    def begin(self, argument: E | EntityKey) -> Protocol[TaskMessage]:
        """Mark the entity.

        Raises:
            Absent: there is none.
            Conflict: the entity was read, and has been changed since; or another move of it is under way.
            EntityValueError: both tables are the same, and the copy would have a unique value of the entity.
        """
        key = self._source.key(argument)
        known = None if isinstance(argument, EntityKey) else stored_of(argument)
        for number in range(_ATTEMPTS):
            base = known or (yield from self._source.stored(key))
            if base is None:
                raise Absent(f"{key} is absent")
            try:
                return self.message(key, (yield from self._marked(base)))
            except Conflict:
                if known is not None or number == _ATTEMPTS - 1:
                    raise
        raise AssertionError

    def handle(self, message: TaskMessage) -> Protocol[None]:
        """Copy and delete, until there is nothing to do.

        Raises:
            Conflict: other writers were faster, each time. `NotUnique` and `Busy` are of the target's unique index.
            ChangedInBoth: a program must delete the entity from one of the tables.
            OutcomeUnknown: the result of a write is not known. The next delivery finds out.
        """
        key, home = _body(message)
        for _ in range(_ATTEMPTS):
            try:
                following = yield from self._step(message.id, key, home)
            except (NotUnique, Busy, ChangedInBoth):
                raise
            except Conflict:
                continue  # The next reads see what was written.
            if following is None:
                return
            home = following
        raise Conflict(f"{key} was changed {_ATTEMPTS} times")

    def message(self, key: EntityKey, mark: PendingMove) -> TaskMessage:
        """Return the message of a move."""
        return TaskMessage(self.name, mark.id, [*key, mark.home])

    def inbox_key(self, key: EntityKey, home: str) -> EntityKey:
        """Return the keys of the inbox row of a source."""
        named = json.dumps([self.name, self._source.name, *key])
        return EntityKey(home, f"{INBOX}!{hashlib.sha256(named.encode()).hexdigest()[:32]}")

    def _marked(self, base: Stored) -> Protocol[PendingMove]:
        """Mark a row that was read; keep the mark of a move that is under way, whose copy may be made already."""
        found = PendingMove.of(base)
        if found is not None and found.move != self.name:
            raise Conflict(f"{base.key}: the move {found.move} is under way")
        if found is None:
            copy = self._copy(base)
            self._check_claims(base, copy)
            home = key_of(copy).partition_key
            found = PendingMove(self.name, (yield from perform(NewId())), home)
            yield from self._mark(base, found)
            return found
        now = yield from self._source.stored(base.key)
        if now is None or now.etag != base.etag:
            raise Conflict(f"{base.key} was changed")
        return found

    def _check_claims(self, base: Stored, copy: Properties) -> None:
        """Reject a copy with a unique entry of its source: an entry has one entity, and a move has two for a time."""
        tables = "within one table" if self._source.name == self._target.name else "between tables that share entries"
        theirs = self._target.claims(copy)
        for entry, columns in self._source.claims(base.properties).items():
            if entry in theirs:
                raise EntityValueError(f"{columns} is unique: Move {tables} cannot keep it")

    def _mark(self, base: Stored, mark: PendingMove) -> Protocol[None]:
        operation = Operation(Kind.MERGE, base.key, {MOVING: mark.text}, base.etag)
        yield from self._source.write([Planned(operation, WriteIds.of(base.properties))], [base])

    def _step(self, mark_id: str, key: EntityKey, home: str) -> Protocol[str | None]:
        """Do the steps 1 to 5 once; return the home with which they go on, None if the move is over."""
        inbox = yield from self._opened(key, home)
        source = yield from self._read(key)
        mark = PendingMove.of(source)
        if source is None or mark is None or mark.id != mark_id:
            if mark is None or not inbox.has(mark):
                yield from self._forget(inbox)
            return None
        if mark.home != home:
            yield from self._forget(inbox)
            return mark.home
        copy = self._copy(source)
        place = key_of(copy)
        if place.partition_key != home:
            yield from self._leave(inbox, mark)
            yield from self._mark(source, mark._replace(home=place.partition_key))
            return place.partition_key
        if not (inbox.has(mark) and inbox.copied == source.etag):
            inbox = yield from self._put(inbox, mark, source, copy)
        yield from self._delete(source)
        if not inbox.row.etag:
            return home  # Only a read showed that the copy was made: the next step finds the inbox row.
        yield from self._forget(inbox)
        return None

    def _read(self, key: EntityKey) -> Protocol[Stored | None]:
        return self._source.stored(key)

    def _copy(self, source: Stored) -> Properties:
        if self._convert is None:
            return {name: value for name, value in source.properties.items() if name not in KEPT}
        return self._target.encode(self._convert(self._source.decode(source)))

    def _opened(self, key: EntityKey, home: str) -> Protocol[Inbox]:
        """Insert the inbox row, or read the one that is there."""
        new = Inbox.new(self.inbox_key(key, home), self.name, key)
        for _ in range(_ATTEMPTS):
            try:
                written = yield from write(self._target.name, [new.planned(Kind.INSERT)], self._target.policy)
                if etag := written.etags[0]:
                    ring = {RING: WriteIds.born(written.operation_id).text}
                    return Inbox(Stored({**new.row.properties, **ring}, etag))
            except (Exists, OutcomeUnknown):
                pass  # Whose row is there does not matter.
            if (row := (yield from self._target.stored(new.row.key))) is not None:
                return Inbox(row)
        raise Conflict(f"{new.row.key} was changed {_ATTEMPTS} times")

    def _put(self, inbox: Inbox, mark: PendingMove, source: Stored, copy: Properties) -> Protocol[Inbox]:
        """Write the copy and the inbox row; return the row, without an ETag if that is not known."""
        place = key_of(copy)
        there = yield from self._target.stored(place)
        planned, known = [_replacing(copy, there)], [there] if there is not None else []
        if inbox.has(mark):
            before = there if inbox.place == place else (yield from self._target.stored(inbox.place))
            self._check_made(inbox, before)
            if before is not None and before is not there:
                planned.append(_deleting(before))
                known.append(before)
        saying = inbox.saying(mark, source.etag, place.row_key)
        written = yield from self._target.write(planned, known, Joined((saying.planned(Kind.REPLACE),)))
        etags = written.etags[len(planned) :]
        return Inbox(saying.row._replace(etag=etags[0] if etags else ""))

    def _leave(self, inbox: Inbox, mark: PendingMove) -> Protocol[None]:
        """Delete the copy and the inbox row of a home that is not the home any more."""
        if not inbox.has(mark):
            yield from write(self._target.name, [inbox.planned(Kind.DELETE)], self._target.policy)
            return
        copy = yield from self._target.stored(inbox.place)
        self._check_made(inbox, copy)
        assert copy is not None
        yield from self._target.write([_deleting(copy)], [copy], Joined((inbox.planned(Kind.DELETE),)))

    def _check_made(self, inbox: Inbox, copy: Stored | None) -> None:
        if not inbox.made(copy):
            what = "deleted" if copy is None else "changed"
            raise ChangedInBoth(f"{inbox.source} was changed after its copy {inbox.place}, which was {what}")

    def _forget(self, inbox: Inbox) -> Protocol[None]:
        """Delete the inbox row, after the source showed that no copy of it counts any more."""
        try:
            yield from write(self._target.name, [inbox.planned(Kind.DELETE)], self._target.policy)
        except Conflict:
            return  # It is that of another worker now, or of another move.

    def _delete(self, source: Stored) -> Protocol[None]:
        yield from self._source.write([_deleting(source)], [source])


def _replacing(copy: Properties, there: Stored | None) -> Planned:
    if there is None:
        return Planned(Operation(Kind.INSERT, key_of(copy), copy))
    return Planned(Operation(Kind.REPLACE, key_of(copy), copy, there.etag), WriteIds.of(there.properties))


def _deleting(row: Stored) -> Planned:
    return Planned(Operation(Kind.DELETE, row.key, etag=row.etag), WriteIds.of(row.properties))


def _body(message: TaskMessage) -> tuple[EntityKey, str]:
    """Return the keys of the source, and the home at the start."""
    if not isinstance(message.body, list) or len(message.body) != 3:
        raise MessageFormatError(f"no message of a move: {message}")
    partition_key, row_key, home = map(str, cast(list[object], message.body))
    return EntityKey(partition_key, row_key), home
