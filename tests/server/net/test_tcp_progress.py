"""The peer's acknowledgements, seen by the sender: over TCP, over TLS, and where they are unknown."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from lazulite.server.net.tcp_progress import AckProgress
from tests.certificates import Authority
from tests.server.test_lifecycle import SECONDS_MAX
from tests.server.wire import Wire

SOME = b"x" * (32 << 20)
"""More than the kernel buffers for a client that does not read."""
LITTLE_BYTES = 1 << 20
"""It takes that, and cannot deliver it."""


@pytest.fixture(name="contexts", params=["tcp", "tls"])
def _contexts(request: pytest.FixtureRequest, tmp_path: Path) -> "tuple[ssl.SSLContext, ssl.SSLContext] | None":
    if request.param == "tcp":
        return None
    authority = Authority(tmp_path)
    files = authority.issue()
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(files.cert, files.key)
    return server, ssl.create_default_context(cafile=str(authority.root))


async def _until(said: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while not said():  # noqa: ASYNC110 - no event tells.
            await asyncio.sleep(0)


@pytest.mark.parametrize("first_bytes", [LITTLE_BYTES, len(SOME)])
async def test_what_a_slow_reader_takes_is_seen(
    contexts: "tuple[ssl.SSLContext, ssl.SSLContext] | None", first_bytes: int
) -> None:
    writers: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(
        lambda _, writer: writers.append(writer), "127.0.0.1", 0, ssl=contexts and contexts[0]
    )
    port = server.sockets[0].getsockname()[1]
    reader, client = await asyncio.open_connection("127.0.0.1", port, ssl=contexts and contexts[1], limit=1 << 16)
    await _until(lambda: bool(writers))
    transport = cast("asyncio.Transport", writers[0].transport)
    try:
        delivery = AckProgress(transport)
        await _until(lambda: not delivery.waits)
        transport.write(SOME[:first_bytes])
        if first_bytes == LITTLE_BYTES:
            await _until(lambda: not transport.get_write_buffer_size())
        assert delivery.waits
        transport.write(SOME[first_bytes:])
        assert delivery.waits
        await _until(lambda: not delivery.progress())
        taken, seen = 0, False
        while taken < len(SOME):
            taken += len(await reader.read(1 << 20))
            seen = seen or delivery.progress()
        assert seen
        await _until(lambda: not delivery.waits)
        assert not delivery.progress(), "nothing is waited for any more"
    finally:
        client.transport.abort()
        transport.abort()
        server.close()


async def test_without_a_socket_only_what_waits_in_the_transport_counts(wire: Wire) -> None:
    transport = wire.transport
    delivery = AckProgress(transport)
    assert not delivery.waits
    transport.waiting_bytes = 10
    assert delivery.waits
    assert not delivery.progress()
    transport.waiting_bytes = 9
    assert delivery.progress()
    assert not delivery.progress()


async def test_a_socket_that_is_no_tcp_tells_nothing(wire: Wire) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        wire.transport._extra["socket"] = ours  # type: ignore[attr-defined]  # as asyncio's transports keep it
        assert not AckProgress(wire.transport).progress()
