"""Codes and exact messages of rejections, and how a rejection is sent."""

import base64

import pytest
from tests.conformance.answers import Answer, xml_text
from tests.conformance.signing import anonymous

from .blobs import Blobs, Container, id_of, new_name
from .resources import Resource

PAGE_BLOB = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "1024"}
APPEND_BLOB = {"x-ms-blob-type": "AppendBlob"}
WRONG = base64.b64encode(bytes(16)).decode()
WRONG_CRC = base64.b64encode(bytes(8)).decode()
TYPE = (409, "InvalidBlobType", "The blob type is invalid for this operation.")
PAGE = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511"}


@pytest.fixture
def page(missing: Resource) -> Resource:
    """A page blob."""
    missing.send("PUT", headers=PAGE_BLOB).expect(201)
    return missing


@pytest.fixture
def log(shared: Container) -> Resource:
    """An append blob of one byte."""
    found = Resource(shared, new_name())
    found.send("PUT", headers=APPEND_BLOB).expect(201)
    found.send("PUT", "comp=appendblock", body=b"x").expect(201)
    return found


def test_operations_on_another_type(blob: Resource, page: Resource, log: Resource) -> None:
    for other in (page, log):
        assert other.send("GET", "comp=blocklist").rejection == TYPE
        assert other.send("PUT", f"comp=block&blockid={id_of('abc')}", body=b"x").rejection == TYPE
        assert other.send("PUT", "comp=blocklist", body=b"<BlockList />").rejection == TYPE
    for other in (blob, page):
        assert other.send("PUT", "comp=appendblock", body=b"x").rejection == TYPE
    for other in (blob, log):
        assert other.send("PUT", "comp=page", PAGE, body=bytes(512)).rejection == TYPE
        assert other.send("GET", "comp=pagelist").rejection == TYPE
        assert other.send("PUT", "comp=properties", {"x-ms-blob-content-length": "512"}).rejection == TYPE


def test_snapshots_keep_their_blob(blob: Resource) -> None:
    blob.send("PUT", "comp=snapshot").expect(201)
    message = "This operation is not permitted while the blob has snapshots."
    assert blob.send("DELETE").rejection == (409, "SnapshotsPresent", message)
    blob.send("DELETE", headers={"x-ms-delete-snapshots": "include"}).expect(202)


@pytest.mark.unverified
@pytest.mark.parametrize("selection", ["snapshot", "versionid"])
@pytest.mark.parametrize("component", ["", "block&blockid=YQ%3D%3D", "blocklist", "metadata", "properties", "snapshot"])
def test_a_snapshot_or_version_is_not_written(blob: Resource, component: str, selection: str) -> None:
    past = blob.send("PUT", "comp=snapshot").expect(201).required("x-ms-snapshot")
    query = f"{selection}={past}&comp={component}" if component else f"{selection}={past}"
    headers = {"x-ms-blob-type": "BlockBlob", "x-ms-meta-a": "b"}
    assert blob.send("PUT", query, headers, body="<BlockList />").code == (400, "InvalidQueryParameterValue")
    answer = blob.send("GET").expect(200)
    assert (answer.body, answer.header("x-ms-meta-a")) == (b"0123456789", None)


def test_nothing_but_the_past_is_deleted_for_ever(blob: Resource) -> None:
    assert blob.send("DELETE", "deletetype=permanent").status == 409
    blob.send("HEAD").expect(200)


def test_containers_that_exist(own: Resource) -> None:
    message = "The specified container already exists."
    assert own.send("PUT").rejection == (409, "ContainerAlreadyExists", message)


def test_blocks(blob: Resource) -> None:
    bad = blob.send("PUT", "comp=blocklist", body=f"<BlockList><Latest>{id_of('z')}</Latest></BlockList>".encode())
    assert bad.rejection == (400, "InvalidBlockList", "The specified block list is invalid.")
    blob.send("PUT", f"comp=block&blockid={id_of('abc')}", body=b"x").expect(201)
    longer = blob.send("PUT", f"comp=block&blockid={id_of('abcdef')}", body=b"x")
    assert longer.rejection == (400, "InvalidBlobOrBlock", "The specified blob or block content is invalid.")
    assert blob.send("PUT", "comp=blocklist", body=b"<BlockList").code == (400, "InvalidXmlDocument")


