"""Pages of List Blobs, in XML. Source: REST reference, List Blobs; the order of the elements is recorded.

The rows of a page repeat few sets of properties. The markup around the values of a set is made once.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from urllib.parse import quote

from lazulite.blob.model.tags import Tags, tags_element
from lazulite.blob.versions import (
    BLOB_ELEMENTS,
    ENCODED_NAMES_SINCE,
    LIST_WITHOUT_URL_SINCE,
    SNAPSHOT_ELEMENTS,
    has_ended,
    known,
)
from lazulite.engine.key_encoding import decode_text
from lazulite.protocol.xml import document as xml
from lazulite.protocol.xml.text import attribute, content, escaped, is_name, is_text

CONTENT_PROPERTIES = (
    "Content-Type",
    "Content-Encoding",
    "Content-Language",
    "Content-CRC64",
    "Content-MD5",
    "Cache-Control",
    "Content-Disposition",
)
"""The elements that are empty where a blob lacks the property."""
PROPERTIES = (
    "Creation-Time",
    "Last-Modified",
    "Etag",
    "Content-Length",
    *CONTENT_PROPERTIES,
    "LastAccessTime",
    "x-ms-blob-sequence-number",
    "BlobType",
    "AccessTier",
    "SmartAccessTier",
    "AccessTierInferred",
    "AccessTierChangeTime",
    "ArchiveStatus",
    "LeaseStatus",
    "LeaseState",
    "LeaseDuration",
    "CopyId",
    "CopySource",
    "CopyStatus",
    "CopyProgress",
    "CopyCompletionTime",
    "CopyStatusDescription",
    "ServerEncrypted",
    "CustomerProvidedKeySha256",
    "EncryptionScope",
    "IncrementalCopy",
    "Sealed",
    "DeletedTime",
    "RemainingRetentionDays",
    "TagCount",
    "RehydratePriority",
)
"""The elements of a blob's properties, in their order."""

