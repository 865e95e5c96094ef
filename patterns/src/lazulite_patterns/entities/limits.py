"""The service's limits of an entity, checked before it is sent.

Source: "Understanding the Table service data model", and the formula of the description of capacity billing.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from uuid import UUID
from xml.parsers import expat

from azure.data.tables import EdmType, EntityProperty

from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities.errors import EntityValueError
from lazulite_patterns.keys.characters import UNITS_MAX, units

PROPERTIES_MAX = 252
"""Properties without the keys and the timestamp."""
NAME_MAX = 255
TEXT_UNITS_MAX = 32_768
BINARY_BYTES_MAX = 65_536
ENTITY_BYTES_MAX = 1_048_576
SYSTEM = frozenset({"PartitionKey", "RowKey", "Timestamp"})
_FORBIDDEN_IN_KEYS = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_FIXED_SIZES = {bool: 1, int: 4, float: 8, UUID: 16}
_EDM_SIZES = {
    EdmType.INT64: 8,
    EdmType.DOUBLE: 8,
    EdmType.DATETIME: 8,
    EdmType.GUID: 16,
    EdmType.INT32: 4,
    EdmType.BOOLEAN: 1,
}


def value_size(value: object) -> int:
    """Return the bytes of a value by the service's formula. `value` is as the SDK takes it, and not None."""
    if isinstance(value, EntityProperty):
        if (size := _EDM_SIZES.get(EdmType(value.edm_type))) is not None:
            return size
        value = value.value
    if isinstance(value, str):
        return 4 + 2 * units(value)
    if isinstance(value, bytes):
        return 4 + len(value)
    return 8 if isinstance(value, datetime) else _FIXED_SIZES[type(value)]


def entity_size(properties: Mapping[str, object]) -> int:
    """Return the bytes of an entity, which may be 1 MiB at most. `properties` have the keys, too."""
    keys = sum(2 * units(str(properties[name])) for name in ("PartitionKey", "RowKey"))
    others = 0
    for name, value in properties.items():
        if value is not None and name not in SYSTEM:
            others += 8 + 2 * units(name) + value_size(value)
    return 4 + keys + others


@lru_cache(maxsize=4096)
def is_name(name: str) -> bool:
    """Tell whether the service takes a name of a property: an identifier of C# that is a name in XML, too."""
    if not name.isidentifier():
        return False
    try:
        expat.ParserCreate().Parse(f"<{name}/>".encode(), True)
    except expat.ExpatError:
        return False
    return True


def check(owner: str, properties: Mapping[str, object]) -> None:
    """Reject an entity that the service would reject.

    Args:
        owner: the entity's class, for the message.
        properties: with the keys, as the SDK takes them.

    Raises:
        EntityValueError: a limit is exceeded. The message names the property.
    """
    for name, value in properties.items():
        if value is None or name in SYSTEM:
            continue
        if len(name) > NAME_MAX:
            raise EntityValueError(f"{owner}.{name}: the name has {len(name)} characters, {NAME_MAX} are allowed")
        if not is_name(name):
            raise EntityValueError(f"{owner}.{name}: the service takes no such name")
        plain = value.value if isinstance(value, EntityProperty) else value
        if isinstance(plain, str):
            if units(plain) > TEXT_UNITS_MAX:
                raise EntityValueError(f"{owner}.{name}: {units(plain)} UTF-16 units, {TEXT_UNITS_MAX} are allowed")
        elif isinstance(plain, bytes) and len(plain) > BINARY_BYTES_MAX:
            raise EntityValueError(f"{owner}.{name}: {len(plain)} bytes, {BINARY_BYTES_MAX} are allowed")
    check_size(owner, properties)


def check_size(owner: str, properties: Mapping[str, object]) -> None:
    """Reject an entity whose properties are each allowed, and too many or too large together.

    Arguments and errors are those of `check`.
    """
    count = len(properties) - sum(name in SYSTEM or value is None for name, value in properties.items())
    if count > PROPERTIES_MAX:
        raise EntityValueError(f"{owner}: {count} properties, {PROPERTIES_MAX} are allowed")
    if (size := entity_size(properties)) > ENTITY_BYTES_MAX:
        raise EntityValueError(f"{owner}: {size} bytes by the service's formula, {ENTITY_BYTES_MAX} are allowed")


def check_key(owner: str, key: EntityKey) -> None:
    """Reject keys that the service would reject.

    Raises:
        EntityValueError: a key has a character that no key may have, or is too long. The message names it.
    """
    for name, text in zip(("PartitionKey", "RowKey"), key, strict=True):
        if found := _FORBIDDEN_IN_KEYS.search(text):
            raise EntityValueError(f"{owner}.{name}: the character U+{ord(found[0]):04X} cannot be part of a key")
        if units(text) > UNITS_MAX:
            raise EntityValueError(f"{owner}.{name}: {units(text)} UTF-16 units, {UNITS_MAX} are allowed")
