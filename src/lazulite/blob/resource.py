"""The resources that URLs of the Blob service address."""

from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from lazulite.blob.names import ROOT, check_blob_name, check_container_name
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.query_string import percent_decode


class Kind(StrEnum):
    """The kinds of resources."""

    SERVICE = "the account's root"
    CONTAINER = "one container"
    BLOB = "one blob, or a snapshot or version of it"


class Resource(NamedTuple):
    """An addressed resource.

    A path of one segment is a container, or a blob of the root container. The parameters of a request tell which
    (`as_root_blob`), so its name is checked when that is known (`checked`).
    """

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

    def as_root_blob(self) -> "Resource":
        """Return the blob of the root container that a path of one segment may also mean."""
        return Resource(Kind.BLOB, ROOT, self.container)

    def checked(self) -> "Resource":
        """Return the resource.

        Raises:
            ServiceError: `InvalidResourceName`, `OutOfRangeInput`: it can have no such name.
        """
        if self.kind is not Kind.SERVICE:
            check_container_name(self.container)
        if self.kind is Kind.BLOB:
            check_blob_name(self.blob)
        return self


@lru_cache(maxsize=1024)
def parse_resource(path: str) -> Resource:
    """Read the path below the account, percent-encoded.

    Raises:
        ServiceError: `RequestUrlFailedToParse`.
    """
    first, slash, rest = path.partition("/")
    container = percent_decode(first)
    if not container:
        if rest:
            raise ServiceError("InvalidUri")
        return Resource(Kind.SERVICE)
    if not slash or not rest:
        return Resource(Kind.CONTAINER, container)
    return Resource(Kind.BLOB, container, percent_decode(rest))
