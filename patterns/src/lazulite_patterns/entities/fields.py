"""The fields of a class, and the property that each is."""

import dataclasses
import types
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import (
    Annotated,
    Any,
    NamedTuple,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec

from lazulite_patterns.entities.columns import Column, Declaration, declared
from lazulite_patterns.entities.edm import INT32, PropertyType, json_type, property_type
from lazulite_patterns.entities.errors import EntityFormatError, EntityValueError, SchemaError


class Field(NamedTuple):
    """A field of a class: where it is stored, and how."""

    name: str
    kind: object
    """The type, without None."""
    optional: bool
    default: Callable[[], object] | None
    """Makes the value of a field whose property is absent; None if the property must be there."""
    declared: Declaration
    """What the class says of it beside its type."""

    @property
    def is_key(self) -> bool:
        """Whether the field is part of a key."""
        return self.declared.key is not None


class Property(NamedTuple):
    """A property of a row, and the field that it comes from: a path, as of a flattened class."""

    name: str
    field: Field
    type: PropertyType


class Shape:
    """The fields of a class, or of a class that is flattened into another."""

    def __init__(self, cls: type, prefix: str = "") -> None:
        """Read the annotations of a class.

        Raises:
            SchemaError: a field cannot be stored.
        """
        self.cls = cls
        self.fields = _fields(cls)
        self.properties: list[Property] = []
        self.flattened: dict[str, Shape] = {}
        self.extra: str | None = None
        for each in self.fields:
            if each.declared.form == "extra":
                self.extra = each.name
            elif each.declared.form == "flat":
                self.flattened[each.name] = _flattened(cls, each, prefix)
            elif not each.is_key:
                self.properties.append(Property(prefix + (each.declared.name or each.name), each, _type(cls, each)))
        self._by_field = {each.field.name: each for each in self.properties}
        self._stored = [each for each in self.fields if each.name in self._by_field or each.name in self.flattened]
        names = sorted(self.names())
        if doubled := {one for one, other in pairwise(names) if one == other}:
            raise SchemaError(f"{cls.__name__}: two fields are stored as {doubled.pop()}")

    def names(self) -> list[str]:
        """Return the names of all properties, with those of flattened classes."""
        inner = [name for shape in self.flattened.values() for name in shape.names()]
        return [each.name for each in self.properties] + inner

    def write(self, value: object, into: dict[str, object]) -> None:
        """Put the properties of an entity into a dictionary, as the SDK takes them. None is absent.

        Raises:
            EntityValueError: a field has a value of another type.
        """
        for field in self._stored:
            found = get(value, field.name)
            if found is not None:
                self.write_field(field.name, found, into)
            elif not field.optional:
                raise EntityValueError(f"{self.cls.__name__}.{field.name}: None is not allowed")

    def write_field(self, name: str, value: object, into: dict[str, object]) -> None:
        """Put the property of one field into a dictionary, or the properties of a flattened one.

        Raises:
            EntityValueError: no such field is a property, or it has a value of another type.
        """
        if (shape := self.flattened.get(name)) is not None:
            shape.write(value, into)
            return
        if (each := self._by_field.get(name)) is None:
            raise EntityValueError(f"{self.cls.__name__}.{name}: no property is the field of this name")
        try:
            into[each.name] = each.type.write(value)
        except (TypeError, ValueError) as error:
            raise EntityValueError(f"{self.cls.__name__}.{name}: {error}") from error

    def read(self, properties: Mapping[str, object]) -> dict[str, object]:
        """Return the values of the fields that are properties.

        Raises:
            EntityFormatError: a property is absent, or of another type.
        """
        values: dict[str, object] = {}
        for each in self.properties:
            if each.name not in properties:
                values[each.field.name] = self._absent(each.field, each.name)
                continue
            try:
                values[each.field.name] = each.type.read(properties[each.name])
            except (TypeError, ValueError, msgspec.MsgspecError) as error:
                raise EntityFormatError(f"{self.cls.__name__}.{each.name}: {error}") from error
        for name, shape in self.flattened.items():
            if any(each in properties for each in shape.names()):
                values[name] = make(shape.cls, shape.read(properties))
            else:
                values[name] = self._absent(next(each for each in self.fields if each.name == name), f"{name}_…")
        return values

    def _absent(self, field: Field, name: str) -> object:
        if field.default is not None:
            return field.default()
        if field.optional:
            return None
        raise EntityFormatError(f"{self.cls.__name__}.{name}: the row has no such property")


def get(value: object, name: str) -> object:
    """Return a field of an entity, which is a dictionary if its class is a TypedDict."""
    return value.get(name) if isinstance(value, dict) else getattr(value, name)


def make(cls: type, values: dict[str, object]) -> Any:
    """Return an instance of a class."""
    if is_typeddict(cls):
        return cls(**{name: value for name, value in values.items() if value is not None})
    return cls(**values)


def _flattened(cls: type, field: Field, prefix: str) -> Shape:
    own = field.declared.prefix
    if not isinstance(field.kind, type):
        raise SchemaError(f"{cls.__name__}.{field.name}: only a class can be flat")
    shape = Shape(field.kind, prefix + (f"{field.name}_" if own is None else own))
    if shape.extra is not None or any(each.is_key for each in shape.fields):
        raise SchemaError(f"{cls.__name__}.{field.name}: a flat class has no keys and no extra properties")
    return shape


def _type(cls: type, field: Field) -> PropertyType:
    if field.declared.form == "json":
        return json_type(field.kind)
    if field.declared.form == "int32":
        return INT32
    if (found := property_type(field.kind)) is None:
        raise SchemaError(
            f'{cls.__name__}.{field.name}: {field.kind} is no type of a property; say form="json" or form="flat"'
        )
    return found


def _fields(cls: type) -> list[Field]:
    try:
        hints = get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise SchemaError(f"{cls.__name__}: {error}") from error
    defaults = _defaults(cls)
    found = []
    for name in defaults:
        kind, notes = _without_qualifier(hints[name]), [_in_body(cls, name)]
        while get_origin(kind) in {Annotated, Column}:
            kind, *rest = get_args(kind)
            notes += rest
        optional = is_typeddict(cls) and defaults[name] is not None
        if get_origin(kind) in {Union, types.UnionType} and type(None) in get_args(kind):
            optional = True
            kinds = [each for each in get_args(kind) if each is not type(None)]
            kind = kinds[0] if len(kinds) == 1 else Union[tuple(kinds)]  # noqa: UP007 - of types at run time
        found.append(Field(name, kind, optional, defaults[name], declared(notes)))
    return found


def _in_body(cls: type, name: str) -> object:
    """Return what a class, or the one that it inherits a field from, has as its attribute."""
    return next((vars(each)[name] for each in cls.__mro__ if name in vars(each)), None)


def _without_qualifier(hint: object) -> Any:
    """Return the type of a TypedDict's key without `Required` or `NotRequired` around it."""
    return get_args(hint)[0] if get_origin(hint) in {NotRequired, Required} else hint


def _defaults(cls: type) -> dict[str, Callable[[], object] | None]:
    """Return the fields of a class in order, each with what makes its default."""
    if dataclasses.is_dataclass(cls):
        return {
            each.name: _default(each.default, each.default_factory) for each in dataclasses.fields(cls) if each.init
        }
    if is_typeddict(cls):
        required: frozenset[str] = getattr(cls, "__required_keys__", frozenset())
        return {name: None if name in required else lambda: None for name in cls.__annotations__}
    if issubclass(cls, msgspec.Struct):
        fields = msgspec.structs.fields(cls)
        return {each.name: _default(each.default, each.default_factory) for each in fields}
    if (model := getattr(cls, "model_fields", None)) is not None:
        return {
            name: None if each.is_required() else _bound(each.get_default, call_default_factory=True)
            for name, each in model.items()
        }
    raise SchemaError(f"{cls.__name__} is no dataclass, Struct, TypedDict or pydantic model")


def _bound(function: Callable[..., object], **options: object) -> Callable[[], object]:
    return lambda: function(**options)


_NONE: tuple[object, ...] = (dataclasses.MISSING, msgspec.NODEFAULT)
"""How the libraries mark that there is no default."""


def _default(value: object, factory: object) -> Callable[[], object] | None:
    if callable(factory) and factory not in _NONE:
        return _bound(factory)
    return None if any(value is each for each in _NONE) else lambda: value
