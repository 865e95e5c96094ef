"""An engine behind a border: a RocksEngine, a server of it, and a RemoteEngine that is asked, joined by a real socket.

Decisions and refusals stay where they are and only their numbers cross, so that tests may decide by any function.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable, Collection, Sequence

from lazulite.engine.contract import Decide, KeyRange, Slice
from lazulite.engine.remote.channel import Link
from lazulite.engine.remote.client import RemoteEngine
from lazulite.engine.remote.server import EngineServer
from lazulite.engine.rocksdb.engine import RocksEngine


class ByNumber:
    """A `Wording` for two ends in one process."""

    def __init__(self) -> None:
        self._things: list[object] = []

    def tell_decision(self, decide: Decide) -> int:
        self._things.append(decide)
        return len(self._things) - 1

    def decision(self, told: int) -> Decide:
        decide = self._things[told]
        assert callable(decide)
        return decide

    def tell_refusal(self, refusal: Exception) -> int:
        self._things.append(refusal)
        return len(self._things) - 1

    def refusal(self, told: int) -> Exception:
        refusal = self._things[told]
        assert isinstance(refusal, Exception)
        return refusal


async def join(one: Link, other: Link) -> None:
    loop = asyncio.get_running_loop()
    for link, end in zip((one, other), socket.socketpair(), strict=True):
        end.setblocking(False)
        await loop.create_unix_connection(lambda link=link: link, sock=end)  # type: ignore[misc]  # of a default


def serve(engine: RocksEngine, watched: Collection[int] = ()) -> tuple[EngineServer, ByNumber]:
    wording = ByNumber()
    return EngineServer(engine, wording, watched, _complain), wording


async def connect(server: EngineServer, wording: ByNumber, kill: Callable[[], None] = lambda: None) -> RemoteEngine:
    engine = RemoteEngine(wording)
    await join(engine.link, server.link(kill))
    return engine


def _complain(text: str) -> None:
    raise AssertionError(text)


class BorderedEngine:
    """A `RemoteEngine` that joins its owner when it is first asked, and takes the owner along when it is closed."""

    def __init__(self, engine: RocksEngine) -> None:
        self._engine = engine
        self._server, self._wording = serve(engine)
        self._remote: RemoteEngine | None = None
        self._joining = asyncio.Lock()

    async def _joined(self) -> RemoteEngine:
        async with self._joining:
            if self._remote is None:
                self._remote = await connect(self._server, self._wording)
        return self._remote

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        return await (await self._joined()).get(space, partition, row)

    async def scan(
        self, space: int, ranges: Sequence[KeyRange], limit: int | None = None
    ) -> AsyncGenerator[Slice, None]:
        slices = (await self._joined()).scan(space, ranges, limit)
        try:
            async for part in slices:
                yield part
        finally:
            await slices.aclose()

    async def commit(self, space: int, partition: str, rows: Sequence[str], decide: Decide) -> int:
        return await (await self._joined()).commit(space, partition, rows, decide)

    async def drop(self, space: int) -> None:
        await (await self._joined()).drop(space)

    async def check_writable(self) -> None:
        await (await self._joined()).check_writable()

    async def close(self) -> None:
        await (await self._joined()).close()
        await self._server.close()
        await self._engine.close()
