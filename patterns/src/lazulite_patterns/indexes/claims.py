"""Single index entries: they are read, put, passed on, taken over and removed.

A unique entry is inserted before the commit of its entity. If it is there, its entity is read: one that has the value
keeps it. Else the entry is superfluous, and is taken over by its ETag, but not before it is older than `GRACE_SECONDS`:
its writer may be about to commit. This relies on time: a commit is not sent later than the deadline after its entries
were begun, and a request arrives within 30 seconds. Both ages are by the service's time, which a client knows later by
the way of one answer at most.

An entry that passes between two entities of one commit names both of them before the commit, and only the new one after
it. A reader looks at both. What counts is the pair of entry and entity: a commit that changes the pair changes the
entry's ETag before.
"""

from dataclasses import dataclass

from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Properties, Read, Stored
from lazulite_patterns.indexes import lists
from lazulite_patterns.indexes.changes import claim, removal, replacement
from lazulite_patterns.indexes.entries import (
    NO_INTENT,
    EntriesOf,
    Entry,
    contents,
    intents,
    passing,
    pending,
    pointing_to,
    targets,
    without,
)
from lazulite_patterns.indexes.errors import Busy, NotUniqueOf, not_unique
from lazulite_patterns.outcomes.errors import Conflict, Exists, OutcomeUnknown
from lazulite_patterns.outcomes.grace import GRACE_SECONDS, age_seconds, now
from lazulite_patterns.outcomes.retries import Policy, begin, read
from lazulite_patterns.outcomes.verdict import Planned
from lazulite_patterns.outcomes.writes import write

_WITHDRAWALS_MAX = 8


