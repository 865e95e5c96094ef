"""The rules for names of containers, of blobs and of metadata. Source: reference §32.1."""

import re
from collections.abc import Mapping

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.fields import METADATA_PREFIX, JoinedValue, spelling
from lazulite.protocol.xml.text import is_name

ROOT = "$root"
"""The container of blobs without a container in their URL."""
WEB = "$web"
"""The container of the static website."""
SYSTEM_CONTAINERS = frozenset({ROOT, WEB, "$logs", "$blobchangefeed"})
CONTAINER_NAME_MIN = 3
CONTAINER_NAME_MAX = 63
BLOB_NAME_MAX = 1024
"""In UTF-16 code units."""
BLOB_SEGMENTS_MAX = 254
"""Segments of a name between slashes."""
METADATA_BYTES_MAX = 8 * 1024
"""Bytes of the names and values of metadata together."""

_CONTAINER_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)
_LOOKED_AT_MAX = 1024
"""Characters of a container's name that are looked at."""
_LENGTH = "The specified resource name length is not within the permissible limits."

Metadata = tuple[tuple[str, str], ...]
"""Names as their client spelled them, with their values, in the order of the names in lower case."""


def check_container_name(name: str) -> None:
    """Reject a name that no container can have.

    Raises:
        ServiceError: `InvalidResourceName`, or `OutOfRangeInput` for the length.
    """
    if name in SYSTEM_CONTAINERS:
        return
    if _CONTAINER_NAME.fullmatch(name, 0, _LOOKED_AT_MAX) is None:
        raise ServiceError("InvalidResourceName")
    if not CONTAINER_NAME_MIN <= len(name) <= CONTAINER_NAME_MAX:
        raise ServiceError("OutOfRangeInput", _LENGTH)


def check_blob_name(name: str) -> None:
    """Reject a name that no blob can have.

    U+0000 cannot stand in a list, in which every character of XML 1.0 can, escaped or not. *Unverified*: its code, and
    that of too many segments.

    Raises:
        ServiceError: `InvalidResourceName`, or `OutOfRangeInput` for the length and the number of segments.
    """
    if len(name.encode("utf-16-le")) > 2 * BLOB_NAME_MAX or name.count("/") >= BLOB_SEGMENTS_MAX:
        raise ServiceError("OutOfRangeInput", _LENGTH)
    if "\0" in name:
        raise ServiceError("InvalidResourceName")


def read_metadata(headers: Mapping[str, str]) -> Metadata:
    """Return the metadata that the headers of a request have.

    Args:
        headers: by their names in lower case.

    Raises:
        ServiceError: `EmptyMetadataKey`, `InvalidMetadata` (also for a name that comes twice), `MetadataTooLarge`.
    """
    given = sorted(item for item in headers.items() if item[0].startswith(METADATA_PREFIX))
    if not given:
        return ()
    found = {spelling(name)[len(METADATA_PREFIX) :]: text for name, text in given}
    if sum(len(name) + len(text) for name, text in found.items()) > METADATA_BYTES_MAX:
        raise ServiceError("MetadataTooLarge")
    for name, text in found.items():
        if not name:
            raise ServiceError("EmptyMetadataKey")
        # *Unverified*: the code. Documented is 400 for a name that comes twice.
        if isinstance(text, JoinedValue):
            raise ServiceError("InvalidMetadata", "A name of metadata comes more than once.")
        if not (name.isascii() and name.isidentifier() and is_name(name) and text.isascii() and text.isprintable()):
            raise ServiceError("InvalidMetadata")
    return tuple(found.items())


def metadata_headers(metadata: Metadata) -> list[tuple[str, str]]:
    """Return metadata as headers of a response."""
    return [(f"{METADATA_PREFIX}{name}", text) for name, text in metadata]
