"""What the auditor looks at in a table with indexes: each entity has its entries, and each entry its entity."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lazulite_patterns.audit.finding import Finding, correction, deletion
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Read, Stored
from lazulite_patterns.indexes import lists
from lazulite_patterns.indexes.entries import PARTITION, PENDING, ROW, Entry, contents, pointing_to, target
from lazulite_patterns.indexes.index import BoundIndex, Listing
from lazulite_patterns.indexes.pointers import PointerIndex
from lazulite_patterns.outcomes.grace import GRACE_SECONDS, age_seconds
from lazulite_patterns.outcomes.retries import begin, read
from lazulite_patterns.outcomes.ring import Ring
from lazulite_patterns.outcomes.verdict import Planned

NO_ENTITY = "index entry of an absent entity"
NO_FIT = "index entry that does not fit its entity"
NO_FIT_LISTED = "list with entities that do not fit"
NO_ENTRY = "entity without an index entry"
TAKEN = "entity without its unique index entry"
TWICE = "two entities with a unique value"
OLD_MARK = "index entry with a mark and no copies"
OTHER_COPY = "index entry whose copies differ from the entity"
DAMAGED = "index entry that names no entity"


@dataclass(frozen=True)
class IndexCheck:
    """Compares entities and entries, from both sides."""

    pointers: PointerIndex
    indexes: tuple[BoundIndex, ...]

    @property
    def tables(self) -> Sequence[str]:
        """The tables of the entities and of the entries."""
        return sorted({self.pointers.table, *(each.table for each in self.indexes)})

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        """Return what is wrong with an entry, or with the entries of an entity."""
        for index in self.indexes:
            if table == index.table and index.has(row.key):
                look = self._list if isinstance(index.index, Listing) else self._entry
                return (yield from look(index.at(row.key), row, now))
        if table != self.pointers.table:
            return []
        findings = []
        for entry in sorted(self.pointers.entries(row.properties)):
            if entry.eventual and age_seconds(row, now) <= GRACE_SECONDS:
                continue  # A worker writes it.
            findings += yield from self._entity(entry, row, now)
        return findings

    def _entry(self, entry: Entry, row: Stored, now: datetime) -> Protocol[list[Finding]]:
        if PARTITION not in row.properties or ROW not in row.properties:
            return [deletion(DAMAGED, entry.table, row, now)]
        entity = yield from self._read(self.pointers.table, target(row))
        if entity is None:
            return [deletion(NO_ENTITY, entry.table, row, now)]
        if entry not in self.pointers.entries(entity.properties):
            return [deletion(NO_FIT, entry.table, row, now)]
        right = contents(entry, entity.key, entity.properties)
        if PENDING in row.properties:
            # The writer of the mark may be about to commit other values.
            found = correction(OLD_MARK, entry.table, row, now, "copy from the entity", right)
            return [found.waiting(age_seconds(row, now))]
        if any(row.properties.get(name) != right.get(name) for name in entry.copy):
            return [correction(OTHER_COPY, entry.table, row, now, "copy from the entity", right)]
        return []

    def _list(self, entry: Entry, row: Stored, now: datetime) -> Protocol[list[Finding]]:
        """Return the finding of all items in a row that do not fit, as one repair removes them."""
        wrong = []
        for item in lists.entries(row):
            if (yield from self.pointers.follow(entry._replace(key=item.key), item)) is None:
                wrong.append(item)
        if not wrong:
            return []
        take = tuple((target(item), frozenset({item.etag})) for item in wrong)
        planned = lists.changed(entry, [row], lists.Change(take=take))
        keys = ", ".join(str(tuple(target(item))) for item in wrong)
        found = correction(NO_FIT_LISTED, entry.table, row, now, "take them out", (entry.table, planned[0]))
        youngest = min(lists.age_seconds(item, row, now) for item in wrong)
        return [replace(found.waiting(youngest), detail=keys)]

    def _entity(self, entry: Entry, row: Stored, now: datetime) -> Protocol[list[Finding]]:
        table = self.pointers.table
        if entry.listed:
            if (yield from lists.find(entry, self.pointers.policy)) is not None:
                return []
            inside = entry.table == table and entry.key.partition_key == row.key.partition_key
            found = Finding(NO_ENTRY, table, row.key, age_seconds(row, now), f"put it into the list of {entry.key}")
            return [replace(found, repair=lists.putting(entry, row.key, versioned=not inside))]
        pointer = yield from self._read(entry.table, entry.key)
        if pointer is None:
            insert = Planned(Operation(Kind.INSERT, entry.key, contents(entry, row.key, row.properties)))
            return [correction(NO_ENTRY, table, row, now, f"insert {entry.key}", (entry.table, insert))]
        if PARTITION in pointer.properties and target(pointer) == row.key:
            return []
        if PARTITION in pointer.properties and (yield from self.pointers.follow(entry, pointer)) is not None:
            return [Finding(TWICE, table, row.key, age_seconds(row, now), detail=f"{tuple(target(pointer))}")]
        replacing = Operation(Kind.REPLACE, entry.key, pointing_to(row.key), pointer.etag)
        given = (entry.table, Planned(replacing, Ring.of(pointer.properties)))
        found = correction(TAKEN, table, row, now, f"let {entry.key} name it", given)
        # The entry's writer may be about to commit: the repair waits as a delete of the entry would.
        return [found.waiting(age_seconds(pointer, now))]

    def _read(self, table: str, key: EntityKey) -> Protocol[Stored | None]:
        return (yield from read(Read(table, key), (yield from begin(self.pointers.policy))))
