"""Keys: typed components in one string, which sorts as their tuple."""

from lazulite_patterns.keys.characters import KeyFormatError, KeyValueError
from lazulite_patterns.keys.codecs import Codec
from lazulite_patterns.keys.components import (
    bucket,
    choice,
    custom,
    date,
    decimal,
    exact_ticks,
    integer,
    literal,
    octets,
    reverse_date,
    reverse_ticks,
    text,
    ticks,
    uuid,
    uuid7,
)
from lazulite_patterns.keys.guide_style import GuideStyle
from lazulite_patterns.keys.identifiers import new_uuid7
from lazulite_patterns.keys.key import Key
from lazulite_patterns.keys.key_range import KeyRange
from lazulite_patterns.keys.times import Ticks

__all__ = [
    "Codec",
    "GuideStyle",
    "Key",
    "KeyFormatError",
    "KeyRange",
    "KeyValueError",
    "Ticks",
    "bucket",
    "choice",
    "custom",
    "date",
    "decimal",
    "exact_ticks",
    "integer",
    "literal",
    "new_uuid7",
    "octets",
    "reverse_date",
    "reverse_ticks",
    "text",
    "ticks",
    "uuid",
    "uuid7",
]
