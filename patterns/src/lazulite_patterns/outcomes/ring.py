"""The ids of the last writes of an entity, in its property `_Op`: by them a writer knows whether its write was done."""

from collections.abc import Mapping
from typing import NamedTuple

from lazulite_patterns.filters import literal_text

RING = "_Op"
BIRTH = "_Born"
"""The property of an entity with indexes that has the id of its insert."""
MOVING = "_Moving"
"""The property of an entity whose move was started: which one, and to which partition."""
KEPT = frozenset({RING, BIRTH, MOVING})
"""The properties that the library keeps in rows of entities, and that no entity shows."""
_BIRTH = "^"
NO_ID = "0" * 16
"""A text as long as an id."""


class WriteIds(NamedTuple):
    """Ids of writes, the latest one last."""

    ids: tuple[str, ...] = ()
    complete: bool = False
    """Whether these are all writes since the entity was inserted."""

    @classmethod
    def of(cls, properties: Mapping[str, object]) -> "WriteIds":
        """Return the ring of an entity; an empty one if another program dropped it."""
        text = properties.get(RING)
        if not isinstance(text, str):
            return cls()
        return cls(tuple(text.removeprefix(_BIRTH).split()), text.startswith(_BIRTH))

    @classmethod
    def born(cls, operation_id: str) -> "WriteIds":
        """Return the ring of an entity that is inserted."""
        return cls((operation_id,), complete=True)

    def add(self, operation_id: str, marks: int) -> "WriteIds":
        """Return the ring after a write, of at most `marks` ids."""
        ids = (*self.ids, operation_id)
        return WriteIds(ids[-marks:], self.complete and len(ids) <= marks)

    @property
    def text(self) -> str:
        """The value of the property."""
        return (_BIRTH if self.complete else "") + " ".join(self.ids)


def same(one: Mapping[str, object], other: Mapping[str, object]) -> bool:
    """Tell whether two rows have the same properties, but for their keys and the ids of their writes."""
    return _comparable(one) == _comparable(other)


def _comparable(properties: Mapping[str, object]) -> dict[str, str]:
    return {
        name: literal_text(value)
        for name, value in properties.items()
        if value is not None and name not in KEPT | {"PartitionKey", "RowKey"}
    }
