"""What an index is declared as: its name, its properties, its scope, and how far it is built.

An index is *write-only* first: writes keep its entries. Then it is *building*: once every process knows of it, the
entries of the rows before it are added. Once it has them all, it is *ready*, and queries use it.

An index that is built again has a successor: one of the same name, declared behind it. Both are kept until the
successor is ready. Then the one before it is write-only again, in the same commit, and dropped later.

Invariant: at most one index of a name is ready.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Self

from lazulite.protocol.xml.text import is_name
from lazulite.table.expiry.definition import Expiry
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
    """The indexes of one table, and when its entities expire: what writes must know of it beside its space."""

    version: int = 0
    """Grows with each change of what is declared."""
    declared: tuple[Index, ...] = ()
    """In the order in which they were."""
    expiry: Expiry | None = None
    """When the entities of the table expire; None: never."""

    def __hash__(self) -> int:
        """Return what tells most tables apart, at little cost: each write asks."""
        return hash((self.version, *[index.space for index in self.declared]))

    def named(self, name: str) -> Sequence[Index]:
        """Return the index of a name, compared without case, and its successor, in order."""
        return [index for index in self.declared if index.name.lower() == name.lower()]

    def find(self, name: str) -> Index | None:
        """Return the index of a name that is ready or to be built; None if there is none."""
        return next(iter(self.named(name)[-1:]), None)

    def before(self, index: Index) -> Sequence[Index]:
        """Return the indexes before a successor of their name."""
        return [each for each in self.named(index.name) if each.space != index.space]

    @property
    def current(self) -> Sequence[Index]:
        """One index of each name: the one that is ready, if any is."""
        last = {index.name.lower(): index for index in self.declared}
        return list(
            (last | {index.name.lower(): index for index in self.declared if index.state is State.READY}).values()
        )

    def with_index(self, index: Index) -> "Indexes":
        """Return these with an index more, or with a new state of one of them."""
        if all(each.space != index.space for each in self.declared):
            return self._with((*self.declared, index))
        return self._with(tuple(index if each.space == index.space else each for each in self.declared))

    def with_ready(self, index: Index) -> "Indexes":
        """Return these with an index ready, and the ones before it write-only."""
        states = {index.space: State.READY} | {each.space: State.WRITE_ONLY for each in self.before(index)}
        return self._with(tuple(replace(each, state=states.get(each.space, each.state)) for each in self.declared))

    def without(self, spaces: Collection[int]) -> "Indexes":
        """Return these without the indexes of some spaces."""
        return self._with(tuple(each for each in self.declared if each.space not in spaces))

    def with_expiry(self, expiry: Expiry | None) -> "Indexes":
        """Return these of a table whose entities expire so."""
        return replace(self, version=self.version + 1, expiry=expiry)

    @property
    def need_rows(self) -> bool:
        """Whether what becomes of a row depends on what it was: on its entries, or on whether it has expired."""
        return bool(self.declared) or self.expiry is not None

    def _with(self, declared: tuple[Index, ...]) -> "Indexes":
        return replace(self, version=self.version + 1, declared=declared)

    def fields(self) -> dict[str, object]:
        """Return the stored form: a JSON object."""
        fields = {"version": self.version, "declared": [index.fields() for index in self.declared]}
        return fields if self.expiry is None else {**fields, "expiry": self.expiry.fields()}

    @classmethod
    def from_fields(cls, fields: Mapping[str, object]) -> Self:
        """Read the stored form.

        Raises:
            KeyError, TypeError, ValueError: it is damaged.
        """
        version, declared, expiry = fields["version"], fields["declared"], fields.get("expiry")
        if not isinstance(version, int) or not isinstance(declared, list) or not isinstance(expiry, dict | None):
            raise TypeError("not the indexes of a table")
        indexes = tuple(map(Index.from_fields, declared))
        return cls(version, indexes, None if expiry is None else Expiry.from_fields(expiry))


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


def require_declared(indexes: Indexes, index: Index) -> None:
    """Reject what concerns an index that is not declared any more.

    Raises:
        DeclarationError: it was dropped.
    """
    if all(each.space != index.space for each in indexes.declared):
        raise DeclarationError(f"the index {index.name} was dropped meanwhile")
