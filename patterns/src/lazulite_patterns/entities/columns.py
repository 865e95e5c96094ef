"""What stands in `Annotated[…]` beside the type of a field."""

from collections.abc import Iterable
from dataclasses import dataclass

from lazulite_patterns.entities.errors import SchemaError
from lazulite_patterns.keys.components import Component, text


def checked(given: Iterable[object]) -> tuple[Component, ...]:
    """Return components of `lazulite_patterns.keys`, which are typed as their values.

    Raises:
        SchemaError: one is no component.
    """
    found = []
    for each in given:
        if not isinstance(each, Component):
            raise SchemaError(f"{each!r} is no component of a key")
        found.append(each)
    return tuple(found)


def _components(given: tuple[object, ...]) -> tuple[Component, ...]:
    found = checked(given or (text(),))
    if sum(each.given for each in found) != 1:
        raise SchemaError("a field is one component of a key; the others beside it are literals and buckets")
    return found


class Partition:
    """Makes a field part of the PartitionKey: `Partition(literal("dept"), text())`. Without components: a text."""

    def __init__(self, *components: object) -> None:
        """Take the components of `lazulite_patterns.keys`; one of them is the field, the others are literals."""
        self.components = _components(components)


class Row:
    """Makes a field part of the RowKey: `Row(literal("empid"), integer(6))`. Without components: a text."""

    def __init__(self, *components: object) -> None:
        """Take the components of `lazulite_patterns.keys`; one of them is the field, the others are literals."""
        self.components = _components(components)


@dataclass(frozen=True)
class Name:
    """Stores a field as a property of another name."""

    name: str


@dataclass(frozen=True)
class Flatten:
    """Stores the fields of a field as properties of their own: `address_city`. `prefix` replaces `address_`."""

    prefix: str | None = None


class Json:
    """Stores a field of any type as JSON, in one String."""


class Int32:
    """Stores an `int` as Edm.Int32 instead of Edm.Int64."""


class Extra:
    """Makes a field of type `dict[str, object]` hold all properties that the class does not know."""
