"""The matrix of preconditions as reference §40 states it, with a request for each of its operations.

Each row of the table in `docs/protocol/leases.md` needs an entry of `REQUESTS`, so that tests leave no operation out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime
from pathlib import Path
from typing import NamedTuple

from tests.conformance.answers import Answer
from tests.conformance.sas import account_sas

from .blobs import Container, id_of, new_name
from .resources import Resource

PROTOCOL = Path(__file__).parents[3] / "docs" / "protocol"
VERSION = "2026-04-06"
"""The first version that knows every condition."""
NOT_MET = "ConditionNotMet"
OTHER_ETAG = '"0x8D0000000000000"'
TAG = "a='1'"
"""A condition on tags that each target meets."""
OTHER_TAG = "a='2'"
HEADERS = ("If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "x-ms-if-tags")
TIER_HEADERS = ("x-ms-access-tier-if-modified-since", "x-ms-access-tier-if-unmodified-since")

Headers = dict[str, str]


class Row(NamedTuple):
    """What an operation makes of preconditions: the cells of its row."""

    operation: str
    unmet: Mapping[str, str]
    """The status by header; `–`: it is not known."""
    star: str
    """What `If-None-Match: *` is on something that exists."""
    lease: str

    @property
    def creates(self) -> bool:
        """Whether a missing blob is created."""
        return self.star.startswith("409")


def table_of_operations(page: str, columns: int) -> dict[str, list[str]]:
    """The cells of a table of a page that has a row for each operation, by the operation."""
    lines = (PROTOCOL / page).read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]
    return {row[0].strip("`"): row[1:] for row in rows if len(row) == columns}


def _row(operation: str, cells: list[str]) -> Row:
    unmet = dict(zip(HEADERS, cells, strict=False)) | dict.fromkeys(TIER_HEADERS, cells[5])
    return Row(operation, unmet, *cells[6:])


MATRIX = {name: _row(name, cells) for name, cells in table_of_operations("leases.md", 9).items()}
CONDITIONAL = {name: row for name, row in MATRIX.items() if set(row.unmet.values()) != {"–"}}


@dataclass(frozen=True)
class Request:
    """A request for an operation."""

    target: str
    """What it is tried on: `block`, `page`, `append` or `container`."""
    method: str
    query: str = ""
    headers: Headers = field(default_factory=dict)
    body: bytes | None = None
    prefix: str = ""
    """Of the names of the four usual conditional headers."""
    reads_url: bool = False
    """Whether it has the URL of a source."""

    def send(self, resource: Resource, headers: Mapping[str, str], version: str = VERSION) -> Answer:
        """Send it with more headers."""
        given = {name: text for name, text in self.headers.items() if name.lower() not in map(str.lower, headers)}
        if self.reads_url:
            given["x-ms-copy-source"] = source_url(resource.container)
        return resource.send(self.method, self.query, {**given, **headers}, body=self.body, version=version)

    def condition(self, name: str, text: str) -> Headers:
        """A condition as the operation's header."""
        return {f"{self.prefix}{name}" if name.startswith("If-") else name: text}


_LIST = f"<BlockList><Latest>{id_of('a')}</Latest></BlockList>".encode()
_TAGS = b"<Tags><TagSet><Tag><Key>a</Key><Value>1</Value></Tag><Tag><Key>b</Key><Value>2</Value></Tag></TagSet></Tags>"
_ACQUIRE = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}
_INCREMENT = {"x-ms-sequence-number-action": "increment"}
_PAGE = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511"}
_SOURCE_RANGE = {"x-ms-source-range": "bytes=0-511"}
_BLOCK_ID = f"comp=block&blockid={id_of('a').replace('=', '%3D')}"
_OF_TAGS = "x-ms-blob-"

