"""Queues, their metadata and lists, and the operations of the account."""

from xml.etree import ElementTree as ET

import pytest
from tests.conformance.answers import Answer, xml_text

from .queues import Queue, Queues, new_name

PROPERTIES = "restype=service&comp=properties"
STATS = "restype=service&comp=stats"


def listed(answer: Answer) -> list[str]:
    """The names of queues in a list."""
    return [node.text or "" for node in ET.fromstring(xml_text(answer.expect(200).body)).iter("Name")]


def test_create_and_delete(queues: Queues) -> None:
    name = new_name()
    path = f"/{name}"
    assert queues.send("DELETE", path).code == (404, "QueueNotFound")
    assert queues.send("PUT", path, headers={"x-ms-meta-a": "1"}).status == 201
    assert queues.send("PUT", path, headers={"X-MS-Meta-A": "1"}).status == 204
    for other in ({}, {"x-ms-meta-a": "2"}, {"x-ms-meta-a": "1", "x-ms-meta-b": "1"}):
        answer = queues.send("PUT", path, headers=other)
        assert answer.rejection == (409, "QueueAlreadyExists", "The specified queue already exists.")
    assert queues.send("DELETE", path).status == 204
    assert queues.send("GET", path, "comp=metadata").code == (404, "QueueNotFound")


def test_a_queue_created_again_is_empty(queue: Queue) -> None:
    queue.put()
    queue.send("DELETE").expect(204)
    queue.send("PUT").expect(201)
    assert queue.count == 0
    assert queue.get() == []


@pytest.mark.parametrize("name", ["Upper", "a_b", "-ab", "ab-", "a--b", "a b", "\u00fcab"])
def test_names_with_other_characters(queues: Queues, name: str) -> None:
    answer = queues.send("PUT", f"/{'%C3%BCab' if name[0] == chr(252) else name.replace(' ', '%20')}")
    message = "The specifed resource name contains invalid characters."
    assert answer.rejection == (400, "InvalidResourceName", message)


@pytest.mark.parametrize("name", ["ab", "a" * 64])
def test_names_of_other_lengths(queues: Queues, name: str) -> None:
    assert queues.send("PUT", f"/{name}").code == (400, "OutOfRangeInput")


def test_metadata(queue: Queue) -> None:
    answer = queue.send("GET", query="comp=metadata").expect(200)
    assert answer.header("x-ms-approximate-messages-count") == "0"
    assert answer.header("Cache-Control") == "no-cache"
    queue.send("PUT", query="comp=metadata", headers={"x-ms-meta-a": "1", "x-ms-meta": "{'a': '1'}"}).expect(204)
    for method in ("GET", "HEAD"):
        answer = queue.send(method, query="comp=metadata").expect(200)
        assert [header for header in answer.headers if header[0].startswith("x-ms-meta")] == [("x-ms-meta-a", "1")]
    queue.send("PUT", query="comp=metadata").expect(204)
    assert queue.send("GET", query="comp=metadata").header("x-ms-meta-a") is None


def test_names_of_metadata_keep_their_case(queues: Queues) -> None:
    name = new_name()
    queues.send("PUT", f"/{name}", headers={"x-ms-meta-DocType": "A", "x-ms-meta-b": "1"}).expect(201)
    assert queues.send("PUT", f"/{name}", headers={"x-ms-meta-doctype": "A", "x-ms-meta-B": "1"}).status == 204
    assert queues.send("PUT", f"/{name}", headers={"x-ms-meta-DocType": "a", "x-ms-meta-b": "1"}).status == 409
    answer = queues.send("GET", f"/{name}", "comp=metadata").expect(200)
    names = [header for header, _ in answer.headers if header.lower().startswith("x-ms-meta-")]
    assert names == ["x-ms-meta-b", "x-ms-meta-DocType"]
    listed = queues.send("GET", "/", f"comp=list&include=metadata&prefix={name}")
    assert "<Metadata><b>1</b><DocType>A</DocType></Metadata>" in xml_text(listed.body)
    queues.send("PUT", f"/{name}", "comp=metadata", headers={"x-ms-meta-DOCTYPE": "A"}).expect(204)
    assert ("x-ms-meta-DOCTYPE", "A") in queues.send("GET", f"/{name}", "comp=metadata").headers
    queues.send("DELETE", f"/{name}").expect(204)


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [("1a", "x", "InvalidMetadata"), ("", "x", "EmptyMetadataKey"), ("a", "x" * 8192, "MetadataTooLarge")],
)
def test_bad_metadata(queue: Queue, name: str, text: str, code: str) -> None:
    assert queue.send("PUT", query="comp=metadata", headers={f"x-ms-meta-{name}": text}).code == (400, code)


def test_the_metadata_of_a_missing_queue(missing_queue: Queue) -> None:
    for method in ("GET", "HEAD", "PUT"):
        answer = missing_queue.send(method, query="comp=metadata")
        assert (answer.status, answer.header("x-ms-error-code")) == (404, "QueueNotFound")
        assert (answer.body == b"") is (method == "HEAD")


