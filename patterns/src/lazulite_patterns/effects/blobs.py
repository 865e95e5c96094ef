"""Effects on blobs. `container` is the name by which the driver knows a client."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from typing import Protocol as Interface

from lazulite_patterns.effects.effect import Effect

PART_BYTES = 4 * 1024 * 1024
"""The most that one `BlobGet` reads, unless it says something else."""


_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def segment(text: str) -> str:
    """Return a text as a segment of a blob's name, in which it can be read; it has no dot, slash or percent sign.

    No other text has the same. The segment of a text begins with that of the text's beginning.
    """
    octets = text.encode("utf-8", "surrogatepass")
    return "".join(chr(each) if each in _PLAIN else f"={each:02X}" for each in octets)


def text_of(name: str) -> str:
    """Return the text of a segment.

    Raises:
        ValueError: it is none.
    """
    octets = re.sub(b"=([0-9A-F]{2})", lambda each: bytes.fromhex(each[1].decode()), name.encode())
    text = octets.decode("utf-8", "surrogatepass")
    if segment(text) != name:
        raise ValueError(f"{name!r} is no segment")
    return text


class ByteStream(Interface):
    """A stream of octets, such as a file that was opened with `rb`."""

    def read(self, size: int = -1, /) -> bytes:
        """Return octets, none at the end."""


class BlobFacts(NamedTuple):
    """What the service knows of a blob, without its content."""

    name: str
    etag: str
    length: int
    last_modified: datetime | None
    metadata: Mapping[str, str]


class BlobsFound(NamedTuple):
    """A page of a list of blobs, and where the next one begins; None after the last one."""

    blobs: tuple[BlobFacts, ...]
    continuation: str | None


@dataclass(frozen=True, eq=False)
class BlobPut(Effect[str]):
    """Write a block blob. The result is its ETag. `Rejected` with 409 if it is there, with 412 if it has another ETag.

    Octets are sent by one request; more than the client's `max_single_put_size`, and every stream, block by block. Then
    the client sends a block again whose answer is lost.
    """

    container: str
    name: str
    data: bytes | ByteStream
    metadata: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/octet-stream"
    etag: str | None = None
    """The ETag that the blob must have; None if it must be absent."""


@dataclass(frozen=True)
class AppendCreate(Effect[None]):
    """Create an append blob without content. `Rejected` with 409 if there is a blob of the name."""

    container: str
    name: str
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    content_type: str = "application/octet-stream"


@dataclass(frozen=True)
class Append(Effect[None]):
    """Append one block to an append blob. `Rejected` with 412 if the blob does not end at the position."""

    container: str
    name: str
    data: bytes
    """4 MiB at most, by the limit of the service's older versions."""
    position: int


@dataclass(frozen=True)
class BlobSetMetadata(Effect[None]):
    """Replace the metadata of a blob. `Rejected` with 404 if it is absent."""

    container: str
    name: str
    metadata: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True)
class BlobGet(Effect[bytes | None]):
    """Read a part of a blob; None if the blob is absent. `Rejected` with 416 if the blob ends before the part.

    It is `Rejected` with 412 if the blob has another ETag.
    """

    container: str
    name: str
    start: int = 0
    count: int = PART_BYTES
    etag: str | None = None
    """The ETag that the blob must have; None for any."""


@dataclass(frozen=True)
class BlobHead(Effect[BlobFacts | None]):
    """Read what the service knows of a blob; None if it is absent."""

    container: str
    name: str


@dataclass(frozen=True)
class BlobDelete(Effect[None]):
    """Delete a blob with its snapshots. `Rejected` with 404 if it is absent."""

    container: str
    name: str
    etag: str | None = None
    """The ETag that the blob must have; None for any."""


@dataclass(frozen=True)
class BlobPage(Effect[BlobsFound]):
    """Read one page of the list of blobs, in the order of their names."""

    container: str
    prefix: str = ""
    continuation: str | None = None


@dataclass(frozen=True)
class LeaseAcquire(Effect[None]):
    """Take the lease of a blob, or take it again by the same id. `Rejected` with 409 if it has another one."""

    container: str
    name: str
    lease_id: str
    """A UUID."""
    seconds: int
    """15 to 60, by the service's limits."""


@dataclass(frozen=True)
class LeaseRenew(Effect[None]):
    """Let a lease last from now. `Rejected` with 409 if another process took it since, or it was broken."""

    container: str
    name: str
    lease_id: str


@dataclass(frozen=True)
class LeaseRelease(Effect[None]):
    """Free a lease. `Rejected` with 409 if another process took it since."""

    container: str
    name: str
    lease_id: str


LeaseEffect = LeaseAcquire | LeaseRenew | LeaseRelease
AppendEffect = AppendCreate | Append | BlobSetMetadata
BlobEffect = BlobPut | AppendEffect | BlobGet | BlobHead | BlobDelete | BlobPage | LeaseEffect
