"""How fast contents are written and read, and how much memory that takes: `python -m benchmarks.contents [URL]`.

It writes one content of 1 GiB and reads it again, as files below a temporary directory, or in the database of the URL.
Of a database on this machine the memory of its server processes is shown, too: their own, not the shared buffers.
"""

import argparse
import asyncio
import os
import re
import tempfile
import time
from contextlib import aclosing
from pathlib import Path

from lazulite.engine.content.contract import WINDOW_BYTES, ContentId, ContentStore, Owner
from lazulite.engine.content.files import ContentFiles
from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.protocol.clock import system_clock

_SERVERS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'lazulite'"


async def _measure(url: str | None, length: int) -> None:
    with tempfile.TemporaryDirectory() as directory:
        if url is None:
            await _move(ContentFiles(Path(directory) / "content"), length, os.getpid())
        else:
            engine = PostgresEngine(PostgresSettings(dsn=url, connections_max=2), system_clock)
            store = await engine.contents()
            await _move(store, length, os.getpid(), *[pid for (pid,) in await engine._pool.fetch(_SERVERS)])
            await engine.close()


async def _move(store: ContentStore, length: int, *processes: int) -> None:
    """Write and read, and print the rates and the memory; then close the store."""
    await _written(store, WINDOW_BYTES)
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
    write, read = (length / seconds / 2**20 for seconds in (middle - start, end - middle))
    print(f"write {write:,.0f} MiB/s, read {read:,.0f} MiB/s")
    for process in processes:
        name = "this process" if process == os.getpid() else "a server process"
        print(f"{name}: {(peak[process] - before[process]) / 2**20:.1f} MiB more")
    await store.delete([content])
    await store.close()


async def _written(store: ContentStore, length: int) -> ContentId:
    writer, chunk = await store.create(Owner(1024, "benchmark")), os.urandom(1 << 16)
    for _ in range(length // len(chunk)):
        await writer.write(chunk)
    return await writer.seal()


async def _watch(peak: dict[int, int]) -> None:
    while True:
        peak.update({process: max(most, _private_bytes(process)) for process, most in peak.items()})
        await asyncio.sleep(0.02)


def _private_bytes(process: int) -> int:
    """Return the memory of a process that no other one shares."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return sum(int(kilobytes) << 10 for kilobytes in re.findall(r"RssAnon:\s+(\d+)", status))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", nargs="?", help="of a database; without it, files")
    parser.add_argument("--mebibytes", type=int, default=1024)
    arguments = parser.parse_args()
    asyncio.run(_measure(arguments.url, arguments.mebibytes << 20))
