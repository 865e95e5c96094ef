"""Blobs of the three types: lists, properties, and contents in pieces, so that memory does not depend on a length.

A name is the stored one, as a list has it. No path names some of those that earlier versions stored, so the requests
for such blobs have their names in the query (`BlobAddress.call`).
"""

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote, urlencode
from xml.etree import ElementTree as ET

from lazulite.blob.resource import STORED_NAME, is_addressable
from lazulite.resources.policies import metadata_headers, metadata_of
from lazulite.resources.sender import Call, RequestError, Sender, find, pages, send

BLOCK, APPEND, PAGE = "BlockBlob", "AppendBlob", "PageBlob"
BLOCK_BYTES = 8 << 20
"""The content of one request of an upload of a block blob; more than that is sent as blocks."""
BLOCKS_MAX = 50_000
PIECE_BYTES = 4 << 20
"""The content of one request otherwise, in and out."""
PAGE_BYTES = 512
FIELDS = ("Content-Type", "Content-Encoding", "Content-Language", "Content-Disposition", "Cache-Control")
"""The properties that a client sets, as headers of responses and in lists."""
_MD5 = "Content-MD5"
DEFAULT_TYPE = "application/octet-stream"

Read = Callable[[int, int], bytes]
"""Returns the bytes of a content from a position up to another one."""


class BlobAddress(NamedTuple):
    """Where a blob is."""

    container: str
    name: str

    def call(
        self,
        method: str,
        parameters: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
    ) -> Call:
        """Return a request about the blob."""
        path, named = f"{self.container}/{self.name}", {}
        if not is_addressable(self.container, self.name):
            path, named = self.container, {STORED_NAME: self.name}
        return Call("blob", method, path, {**(parameters or {}), **named}, headers or {}, body)


