"""The addresses that payloads and headers carry: `Location`, `odata.id`, `odata.editLink`.

Source: reference §1.1: what stays unencoded in a key of what the service emits; a quote in a key is doubled.
"""

import re
from urllib.parse import quote

_UNRESERVED = re.compile(r"[A-Za-z0-9_.~-]*")
"""What nothing has to be done about."""
_UNENCODED = "'()!*"


def linked_key(text: str) -> str:
    """Return a key as it stands in an entity's address. It needs no escape in JSON."""
    if (text.isalnum() and text.isascii()) or _UNRESERVED.fullmatch(text) is not None:
        return text
    return quote(text.replace("'", "''"), safe=_UNENCODED)


def entity_link(table: str, partition_key: str, row_key: str) -> str:
    """Return an entity's address relative to its account."""
    return row_link(table, partition_key, linked_key(row_key))


def row_link(table: str, partition_key: str, linked: str) -> str:
    """Return the address of the entity whose row key is `linked`, in the form that `linked_key` returns."""
    return f"{table}(PartitionKey='{linked_key(partition_key)}',RowKey='{linked}')"


def table_link(table: str) -> str:
    """Return a table's address relative to its account."""
    return f"Tables('{table}')"
