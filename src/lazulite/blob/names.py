"""The rules for names of containers and of blobs, and what the path of a URL names. Source: reference §32.1.

One function (`normal_path`) says what a path names, for URLs, SAS, sources of copies, parts of batches and websites
alike. So a blob has one name, however a client spells its path.
"""

import re

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
_FORBIDDEN = re.compile("[\0-\x1f\x7f-\x9f\ue000-\uf8ff]")
"""Control characters, and those of private use. None of them is printable."""
_DOT_SEGMENTS = frozenset({".", ".."})


def normal_path(path: str) -> str:
    """Return what a path names: its container and its blob, with a slash between them.

    A backslash is a slash. Segments `.` and `..` are resolved as in RFC 3986, 5.2.4, and do not leave the account. Dots
    at the end are dropped. Of the result, the function returns the same again.

    Args:
        path: below the account, decoded; or a part of it.
    """
    if "\\" in path:
        path = path.replace("\\", "/")
    if "/." in path or path.startswith("."):
        path = _without_dot_segments(path)
    return path.rstrip(".") if path.endswith(".") else path


def _without_dot_segments(path: str) -> str:
    kept: list[str] = []
    segments = path.split("/")
    for segment in segments:
        if segment not in _DOT_SEGMENTS:
            kept.append(segment)
        elif segment == ".." and kept:
            kept.pop()
    return "/".join([*kept, ""] if segments[-1] in _DOT_SEGMENTS else kept)


def check_container_name(name: str) -> None:
    """Reject a name that no container can have.

    Raises:
        ServiceError: `InvalidResourceName`, or `OutOfRangeInput` for the length.
    """
    if name not in SYSTEM_CONTAINERS:
        check_resource_name(name)


def check_blob_name(container: str, name: str) -> None:
    """Reject a name that no blob of a container can have.

    *Unverified*: the codes for a forbidden character and for too many segments.

    Raises:
        ServiceError: `InvalidResourceName` for a character; `OutOfRangeInput` for the length and the number of
            segments; `InvalidUri` for a slash in the root container.
    """
    if len(name.encode("utf-16-le")) > 2 * BLOB_NAME_MAX or name.count("/") >= BLOB_SEGMENTS_MAX:
        raise ServiceError("OutOfRangeInput", WRONG_LENGTH)
    if not name.isprintable() and _FORBIDDEN.search(name) is not None:
        raise ServiceError("InvalidResourceName")
    if container == ROOT and "/" in name:
        raise ServiceError("InvalidUri")


def is_addressable(container: str, blob: str) -> bool:
    """Tell whether a path can name a blob. A store of an earlier version may have others."""
    try:
        check_blob_name(container, blob)
    except ServiceError:
        return False
    return normal_path(blob) == blob