class BlobState(NamedTuple):
    """A blob without its content."""

    kind: str
    """`BlockBlob`, `AppendBlob` or `PageBlob`."""
    length: int
    fields: Mapping[str, str]
    """Those of `FIELDS` that it has."""
    metadata: Mapping[str, str]
    md5: str = ""
    """The MD5 of the content, in base64; "" if the service does not know it."""
    tier: str = ""
    """The access tier that was set; "" if none was."""
    sequence: str = ""
    """The sequence number of a page blob."""
    tag_count: int = 0
    etag: str = ""

    def headers(self, tags: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of the request that makes the blob."""
        headers = {f"x-ms-blob-{name.lower()}": text for name, text in self.fields.items()}
        headers |= metadata_headers(self.metadata)
        if self.md5 and self.kind == BLOCK:
            headers["x-ms-blob-content-md5"] = self.md5
        if self.tier and self.kind == BLOCK:
            headers["x-ms-access-tier"] = self.tier
        if tags:
            headers["x-ms-tags"] = urlencode(dict(tags), quote_via=quote)
        return headers


class ListedBlob(NamedTuple):
    """A blob of a list."""

    name: str
    state: BlobState


class BlobPage(NamedTuple):
    """A page of a list."""

    blobs: list[ListedBlob]
    marker: str
    """Leads to the next page; "": this is the last one."""


def blob_page(sender: Sender, container: str, marker: str, results_max: int = 1000) -> BlobPage:
    """Return a page of the blobs of a container, in the order of their names. Raises as `send`."""
    given = {"restype": "container", "comp": "list", "include": "metadata", "maxresults": str(results_max)}
    root = send(sender, Call("blob", "GET", container, {**given, "marker": marker})).root
    listed = [ListedBlob(_name(each), _state(each)) for each in root.iterfind("Blobs/Blob")]
    return BlobPage(listed, root.findtext("NextMarker") or "")


def blobs(sender: Sender, container: str) -> Iterator[ListedBlob]:
    """Yield all blobs of a container, in the order of their names. Raises as `send`."""
    marker = ""
    while True:
        page = blob_page(sender, container, marker)
        yield from page.blobs
        marker = page.marker
        if not marker:
            return


def leftovers(sender: Sender, container: str) -> int:
    """Return how many snapshots and versions the blobs of a container have. Raises as `send`."""
    given = {"restype": "container", "comp": "list", "include": "snapshots,versions"}
    count = 0
    for root in pages(sender, Call("blob", "GET", container, given)):
        for each in root.iterfind("Blobs/Blob"):
            old = each.findtext("VersionId") is not None and each.findtext("IsCurrentVersion") != "true"
            count += bool(each.findtext("Snapshot")) or old
    return count


def _name(item: ET.Element) -> str:
    element = item.find("Name")
    text = "" if element is None else element.text or ""
    return unquote(text) if element is not None and element.get("Encoded") == "true" else text


def _state(item: ET.Element) -> BlobState:
    properties = {each.tag: each.text or "" for each in item.iterfind("Properties/*")}
    metadata = {each.tag: each.text or "" for each in item.iterfind("Metadata/*")}
    inferred = properties.get("AccessTierInferred") == "true"
    return BlobState(
        kind=properties["BlobType"],
        length=int(properties["Content-Length"]),
        fields={name: properties[name] for name in FIELDS if properties.get(name)},
        metadata=metadata,
        md5=properties.get(_MD5, ""),
        tier="" if inferred else properties.get("AccessTier", ""),
        sequence=properties.get("x-ms-blob-sequence-number", ""),
        tag_count=int(properties.get("TagCount") or 0),
        etag=properties.get("Etag", ""),
    )


def find_blob(sender: Sender, place: BlobAddress) -> BlobState | None:
    """Return a blob; None if there is none. Raises as `send`."""
    reply = find(sender, place.call("HEAD"))
    if reply is None:
        return None
    headers = reply.headers
    return BlobState(
        kind=headers["x-ms-blob-type"],
        length=int(headers["content-length"]),
        fields={name: headers[name.lower()] for name in FIELDS if headers.get(name.lower())},
        metadata=metadata_of(headers),
        md5=headers.get("content-md5", ""),
        tier="" if "x-ms-access-tier-inferred" in headers else headers.get("x-ms-access-tier", ""),
        sequence=headers.get("x-ms-blob-sequence-number", ""),
        tag_count=int(headers.get("x-ms-tag-count", "0")),
        etag=headers.get("etag", ""),
    )


def blob_tags(sender: Sender, place: BlobAddress, state: BlobState) -> dict[str, str]:
    """Return the tags of a blob. Raises as `send`."""
    if not state.tag_count:
        return {}
    root = send(sender, place.call("GET", {"comp": "tags"})).root
    return {tag.findtext("Key", ""): tag.findtext("Value", "") for tag in root.iter("Tag")}


def read_range(sender: Sender, place: BlobAddress, start: int, stop: int, etag: str = "") -> bytes:
    """Return a part of the content of a blob.

    Args:
        sender: of the account.
        place: of the blob.
        start: of the first byte.
        stop: behind the last byte.
        etag: that the blob must still have; "" for any.

    Raises:
        RequestError: as `send`, or not all bytes have come.
    """
    if start >= stop:
        return b""
    headers = {"x-ms-range": f"bytes={start}-{stop - 1}", **({"If-Match": etag} if etag else {})}
    body = send(sender, place.call("GET", None, headers)).body
    if len(body) != stop - start:
        raise RequestError(f"{place.container}/{place.name} ended after {start + len(body)} bytes")
    return body


def content_md5(sender: Sender, place: BlobAddress, length: int) -> str:
    """Return the MD5 of the content of a blob in base64, read from the service. Raises as `read_range`."""
    return md5_of(lambda start, stop: read_range(sender, place, start, stop), length)


def md5_of(read: Read, length: int) -> str:
    """Return the MD5 of a content in base64."""
    digest = hashlib.md5(usedforsecurity=False)
    for start in range(0, length, PIECE_BYTES):
        digest.update(read(start, min(start + PIECE_BYTES, length)))
    return b64encode(digest.digest()).decode()


def write_blob(sender: Sender, place: BlobAddress, state: BlobState, tags: Mapping[str, str], read: Read) -> None:
    """Make a blob, or replace it.

    Args:
        sender: of the account.
        place: of the blob.
        state: its new state.
        tags: its new tags.
        read: returns its content, asked for in order.

    Raises:
        RequestError: as `send`, or a block blob has too many blocks.
    """
    _WRITERS[state.kind](sender, place, state, state.headers(tags), read)


def _write_block_blob(
    sender: Sender, place: BlobAddress, state: BlobState, headers: Mapping[str, str], read: Read
) -> None:
    if state.length <= BLOCK_BYTES:
        body = read(0, state.length)
        send(sender, place.call("PUT", None, {**headers, "x-ms-blob-type": BLOCK, _MD5: _md5(body)}, body))
        return
    starts = range(0, state.length, BLOCK_BYTES)
    if len(starts) > BLOCKS_MAX:
        raise RequestError(f"a blob has at most {BLOCKS_MAX:,} blocks of {BLOCK_BYTES >> 20} MiB")
    ids = [b64encode(b"%08d" % number).decode() for number in range(len(starts))]
    for start, block in zip(starts, ids, strict=True):
        body = read(start, min(start + BLOCK_BYTES, state.length))
        send(sender, place.call("PUT", {"comp": "block", "blockid": block}, {_MD5: _md5(body)}, body))
    listed = "".join(f"<Latest>{each}</Latest>" for each in ids)
    body = f"<BlockList>{listed}</BlockList>".encode()
    send(sender, place.call("PUT", {"comp": "blocklist"}, {**headers, "Content-Type": "application/xml"}, body))


def _write_append_blob(
    sender: Sender, place: BlobAddress, state: BlobState, headers: Mapping[str, str], read: Read
) -> None:
    send(sender, place.call("PUT", None, {**headers, "x-ms-blob-type": APPEND}))
    for start in range(0, state.length, PIECE_BYTES):
        body = read(start, min(start + PIECE_BYTES, state.length))
        position = {"x-ms-blob-condition-appendpos": str(start), _MD5: _md5(body)}
        send(sender, place.call("PUT", {"comp": "appendblock"}, position, body))


def _write_page_blob(
    sender: Sender, place: BlobAddress, state: BlobState, headers: Mapping[str, str], read: Read
) -> None:
    own = {"x-ms-blob-type": PAGE, "x-ms-blob-content-length": str(state.length)}
    if state.sequence:
        own["x-ms-blob-sequence-number"] = state.sequence
    send(sender, place.call("PUT", None, {**headers, **own}))
    for start in range(0, state.length, PIECE_BYTES):
        body = read(start, min(start + PIECE_BYTES, state.length))
        if body.strip(b"\0"):
            given = {"x-ms-range": f"bytes={start}-{start + len(body) - 1}", "x-ms-page-write": "update"}
            send(sender, place.call("PUT", {"comp": "page"}, {**given, _MD5: _md5(body)}, body))


_WRITERS = {BLOCK: _write_block_blob, APPEND: _write_append_blob, PAGE: _write_page_blob}


def _md5(data: bytes) -> str:
    return b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