DIGESTS = {
    "Md5Mismatch": (
        {"Content-MD5": WRONG},
        "The MD5 value specified in the request did not match with the MD5 value calculated by the server.",
    ),
    "InvalidMd5": (
        {"Content-MD5": "x"},
        "The MD5 value specified in the request is invalid. The MD5 value must be 128 bits and Base64-encoded.",
    ),
    "Crc64Mismatch": (
        {"x-ms-content-crc64": WRONG_CRC},
        "The CRC64 value specified in the request did not match with the CRC64 value calculated by the server.",
    ),
    "BothCrc64AndMd5HeaderPresent": (
        {"Content-MD5": WRONG, "x-ms-content-crc64": WRONG_CRC},
        "Both x-ms-content-crc64 header and Content-MD5 header are present.",
    ),
}


@pytest.mark.parametrize("code", DIGESTS)
def test_digests(blob: Resource, code: str) -> None:
    headers, message = DIGESTS[code]
    answer = blob.put(b"new", headers)
    assert answer.rejection == (400, code, message)
    if code == "Md5Mismatch":
        text = xml_text(answer.body)
        assert f"<UserSpecifiedMd5>{WRONG}</UserSpecifiedMd5>" in text
        assert "<ServerCalculatedMd5>" in text
    assert blob.send("GET").body == b"0123456789"


def test_append_conditions(log: Resource) -> None:
    for header, code, message in (
        ("appendpos", "AppendPositionConditionNotMet", "The append position condition specified was not met."),
        ("maxsize", "MaxBlobSizeConditionNotMet", "The max blob size condition specified was not met."),
    ):
        answer = log.send("PUT", "comp=appendblock", {f"x-ms-blob-condition-{header}": "0"}, body=b"y")
        assert answer.rejection == (412, code, message)
    answer = log.send("PUT", "comp=appendblock", {"x-ms-blob-condition-appendpos": "1"}, body=b"y").expect(201)
    assert (answer.header("x-ms-blob-append-offset"), answer.header("x-ms-blob-committed-block-count")) == ("1", "2")


def test_a_sealed_blob(log: Resource) -> None:
    assert log.send("PUT", "comp=seal").expect(200).header("x-ms-blob-sealed") == "true"
    message = "The blob is sealed and its contents cannot be modified."
    assert log.send("PUT", "comp=appendblock", body=b"y").rejection == (409, "BlobIsSealed", message)
    log.send("PUT", "comp=metadata").expect(200)


def test_pages(page: Resource) -> None:
    beyond = {"x-ms-page-write": "update", "x-ms-range": "bytes=1024-1535"}
    answer = page.send("PUT", "comp=page", beyond, body=bytes(512))
    assert answer.rejection == (416, "InvalidPageRange", "The page range specified is invalid.")
    page.send("PUT", "comp=properties", {"x-ms-sequence-number-action": "update", "x-ms-blob-sequence-number": "5"})
    message = "The sequence number condition specified was not met."
    for condition in ("lt", "eq", "le"):
        headers = PAGE | {f"x-ms-if-sequence-number-{condition}": "5" if condition == "lt" else "4"}
        answer = page.send("PUT", "comp=page", headers, body=bytes(512))
        assert answer.rejection == (412, "SequenceNumberConditionNotMet", message)
    headers = PAGE | {"x-ms-if-sequence-number-le": "5", "x-ms-if-sequence-number-eq": "5"}
    page.send("PUT", "comp=page", headers, body=bytes(512)).expect(201)


@pytest.mark.unverified
def test_pages_that_are_not_aligned(page: Resource) -> None:
    headers = {"x-ms-page-write": "update", "x-ms-range": "bytes=1-512"}
    assert page.send("PUT", "comp=page", headers, body=bytes(512)).code == (400, "InvalidHeaderValue")


def test_archived_blobs(blob: Resource) -> None:
    blob.send("PUT", "comp=tier", {"x-ms-access-tier": "Archive"}).expect(200)
    message = "This operation is not permitted on an archived blob."
    assert blob.send("GET").rejection == (409, "BlobArchived", message)
    blob.send("HEAD").expect(200)
    for query in ("comp=block&blockid=YQ%3D%3D", "comp=blocklist", "comp=metadata", "comp=properties", "comp=snapshot"):
        body = "<BlockList />" if "list" in query else "x"
        assert blob.send("PUT", query, body=body).code == (409, "BlobArchived"), query
    blob.send("PUT", "comp=tier", {"x-ms-access-tier": "Hot"}).expect(202)
    assert blob.send("PUT", "comp=tier", {"x-ms-access-tier": "Warm"}).code == (400, "InvalidHeaderValue")


