"""Statements of the reference that no other file of this folder has (§25, §26, §27, §28, §30)."""

from datetime import timedelta
from email.utils import parsedate_to_datetime
from urllib.parse import quote

import pytest
from tests.conformance.answers import xml_text
from tests.conformance.client import Client
from tests.conformance.sas import account_sas, moment
from tests.conformance.signing import Endpoint, anonymous

from .queues import Queue, Queues, message_body, messages_of

BOM = b"\xef\xbb\xbf"
PROPERTIES = "restype=service&comp=properties"
READS = {
    "list": ("/", "comp=list&maxresults=1"),
    "properties": ("/", PROPERTIES),
    "metadata": ("/{queue}", "comp=metadata"),
    "acl": ("/{queue}", "comp=acl"),
    "get": ("/{queue}/messages", ""),
    "peek": ("/{queue}/messages", "peekonly=true"),
}


@pytest.mark.parametrize("read", READS)
def test_headers_of_each_operation(queue: Queue, read: str) -> None:
    path, query = READS[read]
    sent = {"x-ms-client-request-id": "mine"}
    answer = queue.queues.send("GET", path.format(queue=queue.name), query, headers=sent).expect(200)
    assert answer.header("Server") == "Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0"
    assert answer.header("Cache-Control") == "no-cache"
    assert answer.header("x-ms-client-request-id") == "mine"
    assert answer.header("x-ms-version") == "2021-02-12"
    assert answer.header("Content-Length") == str(len(answer.body))
    assert answer.required("Date").endswith(" GMT")


@pytest.mark.parametrize("read", [each for each in READS if each != "metadata"])
def test_bodies_begin_with_a_byte_order_mark(queue: Queue, read: str) -> None:
    path, query = READS[read]
    body = queue.queues.send("GET", path.format(queue=queue.name), query).expect(200).body
    assert body.startswith(BOM + b'<?xml version="1.0" encoding="utf-8"?><')
    assert b"> <" not in body
    assert b">\n<" not in body


@pytest.mark.unverified
@pytest.mark.parametrize("names", [("x-ms-meta-a", "x-ms-meta-a"), ("x-ms-meta-a", "X-MS-Meta-A")])
@pytest.mark.parametrize("value", ["1", "2"])
def test_metadata_that_comes_twice(queue: Queue, queue_endpoint: Endpoint, names: tuple[str, str], value: str) -> None:
    token = account_sas(queue_endpoint, {"ss": "q", "srt": "c", "sp": "w"})  # It does not sign the headers.
    first, second = names
    twice = {first: ("1", value)} if first == second else {first: "1", second: value}
    answer = queue.send("PUT", query=f"comp=metadata&{token}", headers=twice, signer=anonymous)
    assert answer.code == (400, "InvalidMetadata")
    assert queue.send("GET", query="comp=metadata").header("x-ms-meta-a") is None
    once = {"x-ms-meta-a": "1,2"}
    queue.send("PUT", query=f"comp=metadata&{token}", headers=once, signer=anonymous).expect(204)


@pytest.mark.unverified
def test_unknown_parameters(queue: Queue) -> None:
    queue.put("a", "color=blue").expect(201)
    assert [message.text for message in queue.get("color=blue")] == ["a"]


def test_timeouts(queue: Queue) -> None:
    for seconds in ("1", "30", "90"):
        queue.send("GET", "/messages", f"timeout={seconds}").expect(200)
    assert queue.send("GET", "/messages", "timeout=x").code == (400, "InvalidQueryParameterValue")


def test_properties_of_queues_are_their_own(queues: Queues, client: Client) -> None:
    rule = (
        "<CorsRule><AllowedOrigins>http://queues.example</AllowedOrigins><AllowedMethods>GET</AllowedMethods>"
        "<AllowedHeaders /><ExposedHeaders /><MaxAgeInSeconds>5</MaxAgeInSeconds></CorsRule>"
    )
    body = "<StorageServiceProperties><Cors>{}</Cors></StorageServiceProperties>"
    queues.send("PUT", "/", PROPERTIES, body=body.format(rule)).expect(202)
    try:
        assert b"queues.example" in queues.send("GET", "/", PROPERTIES).expect(200).body
        assert b"queues.example" not in client.send("GET", "/", PROPERTIES).expect(200).body
    finally:
        queues.send("PUT", "/", PROPERTIES, body=body.format("")).expect(202)


def test_policies_come_back(queue: Queue) -> None:
    start, expiry = moment(-60), moment(60)
    policy = (
        f"<SignedIdentifier><Id>all</Id><AccessPolicy><Start>{start}</Start><Expiry>{expiry}</Expiry>"
        "<Permission>raup</Permission></AccessPolicy></SignedIdentifier>"
    )
    queue.send("PUT", query="comp=acl", body=f"<SignedIdentifiers>{policy}</SignedIdentifiers>").expect(204)
    text = xml_text(queue.send("GET", query="comp=acl").expect(200).body)
    assert f"<Expiry>{expiry[:-1]}.0000000Z</Expiry><Permission>raup</Permission>" in text
    assert queue.send("HEAD", query="comp=acl").status == 200
    queue.send("PUT", query="comp=acl", body="").expect(204)
    assert xml_text(queue.send("GET", query="comp=acl").expect(200).body).endswith("<SignedIdentifiers />")


