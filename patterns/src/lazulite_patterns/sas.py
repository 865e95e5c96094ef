"""A shared access signature for exactly the keys of a range.

A signature names the first and the last key that it is for, and the last one is included. A `KeyRange` ends before its
`upper`. `last_key` returns an end that lies after every key of the range and before `upper`.
"""

from datetime import datetime
from typing import Protocol

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import TableSasPermissions, generate_table_sas

from lazulite_patterns.keys.characters import MARK
from lazulite_patterns.keys.key_range import KeyRange

PERMISSIONS = "raud"
_MARKS = MARK * 3
"""Greater than any text that a key may go on with: an escape has two marks at most."""
_BEFORE = {"\U00010000": "\ud7ff", "\ue000": "\U0010ffff"}
"""Characters before others in the order of UTF-16 units, where it is not that of the numbers."""


def last_key(keys: KeyRange) -> str | None:
    """Return a text that is at least every key of a range, and less than every key after it; None without an end.

    Raises:
        ValueError: no key is in the range.
    """
    if keys.upper is None:
        return None
    if keys.upper <= " ":
        raise ValueError(f"no key is in {keys}")
    kept, end = keys.upper[:-1], keys.upper[-1]
    if end == " ":  # No key lies between a key and that key with a space added.
        return kept
    return kept + _BEFORE.get(end, chr(ord(end) - 1)) + _MARKS


class Client(Protocol):
    """A client of a table, synchronous or asynchronous."""

    table_name: str
    credential: object
    scheme: str


def user_sas(
    client: Client,
    partition: str | KeyRange,
    rows: KeyRange | None = None,
    *,
    permission: str = "r",
    expiry: datetime,
    start: datetime | None = None,
) -> str:
    """Return a signature by which a user reaches the keys of a range, and no others.

    Args:
        client: of the table, with the key of the account.
        partition: a PartitionKey, or a range of them, as `Key.prefix` returns it.
        rows: a range of RowKeys in the one partition; None for all.
        permission: letters of `raud`: read, add, update and delete.
        expiry: when the signature ends, with a time zone.
        start: when it begins; None for now.

    Raises:
        ValueError: the client has no key of an account, the permission is none, a time has no zone, or rows are named
            in a range of partitions, where the service would compare them in the first and the last one only.
    """
    if not isinstance(client.credential, AzureNamedKeyCredential):
        raise ValueError("a signature needs a client with the key of the account")
    if not permission or set(permission) - set(PERMISSIONS):
        raise ValueError(f"{permission!r}: a permission has letters of {PERMISSIONS}")
    if expiry.tzinfo is None or (start is not None and start.tzinfo is None):
        raise ValueError("a time has no zone")
    if not isinstance(partition, str) and rows is not None:
        raise ValueError("rows are those of one partition")
    first, last = (partition, partition) if isinstance(partition, str) else (partition.lower, last_key(partition))
    return generate_table_sas(
        client.credential,
        client.table_name,
        permission=TableSasPermissions.from_string(permission),
        expiry=expiry,
        start=start,
        protocol="https" if client.scheme == "https" else None,
        start_pk=first or None,
        end_pk=last,
        start_rk=None if rows is None else rows.lower or None,
        end_rk=None if rows is None else last_key(rows),
    )
