"""An engine over a channel: a RocksEngine, a server of it, and a RemoteEngine that is asked, joined by a real socket.

Decisions and rejections stay where they are and only their numbers cross, so that tests may decide by any function.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Collection, Sequence

from lazulite.engine.contract import UNKNOWN, CommitFunction, KeyRange, Slice, Unknown
from lazulite.engine.remote.channel import Channel
from lazulite.engine.remote.client import RemoteEngine
from lazulite.engine.remote.server import EngineServer
from lazulite.engine.rocksdb.engine import RocksEngine


class ByNumber:
    """A `Codec` for two ends in one process."""

    def __init__(self) -> None:
        self._things: list[object] = []

    def encode_commit(self, decide: CommitFunction) -> int:
        self._things.append(decide)
        return len(self._things) - 1

    def decode_commit(self, reported: int) -> CommitFunction:
        decide = self._things[reported]
        assert callable(decide)
        return decide

    def encode_rejection(self, rejection: Exception) -> int:
        self._things.append(rejection)
        return len(self._things) - 1

    def decode_rejection(self, reported: int) -> Exception:
        rejection = self._things[reported]
        assert isinstance(rejection, Exception)
        return rejection


async def join(one: Channel, other: Channel) -> None:
    loop = asyncio.get_running_loop()
    for channel, end in zip((one, other), socket.socketpair(), strict=True):
        end.setblocking(False)
        await loop.create_unix_connection(lambda channel=channel: channel, sock=end)  # type: ignore[misc]  # of a default


def serve(engine: RocksEngine, watched: Collection[int] = ()) -> tuple[EngineServer, ByNumber]:
    codec = ByNumber()
    return EngineServer(engine, codec, watched, _complain), codec


async def connect(server: EngineServer, codec: ByNumber, kill: Callable[[], None] = lambda: None) -> RemoteEngine:
    engine = RemoteEngine(codec)
    await join(engine.channel, server.open_channel(kill))
    return engine


def _complain(text: str) -> None:
    raise AssertionError(text)


class EngineOverChannel:
    """A `RemoteEngine` that joins its primary when it is first asked, and takes the primary along when it is closed."""

    def __init__(self, engine: RocksEngine) -> None:
        self._engine = engine
        self._server, self._codec = serve(engine)
        self._remote: RemoteEngine | None = None
        self._joining = asyncio.Lock()

    async def _joined(self) -> RemoteEngine:
        async with self._joining:
            if self._remote is None:
                self._remote = await connect(self._server, self._codec)
        return self._remote

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        return await (await self._joined()).get(space, partition, row)

    def get_now(self, space: int, partition: str, row: str) -> bytes | Unknown | None:
        return UNKNOWN if self._remote is None else self._remote.get_now(space, partition, row)

    async def scan(
        self, space: int, ranges: Sequence[KeyRange], limit: int | None = None, *, keys_only: bool = False
    ) -> AsyncGenerator[Slice, None]:
        slices = (await self._joined()).scan(space, ranges, limit, keys_only=keys_only)
        try:
            async for part in slices:
                yield part
        finally:
            await slices.aclose()

    async def commit(self, space: int, partition: str, rows: Sequence[str], decide: CommitFunction) -> int:
        return await (await self._joined()).commit(space, partition, rows, decide)

    async def drop(self, space: int) -> None:
        await (await self._joined()).drop(space)

    async def check_writable(self) -> None:
        await (await self._joined()).check_writable()

    async def close(self) -> None:
        await (await self._joined()).close()
        await self._server.close()
        await self._engine.close()
