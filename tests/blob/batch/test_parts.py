"""Blob Batch: taken apart, and its answer to the byte."""

from email import message_from_bytes
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.blob.batch.parts import (
    PARTS_MAX,
    PartKind,
    PartProperties,
    PartRequest,
    batch_response,
    read_batch,
    write_part,
)
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.protocol.steps import finish

TYPE = "multipart/mixed; boundary=batch_357de4f7"


def part(number: int, line: str, *headers: str) -> str:
    own = f"Content-Type: application/http\r\nContent-ID: {number}\r\nContent-Transfer-Encoding: binary\r\n"
    fields = "".join(f"{header}\r\n" for header in headers)
    return f"--batch_357de4f7\r\n{own}\r\n{line}\r\n{fields}\r\n\r\n"


def batch(*parts: str) -> bytes:
    return ("".join(parts) + "--batch_357de4f7--\r\n").encode()


def read(body: bytes, content_type: str = TYPE) -> tuple[PartKind, list[PartRequest]]:
    return finish(read_batch(content_type, body))


def delete(number: int, name: str = "b") -> str:
    return part(
        number, f"DELETE /con/{name}? HTTP/1.1", "x-ms-date: d", "Content-Length: 0", "Authorization: SharedKey a:b"
    )


def test_deletions() -> None:
    kind, requests = read(batch(delete(0, "%C3%A9"), delete(1)))
    assert kind is PartKind.DELETE_BLOB
    assert [(each.path, each.query, each.head.content_id) for each in requests] == [
        ("/con/%C3%A9", "", "0"),
        ("/con/b", "", "1"),
    ]
    assert requests[0].head.headers == {"x-ms-date": "d", "authorization": "SharedKey a:b"}


def test_tiers() -> None:
    kind, (request,) = read(batch(part(0, "PUT /con/b?comp=tier&sig=x HTTP/1.1", "x-ms-access-tier: Cool")))
    assert kind is PartKind.SET_TIER
    assert request.query == "comp=tier&sig=x"
    assert request.head.headers["x-ms-access-tier"] == "Cool"


def test_an_absolute_url_stands_for_its_path() -> None:
    _, (request,) = read(batch(part(0, "DELETE http://host:1/acc/con/b?snapshot=x HTTP/1.1")))
    assert (request.path, request.query) == ("/acc/con/b", "snapshot=x")


def test_a_content_id_may_stand_in_the_request() -> None:
    body = "--x\nContent-Type: application/http\n\nDELETE /c/b HTTP/1.1\nContent-ID: 7\n\n--x--"
    _, (request,) = read(body.encode(), "multipart/mixed; boundary=x")
    assert request.head.content_id == "7"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        batch(),
        batch(delete(0), part(1, "PUT /con/b?comp=tier HTTP/1.1")),
        batch(part(0, "GET /con/b HTTP/1.1")),
        batch(part(0, "PUT /con/b HTTP/1.1")),
        batch(part(0, "DELETE /con/b?comp=tags HTTP/1.1")),
        batch(part(0, "DELETE con/b HTTP/1.1")),
        batch(part(0, "DELETE /con/b")),
        batch(part(0, "DELETE /con/b HTTP/1.1", "no header")),
        batch(delete(0).removesuffix("\r\n") + "body\r\n"),
        batch(*(delete(number) for number in range(PARTS_MAX + 1))),
    ],
)
def test_other_batches_are_rejected(body: bytes) -> None:
    with pytest.raises(ServiceError, match="InvalidInput"):
        read(body)


def test_a_batch_has_up_to_256_parts() -> None:
    assert len(read(batch(*(delete(number) for number in range(PARTS_MAX))))[1]) == PARTS_MAX
    with pytest.raises(ServiceError, match="InvalidInput"):
        read(batch(delete(0)), "application/json")


@given(st.binary(max_size=300) | st.text(max_size=200).map(lambda text: batch(part(0, text))))
def test_any_body_is_read_or_rejected(body: bytes) -> None:
    try:
        _, requests = read(body)
    except ServiceError as error:
        assert error.status == 400
    else:
        assert 1 <= len(requests) <= PARTS_MAX


FACTS = PartProperties("0", "id-0", "2018-11-09", "client")
ERROR = b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?><Error><Code>BlobNotFound</Code></Error>'


def answer() -> Response:
    done = Response(202, [("x-ms-delete-type-permanent", "true")])
    headers = [("Content-Type", "application/xml"), ("X-Content-Type-Options", "nosniff")]
    missing = Response(
        404, [*headers, ("x-ms-error-code", "BlobNotFound")], ERROR, reason="The specified blob does not exist."
    )
    parts = [
        write_part(done, FACTS),
        write_part(missing, FACTS._replace(content_id="1", request_id="id-1", client_id="")),
    ]
    return batch_response(parts, Random(1))


def test_the_answer_to_the_byte() -> None:
    response = answer()
    boundary = dict(response.headers)["Content-Type"].removeprefix("multipart/mixed; boundary=")
    assert boundary.startswith("batchresponse_")
    assert response.status == 202
    assert (
        response.body
        == (
            f"--{boundary}\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\n"
            "HTTP/1.1 202 Accepted\r\nx-ms-delete-type-permanent: true\r\nx-ms-request-id: id-0\r\n"
            "x-ms-version: 2018-11-09\r\nx-ms-client-request-id: client\r\nServer: Windows-Azure-Blob/1.0\r\n\r\n"
            f"--{boundary}\r\nContent-Type: application/http\r\nContent-ID: 1\r\n\r\n"
            "HTTP/1.1 404 The specified blob does not exist.\r\nx-ms-error-code: BlobNotFound\r\n"
            f"x-ms-request-id: id-1\r\nx-ms-version: 2018-11-09\r\nContent-Length: {len(ERROR)}\r\n"
            "Content-Type: application/xml\r\n"
            "Server: Windows-Azure-Blob/1.0\r\n\r\n"
        ).encode()
        + ERROR
        + f"\r\n--{boundary}--".encode()
    )


def test_the_answer_is_multipart_to_other_parsers() -> None:
    response = answer()
    message = message_from_bytes(b"Content-Type: " + response.headers[0][1].encode() + b"\r\n\r\n" + response.body)
    assert [each["Content-ID"] for each in message.get_payload()] == ["0", "1"]  # type: ignore[index]  # Parts.


@pytest.mark.parametrize("client_id", ["a\r\nb: c", "é", "x" * 1025])
def test_a_client_id_that_could_end_a_line_is_not_echoed(client_id: str) -> None:
    written = write_part(Response(202), FACTS._replace(client_id=client_id, content_id=None))
    assert b"client-request-id" not in written
    assert b"Content-ID" not in written
