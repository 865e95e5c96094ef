import re
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lazulite.protocol import multipart
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Response
from lazulite.protocol.multipart import (
    HEAD_BYTES_MAX,
    HEADERS_MAX,
    BatchBody,
    Part,
    boundary_of,
    change_set_response,
    encode_part,
    query_response,
    read_batch,
)
from lazulite.protocol.steps import Steps, finish

KEYED = re.compile(rb"[^?']+\\(K='([^'?]*)'\\)(?:\\?.*)?")
Reported = tuple[str, str, Mapping[str, str], str | None, bytes]
CHANGES = """--batch_b
Content-Type: multipart/mixed; boundary=changeset_c

--changeset_c
Content-Type: application/http
Content-Transfer-Encoding: binary

POST http://host/acct/T HTTP/1.1
Content-Type: application/json
Content-ID: 7
Accept: application/json;odata=nometadata

{"a":1}
--changeset_c
Content-Type: application/http
Content-Transfer-Encoding: binary
Content-ID: 8

DELETE http://host/acct/T(PartitionKey='p',RowKey='r') HTTP/1.1
If-Match: *


--changeset_c--

--batch_b--
"""
OUTER = "multipart/mixed; boundary=batch_b"
PARTS: list[Reported] = [
    (
        "POST",
        "http://host/acct/T",
        {"content-type": "application/json", "content-id": "7", "accept": "application/json;odata=nometadata"},
        "7",
        b'{"a":1}',
    ),
    ("DELETE", "http://host/acct/T(PartitionKey='p',RowKey='r')", {"if-match": "*"}, None, b""),
]

LINES = st.sampled_from([
    "A: b", "A:b", "A: b ", "Content-Length: 5",
    "content-length:7", "Content-Length: x", "Content-Length: 5\t", "A: \tc",
    "Content-ID: 1", "Content-ID: 2", "Content-ID: ", "content-id: 3", "Content-ID: a b", "Content-ID:  4",
    "If-Match: *", 'If-Match: W/"x"', "If-Match: é", "if-match: *", "If-Match: ", "If-Match: * ",
    "é: a", "A: é",
    "", " ", "A", "A : b", ": b", "POST /T HTTP/1.1", "A: b\rC: d", "{}",
])  # fmt: skip
URLS = st.sampled_from([
    "/T", "/T(K='a')", "/T(K='b.c')", "/T(K='')", "/T(K='d%20e')", "/T(K='f''g')", "/T(K='h')?i=j", "/U(K='a')",
    "/T(K='é')", "/T(K='a'", "/T('a')", f"/T(K='{'k' * 2000}')", "/T(K='a?b')", "/T?(K='a')",
])  # fmt: skip
LAST = ("Content-Length: 10", "Content-Length: 9", "Content-ID: 7", "Content-ID: 8", "If-Match: *", "If-Match: x")
ENDS = st.sampled_from(["\r\n"] * 20 + ["\n", "\r\r\n", "\r"])

DELIMITERS = [
    "--batch_b",
    "--c",
    "--",
    "\n",
    "\r\n",
    "\n--batch_b\n",
    "\n--c\r\n",
    "\n--c--\n--batch_b--",
    "-",
    "x",
    " ",
]
HEADS = ["\n", "Content-Type: multipart/mixed; boundary=c\r\n\r\n", "GET / HTTP/1.1", "\n\n"]


def reported(part: Part) -> Reported:
    """All that a part says."""
    head = part.own_head
    assert head.content_id == part.content_id
    return (head.method, head.url, head.headers, head.content_id, part.body)


def _read(content_type: str, body: bytes) -> Steps[BatchBody]:
    return read_batch(content_type, body, KEYED)


@pytest.mark.parametrize(
    "text",
    [
        CHANGES,
        CHANGES.replace("\n", "\r\n"),
        "preamble\n" + CHANGES,
        "\n\n" + CHANGES.replace("\n--changeset_c\n", "\n\n\n--changeset_c  \n"),
        CHANGES.replace("--batch_b--\n", ""),
        CHANGES.replace("--changeset_c--\n\n--batch_b--\n", ""),
        CHANGES.replace("--batch_b--\n", "--batch_b--"),
    ],
    ids=["lf", "crlf", "preamble", "blank-lines", "no-last-boundary", "no-last-boundaries", "no-last-line-end"],
)
def test_a_change_set_however_it_is_laid_out(text: str) -> None:
    batch = finish(_read(OUTER, text.encode()))
    assert batch.in_change_set
    assert list(map(reported, batch.parts)) == PARTS


