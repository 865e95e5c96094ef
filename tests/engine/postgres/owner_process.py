"""A process that commits for others: `python -m tests.engine.postgres.owner_process DSN DIRECTORY`, to its input's end.

It prints the name of its socket when it is ready.
"""

import asyncio
import sys
from pathlib import Path

from lazulite.engine.postgres.engine import PostgresEngine
from lazulite.engine.postgres.settings import PostgresSettings
from lazulite.protocol.clock import system_clock
from tests.engine.postgres.load import CODEC


async def _serve(dsn: str, directory: str) -> None:
    settings = PostgresSettings(dsn=dsn, peers=Path(directory), drop_poll_seconds=3600)
    engine = PostgresEngine(settings, system_clock, codec=CODEC)
    await engine.start()
    assert engine._peers is not None
    print(engine._peers._name, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await engine.close()


if __name__ == "__main__":
    asyncio.run(_serve(*sys.argv[1:]))
