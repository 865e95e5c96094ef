"""Metadata of queues, containers and blobs, as headers carry it. Source: reference §25.1 and §32.1."""

from collections.abc import Mapping

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.fields import METADATA_PREFIX, JoinedValue, spelling
from lazulite.protocol.xml.text import is_name

METADATA_BYTES_MAX = 8 * 1024
"""Bytes of the names and values of metadata together."""

Metadata = tuple[tuple[str, str], ...]
"""Names as their client spelled them, with their values, in the order of the names in lower case."""


def read_metadata(headers: Mapping[str, str]) -> Metadata:
    """Return the metadata that the headers of a request have.

    The header `x-ms-meta`, without a name, which the Python SDK sends beside them, means nothing.

    Args:
        headers: by their names in lower case.

    Raises:
        ServiceError: `EmptyMetadataKey`, `InvalidMetadata` (also for a name that comes twice), `MetadataTooLarge`.
    """
    if METADATA_PREFIX not in "\n".join(headers):
        return ()
    given = sorted(item for item in headers.items() if item[0].startswith(METADATA_PREFIX))
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


def is_same_metadata(one: Metadata, other: Metadata) -> bool:
    """Tell whether two have the same names, whatever their case, with the same values."""
    return [(name.lower(), text) for name, text in one] == [(name.lower(), text) for name, text in other]


def metadata_headers(metadata: Metadata) -> list[tuple[str, str]]:
    """Return metadata as headers of a response."""
    return [(f"{METADATA_PREFIX}{name}", text) for name, text in metadata]
