"""How fast contents are written and read, and how much memory that takes: `python -m benchmarks.contents [URL]`.

It writes one content of 1 GiB and reads it again, as files below a temporary directory, or in the database of the URL.
Of a database on this machine the memory of its server processes is shown, too: their own, not the shared buffers.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Collection
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from lazulite.engine.content.contract import WINDOW_BYTES, ContentId, ContentStore, Owner
from lazulite.engine.content.files import ContentFiles
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.protocol.clock import system_clock

OWNER = Owner(1024, "benchmark")
_SERVERS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'lazulite'"


def main() -> None:
    """Measure, and print a line each for writing and reading."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?", help="of a database; without it, files")
    parser.add_argument("--mebibytes", type=int, default=1024)
    arguments = parser.parse_args()
    asyncio.run(_measure(arguments.url, arguments.mebibytes << 20))


async def _measure(url: str | None, length: int) -> None:
    async with _in_files() if url is None else _in_database(url) as (store, servers):
        await _written(store, WINDOW_BYTES)
        processes = [os.getpid(), *servers]
        before = {process: _private_bytes(process) for process in processes}
        peak = dict(before)
        watching = asyncio.create_task(_watch(peak))
        start = time.perf_counter()
        content, middle = await _written(store, length), time.perf_counter()
        async with aclosing(store.read(content, 0, length)) as pieces:
            async for _ in pieces:
                pass
        end = time.perf_counter()
        watching.cancel()
        print(
            f"write {length / (middle - start) / 2**20:,.0f} MiB/s, read {length / (end - middle) / 2**20:,.0f} MiB/s"
        )
        for process in processes:
            name = "this process" if process == os.getpid() else "a server process"
            print(f"{name}: {(peak[process] - before[process]) / 2**20:.1f} MiB more")
        await store.delete([content])


async def _written(store: ContentStore, length: int) -> ContentId:
    writer, chunk = await store.create(OWNER), os.urandom(1 << 16)
    for _ in range(length // len(chunk)):
        await writer.write(chunk)
    return await writer.seal()


async def _watch(peak: dict[int, int]) -> None:
    while True:
        for process, most in peak.items():
            peak[process] = max(most, _private_bytes(process))
        await asyncio.sleep(0.02)


def _private_bytes(process: int) -> int:
    """Return the memory of a process that no other one shares."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("RssAnon"))


@asynccontextmanager
async def _in_files() -> AsyncIterator[tuple[ContentStore, Collection[int]]]:
    with tempfile.TemporaryDirectory() as directory:
        store = ContentFiles(Path(directory) / "content")
        yield store, ()
        await store.close()


@asynccontextmanager
async def _in_database(url: str) -> AsyncIterator[tuple[ContentStore, Collection[int]]]:
    engine = PostgresEngine(PostgresSettings(dsn=url, connections_max=2), system_clock)
    store = await engine.contents()
    found = await engine._pool.fetch(_SERVERS)
    yield store, [pid for (pid,) in found]
    await store.close()
    await engine.close()


if __name__ == "__main__":
    main()
