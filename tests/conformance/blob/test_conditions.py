"""The matrix of conditional headers: which operation knows which, and what it answers if one is not met."""

from collections.abc import Mapping
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any

import pytest

from .blobs import Container, id_of, new_name
from .resources import Resource

NOT_MET = "ConditionNotMet"
MESSAGE = "The condition specified using HTTP conditional header(s) is not met."
OTHER = '"0x8D0000000000000"'

Headers = dict[str, str]


def unmet(resource: Resource) -> dict[str, Headers]:
    """Each conditional header with a value that the resource does not meet."""
    facts = resource.facts()
    modified = facts.required("Last-Modified")
    before = format_datetime(parsedate_to_datetime(modified) - timedelta(seconds=1), usegmt=True)
    return {
        "If-Match": {"If-Match": OTHER},
        "If-None-Match": {"If-None-Match": facts.etag},
        "If-Modified-Since": {"If-Modified-Since": modified},
        "If-Unmodified-Since": {"If-Unmodified-Since": before},
    }


def met(resource: Resource) -> dict[str, Headers]:
    """Each with a value that it meets."""
    facts = resource.facts()
    modified = facts.required("Last-Modified")
    before = format_datetime(parsedate_to_datetime(modified) - timedelta(seconds=1), usegmt=True)
    return {
        "If-Match": {"If-Match": facts.etag},
        "If-None-Match": {"If-None-Match": OTHER},
        "If-Modified-Since": {"If-Modified-Since": before},
        "If-Unmodified-Since": {"If-Unmodified-Since": modified},
    }


HEADERS = ("If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since")
READS: dict[str, tuple[str, str]] = {
    "get": ("GET", ""),
    "properties": ("HEAD", ""),
    "metadata": ("GET", "comp=metadata"),
}
LIST = f"<BlockList><Latest>{id_of('a')}</Latest></BlockList>"
ACQUIRE = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15"}
PAGE = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511"}
WRITES: dict[str, tuple[str, str, str, Headers, bytes | None]] = {
    "put blob": ("block", "PUT", "", {"x-ms-blob-type": "BlockBlob"}, b"new"),
    "put page blob": ("block", "PUT", "", {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}, None),
    "put append blob": ("block", "PUT", "", {"x-ms-blob-type": "AppendBlob"}, None),
    "put block list": ("block", "PUT", "comp=blocklist", {}, LIST.encode()),
    "properties": ("block", "PUT", "comp=properties", {}, None),
    "metadata": ("block", "PUT", "comp=metadata", {"x-ms-meta-a": "1"}, None),
    "snapshot": ("block", "PUT", "comp=snapshot", {}, None),
    "delete": ("block", "DELETE", "", {}, None),
    "lease": ("block", "PUT", "comp=lease", ACQUIRE, None),
    "put page": ("page", "PUT", "comp=page", PAGE, bytes(512)),
    "append block": ("append", "PUT", "comp=appendblock", {}, b"x"),
}
"""The blob that an operation is tried on, and its request."""


def target(container: Container, kind: str) -> Resource:
    """A new blob of a kind; one of blocks has an uncommitted block."""
    blob = Resource(container, new_name())
    if kind == "page":
        blob.send("PUT", headers={"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"}).expect(201)
    elif kind == "append":
        blob.send("PUT", headers={"x-ms-blob-type": "AppendBlob"}).expect(201)
    else:
        blob.put(b"0123456789").expect(201)
        container.put_block(blob.name, "a").expect(201)
    return blob


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("read", READS)
def test_reads(blob: Resource, read: str, header: str) -> None:
    method, query = READS[read]
    blob.send(method, query, met(blob)[header]).expect(200)
    answer = blob.send(method, query, unmet(blob)[header])
    assert answer.status == (304 if header in ("If-None-Match", "If-Modified-Since") else 412)
    assert answer.header("x-ms-error-code") == NOT_MET
    if answer.status == 304 or method == "HEAD":
        assert (answer.body, answer.header("Content-Type")) == (b"", None)
    else:
        assert answer.rejection == (412, NOT_MET, MESSAGE)


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("write", WRITES)
def test_writes(shared: Container, write: str, header: str) -> None:
    kind, method, query, headers, body = WRITES[write]
    blob = target(shared, kind)
    before = blob.facts()
    answer = blob.send(method, query, headers | unmet(blob)[header], body=body)
    assert answer.rejection == (412, NOT_MET, MESSAGE)
    assert (blob.facts().etag, blob.facts().header("x-ms-lease-state")) == (before.etag, "available")
    assert blob.send(method, query, headers | met(blob)[header], body=body).status in (200, 201, 202)


CONTAINER_WRITES: dict[str, tuple[str, str, Headers, tuple[str, ...]]] = {
    "metadata": ("PUT", "comp=metadata", {}, ("If-Modified-Since",)),
    "acl": ("PUT", "comp=acl", {}, ("If-Modified-Since", "If-Unmodified-Since")),
    "lease": ("PUT", "comp=lease", ACQUIRE, ("If-Modified-Since", "If-Unmodified-Since")),
    "delete": ("DELETE", "", {}, ("If-Modified-Since", "If-Unmodified-Since")),
}


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("write", CONTAINER_WRITES)
def test_writes_of_containers(own: Resource, write: str, header: str) -> None:
    method, query, headers, known = CONTAINER_WRITES[write]
    answer = own.send(method, query, headers | unmet(own)[header])
    if header in known:
        assert answer.rejection == (412, NOT_MET, MESSAGE)
        answer = own.send(method, query, headers | met(own)[header])
    assert answer.status in (200, 201, 202)
    own.lease("break", break_period=0)


