"""The row that an entity was read from, beside the entity's fields: what makes a delete or a replacement conditional.

It travels with `dataclasses.replace`, `copy.copy` and `copy.deepcopy`, as a changed entity is still the one that was
read. A class whose instances have no room for it is rejected when it is declared: their deletes would be unconditional
without a word.
"""

import copy
import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec

from lazulite_patterns.effects.tables import Stored
from lazulite_patterns.entities.errors import SchemaError

_STORED, _EXTRA = "__stored__", "__extra__"
_FIELDS = "__dataclass_fields__"

_CARRIED: Any = dataclasses.field(default=None, repr=False, compare=False)
_CARRIED.name, _CARRIED.type = _STORED, object
_CARRIED._field_type = cast(Any, dataclasses)._FIELD_INITVAR


class _Fields:
    """The fields of an instance that was read, with one more for `dataclasses.replace`, which asks the instance.

    Others ask the class. That field is of the kind of an `InitVar`, so `fields` and `asdict` leave it out.
    """

    def __init__(self, cls: type) -> None:
        self._cls = cls

    def values(self) -> tuple[Any, ...]:
        return (*getattr(self._cls, _FIELDS).values(), _CARRIED)

    def __reduce__(self) -> tuple[type, tuple[type]]:
        return _Fields, (self._cls,)

    def __deepcopy__(self, _: object) -> "_Fields":
        return self


class ReadDict(dict[str, object]):
    """An entity of a TypedDict that was read. `read | {"age": 36}` and `read.copy()` are still that entity."""

    def __or__(self, other: Any) -> Any:
        """Return the entity with other values."""
        changed: Any = super().__or__(other)
        return attach_row(changed, stored_of(self), vars(self).get(_EXTRA)) if type(changed) is dict else changed

    def copy(self) -> "ReadDict":
        """Return a copy."""
        return cast(ReadDict, self | {})


def make_room(cls: type) -> None:
    """Let instances of a class carry the row that they were read from.

    Raises:
        SchemaError: they have no room for it.
    """
    if dataclasses.is_dataclass(cls):
        if not getattr(cls, "__dictoffset__", 0):
            raise SchemaError(f"{cls.__name__}: with slots=True there is no room for the version that was read")
        _wrap_init(cls)
    elif issubclass(cls, msgspec.Struct):
        if not cls.__struct_config__.dict:
            raise SchemaError(f"{cls.__name__}: without dict=True there is no room for the version that was read")
        cast(Any, cls).__copy__ = _copied_struct
        cast(Any, cls).__deepcopy__ = _deeply_copied_struct


def attach_row(entity: object, stored: Stored | None, extra: Mapping[str, object] | None = None) -> object:
    """Keep the row that an entity was read from, for `stored_of`; return the entity, which may be another object.

    Args:
        entity: the entity.
        stored: the row; None if it is not known any more.
        extra: the properties that its class does not know; None to keep none.
    """
    if type(entity) is dict:
        entity = ReadDict(entity)
    own = vars(entity)
    own[_STORED] = stored
    if extra is not None:
        own[_EXTRA] = extra
    if dataclasses.is_dataclass(entity):
        own[_FIELDS] = _Fields(type(entity))
    return entity


def stored_of(entity: object) -> Stored | None:
    """Return the row that an entity was read from; None if it was not read."""
    found = getattr(entity, _STORED, None)
    return found if isinstance(found, Stored) else None


def extra_of(entity: object) -> object:
    """Return what was read of an entity beside its fields."""
    return getattr(entity, _EXTRA, None)


def _wrap_init(cls: type) -> None:
    plain: Callable[..., None] = cast(Any, cls).__init__

    @functools.wraps(plain)
    def init(self: object, *arguments: Any, **given: Any) -> None:
        stored = given.pop(_STORED, None)
        plain(self, *arguments, **given)
        if isinstance(stored, Stored):
            attach_row(self, stored)

    cast(Any, cls).__init__ = init


def _copied_struct(self: msgspec.Struct, **fields: object) -> msgspec.Struct:
    made = msgspec.structs.replace(self, **fields)
    vars(made).update(vars(self))
    return made


def _deeply_copied_struct(self: msgspec.Struct, memo: dict[int, Any]) -> msgspec.Struct:
    fields = {name: copy.deepcopy(getattr(self, name), memo) for name in self.__struct_fields__}
    return _copied_struct(self, **fields)
