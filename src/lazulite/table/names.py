"""What may be named how: tables, properties, keys.

Source: reference §5.1, §5.2. The text of `InvalidResourceName` is the service's (sic).
"""

import re
from functools import lru_cache

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.xml.text import is_name
from lazulite.table.model.edm import utf16_length

TABLE_NAME_MIN = 3
TABLE_NAME_MAX = 63
PROPERTY_NAME_MAX = 255
KEY_MAX_UTF16 = 1024
"""Units of a key. *Unverified*: one page says 1 KiB, others 1,024 characters; the wider one rejects no legal client."""

_LOOKED_AT_MAX = 64 * 1024
"""Characters of a name or key in a body that are looked at: a longer one is rejected for its length."""
_TABLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)
_SYSTEM_TABLE_NAME = re.compile(r"\$[A-Za-z0-9]+", re.ASCII)
_FORBIDDEN_IN_KEYS = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_RESERVED_TABLE_NAME = "tables"


def check_table_name(name: str) -> None:
    """Reject a name that no table can be created with.

    Raises:
        ServiceError: `InvalidResourceName`, or `OutOfRangeInput` for the length.
    """
    if _TABLE_NAME.fullmatch(name, 0, _LOOKED_AT_MAX) is None or name.lower() == _RESERVED_TABLE_NAME:
        raise ServiceError("InvalidResourceName")
    if not TABLE_NAME_MIN <= len(name) <= TABLE_NAME_MAX:
        raise ServiceError(
            "OutOfRangeInput", "The specified resource name length is not within the permissible limits."
        )


def check_addressed_table(name: str) -> None:
    """Reject a name in a URL that could not be a table's; `$Metrics…` names may be addressed, not created.

    Raises:
        ServiceError: as `check_table_name`.
    """
    if _SYSTEM_TABLE_NAME.fullmatch(name) is None:
        check_table_name(name)


@lru_cache(maxsize=4096)
def check_property_name(name: str) -> None:
    """Reject a name that is too long, no C# identifier (which Python's definition of one matches) or no name in XML.

    *Unverified*: of the letters that only later editions of XML allow in names, those beyond U+FFFF are rejected too.

    Raises:
        ServiceError: `PropertyNameInvalid` or `PropertyNameTooLong`.
    """
    if len(name) > PROPERTY_NAME_MAX:
        raise ServiceError("PropertyNameTooLong")
    if not (name.isidentifier() and is_name(name)):
        raise ServiceError("PropertyNameInvalid")


def check_new_key(name: str, value: str) -> None:
    """Reject a key of an entity about to be stored.

    Args:
        name: `PartitionKey` or `RowKey`.
        value: the key.

    Raises:
        ServiceError: `OutOfRangeInput` for a forbidden character, `KeyValueTooLarge`.
    """
    if _FORBIDDEN_IN_KEYS.search(value, 0, _LOOKED_AT_MAX):
        shown = value[:_LOOKED_AT_MAX].encode("utf-8", "replace").decode()
        raise ServiceError("OutOfRangeInput", f"The '{name}' parameter of value '{shown}' is out of range.")
    if len(value) > KEY_MAX_UTF16 or utf16_length(value) > KEY_MAX_UTF16:
        raise ServiceError("KeyValueTooLarge")


def check_addressed_key(value: str) -> None:
    """Reject a key in a URL that no entity can have.

    Raises:
        ServiceError: `InvalidInput` for a forbidden character, `KeyValueTooLarge`.
    """
    if _FORBIDDEN_IN_KEYS.search(value):
        raise ServiceError("InvalidInput", "Bad Request - Error in query syntax.")
    if len(value) > KEY_MAX_UTF16 or utf16_length(value) > KEY_MAX_UTF16:
        raise ServiceError("KeyValueTooLarge")