def test_parts_share_what_stands_before_their_bodies() -> None:
    start, end = CHANGES.index("--changeset_c\n"), CHANGES.index("--changeset_c--")
    first = CHANGES[start : CHANGES.index("--changeset_c\n", start + 1)]
    twice = CHANGES[:end] + first.replace('{"a":1}', '{"a":2}') + CHANGES[end:]
    first_part, _, third = finish(_read(OUTER, twice.replace("\n", "\r\n").encode())).parts
    assert third.head is first_part.head
    assert (first_part.body, third.body) == (b'{"a":1}', b'{"a":2}')


def test_parts_share_a_head_whatever_their_content_id_and_content_length() -> None:
    parts = "".join(
        f"--c\r\nContent-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
        f"POST /T HTTP/1.1\r\nContent-Length: {10**number}\r\nB: c\r\n\r\n{{{number}}}\r\n"
        for number in range(3)
    )
    text = f"--batch_b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{parts}--c--\r\n--batch_b--"
    batch = finish(_read(OUTER, text.encode()))
    assert list(map(reported, batch.parts)) == [
        ("POST", "/T", {"b": "c"}, None, b"{%d}" % number) for number in range(3)
    ]
    assert len({id(part.head) for part in batch.parts}) == 1


@st.composite
def heads(draw: st.DrawFn, own: list[str], lines: list[str]) -> str:
    """Draw the two heads of a part and its body, mostly as clients send them."""
    first, second = [*own], [*lines]
    for some in (first, second):
        for index, line in enumerate(some):
            name = line.partition(":")[0]
            some[index] = draw(st.sampled_from([line, *(other for other in LAST if other.startswith(name)), line]))
        if draw(st.integers(0, 9)) == 0:
            some.append(draw(LINES))
    line = f"{draw(st.sampled_from(['POST', 'POST', 'PUT']))} {draw(URLS)} HTTP/1.1"
    words = ["Content-Type: application/http", *first, "", draw(st.sampled_from([line] * 9 + ["X"])), *second, ""]
    return "".join(line + draw(ENDS) for line in words) + "{}\r\n"


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """Draw a batch whose parts repeat each other but for a few values."""
    shared = [[*draw(st.lists(LINES, max_size=4)), *draw(st.lists(st.sampled_from(LAST), max_size=3))] for _ in "ab"]
    parts = draw(st.lists(heads(*shared), min_size=1, max_size=6))
    text = "\r\n".join([f"--c\r\n{part}" for part in parts])
    return f"--batch_b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{text}--c--\r\n--batch_b--".encode()


_PART = (
    b"--c\r\nContent-Type: application/http\r\n\r\nPOST /T HTTP/1.1\r\nContent-ID: 1\r\nContent-ID: \r\n\r\n{}\r\n\r\n"
)
_TWICE = b"--batch_b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" + 2 * _PART + b"--c--\r\n--batch_b--\r\n"
"""A field comes twice, once with a value and once without."""


@settings(max_examples=400)
@given(batches())
@example(_TWICE)
def test_parts_with_forms_say_what_they_say_alone(body: bytes) -> None:
    def read() -> list[Reported] | str:
        try:
            return [reported(part) for part in finish(_read(OUTER, body)).parts]
        except ServiceError as error:
            return error.code

    found = read()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(multipart, "_FORMS_MAX", 0)
        assert read() == found


@pytest.mark.parametrize(
    ("first", "second", "is_shared"),
    [
        ("Content-ID: 1", "Content-ID: 22", True),
        ("Content-ID: 1", "Content-ID: ", False),
        ("Content-ID: 1", "Content-ID:  2", False),
        ("Content-ID: 1", "Content-ID: 2 ", False),
        ("Content-ID: 1", "Content-ID: \x7f", False),
        ("Content-ID: 1", "Content-ID: 2\r\nA: b", False),
        ("Content-ID: 1\r\nContent-ID: 2", "Content-ID: 1\r\nContent-ID: 3", False),
        ("If-Match: a", "If-Match: " + "b" * 1023, True),
        ("If-Match: a", "If-Match: " + "b" * 1024, False),
        ("A: b", "A: c", False),
    ],
)
def test_a_part_shares_a_head_that_differs_in_usual_values(first: str, second: str, is_shared: bool) -> None:
    parts = "".join(f"--c\r\nA: b\r\n\r\nPOST /T HTTP/1.1\r\n{fields}\r\n\r\n{{}}\r\n" for fields in (first, second))
    body = f"--batch_b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{parts}--c--\r\n--batch_b--".encode()

    def read() -> list[Part] | str:
        try:
            return finish(_read(OUTER, body)).parts
        except ServiceError as error:
            return error.code

    found = read()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(multipart, "_FORMS_MAX", 0)
        alone = read()
    assert isinstance(found, str) == isinstance(alone, str)
    if isinstance(found, str) or isinstance(alone, str):
        assert (found, is_shared) == (alone, False)
        return
    assert list(map(reported, found)) == list(map(reported, alone))
    assert (found[1].head is found[0].head) == is_shared


