"""Fetching a document from a peer that may answer anything, or nothing."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from lazulite.server.oidc.fetch import FetchError, Origin, fetch, origin_of
from tests.certificates import Authority

TLS = ssl.create_default_context()
BYTES_MAX = 1000
OK = b"HTTP/1.1 200 OK\r\n"
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def peer(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Listen on loopback; yield the place, without a scheme."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        except OSError:
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


def saying(*parts: bytes) -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for part in parts:
            writer.write(part)
            await writer.drain()

    return answer


async def fetched(*parts: bytes) -> bytes:
    async with peer(saying(*parts)) as place:
        return await fetch(f"http://{place}/x", bytes_max=BYTES_MAX, tls=TLS)


async def rejection(*parts: bytes) -> str:
    with pytest.raises(FetchError) as caught:
        await fetched(*parts)
    return str(caught.value).partition("/x ")[2]


@pytest.mark.parametrize(
    "parts",
    [
        [OK + b"Content-Length: 2\r\n\r\n{}"],
        [OK + b"\r\n{}"],
        [OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1\r\n}\r\n0\r\n\r\n"],
        [b"HTTP/1.0 200 OK\r\n\r\n{", b"}"],
        [bytes([byte]) for byte in OK + b"Content-Length: 2\r\n\r\n{}"],
    ],
)
async def test_a_document(parts: list[bytes]) -> None:
    assert await fetched(*parts) == b"{}"


async def test_what_is_asked() -> None:
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK + b"Content-Length: 0\r\n\r\n")

    async with peer(answer) as place:
        await fetch(f"http://{place}/a/b?c=d", bytes_max=1, tls=TLS)
    lines = asked[0].decode().split("\r\n")
    assert lines[0] == "GET /a/b?c=d HTTP/1.1"
    assert {f"Host: {place}", "Connection: close", "Accept-Encoding: identity"} <= set(lines)


@pytest.mark.parametrize(
    "status", [b"404 Not Found", b"500 Oops", b"302 Found\r\nLocation: http://127.0.0.1/y", b"204 No"]
)
async def test_any_other_status_and_every_redirect(status: bytes) -> None:
    assert await rejection(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % status) == f"answered {status[:3].decode()}"


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ([], "answered nothing"),
        ([b"rubbish\r\n\r\n"], "gave no HTTP/1.1 answer"),
        ([OK + b"Content-Length: x\r\n\r\n"], "gave no HTTP/1.1 answer"),
        ([OK + b"Content-Length: 3\r\n\r\n{}"], "gave half an answer"),
        ([OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"], "gave half an answer"),
        ([b"HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nxx"], "gave no HTTP/1.1 answer"),
    ],
)
async def test_what_is_no_answer(parts: list[bytes], why: str) -> None:
    assert await rejection(*parts) == why


async def test_the_size_is_bounded_while_it_comes() -> None:
    assert await fetched(OK + b"\r\n" + b"x" * BYTES_MAX) == b"x" * BYTES_MAX
    assert await rejection(OK + b"\r\n" + b"x" * (BYTES_MAX + 1)) == "gave more than 1000 bytes"
    sent = 0

    async def endless(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(OK + b"X: ")
        while True:
            writer.write(b"x" * 10_000)
            sent += 10_000
            await writer.drain()

    async with peer(endless) as place:
        with pytest.raises(FetchError, match=r"gave (more than|no HTTP)"):
            await fetch(f"http://{place}/x", bytes_max=BYTES_MAX, tls=TLS)
    assert sent < 100 * 1024 * 1024


async def test_a_peer_that_says_nothing_is_left_when_the_time_is_up() -> None:
    left = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await reader.readexactly(10_000)
        left.set()

    async with peer(silent) as place:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await fetch(f"http://{place}/x", bytes_max=BYTES_MAX, tls=TLS)
        await left.wait()


async def test_nobody_there() -> None:
    async with peer(saying()) as place:
        pass
    for address in (f"http://{place}/", "http://name.invalid/", f"http://{'x' * 64}.example/"):
        with pytest.raises(FetchError, match="cannot connect to"):
            await fetch(address, bytes_max=1, tls=TLS)


async def test_https_and_whom_it_believes(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(*authority.issue())
    async with peer(saying(OK + b"Content-Length: 2\r\n\r\n{}"), ours) as place:
        theirs = ssl.create_default_context(cafile=authority.root)
        assert await fetch(f"https://{place}/", bytes_max=2, tls=theirs) == b"{}"
        with pytest.raises(FetchError, match="cannot connect to"):
            await fetch(f"https://{place}/", bytes_max=2, tls=TLS)
        with pytest.raises(FetchError):
            await fetch(f"http://{place}/", bytes_max=2, tls=TLS)


def test_origins() -> None:
    assert origin_of("https://login.example/a/b") == Origin("https", "login.example", 443)
    assert origin_of("HTTP://[::1]:81/?x") == Origin("http", "::1", 81)
    for url in (
        "",
        "login.example",
        "ftp://x/",
        "file:///etc/passwd",
        "https://",
        "https:///x",
        "https://user@x/",
        "https://x/ y",
        "https://x/\r\nHost: y",
        "https://x/é",
        "https://x:99999/",
        "https://x:y/",
        "https://[x/",
        "https://x/#y",
        "https://x/" + "y" * 2048,
    ):
        with pytest.raises(FetchError):
            origin_of(url)
