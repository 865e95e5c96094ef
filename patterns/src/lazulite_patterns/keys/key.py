"""A key of several components, as a class: `class Reviews(Key): employee: str = text(); year: int = integer(4)`."""

from dataclasses import dataclass, field
from typing import ClassVar, Self, dataclass_transform

from lazulite_patterns.keys import components
from lazulite_patterns.keys.characters import KeyValueError
from lazulite_patterns.keys.components import Component
from lazulite_patterns.keys.guide_style import GuideStyle
from lazulite_patterns.keys.key_range import KeyRange
from lazulite_patterns.keys.layout import Layout


@dataclass_transform(
    frozen_default=True,
    field_specifiers=(
        components.text,
        components.integer,
        components.ticks,
        components.reverse_ticks,
        components.exact_ticks,
        components.date,
        components.reverse_date,
        components.uuid,
        components.uuid7,
        components.octets,
        components.choice,
        components.decimal,
        components.literal,
        components.bucket,
        components.custom,
    ),
)
class Key:
    """The base of keys. A subclass declares components in order, and is a frozen dataclass.

    Keys sort as the tuples of their components, texts by UTF-16 units. Two keys have the same text only if they are
    equal, and `prefix` returns a range without any other key in it.
    """

    layout: ClassVar[Layout]

    def __init_subclass__(cls) -> None:
        """Make a dataclass of the components."""
        declared = [(name, cls.__dict__.get(name)) for name in cls.__annotations__]
        found = []
        for name, value in declared:
            if hasattr(Key, name) or name == "starting_with":
                raise TypeError(f"{cls.__name__}.{name}: keys have an attribute of this name")
            if not isinstance(value, Component):
                raise TypeError(f"{cls.__name__}.{name} is no component: text(), integer(4) …")
            found.append((name, value))
            if value.given:
                delattr(cls, name)
            else:
                setattr(cls, name, field(init=False))
        if not found:
            raise TypeError(f"{cls.__name__} has no components")
        given = {name for name, value in found if value.given}
        for name, value in found:
            if value.source is not None and value.source not in given:
                raise TypeError(f"{cls.__name__}.{name}: {value.source} is no component that is given")
        cls.layout = Layout(cls.__name__, tuple(found))
        dataclass(frozen=True)(cls)

    def __post_init__(self) -> None:
        """Compute the components that are not given."""
        for name, value in self.layout.computed(self.__dict__).items():
            object.__setattr__(self, name, value)

    def encode(self) -> str:
        """Return the text of the key.

        Raises:
            KeyValueError: a component has no such value, or the key is longer than 1,024 UTF-16 units.
        """
        return self.layout.text(self.__dict__)

    @classmethod
    def decode(cls, text: str) -> Self:
        """Return the key of a text.

        Raises:
            KeyFormatError: no key of this kind has that text.
        """
        key = cls.__new__(cls)
        key.__dict__.update(cls.layout.values(text))
        return key

    @classmethod
    def prefix(cls, *, starting_with: str | None = None, **values: object) -> KeyRange:
        """Return the range of exactly the keys with these first components.

        Args:
            starting_with: the text with which the next component begins.
            values: the first components, without a gap. A `literal` need not be given.

        Raises:
            KeyValueError: these are not the first components, or a value is none of its component's.
        """
        return cls.layout.prefix(values, starting_with)

    @classmethod
    def between(cls, first: Self, last: Self) -> KeyRange:
        """Return the range from one key to another, both included."""
        return KeyRange.of(first.encode(), last.encode())

    @classmethod
    def buckets(cls, **values: object) -> list[KeyRange]:
        """Return the ranges of all buckets: `prefix` for each number of a bucket that is the first component.

        Raises:
            KeyValueError: the first component is no bucket.
        """
        name, first = cls.layout.components[0]
        if first.count is None:
            raise KeyValueError(f"{cls.__name__}.{name} is no bucket")
        return [cls.layout.prefix({name: number, **values}) for number in range(first.count)]

    @classmethod
    def guide_style(cls, sep: str = "_") -> GuideStyle[Self]:
        """Return these keys as Microsoft's design guide writes them: `000123_2012`, in which nothing is escaped.

        Their order is that of the tuples only where all components but the last one have a fixed length.
        """
        return GuideStyle(cls, sep)
