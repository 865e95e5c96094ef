"""Reference §9, §9.3, §16: verb tunnelling, method errors and missing bodies."""

import base64
import hashlib

import pytest

from .client import Client
from .tables import Table, entity

TUNNELLED = [("PUT", 204), ("MERGE", 204), ("PATCH", 204), ("DELETE", 204), ("GET", 200)]


@pytest.mark.parametrize(("method", "status"), TUNNELLED)
@pytest.mark.parametrize("header", ["X-HTTP-Method", "x-http-method"])
def test_a_method_in_a_header(table: Table, method: str, status: int, header: str) -> None:
    table.add(entity("p", "r", A=1))
    body = '{"B":2}' if method in {"PUT", "MERGE", "PATCH"} else None
    condition = None if method == "GET" else "*"
    headers = {header: method, "If-Match": condition}
    table.client.send("POST", table.at("p", "r"), headers=headers, body=body).expect(status)
    row = table.get("p", "r")
    assert row.status == (404 if method == "DELETE" else 200)
    if body:
        assert ("A" in row.json(), row.json()["B"]) == (method != "PUT", 2)


def test_a_tunnelled_upsert(table: Table) -> None:
    table.client.send("POST", table.at("p", "r"), headers={"X-HTTP-Method": "MERGE"}, body='{"B":2}').expect(204)
    assert table.get("p", "r").json()["B"] == 2


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "MERGE"])
def test_the_header_needs_post(table: Table, method: str) -> None:
    table.add(entity("p", "r"))
    body = "{}" if method in {"PUT", "MERGE"} else None
    answer = table.client.send(method, table.at("p", "r"), headers={"X-HTTP-Method": "MERGE"}, body=body)
    assert answer.code == (400, "XMethodNotUsingPost")


@pytest.mark.parametrize("value", ["FETCH", "OPTIONS", "x y", ""])
def test_the_header_has_few_values(table: Table, value: str) -> None:
    answer = table.client.send("POST", table.at("p", "r"), headers={"X-HTTP-Method": value}, body="{}")
    assert answer.code == (400, "XMethodIncorrectValue")


def test_the_header_comes_once(table: Table) -> None:
    headers = {"X-HTTP-Method": ("MERGE", "MERGE")}
    answer = table.client.send("POST", table.at("p", "r"), headers=headers, body="{}")
    assert answer.code == (400, "XMethodIncorrectCount")
    assert table.page().rows == []


UNSUPPORTED = [
    ("PUT", "/Tables"),
    ("DELETE", "/Tables"),
    ("MERGE", "/Tables"),
    ("PATCH", "/Tables"),
    ("PUT", "/Tables('{name}')"),
    ("MERGE", "/Tables('{name}')"),
    ("POST", "/Tables('{name}')"),
    ("PUT", "/{name}"),
    ("DELETE", "/{name}"),
    ("MERGE", "/{name}"),
    ("PATCH", "/{name}()"),
    ("GET", "/$batch"),
    ("PUT", "/$batch"),
    ("DELETE", "/$batch"),
]


@pytest.mark.parametrize(("method", "path"), UNSUPPORTED)
def test_unsupported_pairs(table: Table, method: str, path: str) -> None:
    body = None if method in {"GET", "DELETE"} else "{}"
    answer = table.client.send(method, path.format(name=table.name), body=body)
    assert answer.status in {400, 405}
    assert answer.rejection.code in {"MethodNotAllowed", "UnsupportedHttpVerb", "InvalidInput", "InvalidUri"}


@pytest.mark.parametrize(("method", "path"), [("PUT", "/Tables"), ("DELETE", "/{name}"), ("PUT", "/{name}")])
def test_unsupported_pairs_are_405(table: Table, method: str, path: str) -> None:
    answer = table.client.send(method, path.format(name=table.name), body=None if method == "DELETE" else "{}")
    message = "The requested method is not allowed on the specified resource."
    assert answer.rejection == (405, answer.rejection.code, message)
    assert answer.rejection.code in {"MethodNotAllowed", "UnsupportedHttpVerb"}
    assert "GET" in answer.required("Allow")


def test_post_to_an_entity(table: Table) -> None:
    answer = table.client.send("POST", table.at("p", "r"), body='{"PartitionKey":"p","RowKey":"r"}')
    assert answer.status in {400, 405}
    assert table.page().rows == []


@pytest.mark.parametrize("method", ["FOO", "TRACE", "LINK", "PROPFIND"])
def test_unknown_methods_are_rejected(client: Client, method: str) -> None:
    answer = client.send(method, "/Tables")
    assert answer.status in {400, 405, 501}
    if answer.status == 405:
        assert {"GET", "POST"} <= set(answer.required("Allow").split(", "))
    if answer.body:
        assert answer.rejection.code in {"InvalidHttpVerb", "UnsupportedHttpVerb", "MethodNotAllowed", "NotImplemented"}
    client.send("GET", "/Tables", "$top=1").expect(200)


BODIES = [("POST", "/Tables"), ("POST", "/{name}")]
BODIES += [(method, "/{name}(PartitionKey='p',RowKey='r')") for method in ("PUT", "MERGE", "PATCH")]


@pytest.mark.parametrize(("method", "path"), BODIES)
def test_empty_body_is_rejected(table: Table, method: str, path: str) -> None:
    answer = table.client.send(method, path.format(name=table.name), body="")
    assert answer.code == (400, "InvalidInput")


@pytest.mark.parametrize(("method", "path"), BODIES)
def test_no_content_length(table: Table, method: str, path: str) -> None:
    headers = {"Content-Length": None, "Content-Type": "application/json"}
    answer = table.client.send(method, path.format(name=table.name), headers=headers)
    assert answer.rejection == (411, "MissingContentLengthHeader", "The Content-Length header was not specified.")


def test_chunked_body_is_accepted(table: Table) -> None:
    text = '{"PartitionKey":"p","RowKey":"r","A":1}'
    chunked = "".join(f"{len(part):x}\r\n{part}\r\n" for part in (text[:7], text[7:])) + "0\r\n\r\n"
    headers = {"Content-Length": None, "Transfer-Encoding": "chunked"}
    table.client.send("POST", table.path, headers=headers, body=chunked).expect(201)
    assert table.get("p", "r").json()["A"] == 1


@pytest.mark.unverified
def test_a_delete_may_have_no_content_length(table: Table) -> None:
    table.add(entity("p", "r"))
    table.client.send("DELETE", table.at("p", "r"), headers={"Content-Length": None, "If-Match": "*"}).expect(204)


@pytest.mark.unverified
def test_head_on_an_entity_does_not_break(table: Table) -> None:
    table.add(entity("p", "r"))
    answer = table.client.send("HEAD", table.at("p", "r"))
    assert answer.body == b""
    assert answer.status < 500
    table.get("p", "r").expect(200)


MD5 = [("1B2M2Y8AsgTpgAmY7PhCfg==", "Md5Mismatch"), ("nonsense", "InvalidMd5"), ("AAAA", "InvalidMd5")]


@pytest.mark.parametrize(("value", "code"), MD5)
def test_content_md5_is_checked(table: Table, value: str, code: str) -> None:
    answer = table.insert(entity("p", "r"), Content_MD5=value)
    assert answer.code == (400, code)
    assert table.page().rows == []


def test_content_md5_that_is_right(table: Table) -> None:
    text = '{"PartitionKey":"p","RowKey":"r"}'
    digest = base64.b64encode(hashlib.md5(text.encode()).digest()).decode()
    table.insert(text, Content_MD5=digest).expect(201)
