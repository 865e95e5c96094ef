"""What the options of a store depend on."""

import re
import resource
from pathlib import Path

import pytest

from lazulite.engine.rocksdb.data_directory import DataDirectory
from lazulite.engine.rocksdb.options import RocksSettings, open_files

SETTINGS = RocksSettings(open_files_max=3000)


@pytest.mark.parametrize(
    ("allowed", "kept"),
    [(64, 256), (1024, 256), (4000, 1000), (12_000, 3000), (1_000_000, 3000), (resource.RLIM_INFINITY, 3000)],
)
def test_a_store_keeps_a_quarter_of_the_files_open_that_may_be(
    monkeypatch: pytest.MonkeyPatch, allowed: int, kept: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (allowed, resource.RLIM_INFINITY))
    assert open_files(SETTINGS) == kept


def test_rocksdb_is_reported(tmp_path: Path) -> None:
    home = DataDirectory(tmp_path, SETTINGS)
    home.close(home.open())
    newest = max(tmp_path.glob("OPTIONS-*"))
    assert f"max_open_files={open_files(SETTINGS)}\n" in newest.read_text()


def test_keys_of_an_index_share_their_beginnings(tmp_path: Path) -> None:
    home = DataDirectory(tmp_path, SETTINGS)
    database = home.open()
    for number in range(4000):
        database.put(b"a partition key of ordinary length %06d" % number, b"v" * 1024)
    database.flush()
    properties = str(database.property_value("rocksdb.aggregated-table-properties"))
    home.close(database)
    blocks, index_bytes = (
        int(re.findall(rf"{name}[^=;]*=(\d+)", properties)[0]) for name in ("data blocks", "index block size")
    )
    assert index_bytes < 20 * blocks
