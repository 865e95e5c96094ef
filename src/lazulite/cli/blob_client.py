"""The requests of `lazulite blob`. Bytes go through in pieces, so memory does not depend on the length of a blob.

A name is the stored one, as a list has it. No path names some of those that earlier versions stored, so the requests
for such blobs have their names in the query (`_addressed`).
"""

import hashlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPException
from typing import IO, NamedTuple
from urllib.parse import quote, unquote, urlencode
from xml.etree.ElementTree import Element

from lazulite.blob.resource import STORED_NAME, is_addressable
from lazulite.cli.errors import CommandError
from lazulite.cli.service_client import ServiceAccess, ServiceClient

ACCESS = ServiceAccess("blob", "rwdlct")
BLOCK_BYTES = 8 * 1024 * 1024
"""The content of one request of an upload; more than that is sent as blocks."""
BLOCKS_MAX = 50_000
_READ_BYTES = 1024 * 1024


class ListItem(NamedTuple):
    """A blob in a list, or the common beginning of several names."""

    name: str
    properties: Mapping[str, str] | None
    """By the names of their elements; None for a common beginning."""


def containers(client: ServiceClient) -> Iterator[str]:
    """Yield the names of all containers. Raises as `ServiceClient.send`."""
    for root in client.pages("", {"comp": "list"}):
        yield from (each.findtext("Name") or "" for each in root.iterfind("Containers/Container"))


def blobs(client: ServiceClient, container: str, prefix: str = "", delimiter: str = "") -> Iterator[ListItem]:
    """Yield the blobs whose names begin with a prefix, in order. Raises likewise.

    Args:
        client: of the account.
        container: the name.
        prefix: "" for all.
        delimiter: names with it behind the prefix are one item, up to the delimiter; "" lists each.
    """
    given = {"restype": "container", "comp": "list", "prefix": prefix, "delimiter": delimiter}
    for root in client.pages(container, given):
        for each in root.iterfind("Blobs/*"):
            properties = {field.tag: field.text or "" for field in each.iterfind("Properties/*")}
            yield ListItem(_name(each), properties if each.tag == "Blob" else None)


def _name(item: Element) -> str:
    element = item.find("Name")
    if element is None:
        return ""
    text = element.text or ""
    return unquote(text) if element.get("Encoded") == "true" else text


def create_container(client: ServiceClient, container: str) -> None:
    """Create a container. Raises likewise."""
    client.send("PUT", container, {"restype": "container"})


def delete_container(client: ServiceClient, container: str) -> None:
    """Delete a container with its blobs. Raises likewise."""
    client.send("DELETE", container, {"restype": "container"})


def put(
    client: ServiceClient,
    path: str,
    source: IO[bytes],
    headers: Mapping[str, str],
    count: Callable[[int], None] = lambda _: None,
) -> None:
    """Store bytes as a block blob: one request, or blocks and their list.

    Args:
        client: of the account.
        path: `container/blob`.
        source: of the bytes.
        headers: of the request that makes the blob.
        count: called with the bytes of each block that is stored.

    Raises:
        CommandError: as `ServiceClient.send`, or there are more bytes than a blob of `BLOCKS_MAX` blocks has.
        OSError: `source` cannot be read.
    """
    first = source.read(BLOCK_BYTES)
    if len(first) < BLOCK_BYTES:
        client.send("PUT", path, None, {**headers, "x-ms-blob-type": "BlockBlob", "Content-MD5": _md5(first)}, first)
        return
    whole, ids = hashlib.md5(usedforsecurity=False), list[str]()
    block = first
    while block:
        if len(ids) == BLOCKS_MAX:
            raise CommandError(f"a blob has at most {BLOCKS_MAX:,} blocks of {BLOCK_BYTES >> 20} MiB")
        ids.append(b64encode(b"%08d" % len(ids)).decode())
        client.send("PUT", path, {"comp": "block", "blockid": ids[-1]}, {"Content-MD5": _md5(block)}, block)
        whole.update(block)
        count(len(block))
        block = source.read(BLOCK_BYTES)
    listed = "".join(f"<Latest>{each}</Latest>" for each in ids)
    own = {"x-ms-blob-content-md5": b64encode(whole.digest()).decode()}
    body = f"<BlockList>{listed}</BlockList>".encode()
    client.send("PUT", path, {"comp": "blocklist"}, {**headers, **own}, body)


