"""The indexes of a class that a table has: the entries of an entity, and where entries of values are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from azure.data.tables import EdmType, EntityProperty

from lazulite_patterns.effects.tables import EntityKey, Properties
from lazulite_patterns.entities.columns import Column
from lazulite_patterns.entities.errors import EntityFormatError, EntityValueError, SchemaError
from lazulite_patterns.entities.indexes import Index, Listing
from lazulite_patterns.entities.schema import Schema
from lazulite_patterns.indexes import list_blobs
from lazulite_patterns.indexes.entries import ENTRY, Entry, digest
from lazulite_patterns.indexes.errors import NotUnique
from lazulite_patterns.keys import components as key_components
from lazulite_patterns.keys.characters import KeyFormatError, KeyValueError
from lazulite_patterns.keys.components import Component
from lazulite_patterns.keys.key_range import KeyRange
from lazulite_patterns.keys.layout import Layout
from lazulite_patterns.keys.times import Ticks

_DIGEST = "…digest"


class IndexRange(NamedTuple):
    """Where entries of some values are: one entry, or a range of keys in one partition or in several ones."""

    table: str
    partition_key: str | None = None
    row_key: str | None = None
    keys: KeyRange | None = None
    """Of RowKeys if the partition is known, else of PartitionKeys."""


@dataclass(frozen=True)
class BoundIndex:
    """An index with the class that it is of."""

    index: Index
    schema: Schema[Any]
    table: str
    layout: Layout
    """Of the values: the RowKey within a partition, else the PartitionKey."""

    @property
    def properties(self) -> frozenset[str]:
        """The names of the properties that its entries depend on."""
        names = {*(name for name, _ in self.index.fields), *self.index.copy}
        return frozenset(each.name for each in self.schema.shape.properties if each.field.name in names)

    @property
    def columns(self) -> str:
        """Its columns, as messages name them."""
        return f"{self.schema.cls.__name__}.{', '.join(name for name, _ in self.index.fields)}"

    @property
    def copied(self) -> tuple[str, ...]:
        """The names of the properties that entries copy."""
        stored = {each.field.name: each.name for each in self.schema.shape.properties}
        return tuple(stored[name] for name in self.index.copy)

    @property
    def source(self) -> str | list_blobs.BlobLists:
        """Where its entries are, as the auditor reads them."""
        container = self.index.container
        return list_blobs.BlobLists(self.table, container) if container else self.table

    def at(self, key: EntityKey) -> Entry:
        """Return the entry with these keys."""
        listed = isinstance(self.index, Listing)
        index = self.index
        return Entry(self.table, key, index.unique, self.copied, listed, index.queue is not None, index.container)

    def values(self, properties: Properties) -> dict[str, object]:
        """Return the values of the copied fields."""
        return {name: self._property(name, properties) for name in self.index.copy}

    def has(self, key: EntityKey) -> bool:
        """Tell whether a row of the entries' table is an entry of this index, by its keys."""
        text = key.row_key if self.index.within_partition else key.partition_key
        return text in self.layout.prefix(self.layout.computed({}))

    def entry(self, key: EntityKey, properties: Properties) -> Entry | None:
        """Return the entry of an entity; None if it has none.

        Raises:
            EntityValueError: a value cannot be part of a key.
        """
        values = self._values(key, properties)
        if values is None:
            return None
        if self.index.within_partition and not self.index.unique:
            values[_DIGEST] = digest(key)
        try:
            text = self.layout.text({**self.layout.computed(values), **values})
        except KeyValueError as error:
            raise EntityValueError(f"index {self.index.name}: {error}") from error
        if self.index.within_partition:
            return self.at(EntityKey(key.partition_key, text))
        found = self.at(EntityKey(text, "" if self.index.unique else digest(key)))
        if found.container and len(list_blobs.name(found.table, text)) > list_blobs.NAME_MAX:
            raise EntityValueError(f"index {self.index.name}: the value is too long for the name of a blob")
        return found

    def not_unique(self, owner: EntityKey, properties: Properties) -> NotUnique:
        """Return the error for a value that an entity has already. The index of an encrypted property is rejected."""
        values = self._values(owner, properties) or {}
        columns, first = tuple(values), self.index.fields[0][0]
        own = self.schema.cls
        # The value is unique over all classes that inherit the column.
        cls = next((each for each in reversed(own.__mro__) if isinstance(getattr(each, first, None), Column)), own)
        shown = values[first] if len(values) == 1 else tuple(values.values())
        text = f"{cls.__name__}.{', '.join(columns)}: {shown!r} is that of {tuple(owner)}"
        return NotUnique(text, columns, tuple(values.values()), owner)

    def place(self, values: Sequence[object], *, prefix: bool, partition_key: str | None) -> IndexRange:
        """Return where the entries of some values are.

        Raises:
            ValueError: there are too many values, or the partition is not named where it must be.
        """
        if not 0 < len(values) <= len(self.index.fields):
            raise ValueError(f"index {self.index.name} has {len(self.index.fields)} fields")
        if self.index.within_partition != (partition_key is not None):
            word = "needs" if self.index.within_partition else "takes no"
            raise ValueError(f"index {self.index.name} {word} partition_key")
        names = [name for name, _ in self.index.fields]
        given = dict(zip(names, values, strict=False))
        known: dict[str, object] = {**self.layout.computed(given)}
        if prefix:
            *first, last = given
            if not isinstance(given[last], str):
                raise ValueError(f"index {self.index.name}: {last} is no text that has a prefix")
            keys = self.layout.prefix({**known, **{name: given[name] for name in first}}, str(given[last]))
            return IndexRange(self.table, partition_key, keys=keys)
        known |= given
        if len(values) < len(names) or (self.index.within_partition and not self.index.unique):
            return IndexRange(self.table, partition_key, keys=self.layout.prefix(known))
        text = self.layout.text(known)
        if partition_key is not None:
            return IndexRange(self.table, partition_key, text)
        return IndexRange(self.table, text, "" if self.index.unique else None)

    def _values(self, key: EntityKey, properties: Properties) -> dict[str, object] | None:
        """Return the values of the fields; None if one is None."""
        lifted = self.schema.lifted(properties)
        parts = {**self.schema.partition.values(key.partition_key), **self.schema.row.values(key.row_key)}
        values: dict[str, object] = {}
        for name, _ in self.index.fields:
            value = parts[name] if name in parts else self._property(name, lifted)
            if value is None:
                return None
            values[name] = value
        return values

    def _property(self, name: str, properties: Properties) -> object:
        found = next(each for each in self.schema.shape.properties if each.field.name == name)
        value = properties.get(found.name)
        if value is None:
            return None if found.field.default is None else found.field.default()
        if isinstance(value, EntityProperty) and value.edm_type != EdmType.INT64:
            value = value.value
        try:
            return found.type.read(value)
        except (TypeError, ValueError) as error:
            raise EntityFormatError(f"{self.schema.cls.__name__}.{name}: {error}") from error