REQUESTS: dict[str, Request] = {
    "GetBlob": Request("block", "GET"),
    "GetBlobProperties": Request("block", "HEAD"),
    "GetBlobMetadata": Request("block", "GET", "comp=metadata"),
    "GetPageRanges": Request("page", "GET", "comp=pagelist"),
    "GetBlockList": Request("block", "GET", "comp=blocklist&blocklisttype=all"),
    "GetBlobTags": Request("block", "GET", "comp=tags", prefix=_OF_TAGS),
    "PutBlob": Request("block", "PUT", "", {"x-ms-blob-type": "BlockBlob"}, b"new"),
    "PutBlobFromURL": Request("block", "PUT", "", {"x-ms-blob-type": "BlockBlob"}, reads_url=True),
    "PutBlockList": Request("block", "PUT", "comp=blocklist", {}, _LIST),
    "CopyBlob": Request("block", "PUT", reads_url=True),
    "PutBlock": Request("block", "PUT", _BLOCK_ID, {}, b"x"),
    "PutBlockFromURL": Request("block", "PUT", _BLOCK_ID, reads_url=True),
    "AppendBlock": Request("append", "PUT", "comp=appendblock", {}, b"x"),
    "AppendBlockFromURL": Request("append", "PUT", "comp=appendblock", reads_url=True),
    "SealAppendBlob": Request("append", "PUT", "comp=seal"),
    "PutPage": Request("page", "PUT", "comp=page", _PAGE, bytes(512)),
    "PutPageFromURL": Request("page", "PUT", "comp=page", _PAGE | _SOURCE_RANGE, reads_url=True),
    "SetBlobProperties": Request("block", "PUT", "comp=properties"),
    "SetBlobMetadata": Request("block", "PUT", "comp=metadata", {"x-ms-meta-a": "1"}),
    "SetBlobTags": Request("block", "PUT", "comp=tags", {}, _TAGS, prefix=_OF_TAGS),
    "SetBlobTier": Request("block", "PUT", "comp=tier", {"x-ms-access-tier": "Hot"}),
    "SnapshotBlob": Request("block", "PUT", "comp=snapshot"),
    "DeleteBlob": Request("block", "DELETE", "", {"x-ms-delete-snapshots": "include"}),
    "LeaseBlob": Request("block", "PUT", "comp=lease", _ACQUIRE),
    "AbortCopyBlob": Request("block", "PUT", "comp=copy&copyid=1", {"x-ms-copy-action": "abort"}),
    "DeleteContainer": Request("container", "DELETE"),
    "SetContainerACL": Request("container", "PUT", "comp=acl"),
    "LeaseContainer": Request("container", "PUT", "comp=lease", _ACQUIRE),
    "SetContainerMetadata": Request("container", "PUT", "comp=metadata"),
    "GetContainerProperties": Request("container", "GET"),
    "GetContainerMetadata": Request("container", "GET", "comp=metadata"),
    "GetContainerACL": Request("container", "GET", "comp=acl"),
}
FORMS: dict[str, Request] = {
    "PutBlob of pages": Request("block", "PUT", "", {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}),
    "PutBlob to append to": Request("block", "PUT", "", {"x-ms-blob-type": "AppendBlob"}),
    "CopyBlob at once": Request("block", "PUT", "", {"x-ms-requires-sync": "true"}, reads_url=True),
    "PutPage that clears": Request("page", "PUT", "comp=page", _PAGE | {"x-ms-page-write": "clear"}),
    "SetBlobProperties of pages": Request("page", "PUT", "comp=properties", _INCREMENT),
    "GetBlob of a range": Request("block", "GET", "", {"x-ms-range": "bytes=0-1"}),
    "GetBlobMetadata without a body": Request("block", "HEAD", "comp=metadata"),
    "GetBlockList of those committed": Request("block", "GET", "comp=blocklist"),
}
"""Other requests for the same operations, whose name is the first word."""


def requests_of(names: Mapping[str, Row]) -> list[str]:
    """The requests for operations, by name."""
    return [*(name for name in REQUESTS if name in names), *(name for name in FORMS if name.split()[0] in names)]


def request_of(name: str) -> Request:
    """A request by its name."""
    return REQUESTS.get(name) or FORMS[name]


def row_of(name: str) -> Row:
    """The row of a request."""
    return MATRIX[name.split(maxsplit=1)[0]]


SOURCE = "source-of-copies"


def source_url(container: Container) -> str:
    """The URL of a blob of 512 bytes with a tag, readable by its SAS."""
    endpoint = container.blobs.client.endpoint
    sas = account_sas(endpoint, {"ss": "b", "sp": "rt", "se": "2999-01-01T00:00:00Z"})
    return f"{endpoint.base}{container.name}/{SOURCE}?{sas}"


def put_source(container: Container) -> Answer:
    """Put the blob of `source_url`."""
    headers = {"x-ms-blob-type": "BlockBlob", "x-ms-tags": "a=1"}
    return container.send("PUT", SOURCE, body=bytes(512), headers=headers).expect(201)


def new_target(container: Container, kind: str) -> Resource:
    """A new blob of a kind, with a tag; one of blocks has an uncommitted block, and is Cool."""
    blob = Resource(container, new_name())
    tags = {"x-ms-tags": "a=1"}
    if kind == "page":
        length = {"x-ms-blob-content-length": "512"}
        blob.send("PUT", headers={"x-ms-blob-type": "PageBlob", **length, **tags}).expect(201)
    elif kind == "append":
        blob.send("PUT", headers={"x-ms-blob-type": "AppendBlob", **tags}).expect(201)
    else:
        blob.put(b"0123456789", {"x-ms-access-tier": "Cool", **tags}).expect(201)
        container.put_block(blob.name, "a").expect(201)
    return blob


def unmet_conditions(resource: Resource) -> Headers:
    """Each conditional header with a value that a resource does not meet."""
    before, modified, after = _dates(resource)
    return {
        "If-Match": OTHER_ETAG,
        "If-None-Match": resource.facts().etag,
        "If-Modified-Since": modified,
        "If-Unmodified-Since": before,
        "x-ms-if-tags": OTHER_TAG,
        "x-ms-access-tier-if-modified-since": after,
        "x-ms-access-tier-if-unmodified-since": before,
    }


def met_conditions(resource: Resource) -> Headers:
    """Each with a value that it meets."""
    before, modified, after = _dates(resource)
    return {
        "If-Match": resource.facts().etag,
        "If-None-Match": OTHER_ETAG,
        "If-Modified-Since": before,
        "If-Unmodified-Since": modified,
        "x-ms-if-tags": TAG,
        "x-ms-access-tier-if-modified-since": before,
        "x-ms-access-tier-if-unmodified-since": after,
    }


def _dates(resource: Resource) -> tuple[str, str, str]:
    """The time of its last change in whole seconds, and a minute before and after."""
    modified = parsedate_to_datetime(resource.facts().required("Last-Modified"))
    before, at, after = (format_datetime(modified + timedelta(minutes=minutes), usegmt=True) for minutes in (-1, 0, 1))
    return before, at, after
