"""A blob, a snapshot or a version as one stored row.

The row is a line of JSON, which leaves out what has its default, and behind it the bytes of a small blob. The bytes of
a larger blob are one content (`content`), or a list of blocks (`list`) in rows of the same partition (`model.rows`).

`modified` is the Last-Modified, and the ETag is made of it. So it grows with each change that the two tell of.
"""

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from lazulite.blob.model.conditions import Validators
from lazulite.blob.model.lease import Lease
from lazulite.blob.model.rows import version_row
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.metadata import Metadata

INLINE_BYTES_MAX = 16 * 1024
"""The bytes of a blob that are in its row."""
_YEAR_1_TICKS = 504_911_232_000_000_000
"""From 0001-01-01 to 1601-01-01, as ETags count from the former."""


class BlobType(StrEnum):
    """The types of blobs, with their names on the wire."""

    BLOCK = "BlockBlob"
    APPEND = "AppendBlob"
    PAGE = "PageBlob"


class ContentHeaders(NamedTuple):
    """The stored headers of a blob's content; "" for each one that it lacks."""

    type: str = ""
    encoding: str = ""
    language: str = ""
    md5: str = ""
    """Base64."""
    cache_control: str = ""
    disposition: str = ""


NO_HEADERS = ContentHeaders()
ARCHIVE = "Archive"
"""The tier whose blobs cannot be read."""
SMART = "Smart"
"""The tier that chooses another one for each blob. Here that is always Hot."""


SHOWN_PARAMETERS = frozenset({"snapshot", "versionid", "sharesnapshot"})
"""What is kept of the query of a copy's source. All else may be a credential: a SAS, or another server's signature."""


class Copy(NamedTuple):
    """The last copy to a blob."""

    id: str
    source: str
    """The URL, as `shown_source` returns it: each reader of the copy sees it."""
    status: str
    progress: str
    completed: int
    """In ticks; 0: not yet."""
    description: str = ""


class Rehydration(NamedTuple):
    """How a blob that was archived comes back."""

    target: str
    """The tier that it gets."""
    priority: str
    due: int = 0
    """When it has that tier, in ticks."""


class Blob(NamedTuple):
    """One blob, snapshot or version."""

    type: BlobType
    modified: int
    """In ticks."""
    created: int
    """In ticks."""
    length: int = 0
    headers: ContentHeaders = NO_HEADERS
    metadata: Metadata = ()
    tags: Metadata = ()
    lease: Lease | None = None
    inline: bytes = b""
    """The bytes, if neither `content` nor `list` has them."""
    content: int | None = None
    """The number of the content that is the whole blob; None: there is none."""
    list: int = 0
    """The number of the list of blocks or pages; 0: none."""
    blocks: int = 0
    """The committed blocks of the list."""
    epoch: int = 0
    """The number of snapshots before a page blob (`model.pages`)."""
    sequence: int = 0
    """The sequence number of a page blob."""
    sealed: bool = False
    """Whether an append blob takes no more blocks."""
    tier: str = ""
    """The tier that was set; "": the default, inferred."""
    tier_changed: int = 0
    """In ticks; 0: never."""
    archive: Rehydration | None = None
    """How it leaves the tier Archive; None: it does not."""
    copy: Copy | None = None
    version: int = 0
    """The version's id in ticks; 0: it was written while the account kept no versions."""
    deleted: int = 0
    """When it was deleted but kept, in ticks; 0: it is not deleted."""
    expires: int = 0
    """When a deleted one goes forever, in ticks."""

    def is_version(self, row: str) -> bool:
        """Tell whether this is the version of a row that `version_row` returned. A deleted blob is no version."""
        return bool(self.version) and not self.deleted and version_row(self.version) == row

    @property
    def etag(self) -> str:
        """The ETag, without quotes."""
        return etag_of(self.modified)

    @property
    def validators(self) -> Validators:
        """The state that conditional headers are compared with."""
        return Validators(self.etag, self.modified, dict(self.tags), self.tier_changed)

    @property
    def reference(self) -> str:
        """The content or list that has its bytes, as `model.ledger` counts it: `c7` or `x7`; "": its row has them."""
        if self.list:
            return f"x{self.list}"
        return "" if self.content is None else f"c{self.content}"

    def at(self, now: int) -> "Blob":
        """Return the blob as it is at a time, in ticks: its rehydration ends by time alone."""
        ends = self.archive
        if ends is None or now < ends.due:
            return self
        return self._replace(tier=ends.target, tier_changed=ends.due, archive=None)

    def to_bytes(self) -> bytes:
        """Return the stored form."""
        found: dict[str, object] = {
            name: value for name, value, usual in zip(_NAMES, self, _USUAL, strict=True) if value != usual
        }
        found.pop("inline", None)
        if found.pop("lease", None) is not None:
            assert self.lease is not None, "it differs from the default"
            found["lease"] = _lease_to_json(self.lease)
        return _write_json(found).encode() + b"\n" + self.inline


def require_not_archived(blob: Blob) -> None:
    """Reject what an archived blob does not permit. Raises `BlobArchived`, `BlobBeingRehydrated`."""
    if blob.tier == ARCHIVE:
        raise ServiceError("BlobArchived" if blob.archive is None else "BlobBeingRehydrated")


def shown_source(url: str) -> str:
    """Return the URL of a copy's source without its credentials."""
    place, _, query = url.partition("?")
    kept = [pair for pair in query.split("&") if pair.partition("=")[0].lower() in SHOWN_PARAMETERS]
    return f"{place}?{'&'.join(kept)}" if kept else place


def etag_of(ticks: int) -> str:
    """Return the ETag of what was modified at a time, without quotes."""
    return f"0x{ticks + _YEAR_1_TICKS:X}"


def read_blob(value: bytes) -> Blob:
    """Read the stored form of a blob.

    Raises:
        ValueError, TypeError, KeyError: it is malformed.
    """
    line, _, inline = value.partition(b"\n")
    found, _ = _read_json(line.decode())
    for name, decode in _DECODERS.items():
        if name in found:
            found[name] = decode(found[name])
    return Blob(inline=inline, **found)


def _lease_to_json(lease: Lease) -> list[object]:
    return [str(lease.id), lease.duration, lease.ends, lease.broken]


def _pairs(given: list[list[str]]) -> Metadata:
    return tuple((name, text) for name, text in given)


_DECODERS: Mapping[str, Callable[[Any], object]] = {
    "type": {kind.value: kind for kind in BlobType}.__getitem__,
    "headers": lambda given: ContentHeaders(*given),
    "metadata": _pairs,
    "tags": _pairs,
    "lease": lambda given: Lease(UUID(given[0]), *given[1:]),
    "archive": lambda given: Rehydration(*given),
    # A row of an earlier version may have the whole URL.
    "copy": lambda given: Copy(given[0], shown_source(given[1]), *given[2:]),
}
_read_json = json.JSONDecoder().raw_decode
"""Reads a line without white space at its beginning, as `to_bytes` makes it."""
_write_json = json.JSONEncoder(separators=(",", ":")).encode
_NAMES = Blob._fields
_USUAL = tuple(Blob._field_defaults.get(name, Ellipsis) for name in _NAMES)
"""The values that the stored form leaves out; no value is like that of a field without a default."""