def bound(index: Index, schema: Schema[Any], table: str) -> BoundIndex:
    """Return an index of a class.

    Raises:
        SchemaError: the class has no such field, or no component fits its type.
    """
    stored = {each.field.name for each in schema.shape.properties}
    if wrong := [name for name in index.copy if name not in stored]:
        raise SchemaError(f"index {index.name}: {schema.cls.__name__}.{wrong[0]} is no property that can be copied")
    fields = [(name, _component(index, schema, name, each)) for name, each in index.fields]
    first = [(".marker", key_components.literal(ENTRY)), (".name", key_components.literal(index.name))]
    parts: list[tuple[str, object]] = [*first, *fields]
    if index.within_partition and not index.unique:
        parts.append((_DIGEST, key_components.text()))
    checked = tuple((name, each) for name, each in parts if isinstance(each, Component))
    if len(checked) < len(parts) or len(dict(checked)) < len(parts):
        raise SchemaError(f"index {index.name}: a field is named twice, or with what is no component")
    return BoundIndex(index, schema, index.table or table, Layout(f"index {index.name}", checked))


def _component(index: Index, schema: Schema[Any], name: str, given: object) -> object:
    keys = dict(schema.partition.components + schema.row.components)
    if name in keys:
        return keys[name] if given is None else given
    found = next((each for each in schema.shape.properties if each.field.name == name), None)
    if found is None:
        raise SchemaError(f"index {index.name}: {schema.cls.__name__} has no property of the name {name}")
    if found.field.kind is Ticks:
        raise SchemaError(f"index {index.name}: {name} is of type Ticks; a part of a key or a datetime can be indexed")
    if given is not None:
        return given
    if found.field.declared.form == "int32":
        return key_components.integer(10, signed=True)
    if found.field.declared.form == "json" or (component := key_components.of_type(found.field.kind)) is None:
        raise SchemaError(f"index {index.name}: name a component for {name}, as in ('{name}', integer(3))")
    return component


def entry_or_none(index: BoundIndex, key: EntityKey, properties: Properties) -> Entry | None:
    """Return the entry of a row; None if the row is of another class, or has a value that no entry can have."""
    try:
        return index.entry(key, properties)
    except (EntityFormatError, EntityValueError, KeyFormatError):
        return None


def obstacle(index: BoundIndex, key: EntityKey, properties: Properties) -> str:
    """Return why a row of the class has no entry, though none of its fields is None; empty if that is not so."""
    try:
        index.entry(key, properties)
    except EntityValueError as error:
        return str(error)
    except (EntityFormatError, KeyFormatError):
        return ""
    return ""