def test_lists(queues: Queues) -> None:
    prefix = new_name()[:20]
    names = [f"{prefix}-{letter}" for letter in "abc"]
    for name in names:
        queues.send("PUT", f"/{name}", headers={"x-ms-meta-k": "v&"} if name == names[0] else {}).expect(201)
    try:
        answer = queues.send("GET", "/", f"comp=list&prefix={prefix}&include=metadata")
        assert listed(answer) == names
        text = xml_text(answer.body)
        base = queues.client.endpoint.base
        assert f'<EnumerationResults ServiceEndpoint="{base}"><Prefix>{prefix}</Prefix><Queues><Queue>' in text
        assert f"<Name>{names[0]}</Name><Metadata><k>v&amp;</k></Metadata></Queue>" in text
        assert f"<Name>{names[1]}</Name><Metadata /></Queue>" in text
        assert text.endswith("</Queues><NextMarker /></EnumerationResults>")
        query = f"comp=list&prefix={prefix}&maxresults=2"
        first = queues.send("GET", "/", query)
        assert listed(first) == names[:2]
        assert b"<MaxResults>2</MaxResults>" in first.body
        marker = ET.fromstring(xml_text(first.body)).findtext("NextMarker")
        assert marker == f"/{queues.client.endpoint.account}/{names[2]}"
        second = queues.send("GET", "/", f"{query}&marker={marker}")
        assert listed(second) == names[2:]
        assert f"<Marker>{marker}</Marker>" in xml_text(second.body)
        old = queues.send("GET", "/", f"comp=list&prefix={prefix}", version="2012-02-12")
        assert f'<EnumerationResults AccountName="{base}">' in xml_text(old.body)
        assert f"<Name>{names[0]}</Name><Url>{base}{names[0]}</Url></Queue>" in xml_text(old.body)
    finally:
        for name in names:
            queues.send("DELETE", f"/{name}")


@pytest.mark.parametrize("number", ["0", "-1", "5001"])
def test_sizes_of_lists_out_of_range(queues: Queues, number: str) -> None:
    assert queues.send("GET", "/", f"comp=list&maxresults={number}").code == (400, "OutOfRangeQueryParameterValue")


def test_markers_of_other_things(queues: Queues) -> None:
    account = queues.client.endpoint.account
    for marker in ("x", "a/b", "/other/name", f"/{account}/", f"/{account}/a/b", f"/{account}/UPPER", f"/{account}"):
        assert queues.send("GET", "/", f"comp=list&marker={marker}").code == (400, "InvalidMarker"), marker
    queues.send("GET", "/", f"comp=list&marker=/{account}/was-there").expect(200)
    queues.send("GET", "/", "comp=list&marker=").expect(200)
    assert queues.send("GET", "/", "comp=list&include=x").code == (400, "InvalidQueryParameterValue")


def test_service_properties_and_cors(queues: Queues) -> None:
    rule = (
        "<CorsRule><AllowedMethods>GET</AllowedMethods><AllowedOrigins>http://a.example</AllowedOrigins>"
        "<AllowedHeaders /><ExposedHeaders /><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule>"
    )
    body = "<StorageServiceProperties><Cors>{}</Cors></StorageServiceProperties>"
    origin = {"Origin": "http://a.example", "Access-Control-Request-Method": "GET"}
    assert queues.send("OPTIONS", "/x", headers=origin).code == (403, "CorsPreflightFailure")
    try:
        assert queues.send("PUT", "/", PROPERTIES, body=body.format(rule)).status == 202
        answer = queues.send("GET", "/", PROPERTIES).expect(200)
        assert f"<Cors>{rule}</Cors>" in xml_text(answer.body)
        allowed = queues.send("OPTIONS", "/x", headers=origin).expect(200)
        assert allowed.header("Access-Control-Allow-Origin") == "http://a.example"
    finally:
        queues.send("PUT", "/", PROPERTIES, body=body.format("")).expect(202)


def test_statistics_and_reads_on_the_secondary(queue: Queue, queue_secondary: Queues) -> None:
    assert b"<Status>live</Status>" in queue_secondary.send("GET", "/", STATS).expect(200).body
    queue.put("a")
    path = f"/{queue.name}"
    peeked = queue_secondary.send("GET", f"{path}/messages", "peekonly=true").expect(200)
    assert b"<MessageText>a</MessageText>" in peeked.body
    assert queue_secondary.send("GET", path, "comp=metadata").status == 200
    for method, below in (("GET", "/messages"), ("DELETE", "/messages"), ("DELETE", "")):
        answer = queue_secondary.send(method, path + below)
        assert answer.code == (403, "InsufficientAccountPermissions")
    assert queue.count == 1


def test_codes_of_rejections_are_headers_since_2017_07_29(queues: Queues) -> None:
    for version, code in [("2017-04-17", None), ("2017-07-29", "QueueNotFound")]:
        answer = queues.send("GET", "/missing-queue", "comp=metadata", version=version).expect(404)
        assert (answer.header("x-ms-error-code"), answer.code) == (code, (404, "QueueNotFound"))
