"""Put, get, peek, update, delete and clear messages."""

import base64
import hashlib
import re
from email.utils import parsedate_to_datetime

import pytest

from .queues import Message, Queue, message_body, messages_of

PUT = ["MessageId", "InsertionTime", "ExpirationTime", "PopReceipt", "TimeNextVisible"]
GOT = [*PUT, "DequeueCount", "MessageText"]
PEEKED = ["MessageId", "InsertionTime", "ExpirationTime", "DequeueCount", "MessageText"]
GUID = "00000000-0000-4000-8000-000000000000"
WELL_FORMED = "popreceipt=AgAAAAMAAAAAAAAA6VBHABZ73QE%3D"


def test_elements_of_a_message(queue: Queue) -> None:
    [put] = messages_of(queue.put("a").expect(201))
    assert list(put.fields) == PUT
    [peeked] = queue.peek()
    assert list(peeked.fields) == PEEKED
    assert peeked.fields["DequeueCount"] == "0"
    [got] = queue.get()
    assert list(got.fields) == GOT
    assert (got.id, got.text, got.fields["DequeueCount"]) == (put.id, "a", "1")
    for name in ("InsertionTime", "ExpirationTime", "TimeNextVisible"):
        assert got.fields[name].endswith(" GMT")
    inserted, expires = (parsedate_to_datetime(got.fields[name]) for name in ("InsertionTime", "ExpirationTime"))
    assert (expires - inserted).total_seconds() == 7 * 24 * 3600


def test_headers_of_messages(queue: Queue) -> None:
    answer = queue.send("GET", "/messages").expect(200)
    assert answer.header("Content-Type") == "application/xml"
    assert answer.header("Cache-Control") == "no-cache"
    assert answer.header("Server") == "Windows-Azure-Queue/1.0 Microsoft-HTTPAPI/2.0"
    assert answer.required("x-ms-request-id")[9:13] == "0003"
    assert answer.body == b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?><QueueMessagesList />'


def test_order_and_number_of_messages(queue: Queue) -> None:
    for number in range(5):
        queue.put(str(number)).expect(201)
    assert [message.text for message in queue.peek("numofmessages=3")] == ["0", "1", "2"]
    assert [message.text for message in queue.get("numofmessages=2")] == ["0", "1"]
    assert [message.text for message in queue.get("numofmessages=32")] == ["2", "3", "4"]
    assert queue.get() == []
    assert queue.count == 5


def test_a_message_that_is_got_is_invisible(queue: Queue) -> None:
    queue.put()
    [got] = queue.get()
    assert queue.get() == queue.peek() == []
    queue.update(got, 0).expect(204)
    [again] = queue.get()
    assert (again.id, again.fields["DequeueCount"]) == (got.id, "2")


def test_a_delayed_message_is_invisible(queue: Queue) -> None:
    [put] = messages_of(queue.put("a", "visibilitytimeout=600").expect(201))
    assert queue.get() == []
    assert queue.count == 1
    assert queue.delete(put).status == 204
    assert queue.count == 0


def test_the_receipt_of_a_put_deletes(queue: Queue) -> None:
    [put] = messages_of(queue.put())
    answer = queue.delete(put).expect(204)
    assert answer.header("Content-Length") in (None, "0")
    assert queue.get() == []


def test_an_update_sets_time_and_text(queue: Queue) -> None:
    queue.put("a")
    [got] = queue.get()
    answer = queue.update(got, 0, "b").expect(204)
    assert answer.required("x-ms-time-next-visible").endswith(" GMT")
    updated = Message({**got.fields, "PopReceipt": answer.required("x-ms-popreceipt")})
    [peeked] = queue.peek()
    assert (peeked.text, peeked.fields["DequeueCount"]) == ("b", "1")
    assert peeked.fields["InsertionTime"] == got.fields["InsertionTime"]
    assert queue.delete(got).rejection == (404, "MessageNotFound", "The specified message does not exist.")
    assert queue.delete(updated).status == 204


def test_an_update_without_a_body_keeps_the_text(queue: Queue) -> None:
    queue.put("a")
    [got] = queue.get()
    queue.update(got, 0).expect(204)
    assert [message.text for message in queue.get()] == ["a"]


