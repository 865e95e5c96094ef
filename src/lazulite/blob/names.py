"""The rules for names of containers and of blobs. Source: reference §32.1."""

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.resource_names import WRONG_LENGTH, check_resource_name

ROOT = "$root"
"""The container of blobs without a container in their URL."""
WEB = "$web"
"""The container of the static website."""
SYSTEM_CONTAINERS = frozenset({ROOT, WEB, "$logs", "$blobchangefeed"})
BLOB_NAME_MAX = 1024
"""In UTF-16 code units."""
BLOB_SEGMENTS_MAX = 254
"""Segments of a name between slashes."""


def check_container_name(name: str) -> None:
    """Reject a name that no container can have.

    Raises:
        ServiceError: `InvalidResourceName`, or `OutOfRangeInput` for the length.
    """
    if name not in SYSTEM_CONTAINERS:
        check_resource_name(name)


def check_blob_name(name: str) -> None:
    """Reject a name that no blob can have.

    U+0000 cannot stand in a list, in which every character of XML 1.0 can, escaped or not. *Unverified*: its code, and
    that of too many segments.

    Raises:
        ServiceError: `InvalidResourceName`, or `OutOfRangeInput` for the length and the number of segments.
    """
    if len(name.encode("utf-16-le")) > 2 * BLOB_NAME_MAX or name.count("/") >= BLOB_SEGMENTS_MAX:
        raise ServiceError("OutOfRangeInput", WRONG_LENGTH)
    if "\0" in name:
        raise ServiceError("InvalidResourceName")
