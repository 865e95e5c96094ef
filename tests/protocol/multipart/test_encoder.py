from random import Random

from lazulite.protocol.message import Response
from lazulite.protocol.multipart.encoder import change_set_response, encode_part, query_response


def test_the_layout_to_the_byte() -> None:
    parts = [
        encode_part(Response(204, [("ETag", 'W/"x"')]), "1"),
        encode_part(Response(201, [("A", "b")], b'{"a":1}'), None),
    ]
    response = change_set_response(parts, Random(1))
    content_type = dict(response.headers)["Content-Type"]
    batch = content_type.removeprefix("multipart/mixed; boundary=")
    head, _, rest = response.body.decode().partition("\r\n\r\n")
    changes = head.rpartition("boundary=")[2]
    assert batch.startswith("batchresponse_")
    assert changes.startswith("changesetresponse_")
    assert head == f"--{batch}\r\nContent-Type: multipart/mixed; boundary={changes}"
    part_head = f"--{changes}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    assert rest == (
        f'{part_head}HTTP/1.1 204 No Content\r\nContent-ID: 1\r\nETag: W/"x"\r\n\r\n\r\n'
        f'{part_head}HTTP/1.1 201 Created\r\nA: b\r\n\r\n{{"a":1}}\r\n'
        f"--{changes}--\r\n--{batch}--\r\n"
    )
    assert response.status == 202


def test_a_query_has_no_change_set_around_it() -> None:
    response = query_response(Response(200, [("A", "b")], b"{}"), None, Random(1))
    batch = dict(response.headers)["Content-Type"].removeprefix("multipart/mixed; boundary=")
    assert response.body.decode() == (
        f"--{batch}\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        f"HTTP/1.1 200 OK\r\nA: b\r\n\r\n{{}}\r\n--{batch}--\r\n"
    )