def test_only_the_latest_receipt_counts(queue: Queue) -> None:
    [put] = messages_of(queue.put())
    [got] = queue.get()
    for answer in (queue.delete(put), queue.update(put, 1)):
        assert answer.code == (404, "MessageNotFound")
        assert answer.reason == "The specified message does not exist."
    assert queue.delete(got).status == 204
    for answer in (queue.delete(got), queue.update(got, 1)):
        assert answer.code == (404, "MessageNotFound")


@pytest.mark.parametrize("method", ["DELETE", "PUT"])
def test_order_of_checks(queue: Queue, missing_queue: Queue, method: str) -> None:
    timeout = "visibilitytimeout=1"
    for receipt in (WELL_FORMED, "popreceipt=x", "popreceipt=AgAAAAEAAACucgAAvMW8%2BdqjzAE%3D"):
        for id_ in ("x", GUID):
            answer = missing_queue.send(method, f"/messages/{id_}", f"{receipt}&{timeout}")
            assert answer.code == (404, "QueueNotFound")
    assert queue.send(method, f"/messages/{GUID}", f"{WELL_FORMED}&{timeout}").code == (404, "MessageNotFound")
    assert queue.send(method, "/messages/x", f"{WELL_FORMED}&{timeout}").code == (404, "MessageNotFound")
    assert queue.send(method, f"/messages/{GUID}", timeout).code == (400, "MissingRequiredQueryParameter")
    malformed = queue.send(method, f"/messages/{GUID}", f"popreceipt=x&{timeout}")
    assert malformed.code == (400, "InvalidQueryParameterValue")
    assert b"<QueryParameterName>popreceipt</QueryParameterName>" in malformed.body
    assert b"<Reason>Invalid pop receipt format</Reason>" in malformed.body


@pytest.mark.parametrize(("method", "below"), [("POST", "/messages"), ("GET", "/messages"), ("DELETE", "/messages")])
def test_a_missing_queue(missing_queue: Queue, method: str, below: str) -> None:
    body = message_body("a") if method == "POST" else None
    answer = missing_queue.send(method, below, body=body)
    assert answer.rejection == (404, "QueueNotFound", "The specified queue does not exist.")
    assert answer.reason == "The specified queue does not exist."
    assert answer.header("x-ms-error-code") == "QueueNotFound"


def test_clear(queue: Queue) -> None:
    for _ in range(3):
        queue.put()
    [got] = queue.get()
    queue.send("DELETE", "/messages").expect(204)
    assert queue.count == 0
    assert queue.get() == []
    assert queue.delete(got).code == (404, "MessageNotFound")
    queue.put("new").expect(201)
    assert [message.text for message in queue.get()] == ["new"]


def test_a_message_that_never_expires(queue: Queue) -> None:
    [put] = messages_of(queue.put("a", "messagettl=-1").expect(201))
    assert put.fields["ExpirationTime"] == "Fri, 31 Dec 9999 23:59:59 GMT"
    assert [message.text for message in queue.get()] == ["a"]
    [long] = messages_of(queue.put("a", "messagettl=1073741824").expect(201))
    assert long.fields["ExpirationTime"] != put.fields["ExpirationTime"]


@pytest.mark.parametrize(
    ("query", "code", "detail"),
    [
        ("visibilitytimeout=604801", "OutOfRangeQueryParameterValue", "<MaximumAllowed>604800</MaximumAllowed>"),
        ("visibilitytimeout=-1", "OutOfRangeQueryParameterValue", "<MinimumAllowed>0</MinimumAllowed>"),
        ("visibilitytimeout=x", "InvalidQueryParameterValue", "<QueryParameterValue>x</QueryParameterValue>"),
        ("messagettl=0", "InvalidQueryParameterValue", "or -1 to indicate an infinite TTL."),
        ("messagettl=-2", "InvalidQueryParameterValue", "or -1 to indicate an infinite TTL."),
        ("messagettl=" + "0" * 3000, "InvalidQueryParameterValue", "or -1 to indicate an infinite TTL."),
        ("messagettl=-" + "9" * 3000, "InvalidQueryParameterValue", "or -1 to indicate an infinite TTL."),
        ("messagettl=" + "9" * 3000, "OutOfRangeQueryParameterValue", "<MinimumAllowed>1</MinimumAllowed>"),
        ("messagettl=2147483648", "OutOfRangeQueryParameterValue", "<MaximumAllowed>2147483647</MaximumAllowed>"),
        ("messagettl=5&visibilitytimeout=5", "InvalidQueryParameterValue", "must be greater than visibilitytimeout"),
    ],
)
def test_parameters_of_a_put(queue: Queue, query: str, code: str, detail: str) -> None:
    answer = queue.put("a", query)
    assert answer.code == (400, code)
    assert detail in answer.body.decode()
    assert queue.count == 0