def test_a_head_of_a_part_ends_at_its_first_blank_line_among_usual_ones() -> None:
    part = "A: b\n\nPOST /T HTTP/1.1\r\nB: c\r\n\r\nPOST /U HTTP/1.1\r\n\r\n{}"
    text = f"--batch_b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n--c\r\n{part}\r\n--c--\r\n--batch_b--"
    (read,) = finish(_read(OUTER, text.encode())).parts
    assert reported(read) == ("POST", "/T", {"b": "c"}, None, b"POST /U HTTP/1.1\r\n\r\n{}")


def test_content_length_counts_among_the_fields_of_a_head() -> None:
    for fields, accepted in ((HEADERS_MAX - 1, True), (HEADERS_MAX, False)):
        lines = "".join(f"A{number}: b\r\n" for number in range(fields))
        part = f"--c\r\nA: b\r\n\r\nPOST /T HTTP/1.1\r\n{lines}Content-Length: 2\r\n\r\n{{}}\r\n--c--"
        text = f"--batch_b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n{part}\r\n--batch_b--"
        if accepted:
            assert len(finish(_read(OUTER, text.encode())).parts) == 1
        else:
            with pytest.raises(ServiceError, match="InvalidInput"):
                finish(_read(OUTER, text.encode()))


@pytest.mark.parametrize("blank", ["\n\n", "\n\r\n", "\r\n\n", "\r\n\r\n", "\r\n\r\n\r\n"])
def test_a_head_ends_at_a_blank_line_however_that_is_spelled(blank: str) -> None:
    parts = "".join(f"--c\r\nA: b{blank}POST /T HTTP/1.1\r\nB: c{blank}{{{number}}}\r\n" for number in range(3))
    text = f"--batch_b\nContent-Type: multipart/mixed; boundary=c{blank}{parts}--c--\n--batch_b--"
    batch = finish(_read(OUTER, text.encode()))
    assert list(map(reported, batch.parts)) == [
        ("POST", "/T", {"b": "c"}, None, b"{%d}" % number) for number in range(3)
    ]


def test_a_query_stands_without_a_change_set() -> None:
    text = (
        "--batch_b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
        "GET /acct/T() HTTP/1.1\r\n\r\n\r\n--batch_b--"
    )
    batch = finish(_read(OUTER, text.encode()))
    assert not batch.in_change_set
    assert list(map(reported, batch.parts)) == [("GET", "/acct/T()", {}, None, b"")]


def test_an_empty_change_set_has_no_parts() -> None:
    text = "--batch_b\nContent-Type: multipart/mixed; boundary=c\n\n--c--\n--batch_b--"
    assert finish(_read(OUTER, text.encode())).parts == []


@pytest.mark.parametrize(
    ("content_type", "boundary"),
    [
        ("multipart/mixed; boundary=b", "b"),
        ('multipart/mixed;boundary="a b"', "a b"),
        ('multipart/mixed; charset="utf-8"; boundary=b', "b"),
        ("Multipart/Mixed; Boundary=b; x=y", "b"),
        ("multipart/mixed", None),
        ("application/json", None),
        ("", None),
    ],
)
def test_boundaries(content_type: str, boundary: str | None) -> None:
    assert boundary_of(content_type) == boundary


@pytest.mark.parametrize(
    ("content_type", "text"),
    [
        ("application/json", CHANGES),
        (OUTER, ""),
        (OUTER, "--batch_b--"),
        (OUTER, "--other\n\nGET / HTTP/1.1\n"),
        (OUTER, CHANGES.replace("--batch_b--\n", CHANGES)),
        (OUTER, "--batch_b\n\nnonsense\n\n--batch_b--"),
        (OUTER, "--batch_b\nno header\n\nGET / HTTP/1.1\n\n--batch_b--"),
        (OUTER, "--batch_b\nContent-Type: application/http\n\nGET /\n\n--batch_b--"),
        (OUTER, "--batch_bc\nContent-Type: application/http\n\nGET / HTTP/1.1\n\n--batch_b--"),
        (OUTER, "--batch_b\nA: b\n\nGET / HTTP/1.1\n" + "A: b\n" * 65 + "\n\n--batch_b--"),
        (OUTER, "--batch_b\nA: b\n\nGET /" + "x" * HEAD_BYTES_MAX + " HTTP/1.1\n\n\n--batch_b--"),
        (OUTER, "--batch_b\nA: b\n\nGET / HTTP/1.1\nAccept: " + "a," * HEAD_BYTES_MAX + "\n\n\n--batch_b--"),
        (OUTER, "--batch_b\nA: b\n\nGET / HTTP/1.1\nContent-ID: 1\rSet-Cookie: x\n\n\n--batch_b--"),
        (OUTER, "--batch_b\nA: b\n\nGET / HTTP/1.1\nContent-ID: 1\0x\n\n\n--batch_b--"),
        (OUTER, "--batch_b\nA: " + "b" * HEAD_BYTES_MAX + "\n\nGET / HTTP/1.1\n\n\n--batch_b--"),
    ],
)
def test_rejections(content_type: str, text: str) -> None:
    with pytest.raises(ServiceError) as caught:
        finish(_read(content_type, text.encode()))
    assert caught.value.code == "InvalidInput"


