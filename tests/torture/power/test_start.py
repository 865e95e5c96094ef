"""The power is cut at every call of a first start: a store opens on whatever disk that leaves.

The store is opened in this process, which is much faster than to start the server on each.
"""

import os
import random
import shutil
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest

from lazulite.engine.rocksdb.data_directory import DataDirectory
from lazulite.engine.rocksdb.options import RocksSettings

from .disk import Disk, write_tree
from .recorder import COMPILER, Kind, Record, Recorder, compiled, compiler_missing

DISKS = 40
"""Of the cuts that tear the first writes to the log and to the mark; of each other cut, one."""

FIRST_COMMIT = """
import asyncio, os, sys
from pathlib import Path
from lazulite.engine.commit import changing
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.protocol.clock import system_clock

async def main():
    engine = RocksEngine.open(Path(sys.argv[1]), system_clock)
    await engine.commit(1, "partition", changing(["row"], lambda current, timestamp: {"row": bytes(1500)}))
    os._exit(0)

asyncio.run(main())
"""


@pytest.mark.skipif(compiler_missing(), reason=f"there is no {COMPILER} to compile the recorder with")
def test_store_opens_after_a_power_cut_of_its_first_start(tmp_path: Path) -> None:
    root, left = tmp_path / "root", tmp_path / "left"
    root.mkdir()
    recorder = Recorder(compiled(tmp_path), root, tmp_path)
    command = [sys.executable, "-c", FIRST_COMMIT, str(root / "data" / "store")]
    subprocess.run(command, env={**os.environ, **recorder.variables}, check=True)
    records = list(recorder.records())
    recorder.close()
    shutil.rmtree(root / "data")
    chance = random.Random(1)
    first_writes = {after_first_write(records, name) for name in (b".log", b"lazulite.mark")}
    for cut in range(1, len(records) + 1):
        disk = Disk(root, strict=chance.random() < 0.5)
        disk.replay(records[:cut])
        for _ in range(DISKS if cut in first_writes else 1):
            left.mkdir()
            write_tree(left, deepcopy(disk).after_cut(chance))
            home = DataDirectory(left / "data" / "store", RocksSettings())
            home.close(home.open())
            shutil.rmtree(left)


def after_first_write(records: list[Record], name: bytes) -> int:
    [inode] = {record.inode for record in records if record.kind == Kind.CREATE and record.first.endswith(name)}
    return 1 + next(at for at, record in enumerate(records) if record.kind == Kind.WRITE and record.inode == inode)
