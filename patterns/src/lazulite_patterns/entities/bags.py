"""Property bags: entities without a class, as dictionaries of the SDK's values."""

from collections.abc import Mapping

from lazulite_patterns.effects.tables import EntityKey, Stored
from lazulite_patterns.entities import limits
from lazulite_patterns.entities.errors import EntityValueError
from lazulite_patterns.entities.rows_read import attach_row
from lazulite_patterns.outcomes.ring import MOVING, RING

_HIDDEN = frozenset({RING, MOVING})


class Bag(dict[str, object]):
    """The properties of an entity, with its keys. Values are those of the SDK: an Int64 is an `EntityProperty`."""


class Bags:
    """The entities of a table as bags."""

    def of(self, entity: object) -> "Bags":  # noqa: ARG002 - all are alike
        """Return how an entity is stored."""
        return self

    def key(self, entity: object) -> EntityKey:
        """Return the keys of a bag.

        Raises:
            EntityValueError: it has none.
        """
        if isinstance(entity, Mapping):
            partition_key, row_key = entity.get("PartitionKey"), entity.get("RowKey")
            if isinstance(partition_key, str) and isinstance(row_key, str):
                return EntityKey(partition_key, row_key)
        raise EntityValueError("a property bag is a mapping with the texts PartitionKey and RowKey")

    def encode(self, entity: object) -> dict[str, object]:
        """Return the properties of a bag; None is absent.

        Raises:
            EntityValueError: the service would reject them.
        """
        key = self.key(entity)
        given = {**entity} if isinstance(entity, Mapping) else {}
        properties = {name: value for name, value in given.items() if value is not None and name not in _HIDDEN}
        limits.check_key("Bag", key)
        limits.check(f"{key.partition_key}/{key.row_key}", properties)
        return properties

    def decode(self, stored: Stored) -> Bag:
        """Return the bag of a row, without what the library keeps of writes and moves."""
        bag = Bag({name: value for name, value in stored.properties.items() if name not in _HIDDEN})
        attach_row(bag, stored)
        return bag

    def unknown(self, properties: Mapping[str, object]) -> dict[str, object]:  # noqa: ARG002 - none is
        """Return nothing: a bag has all properties."""
        return {}

    def absent(self, names: frozenset[str]) -> frozenset[str]:
        """Return those of some names that no bag has as a property."""
        return names & (limits.SYSTEM | _HIDDEN)

    def partial(self, key: object, given: Mapping[str, object]) -> dict[str, object]:
        """Return some properties of a bag, or of the one with these keys.

        Raises:
            EntityValueError: one is None, which a merge does not remove, or the service would reject one.
        """
        if None in given.values():
            raise EntityValueError("a merge cannot remove a property; `update` can: remove=[…]")
        place = key if isinstance(key, EntityKey) else self.key(key)
        limits.check(f"{place.partition_key}/{place.row_key}", {**given, "PartitionKey": "", "RowKey": ""})
        return dict(given)