def test_aborting_what_is_not_pending(blob: Resource) -> None:
    copied = blob.send("PUT", headers={"x-ms-copy-source": url_of(blob)}).expect(202)
    abort = {"x-ms-copy-action": "abort"}
    answer = blob.send("PUT", f"comp=copy&copyid={copied.required('x-ms-copy-id')}", abort)
    message = "There is currently no pending copy operation."
    assert answer.rejection == (409, "NoPendingCopyOperation", message)
    assert blob.send("PUT", "comp=copy", abort).code == (400, "MissingRequiredQueryParameter")


def url_of(blob: Resource) -> str:
    """The URL of a blob."""
    return f"{blob.container.blobs.client.endpoint.base}{blob.container.name}/{blob.name}"


def test_sources_that_are_missing(blob: Resource) -> None:
    answer = blob.send("PUT", headers={"x-ms-copy-source": url_of(blob) + "x"})
    assert answer.code == (404, "CannotVerifyCopySource")
    headers = {"x-ms-copy-source": url_of(blob), "x-ms-source-if-match": '"0x8D0000000000000"'}
    message = "The source condition specified using HTTP conditional header(s) is not met."
    assert blob.send("PUT", headers=headers).rejection == (412, "SourceConditionNotMet", message)


def test_metadata_that_cannot_be(blob: Resource) -> None:
    message = "The metadata specified is invalid. It has characters that are not permitted."
    assert blob.send("PUT", "comp=metadata", {"x-ms-meta-1a": "x"}).rejection == (400, "InvalidMetadata", message)


TAGS = {
    "EmptyTagName": ("<Tag><Key></Key><Value>v</Value></Tag>", "The name of one of the tag key-value pairs is empty."),
    "DuplicateTagNames": (
        "<Tag><Key>k</Key><Value>v</Value></Tag>" * 2,
        "The tags specified contain duplicate names.",
    ),
    "TagsTooLarge": (
        "".join(f"<Tag><Key>k{number}</Key><Value>v</Value></Tag>" for number in range(11)),
        "The tags specified exceed the maximum permissible limit.",
    ),
    "InvalidTag": (
        "<Tag><Key>k!</Key><Value>v</Value></Tag>",
        "The tags specified are invalid. It contains characters that are not permitted.",
    ),
}


@pytest.mark.unverified
@pytest.mark.parametrize("code", TAGS)
def test_tags_that_cannot_be(blob: Resource, code: str) -> None:
    markup, message = TAGS[code]
    answer = blob.send("PUT", "comp=tags", body=f"<Tags><TagSet>{markup}</TagSet></Tags>".encode())
    assert answer.rejection == (400, code, message)


def test_components_that_are_unknown(blob: Resource, own: Resource) -> None:
    for answer in (blob.send("GET", "comp=colour"), own.send("PUT", "comp=colour")):
        assert answer.code == (400, "InvalidQueryParameterValue")
        assert "<QueryParameterName>comp</QueryParameterName>" in xml_text(answer.body)


def test_an_account_without_a_component(own: Resource) -> None:
    blobs = own.container.blobs
    for answer in (blobs.send("GET", "/"), blobs.send("GET", "/", signer=anonymous)):
        assert answer.code == (400, "InvalidQueryParameterValue")
        assert "<QueryParameterName>comp</QueryParameterName>" in xml_text(answer.body)


def test_headers_that_are_required(missing: Resource) -> None:
    for answer, header in (
        (missing.send("PUT", body=b"x"), "x-ms-blob-type"),
        (missing.send("PUT", headers={"x-ms-blob-type": "PageBlob"}), "x-ms-blob-content-length"),
    ):
        assert answer.code == (400, "MissingRequiredHeader")
        assert f"<HeaderName>{header}</HeaderName>" in xml_text(answer.body)
    assert missing.send("PUT", headers={"x-ms-blob-type": "Tape"}).code == (400, "InvalidHeaderValue")


UNBUILT: dict[str, tuple[str, str, dict[str, str]]] = {
    "query": ("POST", "comp=query", {}),
    "expiry": ("PUT", "comp=expiry", {"x-ms-expiry-option": "NeverExpire"}),
    "immutability": (
        "PUT",
        "comp=immutabilityPolicies",
        {"x-ms-immutability-policy-until-date": "Thu, 01 Jan 2099 00:00:00 GMT"},
    ),
    "legal hold": ("PUT", "comp=legalhold", {"x-ms-legal-hold": "true"}),
    "incremental copy": ("PUT", "comp=incrementalcopy", {}),
}
"""Operations as clients request them: method, query and headers."""


