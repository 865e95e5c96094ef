"""The short way to read a request: what it takes, it reads as llhttp and `head` do; it leaves them everything else."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from random import Random

import pytest

from lazulite.protocol.fields import CHANGING, Fields, spelling
from lazulite.protocol.message import Request
from lazulite.server.http import head as heads
from lazulite.server.http import whole_reader
from lazulite.server.http.parser import RequestParser
from lazulite.server.http.pending_request import PendingRequest
from lazulite.server.http.whole_reader import BYTES_MAX, WholeReader
from lazulite.server.limits import Limits

HEADS = 40_000
TAKEN_MIN = 2_000

_GOOD_HOSTS = ("h", "127.0.0.1:10002", "a.b")
_NAMES = (
    b"Host|host|Accept|X-Y|Content-Length|content-length|Connection|Transfer-Encoding|Expect|Upgrade|x-ms-version|"
    b"Proxy-Connection|Keep-Alive|TE|Trailer|Date|Authorization|x-ms-date|x-ms-client-request-id|Content-Type|x\xe9|"
    b"A\x00b|A b|"
).split(b"|")
_VALUES = (
    b"h|127.0.0.1:10002|a.b|5|0|3|05|+3|keep-alive|close|Keep-Alive|upgrade|chunked|100-continue|websocket|2019-02-02||"
    b" x |\tx\t|a\x00b|\xe9|a\nb|a\rb|x,y|3, 3|text/plain"
).split(b"|")
_TARGETS = (
    b"/|/a/b|/a(P='x')|/a%41?x=1&y|/a?|/a??b|/a?b?c|/a#f|*|http://h/x|//a|/\xe9|/a b|/a\"b|/a{b}|a||/a(RowKey='[x]')"
).split(b"|")
_CHANGING = (b"Date", b"Authorization", b"x-ms-date", b"x-ms-client-request-id")
_USUAL = (b"GET", b"POST", b"MERGE")
_METHODS = (*_USUAL, b"PUT", b"DELETE", b"HEAD", b"PATCH", b"OPTIONS", b"get", b"FOO", b"CONNECT")


@pytest.fixture(autouse=True)
def known_hosts_and_an_empty_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "_hosts", set(_GOOD_HOSTS))
    monkeypatch.setattr(whole_reader, "_fields", {})
    monkeypatch.setattr(whole_reader, "_heads", {})


def new_request(method: str, headers: Mapping[str, str]) -> Request:
    return Request(method, "", "", headers, b"", "http", "client", "id")


def read(data: bytes, limits: Limits | None = None) -> PendingRequest | None:
    return WholeReader(limits or Limits(), new_request).read(data)


def generated(count: int, seed: int) -> Iterator[bytes]:
    """Yield requests of usual and unusual parts, some with a byte replaced, inserted or dropped."""
    random = Random(seed)
    choice: Callable[..., bytes] = random.choice
    for _ in range(count):
        method = choice(_METHODS if random.random() < 0.3 else _USUAL)
        target = choice(_TARGETS if random.random() < 0.3 else _TARGETS[:6])
        version = choice((b"HTTP/1.1",) * 16 + (b"HTTP/1.0", b"HTTP/2.0", b"http/1.1", b"HTTP/1.1 "))
        fields = [(choice(_NAMES[:2]), choice(_VALUES[:3]))] if random.random() < 0.9 else []
        fields += [
            (choice(_NAMES), choice(_VALUES)) if random.random() < 0.5 else (b"x-%d" % number, choice(_VALUES[-2:]))
            for number in range(random.randrange(5))
        ]
        body = choice((b"", b"", b"abc", b"hello", b"\r\n"))
        if random.random() < 0.5:
            fields.append((b"Content-Length", b"%d" % len(body)))
        random.shuffle(fields)
        usual, unusual = (b": ",) * 20, (b":", b" : ", b":\t", b":  ")
        lines = [
            name + choice((*usual, *unusual, b"")) + value + choice((b"",) * 40 + (b" ", b"\n"))
            for name, value in fields
        ]
        if random.random() < 0.1:
            lines.append(choice(_CHANGING))
        data = b"\r\n".join([b"%s %s %s" % (method, target, version), *lines, b"", body])
        if random.random() < 0.2:
            at = random.randrange(len(data))
            data = data[:at] + bytes([random.randrange(256)]) + data[at + random.randrange(2) :]
        yield data


def facts(pending: PendingRequest) -> tuple[object, ...]:
    request = pending.request
    return (
        (request.method, request.path, request.query, dict(request.headers), request.scheme, request.client),
        (pending.length, pending.received_bytes, pending.kept_bytes, pending.bytes_max, pending.expects_continue),
        (pending.keep_alive, pending.http_1_0, pending.served, pending.complete, pending.error, pending.discards),
        pending.take(),
    )


def steady(pending: PendingRequest) -> tuple[bytes, ...]:
    assert isinstance(pending.request.headers, Fields)
    return pending.request.headers.steady


def test_both_readers_read_the_same() -> None:
    taken = 0
    for data in generated(HEADS, seed=1):
        short = read(data)
        if short is None:
            continue
        taken += 1
        queue: deque[PendingRequest] = deque()
        parser = RequestParser(Limits(), queue, new_request)
        parser.feed(data)
        assert parser.is_between, data
        assert len(queue) == 1, data
        again = read(data)  # Mostly by its cached head.
        assert again is not None
        assert steady(again) == steady(short), data
        assert facts(short) == facts(again) == facts(queue[0]), data
    assert taken >= TAKEN_MIN


USUAL = b"POST /a/T?x=1 HTTP/1.1\r\nHost: h\r\nDate: now\r\nX-Y:  v \r\nContent-Length: 2\r\n\r\n{}"


def test_a_usual_request() -> None:
    pending = read(USUAL)
    assert pending is not None
    assert (pending.request.method, pending.request.path, pending.request.query) == ("POST", "/a/T", "x=1")
    assert pending.request.headers == {"host": "h", "date": "now", "x-y": "v", "content-length": "2"}
    assert pending.take() == b"{}"


@pytest.mark.parametrize("chunked", [False, True])
def test_names_of_metadata_keep_their_spelling(chunked: bool) -> None:
    head = b"PUT /q HTTP/1.1\r\nHost: h\r\nX-Ms-Meta-Key: v\r\nX-Y: v\r\nx-ms-meta-b: v\r\n"
    data = head + (b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" if chunked else b"Content-Length: 0\r\n\r\n")
    for _ in range(2):  # The second time, the lines are cached.
        pending = read(data)
        assert (pending is None) is chunked
        if pending is None:
            queue: deque[PendingRequest] = deque()
            RequestParser(Limits(), queue, new_request).feed(data)
            pending = queue[0]
        headers = pending.request.headers
        assert {name: headers[name] for name in ("x-ms-meta-key", "x-y", "x-ms-meta-b")}.keys() <= headers.keys()
        assert [spelling(name) for name in headers][1:4] == ["X-Ms-Meta-Key", "x-y", "x-ms-meta-b"]


def test_steady_fields_are_all_but_the_changing_ones() -> None:
    names = ["host", "x-y", *sorted(CHANGING - {"content-length"})]
    lines = [f"{name}: {'h' if name == 'host' else 'v'}".encode() for name in names]
    pending = read(b"\r\n".join([b"GET / HTTP/1.1", *lines, b"", b""]))
    assert pending is not None
    fields = pending.request.headers
    assert isinstance(fields, Fields)
    assert fields.steady == (b"host: h", b"x-y: v")


UNUSUAL = {
    "half": USUAL[:-1],
    "two": USUAL * 2,
    "a host that is not known": USUAL.replace(b"Host: h", b"Host: other"),
    "no host": USUAL.replace(b"Host", b"Hosts"),
    "a field twice": USUAL.replace(b"Date: now", b"x-y: w"),
    "HTTP/1.0": USUAL.replace(b"1.1", b"1.0"),
    "another length": USUAL.replace(b"Length: 2", b"Length: 1"),
    "no length": USUAL.replace(b"Content-Length", b"Content-Size"),
    "a body of GET": USUAL.replace(b"POST", b"GET"),
    "a line that is none": USUAL.replace(b"Date: now", b"Date now"),
    "a changing name alone": USUAL.replace(b"Date: now", b"Date"),
    "close": USUAL.replace(b"Date: now", b"Connection: close"),
    "100 Continue": USUAL.replace(b"Date: now", b"Expect: 100-continue"),
    "chunks": USUAL.replace(b"Content-Length: 2", b"Transfer-Encoding: chunked"),
    "a length twice": USUAL.replace(b"Date: now", b"content-length: 2"),
    "a name of no bytes": USUAL.replace(b"Date: now", b": now"),
    "characters that are not ASCII": USUAL.replace(b"now", b"\xe9"),
    "no fields": b"GET / HTTP/1.1\r\n\r\n",
    "a preflight": b"OPTIONS / HTTP/1.1\r\nHost: h\r\n\r\n",
    "many bytes": USUAL.replace(b"now", b"x" * BYTES_MAX),
    "many fields": USUAL.replace(b"Date: now", b"\r\n".join(b"a%d: b" % number for number in range(1000))),
}


@pytest.mark.parametrize("data", UNUSUAL.values(), ids=UNUSUAL)
def test_an_unusual_request_is_left_to_llhttp(data: bytes) -> None:
    assert read(USUAL) is not None
    assert read(data) is None


def test_lines_of_a_request_that_is_left_to_llhttp_are_not_cached() -> None:
    lines = [b"x-%d: v" % number for number in range(Limits().header_count - 1)]
    assert read(b"\r\n".join([b"GET / HTTP/1.1", *lines, b"Host: unknown", b"", b""])) is None
    assert lines[0] not in whole_reader._fields
    assert read(b"\r\n".join([b"GET / HTTP/1.1", *lines, b"Host: h", b"", b""])) is not None
    assert lines[0] in whole_reader._fields


def test_cached_lines_are_bounded_and_changing_ones_are_not_cached() -> None:
    for number in range(0, 3000, 50):
        lines = b"\r\n".join(b"x-%d: v" % each for each in range(number, number + 50))
        assert read(b"GET / HTTP/1.1\r\nHost: h\r\nIf-Match: %d\r\n%s\r\n\r\n" % (number, lines)) is not None
    assert len(whole_reader._fields) <= 1024
    assert not any(line.startswith(b"If-Match") for line in whole_reader._fields)


SIGNED = b"GET / HTTP/1.1\r\nHost: h\r\nx-ms-date: now\r\nauthorization: %s\r\nX-Ms-Client-Request-Id: %d\r\n\r\n"


def test_a_cached_head_holds_no_field_that_differs_from_request_to_request() -> None:
    for number, value in enumerate((b"one", b"two", b"t\tabs", b"", b" blanks ")):
        for _ in range(2):
            pending = read(SIGNED % (value, number))
            assert pending is not None
            found = pending.request.headers
            assert found == {
                "host": "h",
                "x-ms-date": "now",
                "authorization": value.strip().decode(),
                "x-ms-client-request-id": str(number),
            }
    assert list(whole_reader._heads) == [b"\r\nHost: h\r\nx-ms-date: now\r\n"]
    assert list(whole_reader._heads.values()) == [{"host": "h", "x-ms-date": "now"}]


def test_a_repeated_head_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(USUAL) is not None
    monkeypatch.setattr(WholeReader, "_read_lines", None)
    assert read(USUAL) is not None
    assert read(USUAL.replace(b"Length: 2", b"Length: 3").replace(b"{}", b"{ }")) is not None


def test_cached_heads_are_bounded() -> None:
    for number in range(600):
        assert read(b"GET / HTTP/1.1\r\nHost: h\r\nDate: %d\r\n\r\n" % number) is not None
    for lines in ([b"Date: " + b"x" * 5000], [b"z-%d: v" % number for number in range(40)], [b"If-Match: x"]):
        assert read(b"\r\n".join([b"GET / HTTP/1.1\r\nHost: h", *lines, b"", b""])) is not None
    assert 0 < len(whole_reader._heads) <= 256
    assert max(map(len, whole_reader._heads)) <= 4096
    assert not any(b"If-Match" in lines for lines in whole_reader._heads)
    assert max(map(len, whole_reader._heads.values())) <= 32


def test_a_cached_head_has_too_many_fields_for_another_server() -> None:
    for data in (USUAL, SIGNED % (b"one", 1), b"GET / HTTP/1.1\r\nHost: h\r\nX-Y: v\r\n\r\n"):
        count = data.count(b": ")
        assert read(data) is not None
        assert read(data, Limits(header_count=count)) is not None
        assert read(data, Limits(header_count=count - 1)) is None


def test_too_many_fields_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_reader, "_read_field", None)
    lines = b"\r\n".join(b"y-%d: v" % number for number in range(Limits().header_count))
    assert read(b"GET / HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n" % lines) is None


def test_limits_of_head_and_body_hold() -> None:
    assert read(USUAL, Limits(headers_bytes=len(USUAL) - 1)) is None
    assert read(USUAL, Limits(body_bytes=1)) is None


def test_a_closed_reader_reads_nothing() -> None:
    reader = WholeReader(Limits(), new_request)
    reader.close()
    assert reader.read(USUAL) is None
