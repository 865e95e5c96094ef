"""Blobs by `adlfs`, the file system of fsspec, and Parquet by pandas on it, where these are installed."""

from collections.abc import Iterator
from typing import Any

import pytest

from .blob_clients import Account, content, new_name

adlfs = pytest.importorskip("adlfs")


@pytest.fixture
def files(blob_account: Account) -> Any:
    """A file system on the account's blobs."""
    return adlfs.AzureBlobFileSystem(connection_string=blob_account.connection_string, skip_instance_cache=True)


@pytest.fixture
def directory(files: Any) -> Iterator[str]:
    """A container of its own."""
    name = new_name()
    files.mkdir(name)
    yield name
    files.rm(name, recursive=True)


def test_files_are_written_found_read_in_ranges_copied_and_deleted(files: Any, directory: str) -> None:
    data = content(9 << 20)
    with files.open(f"{directory}/deep/er/ü b.bin", "wb", block_size=1 << 20) as file:
        file.write(data)
    assert files.info(f"{directory}/deep/er/ü b.bin")["size"] == len(data)
    assert files.ls(f"{directory}/deep") == [f"{directory}/deep/er"]
    assert files.glob(f"{directory}/**/*.bin") == [f"{directory}/deep/er/ü b.bin"]
    with files.open(f"{directory}/deep/er/ü b.bin", "rb", block_size=1 << 16) as file:
        file.seek(8_000_000)
        assert file.read(100_000) == data[8_000_000:8_100_000]
    files.cp_file(f"{directory}/deep/er/ü b.bin", f"{directory}/copy")
    assert files.cat_file(f"{directory}/copy") == data
    with files.open(f"{directory}/log", "ab") as file:
        file.write(b"one")
    with files.open(f"{directory}/log", "ab") as file:
        file.write(b"two")
    assert files.cat_file(f"{directory}/log") == b"onetwo"
    files.rm(f"{directory}/deep", recursive=True)
    assert sorted(files.find(directory)) == [f"{directory}/copy", f"{directory}/log"]


def test_pandas_reads_partitioned_parquet(blob_account: Account, directory: str) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    options = {"connection_string": blob_account.connection_string}
    written = pandas.DataFrame({"year": [2024, 2025] * 500, "n": range(1000), "text": ["grün"] * 1000})
    url = f"abfs://{directory}/table"
    written.to_parquet(url, partition_cols=["year"], storage_options=options)
    read = pandas.read_parquet(url, storage_options=options, filters=[("year", "==", 2025), ("n", "<", 100)])
    assert sorted(read["n"]) == list(range(1, 100, 2))
    assert set(read["text"]) == {"grün"}
