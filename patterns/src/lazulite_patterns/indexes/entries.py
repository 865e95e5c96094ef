"""Entries of indexes: where they are, and the entity that each names."""

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple

from lazulite_patterns.effects.tables import EntityKey, Properties, Stored
from lazulite_patterns.entities.schema import TYPE
from lazulite_patterns.filters import Filter, in_range
from lazulite_patterns.keys.key_range import KeyProperty, KeyRange
from lazulite_patterns.outcomes.grace import GRACE_SECONDS

ENTRY = "_Index"
"""The first component of an entry's PartitionKey or RowKey, and its property `_Type`."""
ENTRIES = KeyRange.starting_with(f"{ENTRY}!")
PARTITION, ROW = "TargetPartition", "TargetRow"
"""The properties of an entry that name its entity."""
NEXT_PARTITION, NEXT_ROW = "NextPartition", "NextRow"
"""The properties of a unique entry that name the entity which it is about to pass to."""
PENDING = "_Pending"
"""The property of an entry whose copies are not to be read: the mark of a writer that may be about to commit.

It is empty after the commit.
"""
NOT_COPIED = "_Absent"
"""The property of an entry that names copies of properties which its entity does not have, with spaces between."""
INTENT = "_New_"
"""How the properties of an entry begin that are intents of inserts. Each has the second in which it was put."""
NO_INTENT: Mapping[str, object] = {}


class Entry(NamedTuple):
    """An entry of an index: where it is. It says which entity it is of by its properties."""

    table: str
    key: EntityKey
    unique: bool = False
    """Whether one entity at most may have it."""
    copy: tuple[str, ...] = ()
    """The properties of the entity that it has, too."""
    listed: bool = False
    """Whether it is no row of its own, but an item in rows of a list."""
    eventual: bool = False
    """Whether a worker of a queue writes it after the commit."""
    container: str = ""
    """The name by which the driver knows the container of the blob that has its list; empty for rows."""


EntriesOf = Callable[[Properties], frozenset[Entry]]
"""Returns the entries of an entity, from its properties with its keys."""


def pointing_to(key: EntityKey) -> dict[str, object]:
    """Return the properties of an entry."""
    return {TYPE: ENTRY, PARTITION: key.partition_key, ROW: key.row_key}


def passing(giver: EntityKey, taker: EntityKey) -> dict[str, object]:
    """Return the properties of a unique entry that a transaction is about to pass from one entity to another."""
    return {**pointing_to(giver), NEXT_PARTITION: taker.partition_key, NEXT_ROW: taker.row_key}


def contents(entry: Entry, key: EntityKey, properties: Properties) -> dict[str, object]:
    """Return the properties of an entry, with the properties that it copies from its entity."""
    return {**pointing_to(key), **{name: properties[name] for name in entry.copy if name in properties}}


def filled(entry: Entry, key: EntityKey, properties: Properties) -> dict[str, object]:
    """Return what is merged into an entry that was marked, so that it has the copies of its entity and no others."""
    absent = " ".join(name for name in entry.copy if properties.get(name) is None)
    return {**contents(entry, key, properties), PENDING: "", NOT_COPIED: absent}


def copied(pointer: Stored) -> Properties:
    """Return the properties of an entry, without copies of properties that its entity does not have."""
    absent = str(pointer.properties.get(NOT_COPIED, "")).split()
    return {name: value for name, value in pointer.properties.items() if name not in absent}


def intent(name: str, now: datetime) -> dict[str, object]:
    """Return the intent of an insert, as a property of an entry."""
    return {f"{INTENT}{name}": str(int(now.timestamp()))}


def intents(pointer: Stored) -> dict[str, object]:
    """Return the intents that an entry has."""
    return {name: value for name, value in pointer.properties.items() if name.startswith(INTENT)}


def pending(pointer: Stored, birth: str, now: datetime) -> frozenset[str]:
    """Return the names of the intents of inserts that may still arrive.

    Args:
        pointer: the entry.
        birth: the id of the insert of the entity that leaves the entry behind; that one was done.
        now: the time.
    """
    return frozenset(
        name
        for name, second in intents(pointer).items()
        if name != f"{INTENT}{birth}"
        and not (str(second).isdecimal() and int(str(second)) + GRACE_SECONDS < now.timestamp())
    )


def without(pointer: Stored, names: frozenset[str]) -> dict[str, object]:
    """Return the properties of an entry but for some intents."""
    return {name: value for name, value in pointer.properties.items() if name not in {*names, *_KEYS}}


_KEYS = ("PartitionKey", "RowKey")


def target(pointer: Stored) -> EntityKey:
    """Return the keys of the entity that an entry names."""
    return EntityKey(str(pointer.properties[PARTITION]), str(pointer.properties[ROW]))


def targets(pointer: Stored) -> tuple[EntityKey, ...]:
    """Return the keys of the entities that an entry names: two while it passes; none if the entry is damaged."""
    properties = pointer.properties
    named = ((PARTITION, ROW), (NEXT_PARTITION, NEXT_ROW))
    return tuple(
        EntityKey(str(properties[partition]), str(properties[row]))
        for partition, row in named
        if partition in properties and row in properties
    )


def digest(key: EntityKey) -> str:
    """Return a short text of an entity's keys, by which entries of the same value differ."""
    text = f"{len(key.partition_key)}:{key.partition_key}{key.row_key}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def outside(name: KeyProperty) -> Filter:
    """Return the condition that a row is no entry by one of its keys."""
    return ~in_range(name, ENTRIES)
