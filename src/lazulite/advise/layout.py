"""A choice of keys: what PartitionKey and RowKey are made of.

Invariants: parts are in the order of the key, joined by a separator. A `BUCKET` has a number of buckets. All others
but a `KIND` and an `ID` name a property. Copies are further rows of an entity in its partition, each with a RowKey
of its own.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from lazulite.advise.workload import KIND

SEPARATOR = ";"


class Form(Enum):
    """What a part of a key is."""

    PLAIN = "plain"
    REVERSED = "reversed"
    """Counted down, so that the greatest value comes first."""
    BUCKET = "bucket"
    """A number: by a hash of its property, or at random."""
    KIND = "kind"
    """A constant for each kind of entity."""
    ID = "id"
    """A new id, such as a UUID."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a key."""

    form: Form
    name: str = ""
    count: int = 0
    """The number of buckets."""

    def __str__(self) -> str:
        name = f"old {self.name}" if self.name in ("PartitionKey", "RowKey") else self.name
        return {
            Form.PLAIN: name,
            Form.REVERSED: f"reversed {name}",
            Form.BUCKET: f"bucket of {self.count}",
            Form.KIND: "kind",
            Form.ID: "new id",
        }[self.form]

    @property
    def is_value(self) -> bool:
        """Whether it is the value of a property."""
        return self.form in (Form.PLAIN, Form.REVERSED)


KIND_PART = Part(Form.KIND, KIND)
ID_PART = Part(Form.ID)
Parts = tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """The keys of a table."""

    partition: Parts
    row: Parts
    copies: tuple[Parts, ...] = ()
    """The RowKeys under which an entity is stored once more, without the constants before them."""

    @property
    def partition_properties(self) -> frozenset[str]:
        """The properties in the PartitionKey; a bucket by a property does not count."""
        return frozenset(each.name for each in self.partition if each.is_value)

    @property
    def buckets(self) -> int:
        """The number of buckets; 1 without."""
        return max((each.count for each in self.partition if each.form is Form.BUCKET), default=1)

    @property
    def bucket(self) -> Part | None:
        """Its bucket, if it has one."""
        return next((each for each in self.partition if each.form is Form.BUCKET), None)

    @property
    def rows(self) -> tuple[Parts, ...]:
        """The RowKeys of an entity: its own one, then those of its copies."""
        return (self.row, *self.copies)

    def with_bucket(self, count: int, *, first: bool, by: str = "") -> "Layout":
        """Return these keys with a bucket in the PartitionKey, at its beginning or at its end."""
        plain = tuple(each for each in self.partition if each.form is not Form.BUCKET)
        bucket = Part(Form.BUCKET, by, count)
        return replace(self, partition=(bucket, *plain) if first else (*plain, bucket))


def prefix_of(parts: Parts) -> str:
    """Return the constant before a RowKey that tells several RowKeys of an entity apart."""
    first = next((each for each in parts if each.is_value), None)
    return f"{first.name.lower()}_" if first else "id_"


def spelled(parts: Iterable[Part], constant: str = "all") -> str:
    """Return the parts of a key as people read them; a constant if there are none."""
    return SEPARATOR.join(map(str, parts)) or f"'{constant}'"


def described(layout: Layout, kinds: Mapping[str, tuple[str, ...]]) -> str:
    """Return keys in one line, given the kinds of entities."""
    return f"PartitionKey = {spelled(layout.partition)}, RowKey = {' and '.join(row_lines(layout, kinds))}"


def row_lines(layout: Layout, kinds: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield each RowKey of an entity as people read it, or that of each kind of entity."""
    for kind, names in kinds.items():
        yield "_".join([kind, *(str(each) for each in layout.row if each.is_value and each.name in names)])
    if kinds:
        return
    if not layout.copies:
        yield spelled(layout.row, "row")
        return
    for parts in layout.rows:
        yield f"{prefix_of(parts)}{spelled(parts)}"