def test_blanks_before_a_control_character_are_looked_at_once() -> None:
    """Looked at again for each way to part them, they would take the better part of an hour."""
    head = "A:" + " " * (HEAD_BYTES_MAX - 100) + "\x01x"
    part = f"--c\nA: b\n\nGET / HTTP/1.1\n{head}\n\n\n"
    for _ in range(20):
        with pytest.raises(ServiceError, match="not valid"):
            finish(_read(OUTER, f"--batch_b\nContent-Type: multipart/mixed; boundary=c\n\n{part}".encode()))


@pytest.mark.parametrize(("sent", "echoed"), [("7", "7"), ("a b", "a b"), ("\u00e9", None), ("a\tb", None), ("", None)])
def test_only_what_any_client_can_read_is_echoed(sent: str, echoed: str | None) -> None:
    text = f"--batch_b\nA: b\n\nGET / HTTP/1.1\nContent-ID: {sent}\n\n\n--batch_b--"
    assert finish(_read(OUTER, text.encode())).parts[0].head.content_id == echoed


def test_no_more_is_cut_out_than_can_be_counted() -> None:
    part = "--c\nContent-Type: application/http\n\nDELETE /T HTTP/1.1\n\n"
    text = "--batch_b\nContent-Type: multipart/mixed; boundary=c\n\n" + part * 5000 + "--c--\n--batch_b--"
    assert len(finish(_read(OUTER, text.encode())).parts) == 102


@given(st.text(max_size=80), st.binary(max_size=200))
def test_rubbish_is_rejected_or_read(content_type: str, body: bytes) -> None:
    for text in (content_type, OUTER):
        try:
            finish(_read(text, b"--batch_b\n" + body))
        except ServiceError as error:
            assert error.code == "InvalidInput"


@given(st.lists(st.sampled_from(DELIMITERS + HEADS), max_size=20).map("".join))
def test_where_the_search_for_boundaries_pauses_makes_no_difference(text: str) -> None:
    def read(searched_bytes: int) -> str:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(multipart, "_SEARCHED_BYTES", searched_bytes)
            try:
                batch = finish(_read(OUTER, text.encode()))
            except ServiceError as error:
                return error.code
            return repr([(part.head.method, part.head.url, part.body) for part in batch.parts])

    assert read(13) == read(1 << 20)


@pytest.mark.parametrize("length", range(30))
def test_boundaries_are_found_wherever_the_search_pauses(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multipart, "_SEARCHED_BYTES", 23)
    text = f"{'x' * length}\n{CHANGES}"
    assert len(finish(_read(OUTER, text.encode())).parts) == len(finish(_read(OUTER, CHANGES.encode())).parts)


def test_a_step_searches_a_bounded_part_of_a_body() -> None:
    class Body(bytes):
        def find(self, *arguments: Any) -> int:
            _, start, end = arguments
            searched.append(end - start)
            return super().find(*arguments)

    searched: list[int] = []
    finish(multipart._cut(Body(b"\n" * 3_000_000), b"\n--b"))
    assert len(searched) >= 5
    assert max(searched) <= 1 << 20


def test_long_bodies_are_searched_and_read_in_steps() -> None:
    parts = b"--c\nContent-Type: application/http\n\nDELETE /T HTTP/1.1\n\n" * 50
    opening = b"--batch_b\nContent-Type: multipart/mixed; boundary=c\n\n"
    body = opening + parts + b"\n" * 2_000_000 + b"--c--\n--batch_b--"
    pauses = sum(1 for _ in _read(OUTER, body))
    assert pauses > 50


def test_blank_lines_before_a_head_are_bounded() -> None:
    opening = "--batch_b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n"
    body = f"{opening}{{}}Content-Type: application/http\n\nDELETE /T HTTP/1.1"
    assert len(finish(_read(OUTER, body.format("\n" * 1000).encode())).parts) == 1
    with pytest.raises(ServiceError, match="InvalidInput"):
        finish(_read(OUTER, body.format("\n" * (2 * HEAD_BYTES_MAX)).encode()))


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