_IDENTITY = ("Snapshot", "VersionId", "IsCurrentVersion", "Deleted", "HasVersionsOnly")
"""The elements between a name and the properties, in their order."""
_SPECIAL = re.compile("[&<>\r\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What does not stand for itself in a document."""
_SPECIAL_BYTES = bytes(byte for byte in range(128) if _SPECIAL.match(chr(byte)))
_PREFIX_BEGINS, _PREFIX_ENDS = "<BlobPrefix><Name>", "</Name></BlobPrefix>"
_INVALID_NAME = "x-ms-invalid-name"


@dataclass(slots=True)
class ListedBlob:
    """One blob, snapshot or version of a page."""

    name: str
    properties: Mapping[str, str]
    """By the names in `PROPERTIES`; no text is empty."""
    snapshot: str = ""
    """The time of a snapshot; "" if it is not a snapshot."""
    version: str = ""
    """The id of a version; "" if it has none."""
    is_current: bool = False
    """Whether it is the current one of several versions."""
    is_deleted: bool = False
    has_versions_only: bool = False
    """Whether the blob is deleted, and has past versions."""
    is_committed: bool = True
    """False for a blob that has uncommitted blocks only."""
    metadata: Sequence[tuple[str, str]] = ()
    """The pairs to be shown."""
    tags: Tags | None = None
    """The tags to be shown; None: there is no such element."""


@dataclass(slots=True)
class ListedPrefix:
    """A common prefix of names, up to the delimiter."""

    name: str


@dataclass(slots=True, kw_only=True)
class BlobPage:
    """What a page of a list is about."""

    base: str
    """The URL of the account, with its slash at the end."""
    container: str
    sent: Sequence[tuple[str, str]]
    """Elements for the parameters of the request: `Prefix`, `Marker`, `MaxResults`, `Delimiter`."""
    version: str
    """The version of the request."""


def write_page(page: BlobPage, rows: Iterable[bytes], marker: str) -> bytes:
    """Return a page.

    Args:
        page: what it is about.
        rows: their markup, in their order, some together.
        marker: of the next page; "" if this is the last one.
    """
    blobs = (b"<Blobs>", *rows, b"</Blobs>")
    end = f"{xml.leaf('NextMarker', marker)}</EnumerationResults>".encode()
    return b"".join((xml.document(_opening(page)), *(blobs if len(blobs) > 2 else (b"<Blobs />",)), end))


def _opening(page: BlobPage) -> str:
    if page.version >= LIST_WITHOUT_URL_SINCE:
        names = f'ServiceEndpoint="{attribute(page.base)}" ContainerName="{attribute(page.container)}"'
    else:
        names = f'ContainerName="{attribute(page.base + page.container)}"'
    return f"<EnumerationResults {names}>" + "".join(xml.leaf(name, text) for name, text in page.sent)


class RowWriter:
    """Writes the rows of a page.

    Args:
        page: what it is about.
    """

    def __init__(self, page: BlobPage) -> None:
        version = page.version
        self._encodes_names = version >= ENCODED_NAMES_SINCE
        self._known = known(PROPERTIES, BLOB_ELEMENTS, version)
        self._known_of_snapshots = known(self._known, SNAPSHOT_ELEMENTS, version)
        self._identity = known(_IDENTITY, BLOB_ELEMENTS, version)
        has_lease = not has_ended("LeaseStatus of a deleted blob", version)
        self._empty_of_deleted = (*CONTENT_PROPERTIES, "LeaseStatus") if has_lease else CONTENT_PROPERTIES
        self._replication = "<OrMetadata />" if known(["OrMetadata"], BLOB_ELEMENTS, version) else ""
        self._url = "" if has_ended("Url", version) else f"{page.base}{page.container}/"

    def prefixes(self, beginning: str, ends: Sequence[bytes]) -> str:
        """Return the markup of common prefixes: each is the beginning and one of the ends, which are in CESU-8."""
        together = b"".join(ends)
        if self._url or not together.isascii() or not is_plain([beginning, together.decode()]):
            return "".join([self.row(ListedPrefix(beginning + decode_text(end))) for end in ends])
        begins = _PREFIX_BEGINS + beginning
        names = (_PREFIX_ENDS + begins).encode().join(ends).decode()
        return f"{begins}{names}{_PREFIX_ENDS}" if ends else ""

    def row(self, row: ListedBlob | ListedPrefix) -> str:
        """Return the markup of a row."""
        if isinstance(row, ListedPrefix):
            return f"<BlobPrefix>{self._name(row.name)}</BlobPrefix>"
        properties = row.properties
        empty = self._empty_of_deleted if row.is_deleted else CONTENT_PROPERTIES
        elements = self._known_of_snapshots if row.snapshot else self._known
        template, take = _layout(tuple(properties), empty if row.is_committed else (), elements)
        texts = take(properties)
        if _SPECIAL.search("".join(texts)):
            texts = tuple(map(content, texts))
        shown = metadata_element(row.metadata)
        if row.tags is not None:
            shown += tags_element(row.tags)
        replication = self._replication if row.is_committed and properties["BlobType"] == "BlockBlob" else ""
        identity = (
            self._identity_of(row) if row.snapshot or row.version or row.is_deleted or row.has_versions_only else ""
        )
        return f"<Blob>{self._name(row.name)}{identity}{template % texts}{shown}{replication}</Blob>"

    def _identity_of(self, row: ListedBlob) -> str:
        """Return the elements between a name and the properties."""
        texts = {
            "Snapshot": row.snapshot,
            "VersionId": row.version,
            "IsCurrentVersion": "true" if row.is_current else "",
            "Deleted": "true" if row.is_deleted else "",
            "HasVersionsOnly": "true" if row.has_versions_only else "",
        }
        return "".join(xml.leaf(name, texts[name]) for name in self._identity if texts[name])

    def _name(self, name: str) -> str:
        if is_text(name):
            text = f"<Name>{escaped(name)}</Name>"
        elif self._encodes_names:
            text = f'<Name Encoded="true">{quote(name, safe="")}</Name>'
        else:
            text = xml.leaf("Name", name)
        return text + xml.leaf("Url", self._url + quote(name)) if self._url else text


def is_plain(names: Iterable[str]) -> bool:
    """Tell whether all names stand for themselves in a document."""
    text = "".join(names)
    if text.isascii():
        encoded = text.encode()
        return len(encoded.translate(None, _SPECIAL_BYTES)) == len(encoded)
    return _SPECIAL.search(text) is None


def metadata_element(metadata: Sequence[tuple[str, str]]) -> str:
    """Return the element of metadata; "" for none."""
    return xml.element("Metadata", *(_pair(name, text) for name, text in metadata)) if metadata else ""


def _pair(name: str, text: str) -> str:
    """Return one pair of metadata. Its name is shown as text if it cannot be the name of an element."""
    return xml.leaf(name, text) if is_name(name) else xml.leaf(_INVALID_NAME, name)


@lru_cache(maxsize=1024)
def _layout(
    names: tuple[str, ...], empty: tuple[str, ...], elements: tuple[str, ...]
) -> tuple[str, Callable[[Mapping[str, str]], tuple[str, ...]]]:
    """Return the markup around the values of some properties, with `%s` for each, and a function that takes these.

    Args:
        names: of the properties.
        empty: properties that are shown without a value, if they are not among the names.
        elements: those of `PROPERTIES` that are shown at all.

    Raises:
        ValueError: a name is none of `PROPERTIES`, or fewer than two are shown.
    """
    present = [name for name in elements if name in names]
    if not set(names) <= set(PROPERTIES) or len(present) < 2:
        raise ValueError("these are no properties of a blob")
    leaves = (
        f"<{name}>%s</{name}>" if name in names else f"<{name} />" for name in elements if name in (*names, *empty)
    )
    return xml.element("Properties", *leaves), itemgetter(*present)
