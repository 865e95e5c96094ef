"""A store that a process left behind without closing it, in files and in the log, and ways to damage it."""

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from lazulite.engine.rocksdb.inspection import inspect

GENERATIONS = 120
VALUE_BYTES = 400

_FILL = f"""
import asyncio, os, sys
from pathlib import Path
from lazulite.engine.commit import changing
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock

async def fill(path, start, space):
    engine = RocksEngine.open(path, system_clock)
    for number in range(start, start + {GENERATIONS}):
        value = random_bytes(number)
        row = f"{{number:04}}"
        await engine.commit(space, "p", changing([row], lambda current, stamp, row=row, value=value: {{row: value}}))
    return engine

def random_bytes(number):
    import random
    return random.Random(number).randbytes({VALUE_BYTES})

async def main(path, space):
    await (await fill(path, 0, space)).close()
    await fill(path, {GENERATIONS}, space)
    os._exit(0)

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
"""


def make_died(path: Path, space: int = 2000) -> Path:
    """Make a store of one space with as many rows in files as in the log, each committed alone, all acknowledged."""
    subprocess.run([sys.executable, "-c", _FILL, str(path), str(space)], check=True)
    return path


def copied(store: Path, target: Path) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    return Path(shutil.copytree(store, target))


def log_of(store: Path) -> Path:
    return max(store.glob("*.log"), key=lambda file: file.stat().st_size)


def flip(file: Path, bit: int) -> None:
    with file.open("r+b") as stream:
        stream.seek(bit // 8)
        byte = stream.read(1)[0] ^ 1 << bit % 8
        stream.seek(bit // 8)
        stream.write(bytes([byte]))


def some_bits(file: Path, count: int, seed: int = 1) -> Iterator[int]:
    bits = file.stat().st_size * 8
    yield from random.Random(f"{seed} {file.name}").sample(range(bits), min(count, bits))


def contents(store: Path) -> list[tuple[bytes, bytes]]:
    """Read a whole store without opening it for writing."""
    with inspect(store) as inspection:
        return list(inspection.rows())


def cut(file: Path, count: int) -> None:
    os.truncate(file, file.stat().st_size - count)
