"""The limits of blobs, and of lists. Source: reference §49."""

from lazulite.blob.versions import LARGE_APPENDS_SINCE, LARGE_BLOCKS_SINCE, MEDIUM_BLOCKS_SINCE

MIB = 1024 * 1024

CONTAINERS_MAX = 5000
"""Containers of one page of a list."""
BLOBS_OF_LIST_MAX = 5000
"""Blobs and common prefixes of one page of a list."""
PUT_BLOB_BYTES_MAX = 5000 * MIB
"""Since 2019-12-12."""
PUT_BLOB_BYTES_BY_VERSION = ((LARGE_BLOCKS_SINCE, PUT_BLOB_BYTES_MAX), (MEDIUM_BLOCKS_SINCE, 256 * MIB), ("", 64 * MIB))
"""The first version with a limit, and the limit, newest first."""
PUT_BLOCK_BYTES_MAX = 4000 * MIB
"""Since 2019-12-12."""
PUT_BLOCK_BYTES_BY_VERSION = (
    (LARGE_BLOCKS_SINCE, PUT_BLOCK_BYTES_MAX),
    (MEDIUM_BLOCKS_SINCE, 100 * MIB),
    ("", 4 * MIB),
)
"""As `PUT_BLOB_BYTES_BY_VERSION`."""
UNCOMMITTED_BLOCKS_MAX = 100_000
"""Uncommitted blocks of a blob."""
RANGE_DIGEST_BYTES_MAX = 4 * MIB
"""Bytes of a range whose digest a response may have."""


def limit_of(table: tuple[tuple[str, int], ...], version: str) -> int:
    """Return the limit of a version, by a table as above."""
    for since, limit in table:
        if version >= since:
            return limit
    raise ValueError("the last limit is of all versions")


PAGE_BLOB_BYTES_MAX = 8 * 1024 * 1024 * MIB
APPEND_BLOCK_BYTES_MAX = 100 * MIB
"""Since 2022-11-02."""
APPEND_BLOCK_BYTES_BY_VERSION = ((LARGE_APPENDS_SINCE, APPEND_BLOCK_BYTES_MAX), ("", 4 * MIB))
"""As `PUT_BLOB_BYTES_BY_VERSION`."""
PUT_PAGE_BYTES_MAX = 4 * MIB
BLOCKS_MAX = 50_000
"""Committed blocks of a blob."""
