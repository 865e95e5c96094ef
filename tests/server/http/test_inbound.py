"""What a connection keeps of its input, and that it lets go of it.

What `WholeMessageReader` takes, it reads as llhttp and `head` do; it leaves them everything else.
"""

import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from random import Random

import pytest

from lazulite.protocol.fields import CHANGING, Fields, spelling
from lazulite.protocol.message import Request
from lazulite.server.admission.accounts import CostAccount
from lazulite.server.http import head as heads
from lazulite.server.http import inbound as inbound_module
from lazulite.server.http.inbound import BYTES_MAX, InboundBuffer, WholeMessageReader
from lazulite.server.http.parser import RequestParser
from lazulite.server.http.pending_request import PendingRequest
from lazulite.server.limits import Limits
from tests.server.wire import Wire

HEAD = b"GET /t HTTP/1.1\r\nHost: a\r\n\r\n"
HALF = b"POST /t HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello"

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

USUAL = b"POST /a/T?x=1 HTTP/1.1\r\nHost: h\r\nDate: now\r\nX-Y:  v \r\nContent-Length: 2\r\n\r\n{}"

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

SIGNED = b"GET / HTTP/1.1\r\nHost: h\r\nx-ms-date: now\r\nauthorization: %s\r\nX-Ms-Client-Request-Id: %d\r\n\r\n"


@pytest.fixture(name="inbound")
def _inbound(wire: Wire) -> InboundBuffer:
    return InboundBuffer(wire.state.limits, lambda method, headers: Request(method, "", headers=headers), CostAccount())


def _read_all(inbound: InboundBuffer, data: bytes) -> None:
    inbound.receive(data)
    while inbound.read_on():
        pass


async def test_requests_come_out_however_the_input_is_cut(inbound: InboundBuffer) -> None:
    for byte in HEAD + HEAD:
        assert inbound.has_room
        _read_all(inbound, bytes([byte]))
    assert [incoming.complete for incoming in inbound.queue] == [True, True]


async def test_reading_stops_where_requests_wait_and_goes_on_when_they_are_taken(
    wire: Wire, inbound: InboundBuffer
) -> None:
    count = 5000
    _read_all(inbound, HEAD * count)
    assert not inbound.has_room
    assert wire.state.limits.pipelined_requests <= len(inbound.queue) < 1000
    taken = 0
    while inbound.queue:
        inbound.queue.popleft()
        taken += 1
        inbound.read_on()
    assert taken == count
    assert inbound.has_room


async def test_input_that_comes_while_some_is_unread_stands_behind_it(inbound: InboundBuffer) -> None:
    inbound.receive(HEAD[:9])
    assert not inbound.has_room
    _read_all(inbound, HEAD[9:])
    assert [incoming.request.path for incoming in inbound.queue] == ["/t"]


async def test_half_a_request_is_dropped_at_the_end_of_the_input(inbound: InboundBuffer) -> None:
    _read_all(inbound, HEAD + HALF)
    assert inbound.unaccepted_bytes == 5
    inbound.end()
    assert [incoming.request.method for incoming in inbound.queue] == ["GET"]
    assert inbound.unaccepted_bytes == 0


async def test_nothing_is_kept_after_the_close(inbound: InboundBuffer) -> None:
    _read_all(inbound, HALF)
    inbound.receive(b"rest")
    assert inbound.unaccepted_bytes == len(b"hellorest")
    inbound.close()
    assert not inbound.queue
    assert inbound.held_bytes == inbound.unaccepted_bytes == 0
    assert not inbound.read_on()
    assert inbound.has_room, "what had come is forgotten"


async def test_a_body_is_read_no_further_than_a_slice_before_it_is_accepted(inbound: InboundBuffer) -> None:
    _read_all(inbound, b"POST /t HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n" + b"x" * 100_000)
    [incoming] = inbound.queue
    assert not inbound.has_room
    assert incoming.received_bytes < 33_000
    assert inbound.unaccepted_bytes > 100_000
    incoming.accepted = True
    _read_all(inbound, b"")
    assert incoming.complete
    assert inbound.has_room


async def test_memory_of_heads_is_counted_with_what_a_field_costs(inbound: InboundBuffer) -> None:
    fields = b"".join(b"%d:\r\n" % number for number in range(50))
    _read_all(inbound, b"GET /t HTTP/1.1\r\nHost: a\r\n" + fields)
    half_bytes = inbound.held_bytes
    assert half_bytes > 50 * 200, "far more than the bytes of the wire"
    _read_all(inbound, b"\r\n" + HEAD * 3 + HEAD[:10])
    assert inbound.held_bytes > half_bytes
    inbound.queue.clear()
    assert inbound.held_bytes < 1000