def test_policies_of_a_missing_queue(missing_queue: Queue) -> None:
    assert missing_queue.send("GET", query="comp=acl").code == (404, "QueueNotFound")
    body = "<SignedIdentifiers />"
    assert missing_queue.send("PUT", query="comp=acl", body=body).code == (404, "QueueNotFound")


def test_expiration_beyond_the_calendar(queue: Queue) -> None:
    [put] = messages_of(queue.put("a", "messagettl=2147483647").expect(201))
    assert put.fields["ExpirationTime"].endswith(" GMT")
    assert int(put.fields["ExpirationTime"].split()[3]) > 2090


def test_the_default_timeout_of_a_get(queue: Queue) -> None:
    queue.put()
    answer = queue.send("GET", "/messages").expect(200)
    [got] = messages_of(answer)
    visible, now = (parsedate_to_datetime(each) for each in (got.fields["TimeNextVisible"], answer.required("Date")))
    assert timedelta(seconds=28) <= visible - now <= timedelta(seconds=31)


def test_a_peek_changes_nothing(queue: Queue) -> None:
    [put] = messages_of(queue.put())
    first, second = queue.peek(), queue.peek()
    assert first == second
    assert queue.delete(put).status == 204


def test_a_receipt_is_required(queue: Queue) -> None:
    [put] = messages_of(queue.put())
    for method, query in (("DELETE", ""), ("PUT", "visibilitytimeout=0"), ("PUT", put.receipt)):
        answer = queue.send(method, f"/messages/{put.id}", query)
        assert answer.code == (400, "MissingRequiredQueryParameter")
    assert queue.count == 1


def test_a_delete_after_the_timeout(queue: Queue) -> None:
    queue.put()
    [got] = queue.get()
    updated = queue.update(got, 0).expect(204)
    assert len(queue.peek()) == 1
    receipt = f"popreceipt={quote(updated.required('x-ms-popreceipt'), safe='')}"
    queue.send("DELETE", f"/messages/{got.id}", receipt).expect(204)


def test_a_receipt_of_another_message(queue: Queue) -> None:
    [first], [second] = messages_of(queue.put("a")), messages_of(queue.put("b"))
    answer = queue.send("DELETE", f"/messages/{first.id}", second.receipt)
    assert answer.rejection == (404, "MessageNotFound", "The specified message does not exist.")
    assert queue.count == 2


def test_a_receipt_of_a_message_of_the_same_get(queue: Queue) -> None:
    for text in "ab":
        queue.put(text)
    first, second = queue.get("numofmessages=2")
    for message, other in ((first, second), (second, first)):
        assert queue.send("DELETE", f"/messages/{message.id}", other.receipt).code == (404, "MessageNotFound")
    for message in (first, second):
        queue.send("DELETE", f"/messages/{message.id}", message.receipt).expect(204)


def test_the_declaration_is_optional(queue: Queue) -> None:
    for declaration in ("", '<?xml version="1.0" encoding="utf-8"?>', "\ufeff<?xml version='1.0'?>\n"):
        queue.send("POST", "/messages", body=(declaration + message_body("a"))).expect(201)
    assert queue.count == 3


@pytest.mark.unverified
def test_parameters_before_the_queue(missing_queue: Queue) -> None:
    assert missing_queue.send("GET", "/messages", "numofmessages=33").code == (400, "OutOfRangeQueryParameterValue")
    assert missing_queue.put("a", "messagettl=0").code == (400, "InvalidQueryParameterValue")


def test_a_version_of_the_future(queue: Queue) -> None:
    queue.put("a", version="2031-12-24").expect(201)
    assert [message.text for message in queue.get(version="2031-12-24")] == ["a"]


VERB = (405, "UnsupportedHttpVerb", "The resource doesn't support specified Http Verb.")


@pytest.mark.parametrize(
    ("method", "below", "query", "allowed"),
    [
        ("PUT", "/messages", "", "POST, GET, DELETE"),
        ("POST", "", "", "PUT, DELETE"),
        ("POST", "", "comp=metadata", "GET, HEAD, PUT"),
        ("DELETE", "", "comp=acl", "GET, HEAD, PUT"),
        ("GET", "/messages/x", "", "DELETE, PUT"),
        ("PATCH", "/messages", "", "POST, GET, DELETE"),
    ],
)
def test_verbs_that_a_resource_lacks(queue: Queue, method: str, below: str, query: str, allowed: str) -> None:
    """§17, and `blob-protocol.md` §44."""
    answer = queue.send(method, below, query, body=b"{}")
    assert (answer.rejection, answer.header("Allow")) == (VERB, allowed)


@pytest.mark.parametrize("below", ["", "/messages", "/messages/x"])
@pytest.mark.parametrize("part", ["properties", "stats"])
def test_components_of_the_account_elsewhere(queue: Queue, below: str, part: str) -> None:
    """§17, and `blob-protocol.md` §44."""
    for method in ("GET", "PUT"):
        answer = queue.send(method, below, f"restype=service&comp={part}", body=b"{}" if method == "PUT" else None)
        assert answer.rejection == VERB
        assert "DELETE" in answer.required("Allow").split(", ")


def test_no_content_length(queue: Queue) -> None:
    answer = queue.send("POST", "/messages", headers={"Content-Length": None, "Content-Type": "application/xml"})
    assert answer.rejection == (411, "MissingContentLengthHeader", "Content-Length HTTP header is missing.")
    assert b"<HeaderName>Content-Length</HeaderName>" in answer.body
