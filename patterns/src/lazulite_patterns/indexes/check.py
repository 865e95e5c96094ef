"""What the auditor looks at in a table with indexes: each entity has its entries, and each entry its entity."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lazulite_patterns.auditing.finding import Finding, correction, deletion
from lazulite_patterns.auditing.source import Source, name_of
from lazulite_patterns.effects.effect import Protocol
from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Read, Stored
from lazulite_patterns.entities.errors import EntityFormatError
from lazulite_patterns.entities.indexes import Listing
from lazulite_patterns.indexes import lists
from lazulite_patterns.indexes.entries import PENDING, Entry, contents, copied, intents, pointing_to, target, targets
from lazulite_patterns.indexes.index import BoundIndex, obstacle
from lazulite_patterns.indexes.pointers import PointerIndex
from lazulite_patterns.outcomes.grace import GRACE_SECONDS, age_seconds
from lazulite_patterns.outcomes.retries import begin, read
from lazulite_patterns.outcomes.ring import WriteIds
from lazulite_patterns.outcomes.verdict import Planned

NO_ENTITY = "index entry of an absent entity"
NO_FIT = "index entry that does not fit its entity"
NO_FIT_LISTED = "list with entities that do not fit"
NO_ENTRY = "entity without an index entry"
NO_PLACE = "entity with a value that no index entry can have"
TAKEN = "entity without its unique index entry"
TWICE = "two entities with a unique value"
OLD_MARK = "index entry with a mark and no copies"
HALF_PASSED = "index entry that names two entities"
OTHER_COPY = "index entry whose copies differ from the entity"
DAMAGED = "index entry that names no entity"
DAMAGED_LIST = "list that cannot be read"


@dataclass(frozen=True)
class IndexCheck:
    """Compares entities and entries, from both sides."""

    pointers: PointerIndex
    indexes: tuple[BoundIndex, ...]

    @property
    def tables(self) -> Sequence[str | Source]:
        """The tables of the entities and of the entries, and the containers of lists."""
        return [self.pointers.table, *(each.source for each in self.indexes)]

    def examine(self, table: str, row: Stored, now: datetime) -> Protocol[Sequence[Finding]]:
        """Return what is wrong with an entry, or with the entries of an entity."""
        for index in self.indexes:
            if table == name_of(index.source) and index.has(row.key):
                look = self._list if isinstance(index.index, Listing) else self._entry
                return (yield from look(index.at(row.key), table, row, now))
        if table != self.pointers.table:
            return []
        findings = [
            Finding(NO_PLACE, table, row.key, age_seconds(row, now), detail=found)
            for index in self.indexes
            if (found := obstacle(index, row.key, row.properties))
        ]
        for entry in sorted(self.pointers.entries(row.properties)):
            if entry.eventual and age_seconds(row, now) <= GRACE_SECONDS:
                continue  # A worker writes it.
            findings += yield from (self._listed if entry.listed else self._entity)(entry, row, now)
        return findings

    def _entry(self, entry: Entry, table: str, row: Stored, now: datetime) -> Protocol[list[Finding]]:
        if not targets(row):
            return [deletion(DAMAGED, table, row, now)]
        entity = yield from self.pointers.follow(entry, row)
        if entity is None:
            there = yield from self._read(self.pointers.table, target(row))
            return [deletion(NO_ENTITY if there is None else NO_FIT, table, row, now)]
        right = contents(entry, entity.key, entity.properties)
        if row.properties.get(PENDING):
            # The writer of the mark may be about to commit other values.
            found = correction(OLD_MARK, table, row, now, "copy from the entity", right)
            return [found.waiting(age_seconds(row, now))]
        if len(targets(row)) > 1:
            # The writer that passes it on may be about to commit.
            found = correction(HALF_PASSED, table, row, now, "let it name its entity alone", right)
            return [found.waiting(age_seconds(row, now))]
        if any(copied(row).get(name) != right.get(name) for name in entry.copy):
            return [correction(OTHER_COPY, table, row, now, "copy from the entity", {**right, **intents(row)})]
        return []

    def _list(self, entry: Entry, table: str, row: Stored, now: datetime) -> Protocol[list[Finding]]:
        """Return the finding of all items in a row that do not fit, as one repair removes them."""
        found, wrong = Finding(NO_FIT_LISTED, table, row.key, age_seconds(row, now), deletes=True), []
        try:
            items = lists.entries(row)
        except EntityFormatError as error:
            deleted = Planned(Operation(Kind.DELETE, row.key, etag=row.etag), WriteIds.of(row.properties))
            repair = lists.writing(entry, deleted)
            return [replace(found, kind=DAMAGED_LIST, proposal="delete the list", detail=str(error), repair=repair)]
        for item in items:
            if (yield from self.pointers.follow(entry._replace(key=item.key), item)) is None:
                wrong.append(item)
        if not wrong:
            return []
        take = tuple((target(item), frozenset({item.etag})) for item in wrong)
        (planned,) = lists.changed(entry, [row], lists.Change(take=take))
        keys = ", ".join(str(tuple(target(item))) for item in wrong)
        found = found.waiting(min(lists.age_seconds(item, row, now) for item in wrong))
        return [replace(found, proposal="take them out", detail=keys, repair=lists.writing(entry, planned))]

    def _listed(self, entry: Entry, row: Stored, now: datetime) -> Protocol[list[Finding]]:
        """Return a finding for an entity that is not in its list. A list that cannot be read is a finding by itself."""
        table = self.pointers.table
        try:
            found = yield from lists.find(entry, self.pointers.policy)
        except EntityFormatError:
            return []
        if found is not None:
            return []
        inside = entry.table == table and entry.key.partition_key == row.key.partition_key
        absent = Finding(NO_ENTRY, table, row.key, age_seconds(row, now), f"put it into the list of {entry.key}")
        return [replace(absent, repair=lists.putting(entry, row.key, versioned=not inside))]

    def _entity(self, entry: Entry, row: Stored, now: datetime) -> Protocol[list[Finding]]:
        table = self.pointers.table
        pointer = yield from self._read(entry.table, entry.key)
        if pointer is None:
            insert = Planned(Operation(Kind.INSERT, entry.key, contents(entry, row.key, row.properties)))
            return [correction(NO_ENTRY, table, row, now, f"insert {entry.key}", (entry.table, insert))]
        if row.key in targets(pointer):
            return []
        if (other := (yield from self.pointers.follow(entry, pointer))) is not None:
            return [Finding(TWICE, table, row.key, age_seconds(row, now), detail=f"{tuple(other.key)}")]
        replacing = Operation(Kind.REPLACE, entry.key, pointing_to(row.key), pointer.etag)
        given = (entry.table, Planned(replacing, WriteIds.of(pointer.properties)))
        found = correction(TAKEN, table, row, now, f"let {entry.key} name it", given)
        # The entry's writer may be about to commit: the repair waits as a delete of the entry would.
        return [found.waiting(age_seconds(pointer, now))]

    def _read(self, table: str, key: EntityKey) -> Protocol[Stored | None]:
        return (yield from read(Read(table, key), (yield from begin(self.pointers.policy))))
