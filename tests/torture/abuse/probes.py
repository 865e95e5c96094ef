"""What hostile clients send: requests that no good client would."""

import gzip
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from benchmarks.entities import PARTITION_ROWS, TRANSACTION_ROWS, entity
from benchmarks.requests import TABLE, Requests

_MIB = 1 << 20


def stored_keys(count: int) -> list[tuple[str, str]]:
    """The keys of the rows that there are."""
    return [(f"r{number // PARTITION_ROWS:04d}", f"{number % PARTITION_ROWS:06d}") for number in range(count)]


def preload(requests: Requests, count: int) -> list[bytes]:
    """The transactions that store them."""
    entities = [entity(*key) for key in stored_keys(count)]
    starts = range(0, count, TRANSACTION_ROWS)
    return [requests.transaction(entities[start : start + TRANSACTION_ROWS]) for start in starts]


def insert(requests: Requests, body: bytes, **headers: str) -> bytes:
    """A request to insert whatever is in the body."""
    return requests.raw(
        "POST", TABLE, body=body, **({"Content_Type": "application/json", "Prefer": "return-no-content"} | headers)
    )


def query(requests: Requests, text: str) -> bytes:
    """A query of the whole table."""
    return requests.raw("GET", f"{TABLE}()", f"$filter={quote(text)}")


def without_signature(requests: Requests, method: str, *lines: str, query: str = "") -> bytes:
    """A request without good credentials."""
    path = requests.raw("GET", TABLE).partition(b"?")[0]
    head = path.replace(b"GET", method.encode(), 1) + f"()?{query} HTTP/1.1\r\nHost: localhost\r\n".encode()
    return head + "".join(f"{line}\r\n" for line in ("x-ms-version: 2019-02-02", *lines)).encode() + b"\r\n"


def oversized(requests: Requests) -> list[bytes]:
    many: dict[str, Any] = {f"X_{number}": "a" for number in range(200)}
    return [
        requests.raw("GET", f"{TABLE}()", "x=" + "a" * 70_000),
        requests.raw("GET", f"{TABLE}()", X_Long="a" * 70_000),
        requests.raw("GET", f"{TABLE}()", **many),
    ]


def endless(requests: Requests) -> list[bytes]:
    head = insert(requests, b"", Transfer_Encoding="chunked")
    return [head + b"100000\r\n" + b"a" * _MIB + b"\r\n" + (b"100000\r\n" + b"a" * _MIB + b"\r\n") * 80]


def small_fragments(requests: Requests) -> list[bytes]:
    """Chunks that are hardly more than their framing."""
    head = insert(requests, b"", Transfer_Encoding="chunked")
    return [head + b"2\r\naa\r\n" * 100_000 + b"0\r\n\r\n"]


def deep(requests: Requests) -> list[bytes]:
    return [
        insert(requests, b'{"PartitionKey":"a","RowKey":"b","P":' + b"[" * 500_000),
        insert(requests, b"[" * 500_000),
    ]


def batches(count: int) -> Callable[[Requests], list[bytes]]:
    def make(requests: Requests) -> list[bytes]:
        return [requests.transaction([entity("x", f"{number:06d}") for number in range(count)])]

    return make


def bombs(requests: Requests) -> list[bytes]:
    bomb = gzip.compress(bytes(64 * _MIB), 1)
    return [insert(requests, bomb, Content_Encoding=coding) for coding in ("gzip", "deflate", "br")]


def terms(count: int) -> Callable[[Requests], list[bytes]]:
    return lambda requests: [query(requests, " or ".join(f"Count eq {number}L" for number in range(count)))]


def full_pages(requests: Requests) -> list[bytes]:
    """Whole partitions."""
    return [query(requests, f"PartitionKey eq 'r{number:04d}'") for number in range(4)]


def planned(requests: Requests) -> list[bytes]:
    """Filters that take long to plan, and find nothing."""
    terms = (f"(PartitionKey gt 'p{n:03d}' and RowKey ne 'r{n:03d}' and PartitionKey lt 'p')" for n in range(99))
    return [query(requests, " or ".join(terms))]


def smuggled(requests: Requests) -> list[bytes]:
    get = requests.raw("GET", TABLE)
    host, post = b"Host: localhost\r\n", b"POST / HTTP/1.1\r\nHost: localhost\r\n"
    return [
        probe + get
        for probe in (
            b"GET / HTTP/1.1\nHost: localhost\n\n",
            b"GET / HTTP/1.1\r\n" + host + b"X: a\r\n b\r\n\r\n",
            b"GET / HTTP/1.1\r\n" + host + b"X : a\r\n\r\n",
            post + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            post + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\na",
            post + b"Content-Length: +1\r\n\r\na",
            post + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
            post + b"Transfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n",
        )
    ]


def entities(requests: Requests) -> list[bytes]:
    laughs = b"".join(b'<!ENTITY l%d "%s">' % (n + 1, b"&l%d;" % n * 10) for n in range(9))
    document = (
        b'<!DOCTYPE a [<!ENTITY l0 "ha">' + laughs + b"]><StorageServiceProperties>&l9;</StorageServiceProperties>"
    )
    outside = b'<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><StorageServiceProperties>&x;</StorageServiceProperties>'
    wide = b"<StorageServiceProperties>" + b"<a/>" * 15_000 + b"</StorageServiceProperties>"
    return [
        requests.raw("PUT", "", "restype=service&comp=properties", body=body, Content_Type="application/xml")
        for body in (document, outside, wide)
    ]


def unauthenticated_body(requests: Requests) -> list[bytes]:
    """A body of the largest size but its last byte, with a wrong signature."""
    return [insert(requests, b"a" * (4 * _MIB)).replace(b"sig=", b"sig=AAAA", 1)[:-1]]


def half_head(_: Requests) -> list[bytes]:
    """A head of the largest size that never ends."""
    return [b"GET /" + b"a" * 60_000 + b" HTTP/1.1\r\nHost: a\r\nX: " + b"b" * 60_000]


def wrong(requests: Requests) -> list[bytes]:
    good = requests.raw("GET", f"{TABLE}(PartitionKey='r0000',RowKey='000000')")
    return [
        good.replace(b"sig=", b"sig=AAAA", 1),
        without_signature(requests, "GET", f"Authorization: SharedKey devstoreaccount1:{'A' * 43}="),
        without_signature(requests, "GET"),
    ]


def variants(requests: Requests) -> list[bytes]:
    good = requests.raw("GET", f"{TABLE}(PartitionKey='r0000',RowKey='000000')")
    return [good.replace(b"se=20", b"se=2%d" % year, 1) for year in range(1, 10)] + [
        without_signature(requests, "GET", "Authorization: Bearer " + "e30." * 4000 + "e30")
    ]


def preflights(requests: Requests) -> list[bytes]:
    lines = ("Origin: http://a", "Access-Control-Request-Method: GET", f"Access-Control-Request-Headers: {'x,' * 500}")
    return [without_signature(requests, "OPTIONS", *lines)]
