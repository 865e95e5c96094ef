"""The service's limits of an entity, checked before it is sent.

Source: "Understanding the Table service data model", and the formula of the description of capacity billing.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from xml.parsers import expat

from lazulite_patterns.effects.tables import EntityKey
from lazulite_patterns.entities.errors import EntityValueError
from lazulite_patterns.entities.values import check_value, is_absent, value_size
from lazulite_patterns.keys.characters import UNITS_MAX, units

PROPERTIES_MAX = 252
"""Properties without the keys and the timestamp."""
NAME_MAX = 255
ENTITY_BYTES_MAX = 1_048_576
SYSTEM = frozenset({"PartitionKey", "RowKey", "Timestamp"})
_FORBIDDEN_IN_KEYS = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def entity_size(properties: Mapping[str, object]) -> int:
    """Return the bytes of an entity, which may be 1 MiB at most. `properties` have the keys, too."""
    keys = sum(2 * units(str(properties[name])) for name in ("PartitionKey", "RowKey"))
    others = 0
    for name, value in properties.items():
        if name not in SYSTEM and not is_absent(value):
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
    check_properties(owner, properties)
    check_size(owner, properties)


def check_properties(owner: str, properties: Mapping[str, object]) -> None:
    """Reject properties each of which the service would reject.

    Arguments and errors are those of `check`. Keys may be absent.
    """
    for name, value in properties.items():
        if name in SYSTEM or is_absent(value):
            continue
        if len(name) > NAME_MAX:
            raise EntityValueError(f"{owner}.{name}: the name has {len(name)} characters, {NAME_MAX} are allowed")
        if not is_name(name):
            raise EntityValueError(f"{owner}.{name}: the service takes no such name")
        try:
            check_value(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise EntityValueError(f"{owner}.{name}: {error}") from error


def check_size(owner: str, properties: Mapping[str, object]) -> None:
    """Reject an entity whose properties are each allowed, and too many or too large together.

    Arguments and errors are those of `check`.
    """
    count = len(properties) - sum(name in SYSTEM or is_absent(value) for name, value in properties.items())
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
