"""Sixteen bodies of 64 MiB at once, in both directions: a service that streams takes little memory for them."""

import asyncio
import resource

from lazulite.protocol.message import WINDOW_BYTES

from .streams import StreamService
from .world import ACCOUNT, World, account_sas, serving

AT_ONCE = 16
LENGTH = 64 << 20
CHUNK = bytes(WINDOW_BYTES)
GROWTH_MAX = 64 << 20


async def _upload(world: World) -> bytes:
    assert world.server is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", world.server.port)
    head = f"PUT /{ACCOUNT}/a?{account_sas()} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {LENGTH}\r\n\r\n"
    writer.write(head.encode())
    for _ in range(LENGTH // len(CHUNK)):
        writer.write(CHUNK)
        await writer.drain()
    said = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return said


async def _download(world: World) -> int:
    assert world.server is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", world.server.port)
    writer.write(f"GET /{ACCOUNT}/{LENGTH}?{account_sas()} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    count = 0
    while count < LENGTH:
        count += len(await reader.read(WINDOW_BYTES))
    writer.close()
    await writer.wait_closed()
    return count


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def test_many_large_bodies_at_once_take_little_memory() -> None:
    async with serving("native", make=StreamService) as world:
        before = _peak_bytes()
        uploads = await asyncio.gather(*(_upload(world) for _ in range(AT_ONCE)))
        assert all(b"\r\nx-received: %d\r\n" % LENGTH in said for said in uploads)
        assert await asyncio.gather(*(_download(world) for _ in range(AT_ONCE))) == [LENGTH] * AT_ONCE
        assert _peak_bytes() - before < GROWTH_MAX
