import re
from itertools import chain, zip_longest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.protocol.fields import CHANGING
from lazulite.protocol.message import Request
from lazulite.protocol.template import (
    BARRED,
    KEY,
    PLAIN_START,
    TAIL_BYTES_MAX,
    TextTemplate,
    cut,
    is_plain,
    mark,
    marked_request,
)

KEYED = re.compile(rb"([A-Z]+ /t/)(\w*)/(\w*)(?=[? ])", re.ASCII)
PATTERNS = (KEYED, PLAIN_START)
NAMES = st.sampled_from(sorted({"Accept", "Host", "If-Match", "X-Y", "X-Ms-Date", *CHANGING - BARRED}))
PLAIN = st.from_regex(rb"[!-~]([ -~]*[!-~])?", fullmatch=True)


def head(target: bytes = b"/t/a/b", **fields: bytes) -> bytes:
    lines = b"".join(b"%b: %b\r\n" % (name.replace("_", "-").encode(), value) for name, value in fields.items())
    return b"GET %b HTTP/1.1\r\n%b\r\n" % (target, lines)


@given(
    st.dictionaries(NAMES, PLAIN, max_size=5).filter(lambda found: len({name.lower() for name in found}) == len(found))
)
def test_constants_and_values_are_the_head(fields: dict[str, bytes]) -> None:
    data = head(**fields)
    parts = cut(data, PATTERNS, frozenset({"if-match"}))
    assert parts is not None
    tail = data[len(b"GET /t/a/b") :]
    values = parts.layout(tail)[1::2]
    names = [name.lower() for name in fields if name.lower() in CHANGING | {"if-match"}]
    if fields.get("content-length") == b"0":
        names.remove("content-length")
    assert parts.names == (KEY, KEY, *names)
    assert list(values) == [value for name, value in fields.items() if name.lower() in names]
    assert b"".join(filter(None, chain(*zip_longest(parts.constants, values)))) == tail
    assert parts.length == len(tail)


def test_fields_of_one_length_have_one_layout_and_other_constants() -> None:
    one, other = (cut(head(Host=host, Date=b"now"), PATTERNS, frozenset()) for host in (b"a", b"b"))
    assert one is not None
    assert other is not None
    assert one.layout is other.layout
    assert one.constants != other.constants


@pytest.mark.parametrize(
    "data",
    [
        head(b"/t/a/b/c()"),
        head(x_forwarded_for=b"10.0.0.1"),
        head(date=b"now "),
        head(x_y=b"x" * TAIL_BYTES_MAX),
    ],
)
def test_heads_without_a_template(data: bytes) -> None:
    assert cut(data, PATTERNS, frozenset()) is None


def test_a_request_has_marks_in_place_of_its_values() -> None:
    parts = cut(head(b"/t/a/b?q=1", date=b"now", accept=b"x"), PATTERNS, frozenset())
    assert parts is not None
    marked = marked_request(parts, Request("GET", "/t/a/b", "q=1", {"date": "now", "accept": "x"}))
    assert (marked.path, marked.query) == (f"/t/{mark(0)}/{mark(1)}", "q=1")
    assert marked.headers == {"date": mark(2), "accept": "x"}


def test_a_signature_covers_the_values_of_a_query_as_they_are_decoded() -> None:
    pattern = re.compile(rb"(PUT /t)/([^ ?]+)\?id=([^& ]+)")
    parts = cut(b"PUT /t/a%20b?id=MQ%3D&x=1 HTTP/1.1\r\ndate: now\r\n\r\n", (pattern,), frozenset())
    assert parts is not None
    marked = marked_request(parts, Request("PUT", "/t/a%20b", "id=MQ%3D&x=1", {"date": "now"}))
    text = TextTemplate(f"{marked.path}\n{marked.query}\n{marked.headers['date']}")
    assert text.of((b"a%20b", b"MQ%3D", b"%41")) == b"/t/a%20b\nid=MQ=&x=1\n%41"
    for value in (b"a%0Ab", b"%E9", b"%20a", b"a%", b"a+%41"):
        assert text.of((b"a", value, b"now")) in (None, b"/t/a\nid=a%&x=1\nnow")
    assert text.of((b"a", b"a+b", b"now")) == b"/t/a\nid=a+b&x=1\nnow"


@given(st.lists(PLAIN, min_size=1, max_size=4), st.lists(PLAIN, max_size=5))
def test_a_marked_text_has_the_values(values: list[bytes], constants: list[bytes]) -> None:
    indexes = [number % len(values) for number in range(len(constants))]
    text = "".join(f"{constant.decode()}{mark(index)}" for constant, index in zip(constants, indexes, strict=True))
    expected = b"".join(b"%b%b" % (constant, values[index]) for constant, index in zip(constants, indexes, strict=True))
    assert TextTemplate(text).of(values) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((b"", True), (b"a", True), (b"a b", True), (b" a", False), (b"a ", False), (b"a\tb", False)),
        *((b"a\r\nb", False), (b"a\n", False), (b"\x7f", False), (b"\xe9", False), (b"\0", False)),
    ],
)
def test_plain_values(value: bytes, expected: bool) -> None:
    assert is_plain(value) is expected
