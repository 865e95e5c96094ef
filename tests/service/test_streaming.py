"""Bodies of a service that streams, through everything that a process has in front of it."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator

import pytest

from lazulite.protocol.message import WINDOW_BYTES

from .streams import BYTES_MAX, StreamService
from .world import ACCOUNT, World, account_sas, serving

MIB = 1 << 20


@pytest.fixture(name="world", params=["native", "asgi"])
async def _world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    async with serving(request.param, make=StreamService) as world:
        yield world


@pytest.fixture(name="native")
async def _native() -> AsyncIterator[World]:
    async with serving("native", make=StreamService) as world:
        yield world


@pytest.mark.parametrize("length", [0, 1, WINDOW_BYTES, 5 * MIB + 1])
async def test_bodies_of_any_length_arrive_whole(world: World, length: int) -> None:
    sent = await world.ask("PUT", "a", account_sas(), content=bytes(length), headers={"content-length": str(length)})
    assert (sent.status_code, sent.headers["x-received"]) == (201, str(length))
    got = await world.ask("GET", str(length), account_sas())
    assert (got.status_code, got.headers["content-length"], len(got.content)) == (200, str(length), length)


async def test_digests_are_checked_at_the_end(world: World) -> None:
    content = bytes(3 * MIB)
    for body, status in ((content, 201), (content[1:], 400)):
        digest = base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()
        sent = await world.ask("PUT", "a", account_sas(), content=content, headers={"content-md5": digest})
        assert sent.status_code == status
    assert sent.headers["x-ms-error-code"] == "Md5Mismatch"


async def test_exchanges_are_logged_after_the_last_byte(world: World) -> None:
    await world.ask("PUT", "a", account_sas(), content=bytes(5 * MIB))
    await world.ask("GET", str(5 * MIB), account_sas())
    put, got = await world.logged()
    assert put["bytes_in"] == 5 * MIB
    assert got["bytes_out"] >= 5 * MIB


async def test_a_body_over_the_bound_of_its_route_is_rejected_unread(native: World) -> None:
    assert native.server is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", native.server.port)
    head = f"PUT /{ACCOUNT}/a?{account_sas()} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {BYTES_MAX + 1}\r\n\r\n"
    writer.write(head.encode())
    said = await reader.readuntil(b"\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 413 ")
    assert b"\r\nConnection: close\r\n" in said
    writer.close()
    await writer.wait_closed()
