"""The resources that URLs of the Blob service address."""

from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from lazulite.blob.names import BLOB_NAME_MAX, ROOT, check_blob_name, check_container_name, normal_path
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.query_string import percent_decode

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
        """Return no keys: a blob's name takes part in its permission."""
        return ()

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
