"""The resource that a request addresses: a container, a blob in one, or the account; and the rules for their names.

One function (`normal_path`) says what a path names, for URLs, SAS, sources of copies, parts of batches and websites
alike. So a blob has one name, however a client spells its path. Source: reference §32.1.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from lazulite.protocol.errors import ServiceError
from lazulite.protocol.query_string import percent_decode
from lazulite.protocol.resource_names import WRONG_LENGTH, check_resource_name

ROOT = "$root"
"""The container of blobs without a container in their URL."""
WEB = "$web"
"""The container of the static website."""
LOGS = "$logs"
"""The container of Storage Analytics' logs: clients read it, and delete its blobs."""
SYSTEM_CONTAINERS = frozenset({ROOT, WEB, LOGS, "$blobchangefeed"})
BLOB_NAME_MAX = 1024
"""In UTF-16 code units."""
BLOB_SEGMENTS_MAX = 254
"""Segments of a name between slashes."""
_FORBIDDEN = re.compile("[\0-\x1f\x7f-\x9f\ue000-\uf8ff]")
"""Control characters, and those of private use. None of them is printable."""
_PLAIN = r"[\w.~:@=+,!$&'()*;-]*+"
_NEXT = r"%[89ABab][0-9A-Fa-f]"
_ENCODED = (
    r"%(?:2[0-9A-Da-d]|[346][0-9A-Fa-f]|5[0-9ABDEFabdef]|7[0-9A-Ea-e]|[Cc]2%[ABab][0-9A-Fa-f]|[Cc][3-9A-Fa-f]"
    rf"{_NEXT}|[Dd][0-9A-Fa-f]{_NEXT}|[Ee]0%[ABab][0-9A-Fa-f]{_NEXT}|[Ee][1-9A-Ca-c]{_NEXT}{_NEXT})"
)
"""A character from U+0020 to U+CFFF in UTF-8, percent-encoded: no control character, no slash of any kind, no dot."""
_USUAL_SEGMENT = rf"(?!\.){_PLAIN}(?>(?:{_ENCODED}{_PLAIN})*)"
_USUAL_CONTAINER = r"/[A-Za-z0-9-]++/[a-z0-9$-]++"
_USUAL_NAME = rf"(?![^ ?]{{1025}})(?=[^ ?])({_USUAL_SEGMENT}(?>(?:/{_USUAL_SEGMENT}){{0,253}}))(?<!\.)"
USUAL_PATH = re.compile(f"({_USUAL_CONTAINER})/{_USUAL_NAME}", re.ASCII)
"""The whole path of a blob in path style, whose name, once it is decoded, is no other one's: a
`ServiceDefinition.keyed_path`."""
USUAL_START = re.compile(rf"([A-Z]{{3,6}} {_USUAL_CONTAINER})/{_USUAL_NAME}(?=[? ])".encode(), re.ASCII)
"""The start of a head with that path: one of `ServiceDefinition.keyed_starts`."""
_USUAL_BLOCK = r"\?comp=block&blockid=([A-Za-z0-9/=._~%-]{1,192})(?=[& ])"
BLOCK_START = re.compile(f"(PUT {_USUAL_CONTAINER})/{_USUAL_NAME}{_USUAL_BLOCK}".encode(), re.ASCII)
"""Likewise, of Put Block as the SDKs write it; the other key is the id of the block, percent-encoded."""
_HOST_CONTAINER = r"/[a-z0-9$-]++"
USUAL_HOST_PATH = re.compile(f"({_HOST_CONTAINER})/{_USUAL_NAME}", re.ASCII)
"""`USUAL_PATH` where the host names the account."""
HOST_STARTS = (
    re.compile(f"(PUT {_HOST_CONTAINER})/{_USUAL_NAME}{_USUAL_BLOCK}".encode(), re.ASCII),
    re.compile(rf"([A-Z]{{3,6}} {_HOST_CONTAINER})/{_USUAL_NAME}(?=[? ])".encode(), re.ASCII),
)
"""`BLOCK_START` and `USUAL_START` where the host names the account."""
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


STORED_NAME = "lazulite-name"
"""The query parameter with the name of a blob that no path names (`names.is_addressable`). It counts for reads and
deletions, behind the path of a container."""
_CACHED_LENGTH_MAX = 512
"""Characters of a path that is cached: clients without credentials choose paths, too."""
_TAKING_STORED_NAME = frozenset({"GET", "HEAD", "DELETE"})


class Kind(StrEnum):
    """The kinds of resources."""

    SERVICE = "the account's root"
    CONTAINER = "one container"
    BLOB = "one blob, or a snapshot or version of it"


class Resource(NamedTuple):
    """An addressed resource. Its name may be one that it cannot have (`check`)."""

    kind: Kind
    container: str = ""
    blob: str = ""

    @property
    def name(self) -> str:
        """Return the name that a service SAS is compared with: `container` or `container/blob`."""
        return f"{self.container}/{self.blob}" if self.kind is Kind.BLOB else self.container

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the name of a blob that `USUAL_PATH` may find; any other resource has none."""
        return (self.blob,) if self.kind is Kind.BLOB and self.container != ROOT else ()

    def check(self, method: str, parameters: Mapping[str, str]) -> None:
        """Reject a resource that cannot be.

        Args:
            method: of the request.
            parameters: of the request.

        Raises:
            ServiceError: `InvalidResourceName`, `OutOfRangeInput`, `InvalidUri`: it can have no such name;
                `InvalidQueryParameterValue`: the request cannot have a `STORED_NAME`.
        """
        if self.kind is not Kind.SERVICE:
            check_container_name(self.container)
        if STORED_NAME in parameters:
            if method not in _TAKING_STORED_NAME or "\0" in self.blob or len(self.blob) > BLOB_NAME_MAX:
                raise ServiceError("InvalidQueryParameterValue", details=[("QueryParameterName", STORED_NAME)])
        elif self.kind is Kind.BLOB:
            check_blob_name(self.container, self.blob)


def named_path(path: str) -> str:
    """Return what a path below the account names, given percent-encoded. Raises `RequestUrlFailedToParse`."""
    return normal_path(percent_decode(path))


def resource_of(path: str, parameters: Mapping[str, str]) -> Resource:
    """Return what a request addresses, which a SAS signs and permissions are for.

    A path of one segment is a container if `restype` says so, else a blob of the root container.

    Args:
        path: below the account, percent-encoded.
        parameters: of the request.

    Raises:
        ServiceError: `RequestUrlFailedToParse`; `InvalidUri`, a blob has no container.
    """
    stored_name = parameters.get(STORED_NAME, "")
    read = _cached if len(path) + len(stored_name) <= _CACHED_LENGTH_MAX else _resource_of
    return read(path, "restype" in parameters, stored_name)


def _resource_of(path: str, names_container: bool, stored_name: str) -> Resource:
    container, _, blob = named_path(path).partition("/")
    if not container:
        if blob:
            raise ServiceError("InvalidUri")
        return Resource(Kind.SERVICE)
    if not blob and names_container:
        return Resource(Kind.CONTAINER, container)
    if not blob and not stored_name:
        return Resource(Kind.BLOB, ROOT, container)
    return Resource(Kind.BLOB, container, blob or stored_name)


_cached = lru_cache(maxsize=1024)(_resource_of)
"""Credentials and the operation of a request need its resource, and clients repeat paths."""
