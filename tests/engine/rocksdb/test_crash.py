"""kill -9 while commits run: whatever was acknowledged is there, and every commit whole."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

from lazulite.engine.contract import KeyRange
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock

CYCLES = 5
ROWS = 5

LOAD = f"""
import asyncio, os, sys
from pathlib import Path
from lazulite.engine.commit import changing
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock

async def load(engine, worker, start):
    names = [f"{{n}}" for n in range({ROWS})]
    for number in range(start, 10**9):
        value = b"%d " % number + bytes(200)
        await engine.commit(1, f"w{{worker}}", changing(names, lambda current, stamp: dict.fromkeys(names, value)))
        os.write(1, b"%d %d\\n" % (worker, number))

async def main():
    engine = RocksEngine.open(Path(sys.argv[1]), system_clock)
    await asyncio.gather(*(load(engine, worker, int(sys.argv[2])) for worker in range(8)))

asyncio.run(main())
"""


async def survivors(path: Path) -> dict[str, list[int]]:
    engine = RocksEngine.open(path, system_clock)
    found: dict[str, list[int]] = {}
    async for part in engine.scan(1, [KeyRange(("", ""), None)]):
        for index, value in enumerate(part.values):
            found.setdefault(part.key(index)[0], []).append(int(value.split(b" ")[0]))
    await engine.close()
    return found


def load_and_kill(path: Path, cycle: int) -> dict[str, int]:
    """Commit from another process until it is killed; return the last number each worker heard acknowledged."""
    acknowledged: dict[str, int] = {}
    command = [sys.executable, "-c", LOAD, str(path), str(cycle * 1_000_000)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(random.Random(cycle).randint(20, 2000))]
        os.kill(process.pid, signal.SIGKILL)
        for line in lines + process.stdout.read().splitlines():
            worker, number = line.split()
            acknowledged[f"w{int(worker)}"] = int(number)
    return acknowledged


async def test_acknowledged_commits_survive_kill_9_whole(tmp_path: Path) -> None:
    acknowledged: dict[str, int] = {}
    for cycle in range(CYCLES):
        acknowledged |= load_and_kill(tmp_path / "store", cycle)
        found = await survivors(tmp_path / "store")
        for partition, last in acknowledged.items():
            rows = found[partition]
            assert len(rows) == ROWS
            assert len(set(rows)) == 1, "a commit is half there"
            assert rows[0] >= last, "an acknowledged commit is lost"