CREATES = ("put blob", "put block list")


@pytest.mark.parametrize("write", CREATES)
def test_create_only(shared: Container, write: str) -> None:
    kind, method, query, headers, body = WRITES[write]
    blob = target(shared, kind)
    answer = blob.send(method, query, headers | {"If-None-Match": "*"}, body=body)
    assert answer.rejection == (409, "BlobAlreadyExists", "The specified blob already exists.")
    blob.send("DELETE").expect(202)
    if write == "put block list":
        shared.put_block(blob.name, "a").expect(201)
    blob.send(method, query, headers | {"If-None-Match": "*"}, body=body).expect(201)


def test_any_blob_matches_a_star(blob: Resource) -> None:
    for method, query in READS.values():
        blob.send(method, query, {"If-Match": "*"}).expect(200)
    blob.put(b"new", {"If-Match": "*"}).expect(201)


def test_a_blob_that_is_missing(missing: Resource, blob: Resource) -> None:
    unmodified = blob.facts().required("Last-Modified")
    for method, query in READS.values():
        answer = missing.send(method, query, {"If-Match": "*"})
        assert (answer.status, answer.header("x-ms-error-code")) == (404, "BlobNotFound")
    for query in ("comp=metadata", "comp=properties", "comp=snapshot"):
        assert missing.send("PUT", query, {"If-Match": OTHER}).code == (404, "BlobNotFound")
    assert missing.put(b"x", {"If-Match": OTHER}).code == (412, NOT_MET)
    assert missing.put(b"x", {"If-Match": "*"}).code == (412, NOT_MET)
    missing.put(b"x", {"If-Unmodified-Since": unmodified}).expect(201)


def pair(resource: Resource, **is_met: bool) -> Mapping[str, Any]:
    """Several headers, each met or not."""
    found: Headers = {}
    for name, good in is_met.items():
        found |= (met if good else unmet)(resource)[name.replace("_", "-")]
    return found


@pytest.mark.parametrize(
    ("match", "unmodified", "none", "modified", "status"),
    [
        (True, True, True, True, 200),
        (False, True, True, True, 412),
        (True, False, True, True, 412),
        (True, True, False, True, 200),
        (True, True, True, False, 200),
        (True, True, False, False, 304),
        (False, True, False, False, 412),
    ],
)
def test_reads_combine_all_headers(
    blob: Resource, match: bool, unmodified: bool, none: bool, modified: bool, status: int
) -> None:
    headers = pair(blob, If_Match=match, If_Unmodified_Since=unmodified, If_None_Match=none, If_Modified_Since=modified)
    blob.send("GET", "", headers).expect(status)


def test_reads_take_lists_of_etags(blob: Resource) -> None:
    both = f"{OTHER}, {blob.facts().etag}"
    blob.send("GET", "", {"If-Match": both}).expect(200)
    blob.send("GET", "", {"If-None-Match": both}).expect(304)


def test_writes_combine_two_headers(blob: Resource) -> None:
    for first, second in (("If_Match", "If_Unmodified_Since"), ("If_None_Match", "If_Modified_Since")):
        blob.send("PUT", "comp=metadata", pair(blob, **{first: True, second: False})).expect(200)
        blob.send("PUT", "comp=metadata", pair(blob, **{first: False, second: True})).expect(412)


@pytest.mark.parametrize(
    ("first", "second"),
    [("If_Match", "If_None_Match"), ("If_Match", "If_Modified_Since"), ("If_None_Match", "If_Unmodified_Since")],
)
def test_other_pairs_of_writes(blob: Resource, first: str, second: str) -> None:
    answer = blob.send("PUT", "comp=metadata", pair(blob, **{first: True, second: True}))
    assert answer.rejection == (
        400,
        "MultipleConditionHeadersNotSupported",
        "Multiple condition headers are not supported.",
    )


def test_writes_take_no_lists_of_etags(blob: Resource) -> None:
    answer = blob.send("PUT", "comp=metadata", {"If-Match": f"{OTHER}, {blob.facts().etag}"})
    assert answer.code == (400, "MultipleConditionHeadersNotSupported")


@pytest.mark.unverified
def test_a_star_that_no_read_can_meet(blob: Resource) -> None:
    assert blob.send("GET", "", {"If-None-Match": "*"}).code == (400, "UnsatisfiableCondition")


@pytest.mark.unverified
def test_a_star_is_ignored_by_other_writes(blob: Resource) -> None:
    blob.send("PUT", "comp=metadata", {"If-None-Match": "*"}).expect(200)


def test_etags_need_no_quotes(blob: Resource) -> None:
    blob.send("GET", "", {"If-Match": blob.facts().etag.strip('"')}).expect(200)


def test_operations_without_conditions(shared: Container, blob: Resource) -> None:
    for headers in unmet(blob).values():
        shared.send("PUT", blob.name, f"comp=block&blockid={id_of('a')[:-2]}%3D%3D", headers=headers, body=b"x").expect(
            201
        )
        blob.send("GET", "comp=blocklist", headers).expect(200)


def test_tags_as_a_condition(blob: Resource) -> None:
    blob.put(b"x", {"x-ms-tags": "a=1"}).expect(201)
    blob.send("GET", "", {"x-ms-if-tags": "a='1'"}).expect(200)
    for method, query in (("GET", ""), ("PUT", "comp=metadata"), ("DELETE", "")):
        assert blob.send(method, query, {"x-ms-if-tags": "a='2'"}).code == (412, NOT_MET)
    assert blob.send("GET", "", {"x-ms-if-tags": "a=="}).code == (400, "InvalidHeaderValue")
