"""What an index is declared as: its name, its properties, its scope, and how far it is built.

An index is *write-only* first: writes keep its entries. Then it is *building*: once every process knows of it, the
entries of the rows before it are added. Once it has them all, it is *ready*, and queries use it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Self

from lazulite.protocol.xml.text import is_name
from lazulite.table.names import PROPERTY_NAME_MAX

TABLE_INDEXES_MAX = 5
"""The indexes of one table."""
ACCOUNT_INDEXES_MAX = 64
"""The indexes of all tables of an account."""
PROPERTIES_MAX = 2
"""The properties of one index."""

_NAME = re.compile("[A-Za-z][A-Za-z0-9_-]{0,62}", re.ASCII)
_KEYS = ("PartitionKey", "RowKey")


class DeclarationError(ValueError):
    """An index cannot be declared so. The text is one line for people."""


class Scope(Enum):
    """Where an index has its entries, and so which queries it serves."""

    PARTITION = "partition"
    """With the rows of each partition: it serves queries of one partition."""
    TABLE = "table"
    """By value: it serves queries of the whole table, too."""


class State(Enum):
    """How far an index is built."""

    WRITE_ONLY = "write-only"
    BUILDING = "building"
    READY = "ready"


@dataclass(frozen=True, slots=True)
class Index:
    """A declared index."""

    name: str
    """As its creator spelled it; names are compared without case."""
    on: tuple[str, ...]
    """The names of its properties, in order."""
    scope: Scope
    space: int
    """The number of the space that holds its entries."""
    state: State = State.WRITE_ONLY

    def fields(self) -> dict[str, object]:
        """Return the stored form: a JSON object."""
        return {
            "name": self.name,
            "on": list(self.on),
            "scope": self.scope.value,
            "space": self.space,
            "state": self.state.value,
        }

    @classmethod
    def from_fields(cls, fields: Mapping[str, object]) -> Self:
        """Read the stored form.

        Raises:
            KeyError, TypeError, ValueError: it is damaged.
        """
        on, space = fields["on"], fields["space"]
        if not isinstance(on, list) or not isinstance(space, int):
            raise TypeError("not an index")
        return cls(str(fields["name"]), tuple(map(str, on)), Scope(fields["scope"]), space, State(fields["state"]))


@dataclass(frozen=True, slots=True)
class Indexes:
    """The indexes of one table."""

    version: int = 0
    """Grows with each change of what is declared."""
    declared: tuple[Index, ...] = ()
    """In the order in which they were."""

    def find(self, name: str) -> Index | None:
        """Return the index of a name, compared without case; None if there is none."""
        return next((index for index in self.declared if index.name.lower() == name.lower()), None)

    def with_index(self, index: Index) -> "Indexes":
        """Return these with an index more, or with a new state of one of them."""
        if self.find(index.name) is None:
            return Indexes(self.version + 1, (*self.declared, index))
        return Indexes(self.version + 1, tuple(index if each.space == index.space else each for each in self.declared))

    def without(self, index: Index) -> "Indexes":
        """Return these without one of them."""
        return Indexes(self.version + 1, tuple(each for each in self.declared if each.space != index.space))

    def fields(self) -> dict[str, object]:
        """Return the stored form: a JSON object."""
        return {"version": self.version, "declared": [index.fields() for index in self.declared]}

    @classmethod
    def from_fields(cls, fields: Mapping[str, object]) -> Self:
        """Read the stored form.

        Raises:
            KeyError, TypeError, ValueError: it is damaged.
        """
        version, declared = fields["version"], fields["declared"]
        if not isinstance(version, int) or not isinstance(declared, list):
            raise TypeError("not the indexes of a table")
        return cls(version, tuple(map(Index.from_fields, declared)))


NO_INDEXES = Indexes()


def check_declaration(name: str, on: Sequence[str], others: Sequence[Index]) -> None:
    """Reject a declaration of an index.

    Args:
        name: of the new index.
        on: its properties.
        others: the indexes that the table has.

    Raises:
        DeclarationError: it is not allowed, or the table has an index of that name.
    """
    if _NAME.fullmatch(name) is None:
        raise DeclarationError("the name of an index is a letter, then up to 62 letters, digits, '-' or '_'")
    if any(other.name.lower() == name.lower() for other in others):
        raise DeclarationError(f"the table has an index {name}")
    if len(others) >= TABLE_INDEXES_MAX:
        raise DeclarationError(f"the table has {TABLE_INDEXES_MAX} indexes, which is the most")
    if not 1 <= len(on) <= PROPERTIES_MAX or len(set(on)) != len(on):
        raise DeclarationError(f"an index has one property, or {PROPERTIES_MAX} different ones")
    for each in on:
        if each in _KEYS:
            raise DeclarationError(f"{each} is a key of the table, and needs no index")
        if len(each) > PROPERTY_NAME_MAX or not is_name(each):
            raise DeclarationError(f"no property can have the name {each!r}")