@pytest.mark.parametrize("operation", UNBUILT)
def test_operations_that_are_not_there(blob: Resource, operation: str) -> None:
    method, query, headers = UNBUILT[operation]
    assert blob.send(method, query, headers).code == (501, "NotImplemented")


def test_protections_that_are_not_there(missing: Resource) -> None:
    for header in ("x-ms-encryption-key", "x-ms-encryption-scope", "x-ms-legal-hold"):
        assert missing.put(b"x", {header: "true"}).code == (400, "UnsupportedHeader")
    assert missing.send("HEAD").status == 404


def check_shape(answer: Answer) -> None:
    """A rejection has its code as a header, its message as the reason, and a body of XML."""
    code, message = answer.rejection[1:]
    assert answer.header("x-ms-error-code") == code
    assert answer.reason == message
    assert answer.header("Content-Type") == "application/xml"
    assert answer.body.startswith(b"\xef\xbb\xbf<?xml")
    assert "001e" in answer.required("x-ms-request-id")
    assert answer.header("Server") == "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0"


def test_the_shape_of_rejections(blob: Resource, missing: Resource) -> None:
    for answer in (missing.send("GET"), blob.send("PUT", headers={}), blob.send("GET", "comp=colour")):
        check_shape(answer)


@pytest.mark.parametrize("version", ["2031-12-24", "2026-12-06"])
def test_versions_of_the_future(blob: Resource, version: str) -> None:
    assert blob.send("GET", version=version).expect(200).header("x-ms-version") == version


VERB = (405, "UnsupportedHttpVerb", "The resource doesn't support specified Http Verb.")


@pytest.mark.parametrize(
    ("method", "query", "allowed"),
    [
        ("POST", "", {"PUT", "GET", "HEAD", "DELETE"}),
        ("PATCH", "", {"PUT", "GET", "HEAD", "DELETE"}),
        ("DELETE", "comp=metadata", {"GET", "HEAD", "PUT"}),
        ("GET", "comp=block", {"PUT"}),
    ],
)
def test_verbs_that_a_blob_lacks(missing: Resource, method: str, query: str, allowed: set[str]) -> None:
    """§44."""
    answer = missing.send(method, query, body=b"{}")
    assert answer.rejection == VERB
    assert set(answer.required("Allow").split(", ")) == allowed


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
@pytest.mark.parametrize("query", ["restype=service&comp=properties", "restype=service&comp=stats"])
def test_components_of_the_account_elsewhere(blob: Resource, method: str, query: str) -> None:
    """§44: of a container and of a blob."""
    for name in ("", blob.name):
        answer = blob.container.send(method, name, query, body=b"{}" if method == "PUT" else None)
        assert (answer.status, answer.header("x-ms-error-code")) == (405, "UnsupportedHttpVerb")
        assert "GET" in answer.required("Allow").split(", ")


def test_verbs_that_a_container_and_an_account_lack(own: Resource, blobs: Blobs) -> None:
    for answer in (own.send("POST", body=b"{}"), blobs.send("POST", "/Tables", body=b"{}")):
        assert answer.rejection == VERB
        assert {"GET", "PUT", "DELETE"} <= set(answer.required("Allow").split(", "))
    answer = blobs.send("DELETE", "/", "restype=service&comp=properties")
    assert (answer.rejection, answer.header("Allow")) == (VERB, "GET, PUT")


@pytest.mark.parametrize("method", ["DELETE", "PATCH", "MERGE"])
def test_verbs_that_no_part_of_an_account_has(blobs: Blobs, method: str) -> None:
    for query in ("", "comp=nonesuch"):
        answer = blobs.send(method, "/", query, body=b"")
        assert answer.rejection == VERB
        assert {"GET", "PUT", "POST"} <= set(answer.required("Allow").split(", "))


def test_no_content_length(missing: Resource) -> None:
    headers = {"x-ms-blob-type": "BlockBlob", "Content-Length": None}
    answer = missing.send("PUT", "", headers)
    assert answer.rejection == (411, "MissingContentLengthHeader", "Content-Length HTTP header is missing.")
    assert b"<HeaderName>Content-Length</HeaderName>" in answer.body
