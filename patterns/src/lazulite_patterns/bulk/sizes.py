"""The bytes that an operation takes in the body of a transaction. Base64 and escapes make it longer."""

from collections.abc import Mapping
from json.encoder import encode_basestring_ascii

from azure.data.tables import EntityProperty

from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.keys.characters import units

FRAME = 1024
"""Boundaries and headers of a body; and the same of one operation, with a long URL of the service."""
_VALUE = 48
"""A number, a time or a GUID."""
_TYPE = 28
"""`"@odata.type":"Edm.DateTime",` without the name."""
_URL_UNIT = 9
"""A character of a key in a URL: three bytes of UTF-8, each as `%20`."""


def operation_octets(key: EntityKey, properties: Mapping[str, object]) -> int:
    """Return the most bytes that an operation takes in a body."""
    total = FRAME + sum(_URL_UNIT * units(text) + len(encode_basestring_ascii(text)) for text in key)
    for name, value in properties.items():
        total += 2 * len(encode_basestring_ascii(name)) + _TYPE + _value(value)
    return total


def _value(value: object) -> int:
    if isinstance(value, EntityProperty):
        value = value.value
    if isinstance(value, str):
        return len(encode_basestring_ascii(value))
    return 4 * (len(value) // 3 + 1) + 2 if isinstance(value, bytes) else _VALUE
