"""Rows of an inbox: each says whether an entity arrived from another table. `transactions.move` writes them."""

INBOX = "_Inbox"
"""The first component of the RowKey of an inbox row, and its property `_Type`."""


def is_inbox(row_key: str) -> bool:
    """Tell whether a RowKey is that of an inbox row, which no query returns."""
    return row_key.startswith(f"{INBOX}!")