async def test_a_body_in_small_fragments_takes_hardly_more_memory_than_its_bytes(inbound: InboundBuffer) -> None:
    charge_fragments, part = 100_000, b"2\r\nab\r\n"
    _read_all(inbound, b"POST /t HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + part)
    inbound.queue[0].accepted = True
    tracemalloc.start()
    try:
        for _ in range(charge_fragments // 1000):
            _read_all(inbound, part * 1000)
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held_bytes < 2 * 2 * charge_fragments
    _read_all(inbound, b"3\r\nend\r\n" + b"%x\r\n" % 5000 + b"x" * 5000 + b"\r\n0\r\n\r\n")
    [incoming] = inbound.queue
    assert incoming.take() == b"ab" * (charge_fragments + 1) + b"end" + b"x" * 5000


@pytest.fixture(autouse=True)
def known_hosts_and_an_empty_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heads, "_hosts", set(_GOOD_HOSTS))
    monkeypatch.setattr(inbound_module, "_fields", {})
    monkeypatch.setattr(inbound_module, "_heads", {})


def new_request(method: str, headers: Mapping[str, str]) -> Request:
    return Request(method, "", "", headers, b"", "http", "client", "id")


def read(data: bytes, limits: Limits | None = None) -> PendingRequest | None:
    reader = WholeMessageReader(limits or Limits(), new_request)
    head = reader.read_head(data)
    return None if head is None else reader.read(data, head)


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


@pytest.mark.parametrize("data", UNUSUAL.values(), ids=UNUSUAL)
def test_an_unusual_request_is_left_to_llhttp(data: bytes) -> None:
    assert read(USUAL) is not None
    assert read(data) is None


def test_lines_of_a_request_that_is_left_to_llhttp_are_not_cached() -> None:
    lines = [b"x-%d: v" % number for number in range(Limits().header_count - 1)]
    assert read(b"\r\n".join([b"GET / HTTP/1.1", *lines, b"Host: unknown", b"", b""])) is None
    assert lines[0] not in inbound_module._fields
    assert read(b"\r\n".join([b"GET / HTTP/1.1", *lines, b"Host: h", b"", b""])) is not None
    assert lines[0] in inbound_module._fields


def test_cached_lines_are_bounded_and_changing_ones_are_not_cached() -> None:
    for number in range(0, 3000, 50):
        lines = b"\r\n".join(b"x-%d: v" % each for each in range(number, number + 50))
        assert read(b"GET / HTTP/1.1\r\nHost: h\r\nIf-Match: %d\r\n%s\r\n\r\n" % (number, lines)) is not None
    assert len(inbound_module._fields) <= 1024
    assert not any(line.startswith(b"If-Match") for line in inbound_module._fields)


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
    assert list(inbound_module._heads) == [b"\r\nHost: h\r\nx-ms-date: now\r\n"]
    assert list(inbound_module._heads.values()) == [{"host": "h", "x-ms-date": "now"}]


def test_a_repeated_head_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read(USUAL) is not None
    monkeypatch.setattr(WholeMessageReader, "_read_lines", None)
    assert read(USUAL) is not None
    assert read(USUAL.replace(b"Length: 2", b"Length: 3").replace(b"{}", b"{ }")) is not None


def test_cached_heads_are_bounded() -> None:
    for number in range(600):
        assert read(b"GET / HTTP/1.1\r\nHost: h\r\nDate: %d\r\n\r\n" % number) is not None
    for lines in ([b"Date: " + b"x" * 5000], [b"z-%d: v" % number for number in range(40)], [b"If-Match: x"]):
        assert read(b"\r\n".join([b"GET / HTTP/1.1\r\nHost: h", *lines, b"", b""])) is not None
    assert 0 < len(inbound_module._heads) <= 256
    assert max(map(len, inbound_module._heads)) <= 4096
    assert not any(b"If-Match" in lines for lines in inbound_module._heads)
    assert max(map(len, inbound_module._heads.values())) <= 32


def test_a_cached_head_has_too_many_fields_for_another_server() -> None:
    for data in (USUAL, SIGNED % (b"one", 1), b"GET / HTTP/1.1\r\nHost: h\r\nX-Y: v\r\n\r\n"):
        count = data.count(b": ")
        assert read(data) is not None
        assert read(data, Limits(header_count=count)) is not None
        assert read(data, Limits(header_count=count - 1)) is None


def test_too_many_fields_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbound_module, "_read_field", None)
    lines = b"\r\n".join(b"y-%d: v" % number for number in range(Limits().header_count))
    assert read(b"GET / HTTP/1.1\r\nHost: h\r\n%s\r\n\r\n" % lines) is None


def test_limits_of_head_and_body_hold() -> None:
    assert read(USUAL, Limits(headers_bytes=len(USUAL) - 1)) is None
    assert read(USUAL, Limits(body_bytes=1)) is None


def test_a_closed_reader_reads_nothing() -> None:
    reader = WholeMessageReader(Limits(), new_request)
    head = reader.read_head(USUAL)
    assert head is not None
    reader.close()
    assert reader.read(USUAL, head) is None