@dataclass(frozen=True)
class Claims:
    """Reads and writes the entries of one table's entities.

    Attributes:
        table: of the entities.
        entries: returns the entries of an entity, from its properties.
        policy: of each request.
        queue: the name of the queue whose workers write eventual entries.
        not_unique: returns the error for a unique entry that another entity has.
    """

    table: str
    entries: EntriesOf
    policy: Policy = Policy()  # noqa: RUF009 - it is frozen
    queue: str = ""
    not_unique: NotUniqueOf = not_unique

    def find(self, entry: Entry) -> Protocol[Stored | None]:
        """Return the entity of an entry; None if there is none, or if the entity has another entry now."""
        pointer = yield from self._read(entry)
        while pointer is not None:
            found = yield from self.follow(entry, pointer)
            if found is not None or not entry.unique:
                return found
            # The entry may have passed to another entity between the two reads.
            before, pointer = pointer, (yield from self._read(entry))
            if pointer is not None and pointer.etag == before.etag:
                return None
        return None

    def follow(self, entry: Entry, pointer: Stored) -> Protocol[Stored | None]:
        """Return the entity of an entry that was read; None as `find` does."""
        for key in targets(pointer):
            found = yield from self._read(Entry(self.table, key))
            if found is not None and entry in self.entries(found.properties):
                return found
        return None

    def read(self, entry: Entry) -> Protocol[Stored | None]:
        """Read an entry, or another row."""
        return self._read(entry)

    def put(self, entry: Entry, key: EntityKey) -> Protocol[None]:
        """Put an entry of an entity, even if it is there."""
        yield from self._put(entry, key)

    def clean(self, left: list[tuple[Entry, Stored]]) -> Protocol[None]:
        """Delete entries If-Match the ETags that were read."""
        return self._clean(left)

    def _inside(self, entry: Entry, key: EntityKey) -> bool:
        return entry.table == self.table and entry.key.partition_key == key.partition_key

    def _read(self, place: Entry) -> Protocol[Stored | None]:
        if place.listed:
            return (yield from lists.find(place, self.policy))
        return (yield from read(Read(place.table, place.key), (yield from begin(self.policy))))

    def _etags(self, entries: frozenset[Entry]) -> Protocol[list[tuple[Entry, Stored]]]:
        found = []
        for entry in sorted(entries):
            stored = yield from self._read(entry)
            if stored is not None:
                found.append((entry, stored))
        return found

    def _put(self, entry: Entry, key: EntityKey, intent: Properties = NO_INTENT) -> Protocol[str | None]:
        """Write an entry in another partition; return the ETag of a unique one if it was absent."""
        if entry.listed:
            yield from lists.put(entry, key, self.policy, intent=intent)
            return None
        while True:
            try:
                written = yield from write(entry.table, [claim(entry, key, intent)], self.policy)
            except Exists:
                pointer = yield from self._read(entry)
                if pointer is None:
                    continue
                yield from self._must_be_free(entry, key, pointer)
                if (yield from self._taken(entry, key, pointer, intent)):
                    return None
            else:
                return written.etags[0] if entry.unique else None

    def _pass(self, entry: Entry, giver: EntityKey, taker: EntityKey, birth: str = "") -> Protocol[str]:
        """Let an entry in another partition name both entities of a commit; return its ETag, empty if unknown.

        Args:
            entry: the entry.
            giver: the entity that has it until the commit.
            taker: the entity that has it after the commit.
            birth: the id of the insert of the giver; it is the only insert of it that may have been done.
        """
        while True:
            pointer = yield from self._read(entry)
            if pointer is None:
                planned = Planned(Operation(Kind.INSERT, entry.key, passing(giver, taker)))
            else:
                yield from self._must_be_free(entry, taker, pointer, giver)
                if (yield from self._pending(pointer, birth)):
                    raise Busy(f"{giver} may be about to have {entry.key}")
                planned = replacement(entry, pointer, passing(giver, taker))
            try:
                return (yield from write(entry.table, [planned], self.policy)).etags[0]
            except Conflict:
                continue

    def _settle_pass(self, entry: Entry, taker: EntityKey, etag: str) -> Protocol[None]:
        """Let an entry name only the entity that it passed to. If it was changed since, it stays as it is."""
        if not etag:
            return
        try:
            named = Planned(Operation(Kind.REPLACE, entry.key, pointing_to(taker), etag))
            yield from write(entry.table, [named], self.policy)
        except (Conflict, OutcomeUnknown):
            return

    def _taken(self, entry: Entry, key: EntityKey, pointer: Stored, intent: Properties = NO_INTENT) -> Protocol[bool]:
        """Take an entry over; False if another writer changed it first."""
        properties = {**pointing_to(key), **(intents(pointer) if key in targets(pointer) else {}), **intent}
        try:
            yield from write(entry.table, [replacement(entry, pointer, properties)], self.policy)
        except Conflict:
            return False
        return True

    def _must_be_free(
        self, entry: Entry, key: EntityKey, pointer: Stored, giver: EntityKey | None = None
    ) -> Protocol[None]:
        """Check that no other entity has a unique entry, nor is about to have it.

        Args:
            entry: the entry.
            key: the entity that is to have it.
            pointer: the entry as it was read.
            giver: the entity that has it until the commit: the commit changes that entity, too.

        Raises:
            NotUnique: another entity has it.
            Busy: another entity may be about to have it.
        """
        others = [each for each in targets(pointer) if each not in {key, giver}]
        if not others:
            return
        # Before the entity is read: its writer may commit between that read and the end of the grace.
        # In the entity's own partition, all is done by the commit: an entry without its entity is damage.
        free = self._inside(entry, key) or (yield from self._abandoned(pointer))
        for other in others:
            found = yield from self._read(Entry(self.table, other))
            if found is not None and entry in self.entries(found.properties):
                raise self.not_unique(entry, other, found.properties)
        if not free:
            raise Busy(f"{others[-1]} may be about to have {entry.key}")

    def _pending(self, pointer: Stored, birth: str) -> Protocol[frozenset[str]]:
        """Return the intents of inserts that may still arrive; that of the birth was done."""
        return pending(pointer, birth, (yield from now()))

    def _withdraw(self, entry: Entry, pointer: Stored, names: frozenset[str]) -> Protocol[None]:
        """Take intents out of an entry that was read, again if another writer was faster. Else they grow old there."""
        found: Stored | None = pointer
        for _ in range(_WITHDRAWALS_MAX):
            if found is None or not names & intents(found).keys():
                return
            try:
                if entry.listed:
                    yield from lists.withdraw(entry, targets(found)[0], names, self.policy)
                else:
                    yield from write(entry.table, [replacement(entry, found, without(found, names))], self.policy)
            except Conflict:
                found = yield from self._read(entry)
            except OutcomeUnknown:
                return
            else:
                return

    def _abandoned(self, pointer: Stored) -> Protocol[bool]:
        """Tell whether the writer of an entry cannot commit any more."""
        return age_seconds(pointer, (yield from now())) > GRACE_SECONDS

    def _joining(
        self, entry: Entry, key: EntityKey, properties: Properties, giver: EntityKey | None = None
    ) -> Protocol[Planned]:
        """Return the write of an entry that is part of the commit, which may take it from another of its entities."""
        if not entry.unique:
            return Planned(Operation(Kind.PUT, entry.key, contents(entry, key, properties)))
        pointer = yield from self._read(entry)
        if pointer is None:
            return claim(entry, key)
        yield from self._must_be_free(entry, key, pointer, giver)
        return replacement(entry, pointer, pointing_to(key))

    def _put_again(self, gained: list[tuple[Entry, EntityKey]]) -> Protocol[None]:
        """Put entries after a commit that was answered late: meanwhile they may have been taken for left behind."""
        for entry, key in gained:
            if not self._inside(entry, key):
                try:
                    yield from self._put(entry, key)
                except Conflict:
                    continue

    def _release(self, claims: list[tuple[Entry, str]]) -> Protocol[None]:
        """Delete unique entries that were claimed for a commit which is not sent, If-Match the ETags of the claims."""
        for entry, etag in claims:
            try:
                yield from write(entry.table, [Planned(Operation(Kind.DELETE, entry.key, etag=etag))], self.policy)
            except (Conflict, OutcomeUnknown):
                continue

    def _clean(self, left: list[tuple[Entry, Stored]]) -> Protocol[None]:
        for entry, stored in left:
            try:
                if entry.listed:
                    yield from lists.take(entry, stored, self.policy)
                else:
                    yield from write(entry.table, [removal(entry, stored)], self.policy)
            except (Conflict, OutcomeUnknown):
                continue
