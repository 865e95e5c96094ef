"""One entity of a commit: the row that was read, what it becomes, and its entries before and after."""

from typing import NamedTuple

from lazulite_patterns.effects.tables import EntityKey, Kind, Operation, Properties, Stored
from lazulite_patterns.indexes.entries import NO_INTENT, EntriesOf, Entry, contents, pointing_to
from lazulite_patterns.indexes.errors import NotUniqueOf
from lazulite_patterns.outcomes.ring import BIRTH, WriteIds
from lazulite_patterns.outcomes.verdict import Planned


class InsertState(NamedTuple):
    """What tells one life of an entity, from an insert to a delete, from others with the same keys."""

    birth: str = ""
    """The id of the insert, which was done; empty if it is not known."""
    intent: Properties = NO_INTENT
    """What is put into entries before the insert, which is not done yet."""


class Changed(NamedTuple):
    """One entity of a commit."""

    key: EntityKey
    base: Stored | None
    properties: Properties | None
    old: frozenset[Entry]
    new: frozenset[Entry]

    @classmethod
    def of(cls, entries: EntriesOf, key: EntityKey, base: Stored | None, properties: Properties | None) -> "Changed":
        """Return a change with the entries before and after it."""
        keys = {"PartitionKey": key.partition_key, "RowKey": key.row_key}
        old = entries(base.properties) if base is not None else frozenset[Entry]()
        new = entries({**properties, **keys}) if properties is not None else frozenset[Entry]()
        return cls(key, base, properties, old, new)

    @property
    def birth(self) -> str:
        """The id of the insert of the row that was read; empty if that is not known."""
        found = None if self.base is None else self.base.properties.get(BIRTH)
        return found if isinstance(found, str) else ""

    def planned(self, operation_id: str) -> Planned | None:
        """Return the write of the entity, which keeps the id of its insert; None if it is absent and stays so."""
        if self.properties is None:
            if self.base is None:
                return None
            return Planned(Operation(Kind.DELETE, self.key, etag=self.base.etag), WriteIds.of(self.base.properties))
        if self.base is None:
            return Planned(Operation(Kind.INSERT, self.key, {**self.properties, BIRTH: operation_id}))
        kept = {name: value for name, value in self.properties.items() if name != BIRTH}
        born = {BIRTH: self.birth} if self.birth else {}
        operation = Operation(Kind.REPLACE, self.key, {**kept, **born}, self.base.etag)
        return Planned(operation, WriteIds.of(self.base.properties))

    @property
    def deferred(self) -> frozenset[Entry]:
        """The entries before and after that a worker writes; none if they stay as they are."""
        return frozenset(each for each in self.old | self.new if each.eventual and each in self.old ^ self.new)

    @property
    def rewritten(self) -> list[Entry]:
        """The entries that stay, of which a copied property changes."""
        before = {} if self.base is None else self.base.properties
        after = self.properties or {}
        return [
            entry
            for entry in sorted(self.old & self.new)
            if contents(entry, self.key, before) != contents(entry, self.key, after)
        ]


class EntryMove(NamedTuple):
    """A unique entry that passes from one entity of a commit to another."""

    entry: Entry
    giver: EntityKey
    taker: EntityKey


class Entries(NamedTuple):
    """The entries of a commit, each with the entity that it is of."""

    old: dict[Entry, EntityKey]
    new: dict[Entry, EntityKey]
    rewritten: list[tuple[Entry, EntityKey]]

    @classmethod
    def of(cls, changes: list[Changed], not_unique: NotUniqueOf) -> "Entries":
        """Return the entries before and after some changes.

        Args:
            changes: of the entities of a commit.
            not_unique: what makes the error.

        Raises:
            NotUnique: two of the entities have the same unique entry after the change.
        """
        old: dict[Entry, EntityKey] = {}
        new: dict[Entry, Changed] = {}
        for number, each in enumerate(changes):
            for entry in each.new:
                if (owner := new.setdefault(entry, each)) is not each:
                    error = not_unique(entry, owner.key, owner.properties or {})
                    error.index = number
                    raise error
        for each in changes:
            for entry in each.old:
                # Another program may have given two of them one value: the entry passes from the one that loses it.
                if entry not in old or (entry in new and new[entry].key == old[entry]):
                    old[entry] = each.key
        owners = {entry: each.key for entry, each in new.items()}
        return cls(old, owners, [(entry, each.key) for each in changes for entry in each.rewritten])

    @property
    def gained(self) -> list[tuple[Entry, EntityKey]]:
        """The entries that the change adds."""
        return [(entry, self.new[entry]) for entry in sorted(self.new.keys() - self.old.keys())]

    @property
    def left(self) -> list[tuple[Entry, EntityKey]]:
        """The entries that the change leaves behind."""
        return [(entry, self.old[entry]) for entry in sorted(self.old.keys() - self.new.keys())]

    @property
    def passed(self) -> list[EntryMove]:
        """The unique entries that have another entity after the change."""
        both = ((entry, self.old[entry], self.new[entry]) for entry in sorted(self.old.keys() & self.new.keys()))
        return [EntryMove(*each) for each in both if each[1] != each[2]]


def replacement(entry: Entry, pointer: Stored, properties: Properties) -> Planned:
    """Return the replacement of an entry that was read."""
    return Planned(Operation(Kind.REPLACE, entry.key, properties, pointer.etag), WriteIds.of(pointer.properties))


def removal(entry: Entry, pointer: Stored) -> Planned:
    """Return the delete of an entry that was read."""
    return Planned(Operation(Kind.DELETE, entry.key, etag=pointer.etag), WriteIds.of(pointer.properties))


def claim(entry: Entry, key: EntityKey, intent: Properties = NO_INTENT) -> Planned:
    """Return the first write of an entry: a unique one must be absent. The others keep the intents that are there."""
    kind = Kind.INSERT if entry.unique else Kind.PUT_MERGE
    return Planned(Operation(kind, entry.key, {**pointing_to(key), **intent}))