@pytest.mark.parametrize("peek", ["", "peekonly=true&"])
@pytest.mark.parametrize("number", ["0", "33", "100"])
def test_numbers_of_messages_out_of_range(queue: Queue, peek: str, number: str) -> None:
    answer = queue.send("GET", "/messages", f"{peek}numofmessages={number}")
    message = "One of the query parameters specified in the request URI is outside the permissible range."
    assert answer.rejection == (400, "OutOfRangeQueryParameterValue", message)
    details = (
        f"<QueryParameterName>numofmessages</QueryParameterName><QueryParameterValue>{number}</QueryParameterValue>"
        "<MinimumAllowed>1</MinimumAllowed><MaximumAllowed>32</MaximumAllowed></Error>"
    )
    assert answer.body.decode().endswith(details)


@pytest.mark.parametrize("seconds", ["0", "604801"])
def test_the_timeout_of_a_get_out_of_range(queue: Queue, seconds: str) -> None:
    answer = queue.send("GET", "/messages", f"visibilitytimeout={seconds}")
    assert answer.code == (400, "OutOfRangeQueryParameterValue")


def test_an_update_needs_a_timeout(queue: Queue) -> None:
    [put] = messages_of(queue.put("a", "messagettl=100"))
    answer = queue.send("PUT", f"/messages/{put.id}", put.receipt)
    assert answer.code == (400, "MissingRequiredQueryParameter")
    assert queue.update(put, 50).status == 204


def test_an_update_hides_a_message_beyond_its_expiration(queue: Queue) -> None:
    """Queue reference §17."""
    [put] = messages_of(queue.put("a", "messagettl=100"))
    assert queue.update(put, 101, "b").status == 204
    assert queue.peek() == []
    assert queue.count == 1


@pytest.mark.parametrize(
    "text", ["", " a\n b ", "&lt;&amp;&gt;&quot;", "<![CDATA[<a>]]>", "\u00fc\u20ac\U0001f600", "&#x9;&#xD;"]
)
def test_texts_come_back(queue: Queue, text: str) -> None:
    queue.put(text).expect(201)
    expected = {
        "&lt;&amp;&gt;&quot;": '<&>"',
        "<![CDATA[<a>]]>": "<a>",
        "&#x9;&#xD;": "\t\r",
    }.get(text, text)
    assert [message.text for message in queue.get()] == [expected]


@pytest.mark.parametrize(
    "body",
    [
        "",
        "x",
        "<QueueMessage></QueueMessage>",
        "<QueueMessage><Text>a</Text></QueueMessage>",
        "<Message><MessageText>a</MessageText></Message>",
        "<QueueMessage><MessageText>a</MessageText>",
        "<QueueMessage><MessageText>&#1;</MessageText></QueueMessage>",
        "<!DOCTYPE x [<!ENTITY a 'b'>]><QueueMessage><MessageText>&a;</MessageText></QueueMessage>",
        b"<QueueMessage><MessageText>\xff</MessageText></QueueMessage>",
    ],
)
def test_bodies_that_are_no_message(queue: Queue, body: str | bytes) -> None:
    answer = queue.send("POST", "/messages", body=body)
    assert answer.rejection == (400, "InvalidXmlDocument", "XML specified is not syntactically valid.")
    assert b"<Reason>" in answer.body
    assert queue.count == 0


