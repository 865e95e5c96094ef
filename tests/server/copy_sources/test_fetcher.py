"""Fetching a source from a peer that may answer anything, and only from addresses that are allowed."""

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import aclosing
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from lazulite.server.copy_sources import fetcher
from lazulite.server.copy_sources.fetcher import SourceFetcher, Times
from lazulite.server.copy_sources.hosts import IpAddress
from lazulite.service.fetching import FetchFailedError, FetchNotAllowedError
from tests.certificates import Authority
from tests.server.copy_sources.peers import OK, Peer, answer, peer

LOOPBACK = ip_network("127.0.0.0/8")
NAME = "store.example"


class Resolver:
    """Resolves each name to one address after another."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.asked: list[str] = []
        self._answers = answers

    async def __call__(self, host: str, _: int) -> Sequence[IpAddress]:
        found = self._answers[min(len(self.asked), len(self._answers) - 1)]
        self.asked.append(host)
        return [ip_address(each) for each in found]


async def fetched(url: str, of: SourceFetcher, **headers: str) -> tuple[int, dict[str, str], bytes]:
    async with of.fetch(url, headers) as response, aclosing(response.chunks()) as chunks:
        return response.status, dict(response.headers), b"".join([chunk async for chunk in chunks])


async def failure(say: bytes) -> str:
    async with peer(say) as other:
        with pytest.raises(FetchFailedError) as caught:
            await fetched(f"{other.url}/x", SourceFetcher([LOOPBACK]))
    return str(caught.value)


async def test_a_response_and_what_is_asked() -> None:
    async with peer(answer(b"body", "X-Ms-Meta-Colour: red", "ETag: 1")) as other:
        status, headers, body = await fetched(f"{other.url}/a/b?c=d", SourceFetcher([LOOPBACK]), range="bytes=0-3")
    assert (status, headers["x-ms-meta-colour"], headers["etag"], body) == (200, "red", "1", b"body")
    lines = other.heads[0].decode().split("\r\n")
    assert lines[0] == "GET /a/b?c=d HTTP/1.1"
    expected = {f"Host: 127.0.0.1:{other.port}", "range: bytes=0-3", "Accept-Encoding: identity", "Connection: close"}
    assert expected <= set(lines)


@pytest.mark.parametrize(
    "say",
    [
        OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\nX: trailer\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nbody",
    ],
)
async def test_bodies(say: bytes) -> None:
    async with peer(say) as other:
        _, headers, body = await fetched(f"{other.url}/", SourceFetcher([LOOPBACK]))
    assert body == b"body"
    assert "x" not in headers


@pytest.mark.parametrize(
    ("say", "why"),
    [
        (b"", "the response is incomplete"),
        (OK, "the response is incomplete"),
        (b"rubbish\r\n\r\n", "the response is not HTTP/1.1"),
        (OK + b"\r\nbody", "the length of the body is not known"),
        (OK + b"Content-Length: 5\r\n\r\nbody", "the response is incomplete"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n", "the response is incomplete"),
        (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "the body has an unknown transfer coding"),
        (OK + b"X: " + b"x" * 200_000, "the head is too large"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 200_000, "the head is too large"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 40_000, "the head is too large"),
    ],
)
async def test_what_is_no_response(say: bytes, why: str) -> None:
    assert await failure(say) == why


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["::1"], ["::ffff:127.0.0.1"], ["169.254.169.254"], []])
async def test_a_listed_name_that_resolves_to_no_public_address(addresses: list[str]) -> None:
    async with peer(answer(b"secret")) as other:
        resolver = Resolver(addresses)
        with pytest.raises(FetchNotAllowedError):
            await fetched(f"http://{NAME}:{other.port}/", SourceFetcher([NAME], resolve=resolver))
    assert (resolver.asked, other.heads) == ([NAME], [])


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "127.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0.0.0.0"],
)
async def test_no_spelling_of_loopback_is_public(host: str) -> None:
    async with peer(answer(b"secret")) as other:
        of = SourceFetcher(["*.example", "localhost", ip_network("0.0.0.0/0"), ip_network("::/0")])
        with pytest.raises(FetchNotAllowedError):
            await fetched(f"http://{host}:{other.port}/", of)
    assert other.heads == []


async def test_metadata_of_the_machine() -> None:
    for url in ("http://169.254.169.254/latest", "http://[::ffff:169.254.169.254]/", "http://168.63.129.16/"):
        with pytest.raises(FetchNotAllowedError):
            await fetched(url, SourceFetcher([ip_network("0.0.0.0/0"), ip_network("::/0")]))


async def test_a_name_that_is_not_listed_is_not_resolved() -> None:
    resolver = Resolver(["127.0.0.1"])
    with pytest.raises(FetchNotAllowedError):
        await fetched("http://other.example/", SourceFetcher([NAME], resolve=resolver))
    assert resolver.asked == []


async def test_the_connection_goes_to_the_address_that_was_checked() -> None:
    resolver = Resolver(["169.254.169.254", "127.0.0.1"], ["127.0.0.2"])
    async with peer(answer(b"body")) as other:
        _, _, body = await fetched(
            f"http://{NAME}:{other.port}/", SourceFetcher([ip_network("127.0.0.1")], resolve=resolver)
        )
    assert (body, resolver.asked) == (b"body", [NAME])
    assert f"Host: {NAME}:{other.port}".encode() in other.heads[0]


async def test_four_addresses_of_a_name_are_tried() -> None:
    absent = [f"127.0.0.{number}" for number in (2, 3, 4, 5)]
    async with peer(answer(b"body")) as other:
        url = f"http://{NAME}:{other.port}/"
        reached = SourceFetcher([LOOPBACK], resolve=Resolver([*absent[:3], "127.0.0.1"]))
        assert (await fetched(url, reached))[2] == b"body"
        with pytest.raises(FetchFailedError):
            await fetched(url, SourceFetcher([LOOPBACK], resolve=Resolver([*absent, "127.0.0.1"])))


async def test_a_redirect_is_not_followed() -> None:
    async with peer(answer(b"secret")) as secret:
        moved = answer(b"", f"Location: {secret.url}/", status="302 Found")
        async with peer(moved) as other:
            status, _, _ = await fetched(f"{other.url}/", SourceFetcher([LOOPBACK]))
    assert (status, secret.heads) == (302, [])


async def test_no_more_is_read_than_is_taken() -> None:
    size = 64 * 1024 * 1024
    of = SourceFetcher([LOOPBACK])
    async with (
        peer(answer(bytes(size))) as other,
        of.fetch(f"{other.url}/", {}) as response,
        aclosing(response.chunks()) as chunks,
    ):
        await anext(chunks)
        for _ in range(1000):
            await asyncio.sleep(0)
        assert other.sent_bytes < size // 2


@pytest.mark.parametrize(
    ("said", "times", "why"),
    [
        (b"", Times(head_seconds=0.05), "no response in time"),
        (OK + b"Content-Length: 1\r\n\r\n", Times(stall_seconds=0.05), "the response is too slow"),
        (OK + b"Content-Length: 1\r\n\r\n", Times(head_seconds=0.2, body_seconds=0.0), "the response is too slow"),
    ],
)
async def test_a_peer_that_says_nothing_more(said: bytes, times: Times, why: str) -> None:
    async with peer(said, ends=False) as other:
        with pytest.raises(FetchFailedError, match=why):
            await fetched(other.url, SourceFetcher([LOOPBACK], times=times))


async def test_fetches_at_once_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetcher, "_FETCHES_MAX", 1)
    of = SourceFetcher([LOOPBACK], times=Times(head_seconds=0.2))
    async with peer(answer(b"body")) as other:
        async with of.fetch(f"{other.url}/", {}):
            with pytest.raises(FetchFailedError, match="no response in time"):
                await fetched(f"{other.url}/", of)
        assert (await fetched(f"{other.url}/", of))[2] == b"body"


async def test_a_peer_that_is_absent_fails_the_fetch() -> None:
    async with peer(b"") as other:
        url = other.url
    for each in (f"{url}/", "http://name.invalid/", f"http://{'x' * 64}.example/", "ftp://x/", "http://x:99999/"):
        with pytest.raises(FetchFailedError):
            await fetched(each, SourceFetcher([LOOPBACK]))


@pytest.mark.parametrize("text", ["a\r\nHost: b", "é", "\0"])
async def test_a_header_that_no_request_can_have(text: str) -> None:
    async with peer(answer(b"")) as other:
        with pytest.raises(FetchFailedError):
            await fetched(f"{other.url}/", SourceFetcher([LOOPBACK]), etag=text)
    assert other.heads == []


async def test_https_trusts_the_authorities_of_its_context_only(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ours.load_cert_chain(*authority.issue())
    theirs = ssl.create_default_context(cafile=authority.root)

    async def get(other: Peer, host: str, tls: ssl.SSLContext | None) -> bytes:
        of = SourceFetcher([LOOPBACK], tls=tls, resolve=Resolver(["127.0.0.1"]))
        return (await fetched(f"https://{host}:{other.port}/", of))[2]

    async with peer(answer(b"body"), ours) as other:
        assert await get(other, "127.0.0.1", theirs) == b"body"
        for host, tls in (("127.0.0.1", None), ("other.example", theirs)):
            with pytest.raises(FetchFailedError, match="cannot connect to"):
                await get(other, host, tls)
