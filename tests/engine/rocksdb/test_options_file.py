"""RocksDB's file of options is looked at before the binding does; the binding itself, in test_corruption.py."""

from pathlib import Path

import pytest

from lazulite.engine.contract import StoreUnusableError
from lazulite.engine.rocksdb.options_file import reject_damaged_options

GOOD = """
[Version]
  rocksdb_version=10.4.2

[DBOptions]
  wal_dir=/data/[1]/store

  [CFOptions "default"]
  ttl=2592000

[TableOptions/BlockBasedTable "default"]
  block_size=4096
"""


def test_there_need_be_none(tmp_path: Path) -> None:
    reject_damaged_options(tmp_path)
    reject_damaged_options(tmp_path / "missing")


@pytest.mark.parametrize(
    ("old", "new", "good"),
    [
        ("", "", True),
        ("ttl=", "tt|=", True),
        ("[Version]", "[Wersion]", False),
        ("[DBOptions]\n", "", False),
        ('CFOptions "default"', 'CFOptions "defau|t"', False),
        ('ble "default"]\n', 'ble "default"|\n', False),
        ("[TableOptions", "[TableOptionz", False),
    ],
)
def test_the_names_of_sections_must_be_whole(tmp_path: Path, old: str, new: str, good: bool) -> None:
    (tmp_path / "OPTIONS-000007").write_text(GOOD.replace(old, new))
    if good:
        reject_damaged_options(tmp_path)
        return
    with pytest.raises(StoreUnusableError, match=r"OPTIONS-000007 is damaged; .*remove that file"):
        reject_damaged_options(tmp_path)


def test_the_newest_one_counts(tmp_path: Path) -> None:
    (tmp_path / "OPTIONS-999999").write_text("damaged")
    (tmp_path / "OPTIONS-1000001.dbtmp").write_text("no file of options")
    (tmp_path / "OPTIONS-1000000").write_text(GOOD)
    reject_damaged_options(tmp_path)
    (tmp_path / "OPTIONS-1000000").unlink()
    with pytest.raises(StoreUnusableError, match="OPTIONS-999999 is damaged"):
        reject_damaged_options(tmp_path)


def test_one_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    (tmp_path / "OPTIONS-000007").mkdir()
    with pytest.raises(StoreUnusableError, match="cannot be read: Is a directory"):
        reject_damaged_options(tmp_path)
