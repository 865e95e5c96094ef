"""The rows of a blob's partition. Their order is the order of a list: a blob's snapshots and versions, oldest first.

| row | value |
|---|---|
| `a` | the `Ledger` |
| `b` | the current `Blob` |
| `s` time | a snapshot, a `Blob` |
| `v` time | a past version, a `Blob` |
| `w` upload `/` block id | an uncommitted block |
| `x` list `/` end | the blocks of a list, or pages, that end at an offset |
"""

LEDGER = "a"
CURRENT = "b"
SNAPSHOT = "s"
VERSION = "v"
UPLOAD = "w"
LIST = "x"
_DIGITS = 16


def number(value: int) -> str:
    """Return a number of a row's key: all have one length, so that their order is that of the numbers."""
    return f"{value:0{_DIGITS}x}"


def snapshot_row(ticks: int) -> str:
    """Return the row of a snapshot."""
    return SNAPSHOT + number(ticks)


def version_row(ticks: int) -> str:
    """Return the row of a past version. The current version has none: its row is `CURRENT`."""
    return VERSION + number(ticks)


def upload_rows(upload: int) -> str:
    """Return what the rows of an upload begin with."""
    return f"{UPLOAD}{number(upload)}/"


def list_rows(list_: int) -> str:
    """Return what the rows of a list begin with."""
    return f"{LIST}{number(list_)}/"


def list_row(list_: int, end: int) -> str:
    """Return the row of a list whose blocks end at an offset.

    The row that has the byte at an offset is the first one from `list_row(list_, offset + 1)` on.
    """
    return f"{list_rows(list_)}{number(end)}"