@pytest.mark.parametrize("text", ["\x01", "&#1;", "\uffff"])
def test_characters_that_xml_forbids(queue: Queue, text: str) -> None:
    answer = queue.put(f"\n{text}")
    assert answer.code == (400, "InvalidXmlDocument")
    found = re.search(rb"<LineNumber>2</LineNumber><LinePosition>\d+</LinePosition><Reason>(.*)</Reason>", answer.body)
    assert found
    assert found[1] == b"Error parsing Xml content"
    assert queue.count == 0


@pytest.mark.parametrize("character", ["a", "\u00fc", "&amp;"])
def test_the_size_of_a_text(queue: Queue, character: str) -> None:
    longest = character * (65_536 // len(character.encode() if character != "&amp;" else b"&"))
    assert queue.put(longest).status == 201
    for body in (message_body(longest + "a"), message_body("a" * 600_000)):
        answer = queue.send("POST", "/messages", body=body)
        message = "The request body is too large and exceeds the maximum permissible limit."
        assert answer.rejection == (413, "RequestBodyTooLarge", message)
    assert queue.count == 1
    [got] = queue.get()
    assert queue.update(got, 0, longest + "a").code == (413, "RequestBodyTooLarge")
    assert queue.update(got, 0, longest).status == 204


def test_a_large_text_names_its_bound(queue: Queue) -> None:
    for bytes_, bound in (
        (65_537, 65_536),
        (90_000, 65_536),
        (131_000, 65_536),
        (150_000, 131_584),
        (600_000, 131_584),
    ):
        answer = queue.put("a" * bytes_)
        assert answer.code == (413, "RequestBodyTooLarge")
        assert f"<MaxLimit>{bound}</MaxLimit>".encode() in answer.body


@pytest.mark.parametrize(
    ("version", "dequeue_count", "put_content"),
    [("2009-07-17", False, False), ("2011-08-18", True, False), ("2016-05-31", True, True)],
)
def test_versions(queue: Queue, version: str, dequeue_count: bool, put_content: bool) -> None:
    answer = queue.put("a", version=version).expect(201)
    assert (answer.body != b"") is put_content
    [got] = queue.get(version=version)
    assert ("DequeueCount" in got.fields) is dequeue_count


def test_old_versions_know_less(queue: Queue) -> None:
    [put] = messages_of(queue.put())
    assert queue.put("a" * 8193, version="2009-09-19").code == (413, "RequestBodyTooLarge")
    assert queue.put("a", "visibilitytimeout=1", version="2009-09-19").status == 400
    assert queue.put("a", "messagettl=604801", version="2016-05-31").status == 400
    assert queue.send("GET", "/messages", "visibilitytimeout=7201", version="2009-09-19").status == 400
    answer = queue.send("PUT", f"/messages/{put.id}", f"{put.receipt}&visibilitytimeout=1", version="2009-09-19")
    assert answer.code == (400, "InvalidUri")


@pytest.mark.parametrize(
    ("method", "below"),
    [("PATCH", "/messages"), ("GET", f"/messages/{GUID}"), ("POST", f"/messages/{GUID}"), ("GET", ""), ("POST", "")],
)
def test_methods_that_are_none(queue: Queue, method: str, below: str) -> None:
    assert queue.send(method, below).status in (400, 405)


def test_below_a_queue_are_messages_only(queue: Queue) -> None:
    assert queue.send("GET", "/other").code == (400, "InvalidUri")
    assert queue.send("GET", f"/messages/{GUID}/x").code == (400, "InvalidUri")


def test_the_md5_of_a_request_is_that_of_its_body(queue: Queue) -> None:
    right = base64.b64encode(hashlib.md5(message_body("a").encode(), usedforsecurity=False).digest()).decode()
    for value, code in (("1B2M2Y8AsgTpgAmY7PhCfg==", "Md5Mismatch"), ("x", "InvalidMd5")):
        assert queue.put("a", headers={"Content-MD5": value}).code == (400, code)
    assert queue.count == 0
    answer = queue.put("a", headers={"Content-MD5": right}).expect(201)
    assert answer.header("Content-MD5") is None
