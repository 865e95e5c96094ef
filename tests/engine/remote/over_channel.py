"""An engine over a channel: a RocksEngine, a server of it, and a RemoteEngine that is asked, joined by a real socket.

Decisions and rejections stay where they are and only their numbers cross, so that tests may decide by any function.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from lazulite.engine.commit import Commit, CommitProcedure
from lazulite.engine.contract import UNKNOWN, KeyRange, Slice, Unknown
from lazulite.engine.remote.channel import Channel
from lazulite.engine.remote.client import RemoteEngine
from lazulite.engine.remote.codec import Codec, Encoding
from lazulite.engine.remote.server import EngineServer
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock

T = TypeVar("T")


class ByNumber(Codec):
    """A `Codec` for two ends in one process."""

    def __init__(self) -> None:
        things: list[Any] = []

        def encode(thing: object) -> int:
            things.append(thing)
            return len(things) - 1

        self.procedure = CommitProcedure[Any]("number", encode, things.__getitem__, encode, things.__getitem__)
        super().__init__([self.procedure], [Encoding(Exception, encode, things.__getitem__)])


class NumberingEngine(RemoteEngine):
    """Sends all commits to the primary, closures too."""

    def __init__(self, codec: ByNumber) -> None:
        super().__init__(codec, system_clock)
        self._procedure = codec.procedure

    async def commit(self, space: int, partition: str, commit: Commit[T]) -> T:
        return await super().commit(space, partition, replace(commit, procedure=self._procedure, argument=commit))


async def join(one: Channel, other: Channel) -> None:
    loop = asyncio.get_running_loop()
    for channel, end in zip((one, other), socket.socketpair(), strict=True):
        end.setblocking(False)
        await loop.create_unix_connection(lambda channel=channel: channel, sock=end)  # type: ignore[misc]  # of a default


def serve(engine: RocksEngine, watched: Collection[int] = ()) -> tuple[EngineServer, ByNumber]:
    codec = ByNumber()
    return EngineServer(engine, codec, watched, _complain), codec


async def connect(server: EngineServer, codec: ByNumber, kill: Callable[[], None] = lambda: None) -> RemoteEngine:
    engine = NumberingEngine(codec)
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

    async def commit(self, space: int, partition: str, commit: Commit[T]) -> T:
        return await (await self._joined()).commit(space, partition, commit)

    async def drop(self, space: int) -> None:
        await (await self._joined()).drop(space)

    async def check_writable(self) -> None:
        await (await self._joined()).check_writable()

    async def close(self) -> None:
        await (await self._joined()).close()
        await self._server.close()
        await self._engine.close()
