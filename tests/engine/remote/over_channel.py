"""An engine over a channel: a RocksEngine, a server of it, and a RemoteEngine that is asked, joined by a real socket.

Decisions and rejections stay where they are and only their numbers cross, so that tests may decide by any function.
"""

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from lazulite.engine.commit import Commit, CommitProcedure
from lazulite.engine.contract import UNKNOWN, Clock, KeyRange, Slice, Snapshot, Unknown, Waiter
from lazulite.engine.remote.channel import Channel
from lazulite.engine.remote.client import RemoteEngine
from lazulite.engine.remote.codec import Codec, Encoding
from lazulite.engine.remote.server import EngineServer
from lazulite.engine.rocksdb.change_log import RING_BYTES, ChangeLog, ChangeLogReader
from lazulite.engine.rocksdb.database import Failpoints
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.engine.rocksdb.options import RocksSettings
from lazulite.engine.rocksdb.replica import Replica
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


def replicated(
    directory: Path,
    clock: Clock,
    settings: RocksSettings | None = None,
    *,
    ring_bytes: int = RING_BYTES,
    failpoints: Failpoints | None = None,
) -> tuple[RocksEngine, Replica]:
    """Return the engine of a primary, and a replica for a worker."""
    log = ChangeLog(ring_bytes)
    engine = RocksEngine.open(directory / "store", clock, settings, failpoints=failpoints, change_log=log)
    reader = ChangeLogReader(log.descriptor)
    log.close()
    return engine, Replica(reader, directory / "store", directory / "replicas", lambda: True, settings)


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
    """A `RemoteEngine` that joins its primary when it is first asked, and takes the primary along when it is closed.

    Args:
        engine: the primary's.
        replica: from which the worker reads; None: it asks the primary.
    """

    def __init__(self, engine: RocksEngine, replica: Replica | None = None) -> None:
        self._engine = engine
        self._replica = replica
        self._server, self._codec = serve(engine)
        self._remote: RemoteEngine | None = None
        self._joining = asyncio.Lock()

    async def joined(self) -> RemoteEngine:
        async with self._joining:
            if self._remote is None:
                self._remote = await connect(self._server, self._codec)
                if self._replica is not None:
                    await self._remote.use(self._replica)
        return self._remote

    async def get(self, space: int, partition: str, row: str) -> bytes | None:
        return await (await self.joined()).get(space, partition, row)

    commits_now = False

    @property
    def reads_now(self) -> bool:
        return self._remote is not None and self._remote.reads_now

    def get_now(self, space: int, partition: str, row: str) -> bytes | Unknown | None:
        return UNKNOWN if self._remote is None else self._remote.get_now(space, partition, row)

    async def scan(
        self, space: int, ranges: Sequence[KeyRange], limit: int | None = None, *, keys_only: bool = False
    ) -> AsyncGenerator[Slice, None]:
        slices = (await self.joined()).scan(space, ranges, limit, keys_only=keys_only)
        try:
            async for part in slices:
                yield part
        finally:
            await slices.aclose()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        async with (await self.joined()).snapshot() as snapshot:
            yield snapshot

    def commit_now(self, space: int, partition: str, commit: Commit[T], waiter: Waiter) -> T | Unknown:
        return UNKNOWN

    async def commit(self, space: int, partition: str, commit: Commit[T]) -> T:
        return await (await self.joined()).commit(space, partition, commit)

    async def drop(self, space: int) -> None:
        await (await self.joined()).drop(space)

    async def check_writable(self) -> None:
        await (await self.joined()).check_writable()

    async def close(self) -> None:
        await (await self.joined()).close()
        await self._server.close()
        await self._engine.close()