def get(
    client: ServiceClient, path: str, target: IO[bytes], count_of: Callable[[int, int], None] = lambda _, __: None
) -> None:
    """Write the bytes of a blob, and compare their digest with the blob's, if it has one.

    Args:
        client: of the account.
        path: `container/blob`.
        target: of the bytes.
        count_of: called with the bytes that have come, and the length.

    Raises:
        CommandError: as `ServiceClient.send`, or the bytes are not those that the blob should have.
        OSError: `target` cannot be written.
    """
    digest, count = hashlib.md5(usedforsecurity=False), 0
    with client.stream("GET", *_addressed(path)) as response:
        length, expected = int(response.headers["Content-Length"]), response.headers.get("Content-MD5")
        while count < length:
            try:
                piece = response.read(_READ_BYTES)
            except (OSError, HTTPException) as error:
                raise client.make_connection_error(error) from error
            if not piece:
                break
            target.write(piece)
            digest.update(piece)
            count += len(piece)
            count_of(count, length)
    if count < length:
        raise CommandError(f"{path} ended after {count} of {length} bytes")
    if expected and b64encode(digest.digest()).decode() != expected:
        raise CommandError(f"the bytes of {path} do not have the MD5 that it should have")


def delete(client: ServiceClient, path: str, *, snapshots: bool = False, etag: str = "") -> None:
    """Delete a blob, with its snapshots if asked to. Raises as `ServiceClient.send`.

    Args:
        client: of the account.
        path: `container/blob`.
        snapshots: whether it may have some.
        etag: that it must have; "" for any.
    """
    headers = {"x-ms-delete-snapshots": "include"} if snapshots else {}
    client.send("DELETE", *_addressed(path), {**headers, "If-Match": etag} if etag else headers)


def move(client: ServiceClient, source: str, target: str, headers: Mapping[str, str], *, snapshots: bool) -> None:
    """Copy a blob with its properties, metadata, tags and tier, then delete it.

    Args:
        client: of the account.
        source: `container/blob`.
        target: likewise; the path of a URL can name it.
        headers: of the request that makes the copy.
        snapshots: whether snapshots of the source are deleted with it; they are not copied.

    Raises:
        CommandError: as `ServiceClient.send`; or the blob has changed since it was copied. Then there are both.
    """
    path, named = _addressed(source)
    found = client.send("HEAD", path, named).headers
    sent = {"x-ms-copy-source": client.url(path, named), "x-ms-source-if-match": found["etag"], **headers}
    if "x-ms-access-tier-inferred" not in found and "x-ms-access-tier" in found:
        sent["x-ms-access-tier"] = found["x-ms-access-tier"]
    if "x-ms-tag-count" in found:
        sent["x-ms-tags"] = urlencode(_tags(client, path, named), quote_via=quote)
    copied = client.send("PUT", target, None, sent).headers
    if copied["x-ms-copy-status"] != "success":
        raise CommandError(f"the copy of {source} is {copied['x-ms-copy-status']}")
    delete(client, source, snapshots=snapshots, etag=found["etag"])


def _tags(client: ServiceClient, path: str, named: Mapping[str, str]) -> list[tuple[str, str]]:
    root = client.send("GET", path, {**named, "comp": "tags"}).root
    return [] if root is None else [(tag.findtext("Key", ""), tag.findtext("Value", "")) for tag in root.iter("Tag")]


def _addressed(path: str) -> tuple[str, dict[str, str]]:
    """Return the path and the query that name a blob, given as `container/blob`."""
    container, _, blob = path.partition("/")
    return (path, {}) if is_addressable(container, blob) else (container, {STORED_NAME: blob})


def _md5(data: bytes) -> str:
    return b64encode(hashlib.md5(data, usedforsecurity=False).digest()).decode()
